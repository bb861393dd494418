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

// fork is a graph of stages that all read one source.
func fork(names []string, opts ...pipeline.NodeOption) *pipeline.Graph {
	g := pipeline.New("fork")
	src := pipeline.FromSlice(g, []int{0}, nil)
	for _, n := range names {
		sink(pipeline.Via(src, nop(n), opts...))
	}
	return g
}

// TestSharedCores: who asks for more cores than there are is slowed by one factor.
func TestSharedCores(t *testing.T) {
	g := fork([]string{"a", "b"})
	for _, c := range []struct {
		cores, sa, ca, sb, cb float64
		a, wall               float64
	}{
		{2, 2, 1, 2, 1, 2, 2},
		{1, 2, 1, 2, 1, 4, 4},
		{1, 1, 1, 3, 1, 2, 4},         // halves until 2, then b alone with 2 s left
		{2, 3, 2, 3, 1, 4.5, 4.5},     // two thirds each
		{2, 1, 2, 2, 2, 2, 3},         // halves, then alone
		{1.5, 3, 1, 3, 0, 3, 3},       // b needs none
		{0, 3, 100, 3, 100, 3, 3},     // no limit
		{2, 2, 4, 1, 0, 4, 4},         // more than there are, alone
		{1, 1e-9, 1, 1, 1, 2e-9, 1.0}, // very different lengths
	} {
		p := simulate(t, g, &plan.Costs{Machine: plan.Machine{Cores: c.cores}, Nodes: map[string]plan.Node{
			"a": {Steps: []plan.Step{{Seconds: c.sa, Cores: c.ca}}},
			"b": {Steps: []plan.Step{{Seconds: c.sb, Cores: c.cb}}},
		}}, plan.Settings{Items: 1})
		wall(t, p, c.wall)
		if got := p.Stage("a").Busy.Seconds(); math.Abs(got-c.a) > 1e-6 {
			t.Errorf("%+v: a takes %v", c, got)
		}
		if c.cores > 0 {
			want := (min(c.sa*c.ca, c.a*c.cores) + min(c.sb*c.cb, c.wall*c.cores)) / c.cores / c.wall
			if got := p.Use[0].Fraction; math.Abs(got-want) > 0.26 || got > 1+1e-9 {
				t.Errorf("%+v: %v of the cores, want about %v", c, got, want)
			}
		}
	}
}

// TestSharedLink: transfers share a link, and run beside the seconds of their step.
func TestSharedLink(t *testing.T) {
	g := fork([]string{"a", "b"})
	for _, c := range []struct {
		sa     float64
		ba, bb int64
		a, b   float64
	}{
		{0, 100, 300, 2, 4},
		{5, 100, 300, 5, 4},
		{1, 100, 0, 1, 0},
		{0, 200, 200, 4, 4},
	} {
		p := simulate(t, g, &plan.Costs{
			Machine: plan.Machine{Cores: 1, Links: []plan.Link{{Name: "pcie", BytesPerSecond: 100}}},
			Nodes: map[string]plan.Node{
				"a": {Steps: []plan.Step{{Seconds: c.sa, Link: "pcie", LinkBytes: c.ba}}},
				"b": {Steps: []plan.Step{{Link: "pcie", LinkBytes: c.bb}}},
			}}, plan.Settings{Items: 1})
		a, b := p.Stage("a").Busy.Seconds(), p.Stage("b").Busy.Seconds()
		if math.Abs(a-c.a) > 1e-6 || math.Abs(b-c.b) > 1e-6 {
			t.Errorf("%+v: %v and %v", c, a, b)
		}
		wall(t, p, max(c.a, c.b))
		link := float64(c.ba+c.bb) / 100 / max(c.a, c.b)
		if got := p.Use[1]; got.Name != "pcie" || math.Abs(got.Fraction-link) > 1e-9 {
			t.Errorf("%+v: %+v, want %v", c, got, link)
		}
	}
}

// TestDevices: an exclusive step has its device alone, in order; others share it.
func TestDevices(t *testing.T) {
	g := line([]string{"a"}, pipeline.Workers(2))
	gpu := func(speed float64) plan.Device { return plan.Device{Name: "gpu", Space: alloc.Device(0), Speed: speed} }
	for _, c := range []struct {
		name      string
		exclusive bool
		devices   []plan.Device
		wall      float64
		waits     float64
	}{
		{"one", true, []plan.Device{gpu(0)}, 1 + 2 + 2, 2},
		{"shared", false, []plan.Device{gpu(0)}, 1 + 4, 0},
		{"fast", true, []plan.Device{gpu(2)}, 1 + 1 + 1, 1},
		{"two", true, []plan.Device{gpu(0), gpu(0)}, 1 + 2, 0},
		{"two, shared", false, []plan.Device{gpu(0), gpu(0)}, 1 + 2, 0},
	} {
		p := simulate(t, g, &plan.Costs{Machine: plan.Machine{Devices: c.devices}, Nodes: map[string]plan.Node{
			"a": {Steps: []plan.Step{{Seconds: 1}, {Seconds: 2, Device: "gpu", Exclusive: c.exclusive}}},
		}}, plan.Settings{Items: 2})
		wall(t, p, c.wall)
		if got := p.Stage("a").WaitDevice.Seconds(); math.Abs(got-c.waits) > 1e-6 {
			t.Errorf("%s: waits %v s for the device", c.name, got)
		}
	}
}

// TestJoin: the value that comes first waits in the join, and is live there.
func TestJoin(t *testing.T) {
	g := pipeline.New("join")
	src := pipeline.FromSlice(g, []int{0}, nil)
	a, b := pipeline.Via(src, nop("a")), pipeline.Via(src, nop("b"))
	sink(pipeline.Via(pipeline.Join2(a, b, pipeline.Name("both")), nop2("c")))
	na, nb := takes(1), takes(4)
	na.Makes = []plan.Buffer{{Name: "x", Bytes: 10}}
	nb.Makes = []plan.Buffer{{Name: "y", Bytes: 5, From: 1}}
	p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": na, "b": nb, "c": takes(1)}}, plan.Settings{Items: 1}, plan.Record())
	wall(t, p, 5)
	if j := p.Stage("both"); j.Items != 1 || j.QueuePeak != 1 || math.Abs(j.Queue-3./5) > 1e-9 {
		t.Errorf("%+v", j)
	}
	if p.Peak != host(15) || p.Peaks[0].At != 5*time.Second || p.Peaks[0].Shares[0] != (plan.Share{Stage: "c", State: plan.Held, Bytes: 15, Items: 1}) {
		t.Errorf("%+v", p.Peaks)
	}
	tr := p.Trace
	if len(tr.Visits) != 1 || tr.Visits[0].From != time.Second || tr.Visits[0].Until != 4*time.Second || len(tr.Visits[0].Buffers) != 1 {
		t.Errorf("%+v", tr.Visits)
	}
	if len(tr.Calls) != 4 || len(tr.Buffers) != 2 || tr.Buffers[0].Born != 0 || tr.Buffers[0].Died != 5*time.Second {
		t.Errorf("%+v\n%+v", tr.Calls, tr.Buffers)
	}
}

// TestOrdered: values leave an ordered stage as their items entered, others as
// they finish.
func TestOrdered(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		opts := []pipeline.NodeOption{pipeline.Workers(4), pipeline.Capacity(4)}
		if ordered {
			opts = append(opts, pipeline.Ordered())
		}
		g := pipeline.New("ordered")
		sink(pipeline.Via(pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("a"), opts...), nop("b")))
		p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{
			"a": {Steps: []plan.Step{{Seconds: 1, Spread: 1}}}, "b": takes(0.01),
		}}, plan.Settings{Items: 50, Seed: 1}, plan.Record())
		if p.Items != 50 {
			t.Fatalf("%+v", p)
		}
		last, sorted := -1, true
		for _, c := range p.Trace.Calls {
			if p.Trace.Graph.Nodes[c.Node].Name == "b" {
				k := p.Trace.Items[c.Item].Key.Part
				sorted = sorted && k > last
				last = k
			}
		}
		if sorted != ordered {
			t.Errorf("ordered %v: in order %v", ordered, sorted)
		}
	}
}

func TestWrongInput(t *testing.T) {
	g := line([]string{"a", "b"})
	for name, c := range map[string]*plan.Costs{
		"unknown node":   {Nodes: map[string]plan.Node{"x": {}}},
		"negative":       {Nodes: map[string]plan.Node{"a": takes(-1)}},
		"reader":         {Nodes: map[string]plan.Node{"a": {Makes: []plan.Buffer{{Readers: []plan.Reader{{Node: "x"}}}}}}},
		"reader before":  {Nodes: map[string]plan.Node{"b": {Makes: []plan.Buffer{{Readers: []plan.Reader{{Node: "a"}}}}}}},
		"device":         {Nodes: map[string]plan.Node{"a": {Steps: []plan.Step{{Device: "x"}}}}},
		"link":           {Nodes: map[string]plan.Node{"a": {Steps: []plan.Step{{LinkBytes: 1}}}}},
		"fraction":       {Nodes: map[string]plan.Node{"a": {Makes: []plan.Buffer{{From: 2}}}}},
		"source":         {Nodes: map[string]plan.Node{"source": takes(1)}},
		"machine":        {Machine: plan.Machine{Cores: math.NaN()}},
		"class":          {Items: []plan.Class{{Weight: -1}}},
		"scratch":        {Nodes: map[string]plan.Node{"a": {Scratch: []plan.Buffer{{From: 0.5, Until: 0.2}}}}},
		"bytes":          {Nodes: map[string]plan.Node{"a": {Scratch: []plan.Buffer{{Bytes: -1}}}}},
		"chance to fail": {Nodes: map[string]plan.Node{"a": {Fails: 1.5}}},
	} {
		if _, err := plan.Simulate(g, c, plan.Settings{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, item := range []string{"x.workers=1", "source.capacity=3"} {
		var set plan.Settings
		if err := set.Set(item); err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Simulate(g, &plan.Costs{}, set); err == nil {
			t.Errorf("%s: no error", item)
		}
	}
	if _, err := plan.Simulate(g, &plan.Costs{}, plan.Settings{Rules: plan.Rules{AdmitUntil: "x"}}); err == nil {
		t.Error("a rule about nothing: no error")
	}
}
