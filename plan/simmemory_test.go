package plan_test

import (
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// TestBudget: two items of 10 fit in 25, and the third enters when the first has
// gone; the reservation shrinks when the stage that needs more is done.
func TestBudget(t *testing.T) {
	g := line([]string{"a", "b"}, pipeline.Workers(9), pipeline.Capacity(9))
	na, nb := takes(1), takes(1)
	na.Makes = []plan.Buffer{{Name: "x", Bytes: 10}}
	c := &plan.Costs{Nodes: map[string]plan.Node{"a": na, "b": nb}}
	set := plan.Settings{Items: 6}
	if err := set.Set("budget.host=25"); err != nil {
		t.Fatal(err)
	}
	p := simulate(t, g, c, set)
	wall(t, p, 6)
	if p.Peak != host(20) || p.Reserved != host(20) || p.Overdrawn != host(0) || p.Allocated != host(60) {
		t.Errorf("%+v", p)
	}
	// The source asks for the next item when it has got rid of the last.
	if p.Entry.Max != 2*time.Second || p.Latency.Mean != 2*time.Second {
		t.Errorf("%+v %+v", p.Entry, p.Latency)
	}
	// Scratch of 5 in a alone: 15 an item, of which b needs 10: the second item
	// enters with the end of the first in a.
	na.Scratch = []plan.Buffer{{Name: "s", Bytes: 5}}
	c.Nodes["a"] = na
	p = simulate(t, g, c, set)
	wall(t, p, 1+6)
	if p.Reserved != host(25) {
		t.Errorf("%+v", p)
	}
	// It can never fit.
	if err := set.Set("budget.host=14"); err != nil {
		t.Fatal(err)
	}
	if p = simulate(t, g, c, set); p.Err == "" || p.Items != 0 || p.Failed != 1 {
		t.Errorf("%+v", p)
	}
}

// TestLives: buffers are born and die at fractions of calls.
func TestLives(t *testing.T) {
	g := line([]string{"a", "b"})
	p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{
		"a": {Steps: []plan.Step{{Seconds: 4}}, Makes: []plan.Buffer{
			{Name: "x", Bytes: 10, From: 0.25, Readers: []plan.Reader{{Node: "b", Until: 0.5}}},
			{Name: "late", Bytes: 1, From: 1},
		}, Scratch: []plan.Buffer{{Name: "s", Bytes: 100, From: 0.5, Until: 0.75}}},
		"b": {Steps: []plan.Step{{Seconds: 3}, {Seconds: 1}}, Scratch: []plan.Buffer{{Name: "u", Bytes: 3, From: 0.75}, {Name: "v", Bytes: 2, From: 0.5}}},
	}}, plan.Settings{Items: 1}, plan.Record())
	wall(t, p, 8)
	want := map[string][2]float64{"x": {1, 6}, "late": {4, 8}}
	lives := map[int64][2]float64{100: {2, 3}, 3: {7, 8}, 2: {6, 8}}
	for _, b := range p.Trace.Buffers {
		w, ok := want[b.Purpose]
		if !ok {
			w = lives[b.Bytes]
		}
		if got := [2]float64{b.Born.Seconds(), b.Died.Seconds()}; got != w {
			t.Errorf("%+v: lives %v, want %v", b, got, w)
		}
	}
	if len(p.Trace.Buffers) != 5 || p.Peak != host(110) || p.Peaks[0].At != 3*time.Second {
		t.Errorf("%+v", p.Peaks)
	}
}

// TestKill: a run that needs more than there is ends there.
func TestKill(t *testing.T) {
	g := line([]string{"a", "b"}, pipeline.Capacity(pipeline.Unbounded))
	na := takes(1)
	na.Makes = []plan.Buffer{{Name: "x", Bytes: 10}}
	c := &plan.Costs{
		Machine: plan.Machine{Memory: host(45), Base: host(9)},
		Nodes:   map[string]plan.Node{"a": na, "b": takes(100)},
	}
	p := simulate(t, g, c, plan.Settings{Items: 9})
	if k := p.Killed; k == nil || k.At != 3*time.Second || k.Bytes != 49 || k.Limit != 45 || k.Space != alloc.Host ||
		k.Shares[0] != (plan.Share{Stage: "b", State: plan.Queued, Bytes: 20, Items: 2}) {
		t.Errorf("%+v", p.Killed)
	}
	c.Machine.Base = host(0)
	if p = simulate(t, g, c, plan.Settings{Items: 4}); p.Killed != nil || p.Peak != host(40) {
		t.Errorf("%+v", p.Killed)
	}
	// Pinned memory is host memory.
	na.Makes[0].Space = alloc.Pinned
	if p = simulate(t, g, c, plan.Settings{Items: 9}); p.Killed == nil || p.Killed.Space != alloc.Host || p.Killed.Bytes != 50 {
		t.Errorf("%+v", p.Killed)
	}
}

// TestFailures: a stage that fails by chance is tried again, and then fails its
// item, or everything.
func TestFailures(t *testing.T) {
	for _, policy := range []pipeline.Policy{pipeline.FailKey, pipeline.StopAll} {
		g := pipeline.New("failures", pipeline.OnError(policy), pipeline.Budget(alloc.Host, 100))
		src := pipeline.FromSlice(g, []int{0}, nil)
		a := pipeline.Via(src, nop("a"), pipeline.Workers(3), pipeline.Ordered())
		b := pipeline.Via(a, nop("b"), pipeline.Retry(1, time.Second), pipeline.Workers(2))
		c := pipeline.Via(a, nop("c"))
		sink(pipeline.Via(pipeline.Join2(b, c), nop2("d")))
		na, nb := takes(1), takes(1)
		na.Makes, nb.Makes = []plan.Buffer{{Bytes: 10}}, []plan.Buffer{{Bytes: 7}}
		nb.Fails = 0.5
		p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": na, "b": nb, "c": takes(0.3), "d": takes(0.1)}},
			plan.Settings{Items: 200, Seed: 3}, plan.Record())
		if policy == pipeline.StopAll {
			if p.Err == "" || p.Failed != 1 {
				t.Errorf("%+v", p)
			}
			continue
		}
		s := p.Stage("b")
		if p.Items+p.Failed != 200 || p.Failed < 30 || p.Failed > 70 || s.Calls != 200+s.Retries || s.Items != p.Items || p.Err != "" {
			t.Errorf("%d answered, %d failed, %+v", p.Items, p.Failed, s)
		}
		if p.Peak[alloc.Host] > 100 || p.Overdrawn != host(0) {
			t.Errorf("%v, %v", p.Peak, p.Overdrawn)
		}
		for _, b := range p.Trace.Buffers {
			if b.Died == 0 {
				t.Fatalf("a buffer is left: %+v", b)
			}
		}
	}
}

// TestCollected: what is kept leaves less and less of the budget.
func TestCollected(t *testing.T) {
	g := pipeline.New("collect", pipeline.Budget(alloc.Host, 35))
	pipeline.Collect(pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("a")))
	na := takes(1)
	na.Makes = []plan.Buffer{{Bytes: 10}}
	p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": na}}, plan.Settings{Items: 9})
	if p.Items != 3 || p.Err == "" || p.Peak != host(30) {
		t.Errorf("%+v", p)
	}
	if p = simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": na}}, plan.Settings{Items: 3}); p.Items != 3 || p.Err != "" {
		t.Errorf("%+v", p)
	}
}

// TestSources: two sources whose values meet, one of which is slower; and items
// that come now and then.
func TestSources(t *testing.T) {
	g := pipeline.New("sources")
	a := pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("a"))
	b := pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("b"))
	sink(pipeline.Via(pipeline.Join2(a, b), nop2("c")))
	p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": takes(1), "b": takes(2)}}, plan.Settings{Items: 5})
	wall(t, p, 10)
	if p.Items != 5 {
		t.Errorf("%+v", p)
	}
	p = simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": takes(1), "b": takes(2)}}, plan.Settings{Items: 5, Every: 10 * time.Second})
	wall(t, p, 42)
	if p.Latency.Max != 2*time.Second {
		t.Errorf("%+v", p.Latency)
	}
}

// TestSharesCountItemsOnce: an item that holds a buffer and scratch at one node is
// one item there.
func TestSharesCountItemsOnce(t *testing.T) {
	g := line([]string{"make", "use"}, pipeline.Workers(3))
	c := &plan.Costs{Nodes: map[string]plan.Node{
		"make": {Steps: []plan.Step{{Seconds: 1}}, Makes: []plan.Buffer{{Name: "x", Bytes: 5}}, Scratch: []plan.Buffer{{Name: "s", Bytes: 3}, {Name: "t", Bytes: 1}}},
		"use":  {Steps: []plan.Step{{Seconds: 0.1}}},
	}}
	p := simulate(t, g, c, plan.Settings{Items: 3})
	if len(p.Peaks) != 1 || len(p.Peaks[0].Shares) != 1 || p.Peaks[0].Shares[0] != (plan.Share{Stage: "make", State: plan.Held, Bytes: 27, Items: 3}) {
		t.Errorf("%+v", p.Peaks)
	}
}
