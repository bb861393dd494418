// Tuning: capacities, workers and budgets tried side by side on one batch, with
// the time and the memory that each takes. A setting is a text that one can
// keep; the best one is printed as TOML at the end. The circuit is in circuit.go.
//
//	go run ./examples/tuning -links 32 -jobs 24
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/consensys/gnark/logger"
	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

func main() {
	links := flag.Int("links", 32, "links of the chain that a job proves")
	jobs := flag.Int("jobs", 12, "proofs in a batch")
	flag.Parse()
	logger.Disable()
	if err := run(context.Background(), os.Stdout, *links, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "tuning:", err)
		os.Exit(1)
	}
}

// trial is one setting and what came of it.
type trial struct {
	name     string
	settings []string // as pipeline.ParseSettings reads them
	budget   int64    // in jobs, on top of the settings; 0 is none
	parsed   pipeline.Settings
	report   *pipeline.Report
	peak     int64
}

func trials() []*trial {
	return []*trial{
		{name: "as it comes"},
		{name: "wide synthesis", settings: []string{"synthesize.workers=8"}},
		{name: "wide, deep queues", settings: []string{"synthesize.workers=8", "prestage.capacity=8", "ntt.capacity=8", "h-msm.capacity=8", "batch-add.capacity=8"}},
		{name: "the same, budget for 4", settings: []string{"synthesize.workers=8", "prestage.capacity=8", "ntt.capacity=8", "h-msm.capacity=8", "batch-add.capacity=8"}, budget: 4},
		{name: "budget for 2", budget: 2},
		{name: "budget for 1: one by one", budget: 1},
	}
}

func run(ctx context.Context, w io.Writer, links, jobs int) error {
	prover, err := newProver(ctx, links)
	if err != nil {
		return err
	}
	defer prover.Key.Close()
	need, err := stages.Need(prover, stages.BatchOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "proofs: %d; constraints: %d; a job needs at most %s\n\n", jobs,
		prover.Circuit.NbConstraints(), humanize.IBytes(uint64(need[alloc.Host])))

	all := trials()
	// The first run warms up: pools, tables, the verifying key.
	for i, t := range append([]*trial{all[0]}, all...) {
		if err := t.run(ctx, prover, links, jobs, need[alloc.Host]); err != nil {
			return fmt.Errorf("trial %d, %s: %w", i, t.name, err)
		}
	}

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "setting\tseconds\tproofs/s\tin flight\tpeak memory\twaits for memory\tslowest stage\t")
	for _, t := range all {
		waits := "-"
		if b := t.report.Budget; b != nil {
			waits = b.WaitTime.Round(time.Millisecond).String()
		}
		fmt.Fprintf(table, "%s\t%.2f\t%.1f\t%d\t%s\t%s\t%s\t\n", t.name, t.report.Wall.Seconds(),
			float64(jobs)/t.report.Wall.Seconds(), t.report.PeakInFlight, humanize.IBytes(uint64(t.peak)), waits, slowest(t.report))
	}
	if err := table.Flush(); err != nil {
		return err
	}

	best := all[0]
	for _, t := range all {
		if cost(t) < cost(best) {
			best = t
		}
	}
	fmt.Fprintf(w, "\nleast time × memory: %s\n\n", best.name)
	return best.parsed.WriteTOML(w)
}

func cost(t *trial) float64 { return t.report.Wall.Seconds() * float64(t.peak) }

func (t *trial) run(ctx context.Context, p *stages.Prover, links, jobs int, need int64) error {
	set := t.settings
	if t.budget > 0 {
		set = append(set, fmt.Sprintf("budget.host=%d", t.budget*need))
	}
	var err error
	if t.parsed, err = pipeline.ParseSettings(set...); err != nil {
		return err
	}
	before := alloc.Default().Live(alloc.Host)
	alloc.Default().ResetPeaks()
	proofs := 0
	t.report, err = stages.Batch(ctx, p, func(yield func(stages.Job) bool) {
		for part := range jobs {
			if !yield(stages.Job{Key: pipeline.Key{Job: "tuning", Part: part}, Input: assign(int64(part), links)}) {
				return
			}
		}
	}, func(context.Context, *stages.Result) error {
		proofs++
		return nil
	}, stages.BatchOptions{Settings: t.parsed})
	t.peak = alloc.Default().Peak(alloc.Host) - before
	if err == nil && proofs != jobs {
		err = errors.New("not all jobs have a proof")
	}
	return err
}

// slowest is the stage whose workers were busy for the largest share.
func slowest(r *pipeline.Report) string {
	var name string
	var most time.Duration
	for _, s := range r.Stages {
		if s.Workers > 0 && s.Busy/time.Duration(s.Workers) > most {
			name, most = s.Name, s.Busy/time.Duration(s.Workers)
		}
	}
	return fmt.Sprintf("%s %.0f%%", strings.TrimSpace(name), 100*most.Seconds()/r.Wall.Seconds())
}
