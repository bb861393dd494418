package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/benchmarks/internal/meter"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/trace"
)

// The bars.
const (
	throughputMedian = 0.10
	peakMedian       = 0.05
	worst            = 0.25
)

// seeds is how many simulated runs a prediction is the median of.
const seeds = 9

// compare prints predictions beside what was measured, and judges them.
func compare(w io.Writer, t *trace.Trace, costs *plan.Costs, m *measured) error {
	sim, err := plan.NewSimulator(t.Graph, costs)
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "setting\tproofs/s predicted\tmeasured\t(range)\terror\tpeak MiB predicted\tmeasured\t(range)\terror")
	var speed, peak []float64
	all := settings(m.Need)
	for i, s := range append([]setting{{name: "the recorded run itself"}}, all...) {
		runs := m.Runs[s.name]
		if i == 0 {
			runs = []outcome{m.Recorded}
		}
		if i == 0 && m.Recorded.Wall == 0 {
			continue // what was saved does not say
		}
		if len(runs) == 0 {
			return fmt.Errorf("nothing was measured for %q", s.name)
		}
		var sims []*plan.Prediction
		for seed := range uint64(seeds) {
			p, err := sim.Run(plan.Settings{Settings: s.settings, Items: m.Items, Seed: seed})
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if p.Err != "" || p.Items != m.Items || !p.Overdrawn.IsZero() {
				return fmt.Errorf("%s: %d items, overdrawn by %v: %s", s.name, p.Items, p.Overdrawn, p.Err)
			}
			sims = append(sims, p)
		}
		foreseen := meter.Median(sims, func(p *plan.Prediction) float64 { return p.Throughput })
		high := float64(meter.Median(sims, func(p *plan.Prediction) int64 { return p.Peak[alloc.Host] }))
		rate := func(o outcome) float64 { return float64(m.Items) / o.Wall.Seconds() }
		bytes := func(o outcome) float64 { return float64(o.Peak) }
		r, b := meter.Median(runs, rate), meter.Median(runs, bytes)
		if i > 0 { // what was seen before is no prediction
			speed = append(speed, foreseen/r-1)
			peak = append(peak, high/b-1)
		}
		_, _ = fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%s\t%+.1f%%\t%.2f\t%.2f\t%s\t%+.1f%%\n", s.name,
			foreseen, r, span(runs, rate, 1), 100*(foreseen/r-1), high/float64(alloc.MiB), b/float64(alloc.MiB), span(runs, bytes, float64(alloc.MiB)), 100*(high/b-1))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "%d settings, medians of %d real runs, predictions from one recording (medians of %d seeds)\n", len(speed), len(m.Runs[all[0].name]), seeds)
	return errors.Join(
		judge(w, "throughput", speed, throughputMedian),
		judge(w, "peak of tracked bytes", peak, peakMedian))
}

func span(runs []outcome, f func(outcome) float64, unit float64) string {
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		low, high = min(low, f(r)/unit), max(high, f(r)/unit)
	}
	return fmt.Sprintf("%.2f–%.2f", low, high)
}

// judge says what the errors come to, and is an error if that is above a bar.
func judge(w io.Writer, what string, errs []float64, bar float64) error {
	abs := make([]float64, len(errs))
	for i, e := range errs {
		abs[i] = math.Abs(e)
	}
	slices.Sort(abs)
	// Of an even number, the larger of the two in the middle.
	median, most := abs[len(abs)/2], abs[len(abs)-1]
	_, _ = fmt.Fprintf(w, "%s: median error %.1f%% (bar %.0f%%), worst %.1f%% (bar %.0f%%)\n", what, 100*median, 100*bar, 100*most, 100*worst)
	if median > bar || most > worst {
		return fmt.Errorf("%s: the errors are above the bars", what)
	}
	return nil
}
