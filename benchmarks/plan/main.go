// Command plan holds predictions against the truth: it records one run of a batch
// of proofs on the CPU, takes costs from the recording (plan.FromTrace), predicts
// thirty other settings of workers, capacities and budgets from them, runs all of
// them for real in the same process, in rounds, and prints predicted and measured
// throughput and peak of tracked memory with the error of each. It ends with an
// error if the median or the worst error is above its bar.
//
// It needs a machine for itself; runs during which others used more than a
// twentieth of it are made again, a few times. -save keeps the recording and what was measured;
// -load predicts anew and compares with that, and runs nothing.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/trace"
)

func main() {
	var o options
	flag.IntVar(&o.log, "log", 14, "log2 of the constraints of a partition (SHA-256 chain)")
	flag.IntVar(&o.items, "items", 24, "partitions of a run")
	flag.IntVar(&o.rounds, "rounds", 3, "real runs of each setting; their medians count")
	flag.StringVar(&o.curve, "curve", "bls12-381", "curve")
	flag.StringVar(&o.save, "save", "", "folder to keep the recording and what was measured in")
	flag.StringVar(&o.load, "load", "", "folder that was saved: compare with that, without a run")
	flag.BoolVar(&o.costs, "costs", false, "print the costs, as a model file")
	flag.Parse()
	logger.Disable()
	debug.SetGCPercent(50) // as the command does
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(1)
	}
}

type options struct {
	log, items, rounds int
	curve, save, load  string
	costs              bool
}

// measured is the truth: what -save keeps.
type measured struct {
	Items    int
	Need     int64   // the most that an item holds, in bytes
	Recorded outcome // the run that was recorded
	Runs     map[string][]outcome
	Again    int // runs that were disturbed, and made again
}

// outcome is one real run. Bytes are beside what was live before it: the key.
type outcome struct {
	Wall     time.Duration
	Peak     int64
	InFlight int64
}

const (
	traceName = "run.trace"
	truthName = "measured.json"
)

func (o *options) run(ctx context.Context) error {
	dir := o.load
	if dir == "" {
		dir = o.save
		if dir == "" {
			temp, err := os.MkdirTemp("", "snarkline-plan")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(temp) }()
			dir = temp
		} else if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := o.measure(ctx, dir); err != nil {
			return err
		}
	}
	t, err := trace.ReadFile(filepath.Join(dir, traceName))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, truthName))
	if err != nil {
		return err
	}
	var m measured
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", truthName, err)
	}
	fit, err := plan.FitTrace(t)
	if err != nil {
		return err
	}
	if o.costs {
		if err := plan.WriteModel(os.Stdout, &fit.Costs); err != nil {
			return err
		}
	}
	for _, n := range fit.Notes {
		fmt.Println("note:", n)
	}
	if m.Again > 0 {
		fmt.Println("note:", thrown(m.Again))
	}
	return compare(os.Stdout, t, &fit.Costs, &m)
}

// measure records one run, and then runs everything.
func (o *options) measure(ctx context.Context, dir string) error {
	id, err := curve.Parse(o.curve)
	if err != nil {
		return err
	}
	b, err := prepare(ctx, id, o.log, o.items)
	if err != nil {
		return err
	}
	defer b.close()
	all := settings(b.need)
	// What comes first pays for pages and tables that all others find.
	if _, _, err := b.once(ctx, all[0].settings); err != nil {
		return err
	}
	m := measured{Items: o.items, Need: b.need, Runs: make(map[string][]outcome)}
	m.Recorded, err = alone(ctx, &m.Again, func() (outcome, error) { return b.record(ctx, filepath.Join(dir, traceName)) })
	if err != nil {
		return err
	}
	for range o.rounds {
		for _, s := range all {
			r, err := alone(ctx, &m.Again, func() (outcome, error) {
				r, _, err := b.once(ctx, s.settings)
				return r, err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			m.Runs[s.name] = append(m.Runs[s.name], r)
		}
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, truthName), text, 0o644)
}
