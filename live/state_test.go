package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/synth"
	"github.com/snarkline/snarkline/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStateAgainstReport: what a State says at the end is what the report says,
// and while it runs the items are where the report counts them.
func TestStateAgainstReport(t *testing.T) {
	mark := alloc.Marked()
	state := live.New(live.Options{Total: 40, Interval: 5 * time.Millisecond})
	g := synth.Graph(synth.Options{Items: 40, Step: 2 * time.Millisecond, Bytes: 1 << 20, Budget: 30 << 20, FailAt: 9,
		Options: []pipeline.Option{pipeline.Listen(state)}})
	if s := state.Snapshot(); s.Phase != "waiting" || s.ETA >= 0 || len(s.Spaces) == 0 {
		t.Errorf("before the run: %+v", s)
	}
	state.Watch(g)
	var wg sync.WaitGroup
	var report *pipeline.Report
	var err error
	wg.Go(func() { report, err = g.Run(t.Context()) })
	seen := map[string]bool{}
	for {
		s := state.Snapshot()
		for _, it := range s.Items {
			for _, p := range it.Places {
				seen[p.State] = true
			}
		}
		if s.Phase == "running" && s.InFlight > 40 {
			t.Errorf("%d items are in flight", s.InFlight)
		}
		for _, st := range s.Stages {
			if st.Use < 0 || st.Use > 1 || math.IsNaN(st.Rate) || st.Rate < 0 {
				t.Fatalf("%s: use %v, rate %v", st.Name, st.Use, st.Rate)
			}
		}
		if s.Done+s.Failed == 40 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	state.End(report, nil)
	s := state.Snapshot()
	if s.Phase != "ended" || s.Done != report.Items || s.Failed != 1 || s.Wall != report.Wall || s.ETA != 0 || s.Error != "" {
		t.Errorf("at the end: %s, %d done, %d failed, %v, ETA %v, error %q", s.Phase, s.Done, s.Failed, s.Wall, s.ETA, s.Error)
	}
	if len(s.Items) != 0 {
		t.Errorf("items in flight at the end: %+v", s.Items)
	}
	if len(s.Failures) != 1 || s.Failures[0].Stage != "h-msm" || s.Failures[0].Key.Part != 9 || s.Failures[0].Error != synth.ErrAsked.Error() {
		t.Errorf("failures: %+v", s.Failures)
	}
	for _, want := range []string{live.InQueue, live.Running, live.InJoin} {
		if !seen[want] {
			t.Errorf("no item was ever %s", want)
		}
	}
	if s.Budget == nil || s.Spaces[0].Limit != 30<<20 || s.Spaces[0].Reserved != 0 {
		t.Errorf("budget: %+v, host %+v", s.Budget, s.Spaces[0])
	}
	points, first := state.History(0)
	if len(points) < 3 || first != 0 || points[len(points)-1].Done != s.Done {
		t.Errorf("%d points from %d", len(points), first)
	}
	made := int64(0)
	for _, p := range points {
		for _, n := range p.Spaces[0].Made {
			made = max(made, n)
		}
	}
	if made == 0 {
		t.Error("the history knows of no stage's memory")
	}
	if text, err := json.Marshal(s); err != nil || !json.Valid(text) {
		t.Errorf("as JSON: %v", err)
	}
	mark.CheckLeaks(t)
}

// TestUtilisation: a stage of two workers one of which is always at work is half
// used, also while its calls have not ended.
func TestUtilisation(t *testing.T) {
	state := live.New(live.Options{Interval: 5 * time.Millisecond})
	g := pipeline.New("half", pipeline.Listen(state))
	src := pipeline.FromSlice(g, []int{1}, func(n int) pipeline.Key { return pipeline.Key{Part: n} })
	through := make(chan struct{})
	out := pipeline.Via(src, pipeline.NewStage("long", func(ctx context.Context, n int) (int, error) {
		<-through
		return n, nil
	}), pipeline.Workers(2))
	pipeline.ToFunc(out, func(context.Context, pipeline.Key, int) error { return nil })
	state.Watch(g)
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := g.Run(context.Background())
		state.End(r, err)
	})
	deadline := time.Now().Add(5 * time.Second)
	for {
		s := state.Snapshot()
		if use := useOf(s, "long"); use > 0.45 && use <= 0.5 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("use of %v, want nearly 0.5", useOf(s, "long"))
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(through)
	wg.Wait()
}

func useOf(s *live.Snapshot, name string) float64 {
	for _, st := range s.Stages {
		if st.Name == name {
			return st.Use
		}
	}
	return -1
}

// TestBounded: however many items, events and failures there are, what is kept
// stays small.
func TestBounded(t *testing.T) {
	s := live.New(live.Options{History: 10})
	for i := range 3 * live.MaxItems {
		key := pipeline.Key{Part: i}
		s.OnEvent(pipeline.Event{Kind: pipeline.Admitted, Key: key, Item: uint64(i + 1), Stage: "source"})
		s.OnEvent(pipeline.Event{Kind: pipeline.Failed, Key: key, Item: uint64(i + 1), Stage: "s", Err: errors.New("bad")})
		s.Note("x")
	}
	snap := s.Snapshot()
	text, err := json.Marshal(snap)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 64<<10 {
		t.Errorf("a snapshot of %d bytes", len(text))
	}
	for i := range 3 * live.MaxItems {
		s.OnEvent(pipeline.Event{Kind: pipeline.Left, Key: pipeline.Key{Part: i}, Item: uint64(i + 1)})
	}
	if n := len(s.Snapshot().Items); n != 0 {
		t.Errorf("%d items are still there", n)
	}
}

// TestAgain: an item that is made again is where its new attempt is; what the
// old one still does is not taken for it.
func TestAgain(t *testing.T) {
	s := live.New(live.Options{})
	key := pipeline.Key{Job: "a", Part: 1}
	places := func() string {
		text := ""
		for _, it := range s.Snapshot().Items {
			text += fmt.Sprint(it.Attempt, ":")
			for _, p := range it.Places {
				text += " " + p.State
			}
		}
		return text
	}
	hear := func(kind pipeline.EventKind, item uint64, stage string, attempt int) {
		s.OnEvent(pipeline.Event{Kind: kind, Key: key, Item: item, Stage: stage, Attempt: attempt})
	}
	hear(pipeline.Admitted, 1, "source", 0)
	hear(pipeline.Begin, 1, "one", 0)
	hear(pipeline.Queued, 1, "one", 0) // told after the fact
	if got := places(); got != "0: running" {
		t.Errorf("at first %q", got)
	}
	s.OnEvent(pipeline.Event{Kind: pipeline.Restarted, Key: key, Item: 1, Stage: "one", Attempt: 1, Err: errors.New("lost the card")})
	hear(pipeline.Begin, 1, "two", 0)
	if got := places(); got != "1:" {
		t.Errorf("between the attempts %q", got)
	}
	hear(pipeline.Admitted, 2, "source", 0)
	hear(pipeline.Queued, 2, "one", 0)
	hear(pipeline.End, 1, "two", 0)
	if got := places(); got != "1: queued" {
		t.Errorf("in the second attempt %q", got)
	}
	if n := s.Snapshot().Notes; len(n) != 1 {
		t.Errorf("notes: %v", n)
	}
}

// TestEndWithoutRun: a run that never began ends all the same.
func TestEndWithoutRun(t *testing.T) {
	s := live.New(live.Options{})
	s.End(nil, errors.New("no key"))
	s.End(nil, nil)
	if snap := s.Snapshot(); snap.Phase != "ended" || snap.Error != "no key" {
		t.Errorf("%s, %q", snap.Phase, snap.Error)
	}
	s.Watch(pipeline.New("late")) // does nothing
}

func BenchmarkOnEvent(b *testing.B) {
	s := live.New(live.Options{})
	key := pipeline.Key{Job: "a", Part: 1}
	s.OnEvent(pipeline.Event{Kind: pipeline.Admitted, Key: key, Item: 1})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.OnEvent(pipeline.Event{Kind: pipeline.Queued, Key: key, Item: 1, Stage: "ntt"})
			s.OnEvent(pipeline.Event{Kind: pipeline.Begin, Key: key, Item: 1, Stage: "ntt"})
			s.OnEvent(pipeline.Event{Kind: pipeline.End, Key: key, Item: 1, Stage: "ntt"})
			s.OnEvent(pipeline.Event{Kind: pipeline.Sent, Key: key, Item: 1, Stage: "ntt"})
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	state := live.New(live.Options{})
	g := synth.Graph(synth.Options{Items: 50, Options: []pipeline.Option{pipeline.Listen(state)}})
	state.Watch(g)
	r, err := g.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	state.End(r, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(state.Snapshot()); err != nil {
			b.Fatal(err)
		}
	}
}
