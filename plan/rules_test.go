package plan_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// f7 is the published fault in small: items of 10 are made faster than they are
// used up, behind a queue of 1.
func f7(budget int64) (*pipeline.Graph, *plan.Costs) {
	g := pipeline.New("f7", pipeline.Budget(alloc.Host, budget))
	w := pipeline.Via(pipeline.FromSlice(g, []int{0}, nil), nop("synthesize"), pipeline.Workers(100), pipeline.Capacity(pipeline.Unbounded))
	sink(pipeline.Via(w, nop("gpu"), pipeline.Capacity(1)))
	synth := takes(4)
	synth.Makes = []plan.Buffer{{Name: "abc", Bytes: 10}}
	return g, &plan.Costs{Nodes: map[string]plan.Node{"synthesize": synth, "gpu": takes(3)}}
}

// TestF7: with a semaphore that lets go when synthesis ends, or a reservation that
// does, finished items pile up before the device until the memory is gone. Held
// for as long as the memory lives, either keeps them within their number.
func TestF7(t *testing.T) {
	g, c := f7(40)
	c.Machine.Memory = host(150)
	for _, tc := range []struct {
		name   string
		rules  plan.Rules
		budget bool
		killed bool
		peak   int64
	}{
		{"as it is", plan.Rules{}, true, false, 40},
		{"the semaphore lets go with synthesis", plan.Rules{NoAdmission: true, Semaphore: 4, Until: "synthesize"}, true, true, 0},
		{"the semaphore is held", plan.Rules{NoAdmission: true, Semaphore: 4, Until: "gpu"}, true, false, 40},
		{"the semaphore is held to the end", plan.Rules{NoAdmission: true, Semaphore: 4}, true, false, 40},
		{"the reservation ends with synthesis", plan.Rules{AdmitUntil: "synthesize"}, true, true, 0},
		{"no admission", plan.Rules{NoAdmission: true}, true, true, 0},
	} {
		p := simulate(t, g, c, plan.Settings{Items: 60, Rules: tc.rules})
		if (p.Killed != nil) != tc.killed || !tc.killed && (p.Peak != host(tc.peak) || p.Items != 60) {
			t.Errorf("%s: peak %v, %+v", tc.name, p.Peak, p.Killed)
		}
	}
	// Without a machine to die on, the peak goes far over the budget.
	c.Machine.Memory = host(0)
	p := simulate(t, g, c, plan.Settings{Items: 60, Rules: plan.Rules{AdmitUntil: "synthesize"}})
	if p.Peak[alloc.Host] < 4*40 {
		t.Errorf("a peak of %v with a budget of 40", p.Peak)
	}
}

// TestF8: what is held for longer than it is read brings the peak over what the
// stages stated.
func TestF8(t *testing.T) {
	g := groth16(2, 2, pipeline.Budget(alloc.Host, 512<<20))
	c := groth16Costs(0)
	as := simulate(t, g, c, plan.Settings{})
	if as.Peak[alloc.Host] > 512<<20 || !as.Overdrawn.IsZero() {
		t.Errorf("%v, overdrawn by %v", as.Peak, as.Overdrawn)
	}
	for _, rules := range []plan.Rules{{ReleaseLate: true}, {AllBuffers: true}} {
		set := plan.Settings{Rules: rules}
		p := simulate(t, g, c, set)
		if p.Overdrawn.IsZero() {
			t.Errorf("%+v: nothing is overdrawn", rules)
		}
		set.Rules.NoAdmission = true
		free := simulate(t, g, c, set)
		if none := simulate(t, g, c, plan.Settings{Rules: plan.Rules{NoAdmission: true}}); free.Peak[alloc.Host] <= none.Peak[alloc.Host] {
			t.Errorf("%+v: a peak of %v, %v without", rules, free.Peak, none.Peak)
		}
	}
}

// TestSeeds: the same seed gives the same run, another another; and an item costs
// the same under other settings.
func TestSeeds(t *testing.T) {
	g := groth16(2, 2)
	c := groth16Costs(0.3)
	c.Items = []plan.Class{{Name: "small"}, {Name: "large", Time: 3, Bytes: 2}}
	run := func(seed uint64, settings ...string) *plan.Prediction {
		set := plan.Settings{Items: 30, Seed: seed}
		for _, s := range settings {
			if err := set.Set(s); err != nil {
				t.Fatal(err)
			}
		}
		return simulate(t, g, c, set)
	}
	if a, b := fmt.Sprint(*run(1)), fmt.Sprint(*run(1)); a != b {
		t.Errorf("two runs of one seed:\n%s\n%s", a, b)
	}
	if run(1).Wall == run(2).Wall {
		t.Error("two seeds, one run")
	}
	c.Machine.Cores = 0
	a, b := run(1), run(1, "synthesize.workers=1", "ntt.capacity=7")
	for i := range a.Stages {
		if d := (a.Stages[i].Busy - b.Stages[i].Busy).Seconds(); math.Abs(d) > 1e-6 {
			t.Errorf("%s works %v s longer", a.Stages[i].Name, d)
		}
	}
}

// TestSpread: the factor has mean 1.
func TestSpread(t *testing.T) {
	g := line([]string{"a"})
	p := simulate(t, g, &plan.Costs{Nodes: map[string]plan.Node{"a": {Steps: []plan.Step{{Seconds: 1, Spread: 0.5}}}}}, plan.Settings{Items: 20_000})
	if mean := p.Wall.Seconds() / 20_000; math.Abs(mean-1) > 0.02 {
		t.Errorf("a mean of %v s", mean)
	}
}
