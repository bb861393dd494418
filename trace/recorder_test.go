package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// diamond is make → (read, slow) → join → end, with a budget.
func diamond(n int, opts ...pipeline.Option) *pipeline.Graph {
	g := pipeline.New("diamond", append([]pipeline.Option{pipeline.Budget(alloc.Host, 1<<20)}, opts...)...)
	src := pipeline.FromSlice(g, counted(n), intKey)
	needs := func(any) pipeline.Need {
		return pipeline.Need{Makes: []pipeline.Part{{Name: "w", Bytes: alloc.HostBytes(3000)}}}
	}
	mk := pipeline.Via(src, pipeline.WithNeeds(pipeline.NewStage("make", func(ctx context.Context, n int) (*pair, error) {
		time.Sleep(200 * time.Microsecond)
		return makePair(ctx, 2000, 1000)
	}), needs), pipeline.Workers(2), pipeline.Capacity(2))
	read := pipeline.Via(mk, pipeline.NewStage("read", func(ctx context.Context, p *pair) (int, error) {
		pipeline.Drop(ctx, p.b)
		time.Sleep(100 * time.Microsecond)
		return 1, nil
	}), pipeline.Ordered(), pipeline.Workers(3), pipeline.Capacity(2))
	slow := pipeline.Via(mk, pipeline.NewStage("slow", func(ctx context.Context, p *pair) (int, error) {
		time.Sleep(2 * time.Millisecond)
		return 2, nil
	}), pipeline.Workers(2))
	pipeline.ToFunc(pipeline.Join2(read, slow), func(context.Context, pipeline.Key, pipeline.Pair[int, int]) error { return nil }, pipeline.Name("end"))
	return g
}

// TestRecordingOfARun compares what was recorded with what the graph itself and
// alloc's tracker have counted.
func TestRecordingOfARun(t *testing.T) {
	clean(t)
	there, err := alloc.Make[byte](alloc.NewScope(alloc.StageOf("keys"), alloc.Host, nil), 500, alloc.Key, 0)
	if err != nil {
		t.Fatal(err)
	}
	alloc.Default().ResetPeaks()
	tr, rep, _ := recordRun(t, func(opts ...pipeline.Option) *pipeline.Graph { return diamond(20, opts...) },
		WithMeta(Meta{Program: "test", Labels: map[string]string{"curve": "none"}}))
	there.Release()
	if tr.Cut || tr.Err != "" || tr.Wall != rep.Wall || tr.Version != Version {
		t.Errorf("cut %v, error %q, wall %v of %v", tr.Cut, tr.Err, tr.Wall, rep.Wall)
	}
	if tr.Meta.Program != "test" || tr.Meta.Labels["curve"] != "none" || tr.Meta.Cores < 1 || tr.Meta.Budget[alloc.Host] != 1<<20 ||
		tr.Meta.Settings.Stages["read"].Workers != 3 || tr.Meta.Started == "" {
		t.Errorf("meta: %+v", tr.Meta)
	}
	if tr.Graph.Index("slow") < 0 || tr.Graph.Name != "diamond" {
		t.Errorf("graph: %+v", tr.Graph)
	}
	for _, s := range []alloc.Space{alloc.Host} {
		if _, peak := tr.CountTracked(s); peak != alloc.Default().Peak(s) || peak < 500+3000 {
			t.Errorf("%v: the recording peaks at %d, the tracker at %d", s, peak, alloc.Default().Peak(s))
		}
	}
	sums := tr.Stages()
	for _, s := range sums {
		r := rep.Stage(s.Stage)
		if int64(s.Items) != r.Items {
			t.Errorf("%s: %d items, the report says %d", s.Stage, s.Items, r.Items)
		}
		if d := (s.Busy - r.Busy).Abs(); d > time.Millisecond {
			t.Errorf("%s: busy %v, the report says %v", s.Stage, s.Busy, r.Busy)
		}
	}
	if s := sums[tr.Graph.Index("make")]; s.Made != alloc.HostBytes(20*3000) || s.Mean < 200*time.Microsecond {
		t.Errorf("make: %+v", s)
	}
	// One waits in the queue; what a worker has taken waits until its call begins.
	if s := sums[tr.Graph.Index("slow")]; s.Utilisation < 0.5 || s.Utilisation > 1.01 || s.Length < 1 || s.Length > 3 || s.Queued[alloc.Host] < 3000 {
		t.Errorf("slow: %+v", s)
	}
	if n := len(tr.Items); n != 20 {
		t.Fatalf("%d items", n)
	}
	for i, it := range tr.Items {
		if it.Key != intKey(i) || it.Left == Never || len(it.Needs) != 1 || it.Needs[0].Stage != "make" || it.Needs[0].Need.Makes[0].Bytes != alloc.HostBytes(3000) {
			t.Errorf("item %d: %+v", i, it)
		}
	}
	if &tr.Items[0].Needs[0] != &tr.Items[19].Needs[0] {
		t.Error("equal items do not share their needs")
	}
	checkDrops(t, tr)
	if len(tr.Samples) < 5 || tr.Samples[0].RSS == 0 {
		t.Errorf("samples: %+v", tr.Samples)
	}
	for i := range tr.Samples[1:] {
		if tr.Samples[i+1].CPU < tr.Samples[i].CPU {
			t.Errorf("processor time falls: %+v", tr.Samples[i:i+2])
		}
	}
}

// checkDrops: read lets go of the second buffer early, and of the first at its end.
func checkDrops(t *testing.T, tr *Trace) {
	t.Helper()
	node := tr.Graph.Index("read")
	for _, c := range tr.Calls {
		switch c.Node {
		case node:
			if len(c.Reads) != 2 || c.Reads[0].Until != c.End || c.Reads[1].Until >= c.End || c.Reads[1].Until < c.Begin ||
				tr.Buffers[c.Reads[1].Buffer].Bytes != 1000 {
				t.Errorf("a call of read: %+v", c)
			}
		case tr.Graph.Index("make"):
			if len(c.Makes) != 2 || tr.Buffers[c.Makes[0]].Purpose != "witness" || tr.Buffers[c.Makes[0]].Stage != "make" {
				t.Errorf("a call of make: %+v", c)
			}
		}
	}
	turns := 0
	for _, v := range tr.Visits {
		if v.Node == node {
			turns++
		}
	}
	if turns != len(tr.Items) {
		t.Errorf("%d values waited for their turn, want %d", turns, len(tr.Items))
	}
}

// levelsOf is an observer of its own beside the recorder: what is live after each
// change, in order.
type levelsOf struct {
	mu   sync.Mutex
	live int64
	list []int64
}

func (l *levelsOf) OnMemory(c alloc.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Space != alloc.Host || c.Kind == alloc.MappedFile {
		return
	}
	switch c.What {
	case alloc.Died:
		l.live -= c.Bytes
	case alloc.Born, alloc.Present:
		l.live += c.Bytes
	case alloc.Handed:
		return
	}
	l.list = append(l.list, l.live)
}

// TestLevelsAreTheTrackers: the sum of live buffers is, change by change, what
// the tracker had counted at that time, however many workers allocate.
func TestLevelsAreTheTrackers(t *testing.T) {
	clean(t)
	l := new(levelsOf)
	stop := alloc.Default().Observe(l)
	tr, _, _ := recordRun(t, func(opts ...pipeline.Option) *pipeline.Graph {
		g := pipeline.New("many", opts...)
		mk := pipeline.Via(pipeline.FromSlice(g, counted(300), intKey), pipeline.NewStage("make", func(ctx context.Context, n int) (*pair, error) {
			return makePair(ctx, 1+n, 1000-n)
		}), pipeline.Workers(4), pipeline.Capacity(8))
		pipeline.ToFunc(mk, func(ctx context.Context, _ pipeline.Key, p *pair) error {
			p.a.Hand(alloc.StageOf("elsewhere"))
			pipeline.Drop(ctx, p.a)
			return nil
		}, pipeline.Workers(3))
		return g
	})
	stop()
	var steps []int64
	for _, p := range tr.Levels(alloc.Host) {
		if n := len(steps); n == 0 || steps[n-1] != p.Bytes {
			steps = append(steps, p.Bytes)
		}
	}
	want := slices.Compact(l.list)
	if len(want) > 0 && want[len(want)-1] == 0 && len(steps) < len(want) {
		steps = append(steps, 0) // the last death may be at the very end of the run
	}
	if !slices.Equal(steps, want) {
		t.Errorf("%d levels, the tracker had %d; they differ", len(steps), len(want))
	}
	hands := 0
	for _, b := range tr.Buffers {
		hands += len(b.Hands)
	}
	if hands != 300 {
		t.Errorf("%d hand-overs, want 300", hands)
	}
}

// TestRecordingOfFailures: failed items, repetitions, restarts, what was thrown
// away, and changes while the graph runs.
func TestRecordingOfFailures(t *testing.T) {
	clean(t)
	var tries sync.Map
	tr, rep, _ := recordRun(t, func(opts ...pipeline.Option) *pipeline.Graph {
		g := pipeline.New("failing", append(opts, pipeline.OnError(pipeline.FailKey))...)
		src := pipeline.FromSlice(g, counted(6), intKey, pipeline.Restart(1))
		a := pipeline.Via(src, pipeline.NewStage("a", func(ctx context.Context, n int) (*pair, error) { return makePair(ctx, 10, 20) }), pipeline.Name("a"))
		b := pipeline.Via(src, pipeline.NewStage("b", func(_ context.Context, n int) (int, error) {
			_, again := tries.LoadOrStore(n, true)
			switch {
			case n == 1:
				return 0, errTest
			case n == 2 && !again:
				return 0, flaky{errTest}
			case n == 4:
				return n, g.SetWorkers("a", 3)
			}
			return n, nil
		}))
		pipeline.ToFunc(pipeline.Join2(a, b), func(_ context.Context, _ pipeline.Key, p pipeline.Pair[*pair, int]) error {
			_, again := tries.LoadOrStore(100+p.B, true)
			if p.B == 3 && !again {
				return flaky{errTest}
			}
			return nil
		}, pipeline.Retry(2), pipeline.Name("end"))
		return g
	})
	if rep.Failed != 1 || rep.Restarted != 1 {
		t.Fatalf("%+v", rep)
	}
	count := make(map[NoteKind]int)
	for _, n := range tr.Notes {
		count[n.Kind]++
		switch n.Kind {
		case Failed, Restarted, Retried:
			want := map[NoteKind]int{Failed: 1, Restarted: 2, Retried: 3}[n.Kind]
			if n.Item == None || tr.Items[n.Item].Key.Part != want || !strings.Contains(n.Text, errTest.Error()) {
				t.Errorf("note %+v", n)
			}
		case Workers:
			if n.N != 3 || tr.Graph.Nodes[n.Node].Name != "a" {
				t.Errorf("note %+v", n)
			}
		}
	}
	if count[Failed] != 1 || count[Restarted] != 1 || count[Retried] != 1 || count[Workers] != 1 || count[Capacity] != 0 {
		t.Errorf("notes: %v", count)
	}
	if len(tr.Items) != 7 {
		t.Errorf("%d attempts at items", len(tr.Items))
	}
	for _, it := range tr.Items {
		bad := it.Key.Part == 1 || it.Key.Part == 2 && it.Attempt == 0
		if bad != (it.Err != "") || it.Left == Never {
			t.Errorf("item %+v", it)
		}
	}
	for _, c := range tr.Calls {
		if c.Node == tr.Graph.Index("end") && (c.Attempt > 0) != (tr.Items[c.Item].Key.Part == 3) {
			t.Errorf("call %+v", c)
		}
	}
}

// TestRecordingOfCollected: what is collected is there until the end.
func TestRecordingOfCollected(t *testing.T) {
	clean(t)
	var got *pipeline.Collected[*pair]
	tr, _, _ := recordRun(t, func(opts ...pipeline.Option) *pipeline.Graph {
		g := pipeline.New("collecting", opts...)
		got = pipeline.Collect(pipeline.Via(pipeline.FromSlice(g, counted(4), intKey), pipeline.NewStage("make",
			func(ctx context.Context, n int) (*pair, error) { return makePair(ctx, 100, 0) })), pipeline.Name("all"))
		return g
	})
	for _, p := range got.Values() {
		p.a.Release()
		p.b.Release()
	}
	if at, bytes, _ := tr.Peak(alloc.Host); bytes != 400 || at == 0 {
		t.Errorf("peak of %d at %v", bytes, at)
	}
	levels := tr.Levels(alloc.Host) // when it peaks, some may still be on their way
	if end := levels[len(levels)-1]; len(end.Shares) != 1 || end.Shares[0].Stage != "all" || end.Shares[0].State != Held || end.Shares[0].Bytes != 400 || end.Shares[0].Items != 4 {
		t.Errorf("in the end: %+v", end)
	}
	live, _ := tr.CountTracked(alloc.Host)
	if live != 400 {
		t.Errorf("%d bytes in the end", live)
	}
}

// TestRecordingIsReadUpToTheCut cuts a file at every byte.
func TestRecordingIsReadUpToTheCut(t *testing.T) {
	clean(t)
	whole, _, file := recordRun(t, func(opts ...pipeline.Option) *pipeline.Graph { return diamond(60, opts...) })
	first := 0
	calls := -1
	for n := range len(file) {
		tr, err := Read(bytes.NewReader(file[:n]))
		var bad *FormatError
		switch {
		case err != nil && !errors.As(err, &bad):
			t.Fatalf("cut at %d: %v", n, err)
		case err != nil && first > 0:
			t.Fatalf("cut at %d it is not read, but cut at %d it is: %v", n, first, err)
		case err != nil:
			continue
		}
		if first == 0 {
			first = n
		}
		if !tr.Cut || len(tr.Calls) < calls || len(tr.Calls) > len(whole.Calls) {
			t.Fatalf("cut at %d: cut %v, %d calls", n, tr.Cut, len(tr.Calls))
		}
		if len(tr.Calls) != calls {
			check(t, tr)
		}
		calls = len(tr.Calls)
	}
	if first == 0 || first > 4000 {
		t.Errorf("nothing can be read before byte %d", first)
	}
}

// TestRecorderFlushes: what is old is written although the buffer is not full.
func TestRecorderFlushes(t *testing.T) {
	clean(t)
	path := filepath.Join(t.TempDir(), "run.trace")
	rec, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	g := pipeline.New("slow", rec.Option())
	release := make(chan struct{})
	pipeline.ToFunc(pipeline.FromSlice(g, counted(2), intKey), func(context.Context, pipeline.Key, int) error { <-release; return nil })
	done := make(chan error)
	var rep *pipeline.Report
	go func() {
		var err error
		rep, err = g.Run(context.Background())
		done <- err
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		tr, err := ReadFile(path)
		if err == nil && tr.Cut && len(tr.Calls) == 1 && tr.Calls[0].Err == Unended && len(tr.Visits) == 1 {
			break // one is worked on, one waits
		}
		if time.Now().After(end) {
			t.Fatalf("the file does not grow: %+v, %v", tr, err)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(rep); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(rep); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if tr, err := ReadFile(path); err != nil || tr.Cut || len(tr.Calls) != 2 {
		t.Errorf("%+v, %v", tr, err)
	}
}

type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		return 0, io.ErrShortWrite
	}
	d.room -= len(p)
	return len(p), nil
}

// TestRecorderErrors: the run goes on when the recording cannot.
func TestRecorderErrors(t *testing.T) {
	clean(t)
	rec := NewRecorder(&fullDisk{100})
	rep, err := diamond(5, rec.Option()).Run(context.Background())
	if err != nil || rep.Items != 5 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if err := rec.Close(rep); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("the error is %v", err)
	}
	if err := rec.Close(rep); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a second time it is %v", err)
	}
	if alloc.Default().Observed() {
		t.Error("it observes after its end")
	}
	never := NewRecorder(io.Discard)
	if err := never.Close(nil); err != nil {
		t.Error(err)
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "folder")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	var none *FormatError
	if _, err := Read(strings.NewReader("something else")); !errors.As(err, &none) || none.Section != "header" {
		t.Errorf("another file: %v", err)
	}
	if _, err := Read(strings.NewReader(magic[:len(magic)-1] + "\x63")); err == nil || !strings.Contains(err.Error(), fmt.Sprint(0x63)) {
		t.Errorf("another version: %v", err)
	}
}
