package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// pageText is a page of a trace.
func pageText(t testing.TB, tr *trace.Trace) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// known is a run whose peak one can tell by looking: at 12.4 s synthesize holds
// 3.1 GiB in 4 items while 2 GiB of two more wait before ntt.
func known() *trace.Trace {
	const at, end = 12400 * time.Millisecond, 20 * time.Second
	t := &trace.Trace{Wall: end, Graph: pipeline.Topology{Name: "known", Nodes: []pipeline.Node{
		{Name: "jobs", Kind: pipeline.KindSource},
		{Name: "synthesize", Kind: pipeline.KindStage, Workers: 4, Capacity: 1, Preds: []int{0}},
		{Name: "ntt", Kind: pipeline.KindStage, Workers: 1, Capacity: 2, Preds: []int{1}},
		{Name: "proofs", Kind: pipeline.KindSink, Workers: 1, Capacity: 1, Preds: []int{2}},
	}}}
	t.Meta.Budget = alloc.HostBytes(6 * alloc.GiB)
	item := func(begin, done, taken time.Duration, bytes int64) {
		i := len(t.Items)
		t.Items = append(t.Items, trace.Item{Key: pipeline.Key{Job: "sector", Part: i}, Left: end})
		t.Buffers = append(t.Buffers, trace.Buffer{Space: alloc.Host, Stage: "synthesize", Bytes: bytes, Item: i, Call: len(t.Calls), Born: begin, Died: taken + time.Second})
		t.Calls = append(t.Calls, trace.Call{Item: i, Node: 1, Worker: i % 4, Queued: begin, Begin: begin, End: done, Out: done, Device: trace.None, Makes: []int{i}})
		t.Calls = append(t.Calls, trace.Call{Item: i, Node: 2, Queued: done, Begin: taken, End: taken + time.Second, Out: taken + time.Second, Device: trace.None, Reads: []trace.Ref{{Buffer: i, Until: taken + time.Second}}})
	}
	for range 2 {
		item(time.Second, 10*time.Second, 13*time.Second, alloc.GiB)
	}
	for range 4 {
		item(at, 14*time.Second, 15*time.Second, 31*alloc.GiB/40)
	}
	return tidy(t)
}

const knownPeak = "at 12.4 s: synthesize holds 3.1 GiB in 4 items, 2.0 GiB in 2 items wait before ntt"

func TestPeakIsExplained(t *testing.T) {
	html := pageText(t, known())
	if !strings.Contains(html, knownPeak) {
		t.Errorf("the page does not say %q", knownPeak)
	}
	for _, want := range []string{"5.1 GiB at most, of a budget of 6.0 GiB (85%)", "6 items went through in 20 s: 18 a minute", "The busiest stage was synthesize"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestPeakIsTheTraces: the page and the recording's own summary name one peak.
func TestPeakIsTheTraces(t *testing.T) {
	tr := sample(12)
	nodes, _, _ := factsOf(tr)
	m := memoryOf(tr, alloc.Device(0), nodes)
	at, bytes, shares := tr.Peak(alloc.Device(0))
	if m.Peak.At != at || m.Peak.Bytes != bytes || len(m.Peak.Shares) != len(shares) {
		t.Errorf("the page has %v %d %v, the trace %v %d %v", m.Peak.At, m.Peak.Bytes, m.Peak.Shares, at, bytes, shares)
	}
	if top := m.ByStage.peak(); int64(top) != bytes {
		t.Errorf("the chart by stage goes up to %v, not %d", top, bytes)
	}
	if top := m.ByState.peak(); int64(top) != bytes {
		t.Errorf("the chart by state goes up to %v, not %d", top, bytes)
	}
	host := memoryOf(tr, alloc.Host, nodes)
	if host.Apart != 800*alloc.MiB {
		t.Errorf("%d bytes belong to no item, want the key's", host.Apart)
	}
	if _, with, _ := tr.Peak(alloc.Host); with != host.Peak.Bytes+host.Apart {
		t.Errorf("items peak at %d with %d apart, the trace at %d", host.Peak.Bytes, host.Apart, with)
	}
}

func TestMarkupIsText(t *testing.T) {
	html := pageText(t, hostile())
	if n := strings.Count(html, "<script"); n != 2 {
		t.Errorf("%d elements begin with <script, want the data and the script", n)
	}
	for _, bad := range []string{"<img", "<b>bold", "<i>", "<u>", "</script><b>"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;alert(1)", "out of memory &amp; more", "The recording ends before the run did", "1 item failed", "3 events could not be recorded"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

func TestLargeRunIsASmallPage(t *testing.T) {
	if n := len(pageText(t, sample(10_000))); n > 5<<20 {
		t.Errorf("a run of 10,000 items makes a page of %d bytes", n)
	}
}

// TestOddTraces: whatever a trace says, there is a page, and it is whole.
func TestOddTraces(t *testing.T) {
	odd := map[string]*trace.Trace{"zero": {}, "one item": sample(1), "no graph": {Calls: sample(2).Calls, Buffers: sample(2).Buffers, Wall: time.Second}}
	all := sample(3)
	all.Meta = trace.Meta{}
	odd["nothing known of the machine"] = all
	for name, tr := range odd {
		if html := pageText(t, tr); !strings.HasSuffix(html, "</html>\n") {
			t.Errorf("%s: the page ends with %q", name, html[len(html)-20:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		tr := sample(rapid.IntRange(0, 5).Draw(t, "items"))
		index := rapid.IntRange(-3, 12)
		moment := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-5e9, 2e10).Draw(t, "ns"))
		})
		tr.Wall = moment.Draw(t, "wall")
		for i := range tr.Calls {
			if rapid.IntRange(0, 3).Draw(t, "spoil") > 0 {
				continue
			}
			c := &tr.Calls[i]
			c.Item, c.Node, c.Worker, c.Device = index.Draw(t, "item"), index.Draw(t, "node"), index.Draw(t, "worker"), index.Draw(t, "device")
			c.Queued, c.Begin, c.End, c.Out = moment.Draw(t, "queued"), moment.Draw(t, "begin"), moment.Draw(t, "end"), moment.Draw(t, "out")
			c.Makes = append(c.Makes, index.Draw(t, "makes"))
			c.Err = rapid.StringN(0, 5, 10).Draw(t, "err")
		}
		for i := range tr.Buffers {
			if b := &tr.Buffers[i]; rapid.IntRange(0, 3).Draw(t, "spoil") == 0 {
				b.Space, b.Bytes = alloc.Space(rapid.Uint8Range(0, 12).Draw(t, "space")), rapid.Int64().Draw(t, "bytes")
				b.Born, b.Died, b.Call, b.Item = moment.Draw(t, "born"), moment.Draw(t, "died"), index.Draw(t, "call"), index.Draw(t, "item")
			}
		}
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			tr.Visits = append(tr.Visits, trace.Visit{Item: index.Draw(t, "item"), Node: index.Draw(t, "node"), From: moment.Draw(t, "from"), Until: moment.Draw(t, "until"), Buffers: []int{index.Draw(t, "buffer")}})
			tr.Notes = append(tr.Notes, trace.Note{At: moment.Draw(t, "at"), Kind: trace.NoteKind(rapid.Uint8Range(0, 9).Draw(t, "kind")), Node: index.Draw(t, "node"), Item: index.Draw(t, "item"), Text: rapid.String().Draw(t, "text")})
		}
		for i := range tr.Graph.Nodes {
			if rapid.IntRange(0, 5).Draw(t, "spoil") == 0 {
				tr.Graph.Nodes[i].Name = rapid.String().Draw(t, "name")
				tr.Graph.Nodes[i].Workers, tr.Graph.Nodes[i].Capacity = index.Draw(t, "workers"), index.Draw(t, "capacity")
			}
		}
		var b bytes.Buffer
		if err := Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		if html := b.String(); strings.Contains(html, "NaN") || strings.Contains(html, "Inf") {
			t.Fatal("the page holds a number that is none")
		}
	})
}

// TestKilledRun draws every prefix of a recording that can be read.
func TestKilledRun(t *testing.T) {
	var file bytes.Buffer
	rec := trace.NewRecorder(&file)
	g := pipeline.New("killed", rec.Option())
	in := pipeline.FromSlice(g, []int{1, 2, 3, 4, 5, 6}, func(n int) pipeline.Key { return pipeline.Key{Job: "j", Part: n} })
	stage := pipeline.NewStage("work", func(ctx context.Context, n int) (*alloc.Buffer[byte], error) {
		return alloc.Make[byte](alloc.ScopeOf(ctx), n<<12, alloc.Scratch, 0)
	})
	pipeline.ToFunc(pipeline.Via(in, stage, pipeline.Workers(2)), func(context.Context, pipeline.Key, *alloc.Buffer[byte]) error { return nil })
	rep, err := g.Run(t.Context())
	if err := errors.Join(err, rec.Close(rep)); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	read := 0
	for n := len(whole); n > 0; n -= 1 + n/16 {
		tr, err := trace.Read(bytes.NewReader(whole[:n]))
		if err != nil {
			continue
		}
		read++
		if html := pageText(t, tr); n < len(whole)-1 && tr.Cut && !strings.Contains(html, "The recording ends before the run did") {
			t.Errorf("the first %d of %d bytes: the page does not say that it was cut", n, len(whole))
		}
	}
	if read == 0 {
		t.Fatal("no prefix could be read")
	}
	if html := pageText(t, mustRead(t, whole)); !strings.Contains(html, "6 items went through") {
		t.Error("the page of the whole run does not tell its items")
	}
}

func mustRead(t *testing.T, b []byte) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// failing is a writer that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestWriteErrors(t *testing.T) {
	if err := Write(failing{}, sample(1)); err == nil || !strings.Contains(err.Error(), "groth16") || !strings.Contains(err.Error(), "no room") {
		t.Errorf("%v", err)
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		spanText(12400 * time.Millisecond):                     "12.4 s",
		spanText(999999 * time.Microsecond):                    "1 s",
		spanText(1500 * time.Microsecond):                      "1.5 ms",
		spanText(200 * time.Second):                            "3 min 20 s",
		spanText(3*time.Hour + time.Minute):                    "3 h 1 min",
		spanText(700 * time.Nanosecond):                        "700 ns",
		rate(6, 20*time.Second):                                "18 a minute",
		rate(30, 10*time.Second):                               "3 a second",
		rate(1, 48*time.Hour):                                  "0.5 a day",
		listed([]string{"a", "b", "c"}):                        "a, b and c",
		share(math.NaN()):                                      noValue,
		byteText(1.5*float64(alloc.GiB), float64(alloc.GiB/2)): "1.5 GiB",
		byteText(float64(10*alloc.MiB), float64(10*alloc.MiB)): "10 MiB",
		timeText(90, 30):                                       "1:30 min",
		timeText(0.25, 0.05):                                   "250 ms",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTicks: ticks are few, rise, lie within, and read differently.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hi := math.Pow(10, rapid.Float64Range(-5, 13).Draw(t, "magnitude"))
		for name, tk := range map[string]ticker{"time": timeTicker(6), "bytes": byteTicker(4), "whole": wholeTicker(4)} {
			if name == "bytes" && hi < 4 || name == "whole" && hi < 4 || name == "whole" && hi > 1e5 || name == "time" && hi > 1e8 {
				continue
			}
			ticks := tk.Ticks(0, hi)
			if len(ticks) < 2 || len(ticks) > 14 {
				t.Fatalf("%s up to %v: %d ticks", name, hi, len(ticks))
			}
			for i, tick := range ticks {
				if tick.Value < 0 || tick.Value > hi*1.0001 {
					t.Fatalf("%s up to %v: a tick at %v", name, hi, tick.Value)
				}
				if i > 0 && ticks[i-1].Label == tick.Label {
					t.Fatalf("%s up to %v: two ticks read %q", name, hi, tick.Label)
				}
			}
		}
	})
}

// TestByteTicks: sizes read round on either side of a unit's end.
func TestByteTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   string
	}{
		{13.2 * float64(alloc.MiB), 17.6 * float64(alloc.MiB), 9, "13.5 MiB 14.0 MiB 14.5 MiB 15.0 MiB 15.5 MiB 16.0 MiB 16.5 MiB 17.0 MiB 17.5 MiB"},
		{0, 1.2 * float64(alloc.GiB), 5, "0 256 MiB 512 MiB 768 MiB 1.00 GiB"},
		{0, 600 * float64(alloc.MiB), 4, "0 200 MiB 400 MiB 600 MiB"},
		{0, 3, 5, "0 1 B 2 B 3 B"},
	} {
		var got []string
		for _, tick := range byteTicker(c.n).Ticks(c.lo, c.hi) {
			got = append(got, tick.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s", c.lo, c.hi, s)
		}
	}
}

// TestThin: thinning keeps the peak, and what is shown was there at one moment.
func TestThin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSteps(2, 10*time.Second)
		n := rapid.IntRange(1, 200).Draw(t, "steps")
		for i := range n {
			s.put(time.Duration(i)*10*time.Second/time.Duration(n), []float64{float64(rapid.IntRange(0, 9).Draw(t, "a")), float64(rapid.IntRange(0, 9).Draw(t, "b"))})
		}
		there := make(map[string]bool)
		for i := range s.X {
			there[fmt.Sprint(s.Rows[0][i], s.Rows[1][i])] = true
		}
		bins := rapid.IntRange(1, 50).Draw(t, "bins")
		thin := s.thin(bins)
		if len(thin.X) > max(bins, len(s.X)) || len(s.X) > bins && len(thin.X) > bins {
			t.Fatalf("%d steps of %d in %d bins", len(thin.X), len(s.X), bins)
		}
		if thin.peak() != s.peak() {
			t.Fatalf("the peak was %v and is %v", s.peak(), thin.peak())
		}
		for i := range thin.X {
			if !there[fmt.Sprint(thin.Rows[0][i], thin.Rows[1][i])] {
				t.Fatalf("step %d was never there", i)
			}
		}
	})
}

// TestLayout: nodes of a layer keep their distance, and every link goes ahead.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "nodes")
		preds := make([][]int, n)
		for i := 1; i < n; i++ {
			for range rapid.IntRange(0, min(3, i)).Draw(t, "preds") {
				preds[i] = append(preds[i], rapid.IntRange(0, i-1).Draw(t, "pred"))
			}
		}
		l := layoutOf(preds)
		for k, layer := range l.Layers {
			for i, s := range layer {
				if s.Pos < -1e-9 || math.IsNaN(s.Pos) {
					t.Fatalf("layer %d: a place at %v", k, s.Pos)
				}
				if i > 0 && s.Pos < layer[i-1].Pos+1-1e-6 {
					t.Fatalf("layer %d: places at %v and %v", k, layer[i-1].Pos, s.Pos)
				}
			}
		}
		links := 0
		for _, p := range preds {
			links += len(p)
		}
		if len(l.Paths) != links {
			t.Fatalf("%d links of %d", len(l.Paths), links)
		}
		for _, r := range l.Paths {
			if from, to := l.At[r.From].Layer, l.At[r.To].Layer; to-from != len(r.Via)+1 {
				t.Fatalf("a link from layer %d to %d crosses %d", from, to, len(r.Via))
			}
		}
	})
}

// TestLanesMergeShortCalls: merging loses no call and no work.
func TestLanesMergeShortCalls(t *testing.T) {
	var calls []*trace.Call
	var work time.Duration
	for i := range 1000 {
		at := time.Duration(i) * time.Millisecond
		calls = append(calls, &trace.Call{Item: i, Begin: at, End: at + 800*time.Microsecond, Out: at + 800*time.Microsecond})
		work += 800 * time.Microsecond
	}
	cells := cellsOf(calls, time.Second, 5000)
	n, sum := 0, 0
	for i := 0; i < len(cells); i += 5 {
		if cells[i] < -1 {
			n, sum = n-cells[i], sum+cells[i+3]
		} else {
			n, sum = n+1, sum+cells[i+2]
		}
	}
	if len(cells)/5 > 210 || n != 1000 {
		t.Errorf("%d calls in %d cells", n, len(cells)/5)
	}
	if want := int(work.Seconds() * laneScale); sum < want*99/100 || sum > want*101/100 {
		t.Errorf("%d parts of work, want %d", sum, want)
	}
}
