package plan_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// nop is a stage that the simulator only looks at from outside.
func nop(name string) pipeline.Stage[int, int] {
	return pipeline.NewStage(name, func(_ context.Context, n int) (int, error) { return n, nil })
}

func nop2(name string) pipeline.Stage[pipeline.Pair[int, int], int] {
	return pipeline.NewStage(name, func(_ context.Context, p pipeline.Pair[int, int]) (int, error) { return p.A, nil })
}

func sink(p *pipeline.Port[int]) {
	pipeline.ToFunc(p, func(context.Context, pipeline.Key, int) error { return nil })
}

// line is a graph of stages one behind the other.
func line(names []string, opts ...pipeline.NodeOption) *pipeline.Graph {
	g := pipeline.New("line")
	p := pipeline.FromSlice(g, []int{0}, nil)
	for _, n := range names {
		p = pipeline.Via(p, nop(n), opts...)
	}
	sink(p)
	return g
}

func takes(seconds float64) plan.Node {
	return plan.Node{Steps: []plan.Step{{Seconds: seconds, Cores: 1}}}
}

func simulate(t testing.TB, g *pipeline.Graph, c *plan.Costs, set plan.Settings, opts ...plan.Option) *plan.Prediction {
	t.Helper()
	p, err := plan.Simulate(g, c, set, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wall(t testing.TB, p *plan.Prediction, seconds float64) {
	t.Helper()
	if got := p.Wall.Seconds(); math.Abs(got-seconds) > 1e-6 {
		t.Errorf("it takes %v s, want %v", got, seconds)
	}
	if p.Err != "" || p.Killed != nil {
		t.Errorf("it ends with %q, %+v", p.Err, p.Killed)
	}
}

func host(n int64) alloc.Amount { return alloc.HostBytes(n) }

// TestLine is two stages of 1 s and 3 s with a queue of 1: a worker of the first
// waits with its value while one is worked on and one is queued.
func TestLine(t *testing.T) {
	g := line([]string{"a", "b"})
	c := &plan.Costs{Nodes: map[string]plan.Node{"a": takes(1), "b": takes(3)}}
	p := simulate(t, g, c, plan.Settings{Items: 5})
	wall(t, p, 1+5*3)
	if p.Items != 5 || math.Abs(p.Throughput-5./16) > 1e-9 {
		t.Errorf("%d items, %v a second", p.Items, p.Throughput)
	}
	a, b := p.Stage("a"), p.Stage("b")
	if a.Busy != 5*time.Second || b.Busy != 15*time.Second || a.Calls != 5 {
		t.Errorf("busy %v and %v", a.Busy, b.Busy)
	}
	// a ends at 1, 2, 3; the third waits until b takes the second at 4, and so on:
	// 3→4, 5→7, 8→10.
	if want := 5 * time.Second; a.WaitOut != want {
		t.Errorf("a waits for room for %v, want %v", a.WaitOut, want)
	}
	if b.QueuePeak != 1 || p.PeakInFlight != 5 {
		t.Errorf("%d queued, %d in flight", b.QueuePeak, p.PeakInFlight)
	}
	// Without an end to its queue, a is done after 5 s.
	set := plan.Settings{Items: 5}
	if err := set.Set("b.capacity=unbounded"); err != nil {
		t.Fatal(err)
	}
	if p = simulate(t, g, c, set); p.Stage("a").WaitOut != 0 || p.Stage("b").QueuePeak != 3 {
		t.Errorf("%+v", p.Stage("b"))
	}
	// Two workers at b: 1.5 s an item.
	if err := set.Set("b.workers=3"); err != nil {
		t.Fatal(err)
	}
	wall(t, simulate(t, g, c, set), 5+3)
}

func nop3(_ context.Context, p pipeline.Tuple3[int, int, int]) (int, error) { return p.A, nil }
