package trace

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/snarkline/snarkline/pipeline"
)

// exportAll writes everything there is to write.
func exportAll(t testing.TB, tr *Trace) {
	t.Helper()
	for name, write := range map[string]func(io.Writer) error{
		"perfetto": tr.WritePerfetto, "pprof": tr.WritePprof, "items": tr.WriteItemsCSV, "calls": tr.WriteCallsCSV, "buffers": tr.WriteBuffersCSV,
	} {
		if err := write(io.Discard); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

type chromeFile struct {
	Events []chromeEvent `json:"traceEvents"`
}

func perfettoOf(t *testing.T, tr *Trace) chromeFile {
	t.Helper()
	var b bytes.Buffer
	if err := tr.WritePerfetto(&b); err != nil {
		t.Fatal(err)
	}
	var f chromeFile
	dec := json.NewDecoder(&b)
	dec.DisallowUnknownFields()
	var outer struct {
		Unit   string            `json:"displayTimeUnit"`
		Other  map[string]string `json:"otherData"`
		Events []chromeEvent     `json:"traceEvents"`
	}
	if err := dec.Decode(&outer); err != nil {
		t.Fatal(err)
	}
	if outer.Other["graph"] != tr.Graph.Name {
		t.Errorf("other data: %v", outer.Other)
	}
	f.Events = outer.Events
	return f
}

func TestPerfetto(t *testing.T) {
	tr := handMade()
	f := perfettoOf(t, tr)
	threads := make(map[int]string)
	peaks := make(map[string]float64)
	last := make(map[string]float64)
	at := make(map[string]float64)
	flows := make(map[string]string)
	var slices []string
	for _, e := range f.Events {
		switch e.Phase {
		case "M":
			if e.Name == "thread_name" {
				threads[e.TID] = e.Args["name"].(string)
			}
		case "C":
			if at[e.Name] > e.TS {
				t.Errorf("counter %s goes back from %v to %v", e.Name, at[e.Name], e.TS)
			}
			at[e.Name] = e.TS
			for _, v := range e.Args {
				n, ok := v.(float64)
				if !ok || len(e.Args) != 1 {
					t.Fatalf("counter %+v", e)
				}
				peaks[e.Name] = max(peaks[e.Name], n)
				last[e.Name] = n
			}
		case "s", "t", "f":
			flows[e.ID] += e.Phase
		case "X":
			slices = append(slices, fmt.Sprintf("%s: %s %g+%g", threads[e.TID], e.Name, e.TS/1000, *e.Dur/1000))
		}
	}
	want := []string{"make 0: j/0 0+10", "make 0: waits for room 10+2", "make 1: j/1 6+14", "read 0: j/0 12+28", "end 0: j/0 50+20", "read 0: j/1 40+40", "end 0: j/1 80+10"}
	if got := strings.Join(slices, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("slices:\n%s", got)
	}
	if flows["0"] != "stf" || flows["1"] != "stf" {
		t.Errorf("arrows: %v", flows)
	}
	for name, n := range map[string]float64{"host": 3100, "host make": 3000, "host read": 3000, "host end": 2000, "host keys": 100,
		"host (held)": 3000, "host (queued)": 2000, "host (pending)": 1000, "device0": 7, "host budget": 5000,
		"queue of read": 1, "waiting in join": 2, "resident memory": 1 << 20, "processors in use": 1.6} {
		if peaks[name] != n {
			t.Errorf("counter %s peaks at %v, want %v", name, peaks[name], n)
		}
	}
	if last["host"] != 100 || last["host end"] != 0 || last["queue of read"] != 0 || last["device0"] != 0 {
		t.Errorf("counters in the end: %v", last)
	}
}

// TestPerfettoOfARun: what was recorded is exported as a whole.
func TestPerfettoOfARun(t *testing.T) {
	clean(t)
	tr, _, _ := recordRun(t, func(opts ...pipeline.Option) *pipeline.Graph { return diamond(10, opts...) })
	calls, items := 0, 0
	for _, e := range perfettoOf(t, tr).Events {
		switch {
		case e.Phase == "X" && e.Cat == "call":
			calls++
		case e.Phase == "b":
			items++
		}
	}
	if calls != len(tr.Calls) || calls != 40 || items != 10 {
		t.Errorf("%d calls and %d items", calls, items)
	}
}

func TestPprof(t *testing.T) {
	tr := handMade()
	path := filepath.Join(t.TempDir(), "peak.pprof")
	var b bytes.Buffer
	if err := tr.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]int64)
	for _, s := range p.Sample {
		sums[s.Label["space"][0]+": "+s.Location[0].Line[0].Function.Name] += s.Value[0]
	}
	if sums["host: make held"] != 3000 || sums["host: keys other"] != 100 || sums["device0: read held"] != 7 || len(sums) != 3 {
		t.Errorf("the profile says %v", sums)
	}
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command to open the profile with")
	}
	out, err := exec.Command(gocmd, "tool", "pprof", "-top", "-cum", "-unit=b", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"3000B", "make held", "keys", "Type: peak_space"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("pprof does not say %q:\n%s", want, out)
		}
	}
}

func TestCSV(t *testing.T) {
	tr := handMade()
	tr.Items[1].Left = Never
	read := func(write func(io.Writer) error) [][]string {
		t.Helper()
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	items, calls, buffers := read(tr.WriteItemsCSV), read(tr.WriteCallsCSV), read(tr.WriteBuffersCSV)
	if len(items) != 3 || strings.Join(items[2], " ") != "1 j 1 0 0.005000000 0.005000000  " {
		t.Errorf("items: %q", items)
	}
	if len(calls) != 7 || strings.Join(calls[1], " ") != "0 0 make 0  0.000000000 0.000000000 0.010000000 0.012000000 0 0 1000  0.000000000" {
		t.Errorf("calls: %q", calls[:2])
	}
	if len(buffers) != 7 || strings.Join(buffers[1], " ") != "0 host keys key memory 100   0.000000000 " ||
		strings.Join(buffers[4], " ") != "3 host make witness memory 1000 0 0 0.005000000 0.070000000" {
		t.Errorf("buffers: %q", buffers)
	}
	broken := writerFunc(func([]byte) (int, error) { return 0, errTest })
	for name, write := range map[string]func(io.Writer) error{"perfetto": tr.WritePerfetto, "pprof": tr.WritePprof, "csv": tr.WriteCallsCSV} {
		if err := write(broken); !errors.Is(err, errTest) {
			t.Errorf("%s into what cannot be written: %v", name, err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
