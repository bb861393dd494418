package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/trace"
)

// recorded is a simulated run as if it had been recorded.
func recorded(t testing.TB, g *pipeline.Graph, c *plan.Costs, set plan.Settings) *plan.Prediction {
	t.Helper()
	p := simulate(t, g, c, set, plan.Record())
	if p.Err != "" || p.Killed != nil {
		t.Fatalf("%s, %+v", p.Err, p.Killed)
	}
	return p
}

func fitted(t testing.TB, tr *trace.Trace) *plan.Fit {
	t.Helper()
	f, err := plan.FitTrace(tr)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func off(got, want float64) float64 { return math.Abs(got/want - 1) }

// TestFitAlone: where nothing is short, costs come back as they were.
func TestFitAlone(t *testing.T) {
	c := groth16Costs(0)
	c.Machine.Cores = 64
	p := recorded(t, groth16(1, 1), c, plan.Settings{Items: 24})
	f := fitted(t, p.Trace)
	if f.Residual > 0.02 {
		t.Errorf("the cores leave %v of the processor time unexplained", f.Residual)
	}
	for name, want := range c.Nodes {
		got := f.Costs.Nodes[name]
		if len(got.Steps) != 1 || off(got.Steps[0].Seconds, want.Steps[0].Seconds) > 1e-3 || got.Steps[0].Spread > 1e-3 || got.Steps[0].Device != "" {
			t.Errorf("%s: %+v, want %+v", name, got.Steps, want.Steps)
			continue
		}
		if s := want.Steps[0]; s.Seconds > 0.05 && off(got.Steps[0].Cores, s.Cores) > 0.05 {
			t.Errorf("%s keeps %v cores busy, want %v", name, got.Steps[0].Cores, s.Cores)
		}
		buffers(t, name, got.Makes, want.Makes)
		if len(got.Scratch) != len(want.Scratch) {
			t.Errorf("%s: scratch %+v, want %+v", name, got.Scratch, want.Scratch)
		}
		for i, b := range got.Scratch {
			if w := want.Scratch[i]; b.Bytes != w.Bytes || math.Abs(b.From-w.From) > 1e-3 || math.Abs(b.Until-1) > 1e-3 {
				t.Errorf("%s: scratch %+v, want %+v", name, b, w)
			}
		}
	}
}

func buffers(t *testing.T, name string, got, want []plan.Buffer) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s makes %+v, want %+v", name, got, want)
		return
	}
	for i, b := range got {
		w := want[i]
		if b.Name != w.Name || b.Bytes != w.Bytes || math.Abs(b.From-w.From) > 1e-3 || len(b.Readers) != len(w.Readers) {
			t.Errorf("%s makes %+v, want %+v", name, b, w)
			continue
		}
		for _, r := range w.Readers {
			found := false
			for _, x := range b.Readers {
				found = found || x.Node == r.Node && math.Abs(x.Until-r.Until) < 1e-3
			}
			if !found {
				t.Errorf("%s: %s is read as %+v, want %+v", name, b.Name, b.Readers, w.Readers)
			}
		}
	}
}

// TestFitShared: on two cores everything is slowed by everything; what a call takes
// by itself comes back within a few percent all the same.
func TestFitShared(t *testing.T) {
	c := groth16Costs(0.1)
	p := recorded(t, groth16(1, 1), c, plan.Settings{Items: 32, Seed: 3})
	f := fitted(t, p.Trace)
	var all, wanted float64
	for name, want := range c.Nodes {
		got := f.Costs.Nodes[name]
		if len(got.Steps) != 1 {
			t.Errorf("%s: %+v", name, got.Steps)
			continue
		}
		all += got.Steps[0].Seconds * got.Steps[0].Cores
		wanted += want.Steps[0].Seconds * want.Steps[0].Cores
		s, w := got.Steps[0], want.Steps[0]
		if w.Seconds > 0.05 && (off(s.Seconds, w.Seconds) > 0.15 || math.Abs(s.Spread-0.1) > 0.05) {
			t.Errorf("%s: %+v, want %+v", name, s, w)
		}
	}
	if off(all, wanted) > 0.03 {
		t.Errorf("an item takes %v s of processor, want %v", all, wanted)
	}
	agree(t, groth16(1, 1), c, &f.Costs, plan.Settings{Items: 32}, 0.05)
	agree(t, groth16(3, 2), c, &f.Costs, plan.Settings{Items: 32}, 0.05)
	agree(t, groth16(2, 1, pipeline.Budget(alloc.Host, 400<<20)), c, &f.Costs, plan.Settings{Items: 32}, 0.05)
}

// agree holds what costs predict against what others do, over a few seeds.
func agree(t testing.TB, g *pipeline.Graph, want, got *plan.Costs, set plan.Settings, within float64) {
	t.Helper()
	var speed, peak float64
	const seeds = 8
	for set.Seed = range uint64(seeds) {
		a, b := simulate(t, g, want, set), simulate(t, g, got, set)
		speed += (b.Throughput/a.Throughput - 1) / seeds
		peak += (float64(b.Peak[alloc.Host])/float64(max(a.Peak[alloc.Host], 1)) - 1) / seeds
	}
	if math.Abs(speed) > within || math.Abs(peak) > within {
		t.Errorf("throughput is off by %+.1f%%, the peak by %+.1f%%", 100*speed, 100*peak)
	}
}

// turning is a fork of stages that do a part of their work in turns, each with
// scratch of its own while it has the turn.
func turning(device string) (*pipeline.Graph, *plan.Costs) {
	g := pipeline.New("turns")
	w := pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("make"), pipeline.Capacity(2))
	a := pipeline.Via(w, nop("a"), pipeline.Capacity(2))
	b := pipeline.Via(w, nop("b"), pipeline.Capacity(2))
	sink(pipeline.Via(pipeline.Join2(a, b), nop2("end")))
	c := &plan.Costs{Machine: plan.Machine{Cores: 4, Devices: []plan.Device{{Name: "turn"}}}, Nodes: map[string]plan.Node{
		"make": {Steps: []plan.Step{{Seconds: 0.8, Spread: 0.3, Cores: 0.5}}},
		"a": {
			Steps:   []plan.Step{{Seconds: 0.2, Spread: 0.2, Cores: 1}, {Seconds: 0.3, Spread: 0.2, Cores: 1.5, Device: device, Exclusive: device != ""}},
			Scratch: []plan.Buffer{{Name: "s", Bytes: 100 << 20, From: 0.4}},
		},
		"b": {
			Steps:   []plan.Step{{Seconds: 0.1, Spread: 0.2, Cores: 1}, {Seconds: 0.4, Spread: 0.2, Cores: 1.5, Device: device, Exclusive: device != ""}},
			Scratch: []plan.Buffer{{Name: "s", Bytes: 50 << 20, From: 0.2}},
		},
	}}
	return g, c
}

// TestFitTurns: what is done in turns is found, and what waited for it is no work.
func TestFitTurns(t *testing.T) {
	g, c := turning("turn")
	f := fitted(t, recorded(t, g, c, plan.Settings{Items: 40, Seed: 1}).Trace)
	for _, name := range []string{"a", "b"} {
		got, want := f.Costs.Nodes[name].Steps, c.Nodes[name].Steps
		if len(got) != 2 || got[0].Exclusive || !got[1].Exclusive || got[1].Device != "turn" {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i := range got {
			// Before a turn that it always has to wait for, nobody sees for how long a call
			// works, only how much processor time it takes.
			if g, w := got[i], want[i]; off(g.Seconds*g.Cores, w.Seconds*w.Cores) > 0.25 || off(g.Seconds, w.Seconds) > 0.1 {
				t.Errorf("%s: step %d takes %v, want %v: %+v", name, i+1, got[i].Seconds, want[i].Seconds, got)
			}
		}
	}
	agree(t, g, c, &f.Costs, plan.Settings{Items: 40}, 0.05)
	more := plan.Settings{Items: 40}
	for _, s := range []string{"a.workers=3", "b.workers=3", "make.workers=2"} {
		if err := more.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	agree(t, g, c, &f.Costs, more, 0.06)
	// A model file keeps it.
	var file strings.Builder
	if err := plan.WriteModel(&file, &f.Costs); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.ReadModel(strings.NewReader(file.String())); err != nil {
		t.Error(err)
	}
}

// TestFitNoTurns: where nothing is done in turns, no turn is made up.
func TestFitNoTurns(t *testing.T) {
	g, c := turning("")
	for seed := range uint64(5) {
		f := fitted(t, recorded(t, g, c, plan.Settings{Items: 40, Seed: seed}).Trace)
		for name, n := range f.Costs.Nodes {
			for _, s := range n.Steps {
				if s.Device != "" {
					t.Errorf("seed %d: %s: %+v", seed, name, s)
				}
			}
		}
	}
}

// TestFitRandom: costs that were drawn, recorded in one setting and fitted, predict
// what they do themselves in others.
func TestFitRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "stages")
		c := &plan.Costs{Machine: plan.Machine{Cores: float64(rapid.IntRange(2, 6).Draw(t, "cores"))}, Nodes: map[string]plan.Node{}}
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("s", i))
		}
		for i, name := range names {
			nd := plan.Node{Steps: []plan.Step{{
				Seconds: rapid.Float64Range(0.1, 1).Draw(t, "seconds"),
				Cores:   rapid.Float64Range(0.5, 2).Draw(t, "cores"),
				Spread:  rapid.Float64Range(0, 0.2).Draw(t, "spread"),
			}}}
			nd.Scratch = []plan.Buffer{{Name: "scratch", Bytes: rapid.Int64Range(1, 1<<30).Draw(t, "bytes"), From: 0.2, Until: 0.7}}
			if i+1 < n {
				nd.Makes = []plan.Buffer{{Name: "out", Bytes: rapid.Int64Range(1, 1<<30).Draw(t, "bytes"), From: 0.5, Readers: []plan.Reader{{Node: names[i+1], Until: 0.6}}}}
			}
			c.Nodes[name] = nd
		}
		g := func(workers, capacity int) *pipeline.Graph {
			return line(names, pipeline.Workers(workers), pipeline.Capacity(capacity))
		}
		p, err := plan.Simulate(g(1, 2), c, plan.Settings{Items: 30, Seed: 11}, plan.Record())
		if err != nil {
			t.Fatal(err)
		}
		f, err := plan.FitTrace(p.Trace)
		if err != nil {
			t.Fatal(err)
		}
		// Which of two stages that are always at work together uses the cores, nobody
		// can tell; what they use together has to be right. 30 draws of a spread of 0.2
		// are off by 4% in the mean, as a rule.
		var got, want float64
		for name := range c.Nodes {
			for _, s := range f.Costs.Nodes[name].Steps {
				got += s.Seconds * s.Cores
			}
			want += c.Nodes[name].Steps[0].Seconds * c.Nodes[name].Steps[0].Cores
		}
		if off(got, want) > 0.1 {
			t.Errorf("an item takes %v s of processor, want %v", got, want)
		}
		for _, k := range [][2]int{{1, 2}, {3, 1}} {
			want, err := plan.Simulate(g(k[0], k[1]), c, plan.Settings{Items: 30, Seed: 11})
			if err != nil {
				t.Fatal(err)
			}
			got, err := plan.Simulate(g(k[0], k[1]), &f.Costs, plan.Settings{Items: 30, Seed: 11})
			if err != nil {
				t.Fatal(err)
			}
			if off(got.Throughput, want.Throughput) > 0.12 {
				t.Errorf("%v: %v items a second, want %v", k, got.Throughput, want.Throughput)
			}
		}
	})
}

// TestFitClasses: items of two sizes become two classes.
func TestFitClasses(t *testing.T) {
	g := line([]string{"a", "b"})
	c := &plan.Costs{Nodes: map[string]plan.Node{"a": takes(1), "b": takes(2)}, Items: []plan.Class{{Weight: 3}, {Weight: 1, Time: 2, Bytes: 4}}}
	a := c.Nodes["a"]
	a.Makes = []plan.Buffer{{Name: "x", Bytes: 1000}}
	c.Nodes["a"] = a
	f := fitted(t, recorded(t, g, c, plan.Settings{Items: 60}).Trace)
	if len(f.Costs.Items) != 2 {
		t.Fatalf("%+v", f.Costs.Items)
	}
	x, y := f.Costs.Items[0], f.Costs.Items[1]
	if x.Bytes != 1 || x.Time != 1 || off(y.Bytes, 4) > 1e-3 || off(y.Time, 2) > 1e-3 || x.Weight+y.Weight != 60 || x.Weight < y.Weight {
		t.Errorf("%+v", f.Costs.Items)
	}
	if b := f.Costs.Nodes["a"].Makes[0]; b.Bytes != 1000 {
		t.Errorf("%+v", b)
	}
	if s := f.Costs.Nodes["b"].Steps[0]; off(s.Seconds, 2) > 1e-3 || s.Spread > 1e-3 {
		t.Errorf("%+v", s)
	}
}

// TestFitLeavesOut: what failed, was repeated or has warmed up does not count.
func TestFitLeavesOut(t *testing.T) {
	g := line([]string{"a", "b"})
	c := &plan.Costs{Nodes: map[string]plan.Node{"a": takes(1), "b": takes(2)}}
	tr := recorded(t, g, c, plan.Settings{Items: 12}).Trace
	first := true
	for i := range tr.Calls {
		switch call := &tr.Calls[i]; {
		case tr.Graph.Nodes[call.Node].Name != "a":
		case first:
			first = false
			call.Begin -= 2 * time.Second // it took three times as long
		case call.Item == 4:
			call.Err = "broken"
		case call.Item == 5:
			call.Attempt = 2
			call.Begin -= 3 * time.Second
		}
	}
	f := fitted(t, tr)
	if s := f.Costs.Nodes["a"].Steps[0].Seconds; off(s, 1) > 1e-6 {
		t.Errorf("a takes %v s", s)
	}
	notes := strings.Join(f.Notes, "\n")
	for _, want := range []string{"1 calls failed", "1 calls were repeated", "a: the first call took 3.00 times"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note says %q: %s", want, notes)
		}
	}
}

// TestFitLittle: an empty recording and one without an end are errors, one item is
// enough.
func TestFitLittle(t *testing.T) {
	if _, err := plan.FromTrace(&trace.Trace{}); err == nil || !strings.Contains(err.Error(), "no calls") {
		t.Errorf("an empty recording: %v", err)
	}
	g := line([]string{"a", "b"})
	c := &plan.Costs{Nodes: map[string]plan.Node{"a": takes(1), "b": takes(2)}}
	tr := recorded(t, g, c, plan.Settings{Items: 1}).Trace
	f := fitted(t, tr)
	if s := f.Costs.Nodes["b"].Steps; len(s) != 1 || off(s[0].Seconds, 2) > 1e-6 || s[0].Spread != 0 {
		t.Errorf("%+v", s)
	}
	if len(f.Notes) == 0 {
		t.Error("no note says that it is one item")
	}
	for i := range tr.Calls {
		tr.Calls[i].Err = "broken"
	}
	if _, err := plan.FromTrace(tr); err == nil || !strings.Contains(err.Error(), "stage a") {
		t.Errorf("a run that failed: %v", err)
	}
	tr.Calls[0].Node = 17
	if _, err := plan.FromTrace(tr); err == nil {
		t.Error("a call of a node that there is not")
	}
}
