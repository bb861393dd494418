package plan_test

import (
	"math"
	"testing"

	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// TestExclusiveStepsKeepTheDevice: of two calls with two exclusive steps each, the
// second begins when the first has done both; with something else between them the
// calls take turns.
func TestExclusiveStepsKeepTheDevice(t *testing.T) {
	g := line([]string{"a"}, pipeline.Workers(2))
	on := func(exclusive bool) plan.Step { return plan.Step{Seconds: 1, Device: "gpu", Exclusive: exclusive} }
	for _, c := range []struct {
		name  string
		steps []plan.Step
		mean  float64 // of when the two items are done
	}{
		{"two exclusive steps", []plan.Step{on(true), on(true)}, (2 + 4) / 2.},
		{"a moment between them", []plan.Step{on(true), {Seconds: 0.5}, on(true)}, (3 + 4) / 2.},
		{"shared steps", []plan.Step{on(false), on(false)}, 4},
	} {
		p := simulate(t, g, &plan.Costs{
			Machine: plan.Machine{Devices: []plan.Device{{Name: "gpu"}}},
			Nodes:   map[string]plan.Node{"a": {Steps: c.steps}},
		}, plan.Settings{Items: 2})
		wall(t, p, 4)
		if got := p.Latency.Mean.Seconds(); math.Abs(got-c.mean) > 1e-6 {
			t.Errorf("%s: items are done after %v s in the mean, want %v", c.name, got, c.mean)
		}
	}
}
