package plan

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

func itoa(n int) string { return strconv.Itoa(n) }

// fake is a runner whose outcomes follow from the workers of a and b by a
// formula: throughput is the smaller of their shares, memory grows with both, and
// a point with more than four workers together is killed.
type fake struct {
	simulates bool
	meaning   map[string]string
	ran       atomic.Int64
	fail      func(n int64) error
	factor    float64
}

func (f *fake) Simulates() bool            { return f.simulates }
func (f *fake) Parallel() int              { return 3 }
func (f *fake) Meaning() map[string]string { return f.meaning }

func (f *fake) Run(ctx context.Context, p Point) (*Outcome, error) {
	n := f.ran.Add(1)
	if f.fail != nil {
		if err := f.fail(n); err != nil {
			return nil, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	a, b := max(p.Settings.Stages["a"].Workers, 1), max(p.Settings.Stages["b"].Workers, 1)
	if a+b > 4 {
		return &Outcome{Failure: &Failure{Kind: Killed, Text: "host: 5 of 4 GiB", At: time.Second}}, nil
	}
	rate := min(float64(a)/2, float64(b)/3)
	if f.factor != 0 {
		rate *= f.factor
	}
	return &Outcome{Items: 10, Throughput: rate, Wall: time.Duration(10 / rate * float64(time.Second)),
		Peak: alloc.HostBytes(int64(a+b) << 30),
		Stages: []StageOutcome{
			{Name: "a", Workers: a, Busy: rate / (float64(a) / 2), Made: alloc.HostBytes(int64(a) << 30)},
			{Name: "b", Workers: b, Busy: rate / (float64(b) / 3), Made: alloc.HostBytes(int64(b) << 30)},
		}}, nil
}

func twoStages(t *testing.T, axes ...string) Space {
	t.Helper()
	s, err := ParseSpace([]string{"a", "b"}, pipeline.Settings{}, axes...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSweep(t *testing.T) {
	var seen []Progress
	r, err := Sweep(t.Context(), twoStages(t, "a.workers=1..3", "b.workers=1..3"), &fake{},
		OnProgress(func(p Progress) { seen = append(seen, p) }))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 9 || r.Ran != 9 || len(seen) != 9 || seen[8].Done != 9 || seen[8].Total != 9 || seen[8].Left != 0 {
		t.Errorf("%d rows, %d runs, %+v", len(r.Rows), r.Ran, seen)
	}
	// 3+3, 3+2, 2+3 are killed; 2+2 gives 2/3 as 1+2 gives 1/2, 1+1 1/3, 1+3 1/2.
	var keys []string
	for _, i := range r.Pareto(alloc.Host) {
		keys = append(keys, r.Rows[i].Key())
	}
	if want := []string{"a.workers=1 b.workers=1", "a.workers=1 b.workers=2", "a.workers=2 b.workers=2"}; !slices.Equal(keys, want) {
		t.Errorf("front %q", keys)
	}
	if b := r.Best(); b.Key() != "a.workers=2 b.workers=2" {
		t.Errorf("best %q", b.Key())
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table, 0); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	for i, want := range map[int]string{1: "0.6667", 9: "killed: host: 5 of 4 GiB"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d of the table has no %q:\n%s", i, want, table.String())
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back SweepResult
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, text) || !reflect.DeepEqual(back.Rows, r.Rows) {
		t.Errorf("%v, %s is read as %s", err, text, again)
	}
}

func TestSweepCSV(t *testing.T) {
	r, err := Sweep(t.Context(), twoStages(t, "a.workers=1..2", "b.workers=2..3"), &fake{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	recs, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(recs) != 5 {
		t.Fatalf("%v %v", recs, err)
	}
	col := func(row int, name string) string { return recs[row][slices.Index(recs[0], name)] }
	if col(1, "measured_items_per_second") != "0.5" || col(1, "simulated_items") != "" || col(4, "measured_failure") != "killed: host: 5 of 4 GiB" {
		t.Errorf("%v", recs)
	}
	if col(1, "measured_peak_host_bytes") != itoa(3<<30) || col(1, "front") != "true" || col(2, "front") != "false" {
		t.Errorf("%v", recs)
	}
}

func TestGrid(t *testing.T) {
	r, err := Sweep(t.Context(), twoStages(t, "a.workers=1..3", "b.workers=1..3", "a.capacity=1,2"), &fake{})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Metrics()
	if len(m) != 2 || m[0].Name != "throughput" || m[1].Name != "peak host" {
		t.Fatalf("%+v", m)
	}
	cells := r.Grid(0, 1, m[0])
	if len(cells) != 9 || cells[0].Value != 1.0/3 || cells[0].Runs != 2 || cells[8].Row != -1 || cells[8].Fail != 2 || cells[8].Why == "" {
		t.Errorf("%+v", cells)
	}
	if c := r.Grid(0, 0, m[1]); len(c) != 3 || c[2].Value != float64(4<<30) {
		t.Errorf("%+v", c)
	}
}

// TestSweepResumes: a sweep that breaks off in the middle, in the middle of a
// line, goes on where it was.
func TestSweepResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	space := twoStages(t, "a.workers=1..3", "b.workers=1..3")
	broken := errors.New("out of luck")
	f := &fake{meaning: map[string]string{"circuit": "x"}, fail: func(n int64) error {
		if n > 5 {
			return broken
		}
		return nil
	}}
	part, err := Sweep(t.Context(), space, f, ResultsFile(path))
	if !errors.Is(err, broken) || part == nil || part.Ran < 3 || part.Ran > 5 {
		t.Fatalf("%v, %+v", err, part)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-7], 0o600); err != nil {
		t.Fatal(err)
	}
	f = &fake{meaning: f.meaning}
	whole, err := Sweep(t.Context(), space, f, ResultsFile(path))
	if err != nil {
		t.Fatal(err)
	}
	if whole.Known != part.Ran-1 || whole.Ran != 9-whole.Known || f.ran.Load() != int64(whole.Ran) {
		t.Errorf("%d known, %d run", whole.Known, whole.Ran)
	}
	again, err := Sweep(t.Context(), space, f, ResultsFile(path))
	if err != nil || again.Ran != 0 || again.Known != 9 {
		t.Errorf("%v, %+v", err, again)
	}
	if !reflect.DeepEqual(again.Rows, whole.Rows) {
		t.Error("the file does not give back what was put in")
	}
	// A larger space makes use of what there is.
	wider, err := Sweep(t.Context(), twoStages(t, "a.workers=1..4", "b.workers=1..3"), f, ResultsFile(path))
	if err != nil || wider.Ran != 3 || wider.Known != 9 {
		t.Errorf("%v, %+v", err, wider)
	}
}

func TestResultsOfAnotherSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sweep.jsonl")
	space := twoStages(t, "a.workers=1")
	if _, err := Sweep(t.Context(), space, &fake{meaning: map[string]string{"circuit": "x", "cores": "2"}}, ResultsFile(path)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		meaning map[string]string
		want    MeaningError
	}{
		{map[string]string{"circuit": "y", "cores": "2"}, MeaningError{path, "circuit", "x", "y"}},
		{map[string]string{"circuit": "x"}, MeaningError{path, "cores", "2", ""}},
		{map[string]string{"circuit": "x", "cores": "2", "device": "cpu"}, MeaningError{path, "device", "", "cpu"}},
	} {
		f := &fake{meaning: c.meaning}
		_, err := Sweep(t.Context(), space, f, ResultsFile(path))
		var m *MeaningError
		if !errors.As(err, &m) || *m != c.want || f.ran.Load() > 0 {
			t.Errorf("%v: %v", c.meaning, err)
		}
	}
	for name, text := range map[string]string{
		"other":  "hello\n",
		"other2": "hello",
		"future": `{"snarkline_sweep":99}` + "\n",
		"odd":    `{"snarkline_sweep":1,"meaning":{}}` + "\n{}\n",
		"odd2":   `{"snarkline_sweep":1,"meaning":{}}` + "\nno\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Sweep(t.Context(), space, &fake{}, ResultsFile(p))
		if err == nil || !strings.Contains(err.Error(), p+":") {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadFile(p); string(left) != text {
			t.Errorf("%s was changed to %q", name, left)
		}
	}
	first := filepath.Join(dir, "cut")
	if err := os.WriteFile(first, []byte(`{"snarkline_swe`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Sweep(t.Context(), space, &fake{}, ResultsFile(first)); err != nil || r.Ran != 1 {
		t.Errorf("a file cut in its first line: %v", err)
	}
}

func TestResultsAreLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	_, err := Sweep(t.Context(), twoStages(t, "a.workers=1"), RunnerFunc(func(ctx context.Context, p Point) (*Outcome, error) {
		_, err := Sweep(ctx, twoStages(t, "a.workers=1"), &fake{}, ResultsFile(path))
		if err == nil || !strings.Contains(err.Error(), "in use by another sweep") {
			t.Errorf("%v", err)
		}
		return &Outcome{}, nil
	}), ResultsFile(path))
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	real := &fake{factor: 0.9}
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	space := twoStages(t, "a.workers=1..3", "b.workers=1..3")
	r, err := Sweep(t.Context(), space, &fake{simulates: true}, Verify(4, real), Repeat(3), ResultsFile(path))
	if err != nil {
		t.Fatal(err)
	}
	var both int
	for _, row := range r.Rows {
		if row.Measured != nil {
			both++
			if row.Measured.Repeats != 3 {
				t.Errorf("%+v", row.Measured)
			}
		}
	}
	if both != 4 || real.ran.Load() != 12 || r.Best().Measured == nil || r.Best().Key() != "a.workers=2 b.workers=2" {
		t.Errorf("%d verified, %d runs, best %+v", both, real.ran.Load(), r.Best())
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table, 5); err != nil || !strings.Contains(table.String(), "+11.1%") || !strings.Contains(table.String(), "4 more rows") {
		t.Errorf("%v\n%s", err, table.String())
	}
	table.Reset() // what was verified is there, however much faster others are predicted
	if err := r.WriteTable(&table, 4); err != nil || strings.Count(table.String(), "+11.1%") != 4 {
		t.Errorf("%v\n%s", err, table.String())
	}
	if r, err = Sweep(t.Context(), space, &fake{simulates: true}, Verify(4, real), Repeat(3), ResultsFile(path)); err != nil || r.Ran != 0 {
		t.Errorf("%v %+v", err, r)
	}
	if _, err := Sweep(t.Context(), space, &fake{}, Verify(1, real)); err == nil {
		t.Error("verified what is real already")
	}
}

// TestMiddle: a setting that fails now and then fails, and peaks are the largest.
func TestMiddle(t *testing.T) {
	a := &Outcome{Wall: 3, Peak: alloc.HostBytes(1)}
	b := &Outcome{Wall: 1, Peak: alloc.HostBytes(5)}
	c := &Outcome{Wall: 2, Resident: 7}
	if o := middle([]*Outcome{a, b, c}); o.Wall != 2 || o.Peak[0] != 5 || o.Resident != 7 || o.Repeats != 3 {
		t.Errorf("%+v", o)
	}
	if o := middle([]*Outcome{a, {Failure: &Failure{Kind: Killed}}}); o.OK() {
		t.Errorf("%+v", o)
	}
}

func TestSweepCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	f := &fake{fail: func(n int64) error {
		if n == 4 {
			cancel(why)
		}
		return nil
	}}
	r, err := Sweep(ctx, twoStages(t, "a.workers=1..10", "b.workers=1..10"), f)
	if !errors.Is(err, why) || r == nil || r.Ran > 10 {
		t.Errorf("%v after %d", err, r.Ran)
	}
}

// TestSweepCancelledAtOnce: a large space does not hold up who has had enough.
func TestSweepCancelledAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	f := &fake{}
	if _, err := Sweep(ctx, twoStages(t, "a.workers=1..900", "b.workers=1..900"), f); !errors.Is(err, why) || f.ran.Load() != 0 {
		t.Errorf("%v after %d", err, f.ran.Load())
	}
}

func TestSamePointsRunOnce(t *testing.T) {
	f := &fake{}
	r, err := Sweep(t.Context(), twoStages(t, "a.workers=1..3", "all.workers=2"), f)
	if err != nil || f.ran.Load() != 1 || r.Rows[2].Measured == nil {
		t.Errorf("%v, %d runs", err, f.ran.Load())
	}
}

func TestInProcess(t *testing.T) {
	run := InProcess(func(_ context.Context, p Point) (*pipeline.Graph, error) {
		g := pipeline.New("t", pipeline.WithSettings(p.Settings))
		src := pipeline.FromSlice(g, []int{1, 2, 3}, func(i int) pipeline.Key { return pipeline.Key{Part: i} })
		st := pipeline.NewStage("a", func(ctx context.Context, n int) (*alloc.Buffer[byte], error) {
			return alloc.Make[byte](alloc.ScopeOf(ctx), 1<<20, alloc.Scratch, 0)
		})
		need := func(any) pipeline.Need {
			return pipeline.Need{Makes: []pipeline.Part{{Name: "x", Bytes: alloc.HostBytes(1 << 20)}}}
		}
		pipeline.ToFunc(pipeline.Via(src, pipeline.WithNeeds(st, need)),
			func(context.Context, pipeline.Key, *alloc.Buffer[byte]) error { return nil })
		return g, nil
	})
	space, err := ParseSpace([]string{"a"}, pipeline.Settings{}, "a.workers=1..2", "budget.host=512KiB,4MiB")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Sweep(t.Context(), space, run)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range r.Rows {
		o := row.Measured
		if i%2 == 0 {
			if o.OK() || o.Failure.Kind != TooLarge {
				t.Errorf("%v: %+v", row.Values, o)
			}
			continue
		}
		if !o.OK() || o.Items != 3 || o.Peak[0] < 1<<20 || o.Peak[0] > 4<<20 || len(o.Stages) != 1 || o.Stages[0].Workers != i/2+1 {
			t.Errorf("%v: %+v", row.Values, o)
		}
	}
	broken := InProcess(func(context.Context, Point) (*pipeline.Graph, error) { return nil, os.ErrNotExist })
	if _, err := Sweep(t.Context(), space, broken); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
