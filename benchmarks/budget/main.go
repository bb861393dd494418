// Command budget proves twelve partitions with twelve synthesis workers and
// every channel at capacity 1, once without a budget and once within the
// memory of four partitions, in processes of their own, in turns. It prints
// the ratio of the times, whether the budget held, and how closely the peak of
// resident memory follows the tracker's. It ends with an error if the budget did
// not hold, took more than 1.15 times the time, or was left behind by the
// resident memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/consensys/gnark/logger"
	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/benchmarks/internal/meter"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/formats/native"
	"github.com/snarkline/snarkline/internal/democircuit"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

const (
	partitions = 12
	afford     = 4 // partitions that the budget holds
)

// result is what one run showed.
type result struct {
	Wall     time.Duration
	Limit    int64 // 0: unbounded
	Tracker  int64 // peak of what alloc counts, host
	Reserved int64 // peak of what was reserved
	InFlight int64
	RSS      int64 // peak of anonymous memory: the key is mapped
	Base     int64 // the same before the run
}

func main() {
	log := flag.Int("log", 16, "log2 of the constraints of a partition (SHA-256 chain)")
	rounds := flag.Int("rounds", 3, "runs of each kind, in turns")
	name := flag.String("curve", "bls12-381", "curve")
	cache := flag.String("cache", filepath.Join(os.TempDir(), "snarkline-budget"), "folder for the key")
	child := flag.String("child", "", "internal: bounded or unbounded")
	flag.Parse()
	logger.Disable()
	id, err := curve.Parse(*name)
	if err == nil {
		b := bench{log: *log, rounds: *rounds, id: id, key: filepath.Join(*cache, fmt.Sprintf("%v-%d.slk", id, *log))}
		if *child != "" {
			err = b.run(context.Background(), *child)
		} else {
			err = b.compare(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

type bench struct {
	log, rounds int
	id          curve.ID
	key         string
}

func (b *bench) compare(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runs := map[string][]result{}
	for range b.rounds {
		for _, kind := range []string{"unbounded", "bounded"} {
			cmd := exec.CommandContext(ctx, self, "-child", kind, "-log", strconv.Itoa(b.log),
				"-curve", b.id.String(), "-cache", filepath.Dir(b.key))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			var r result
			if err := json.Unmarshal(out, &r); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			runs[kind] = append(runs[kind], r)
		}
	}
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "12 partitions, 12 workers, capacity 1\twall\tin flight\tbudget\treserved\ttracker peak\tRSS peak\tRSS before\ttracker × 1.1 + 50 MiB")
	var walls []time.Duration
	for _, kind := range []string{"unbounded", "bounded"} {
		v := runs[kind]
		wall := meter.Median(v, func(r result) time.Duration { return r.Wall })
		walls = append(walls, wall)
		most := func(f func(result) int64) int64 {
			var m int64
			for _, r := range v {
				m = max(m, f(r))
			}
			return m
		}
		size := func(f func(result) int64) string { return humanize.IBytes(uint64(most(f))) }
		_, _ = fmt.Fprintf(tw, "%s\t%.2f s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", kind, wall.Seconds(),
			most(func(r result) int64 { return r.InFlight }), size(func(r result) int64 { return r.Limit }),
			size(func(r result) int64 { return r.Reserved }), size(func(r result) int64 { return r.Tracker }),
			size(func(r result) int64 { return r.RSS }), size(func(r result) int64 { return r.Base }),
			humanize.IBytes(uint64(float64(most(func(r result) int64 { return r.Tracker }))*1.1)+50<<20))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	ratio := walls[1].Seconds() / walls[0].Seconds()
	fmt.Printf("time, bounded to unbounded: %.3f\n", ratio)
	return errors.Join(judge(runs), within("time, bounded to unbounded", ratio, 1.15))
}

// judge says where a run went past its bounds: the tracker past the budget, or
// resident memory past the tracker by more than a tenth and 50 MiB.
func judge(runs map[string][]result) error {
	var errs []error
	for kind, v := range runs {
		for _, r := range v {
			if r.Limit > 0 {
				errs = append(errs, within(kind+": tracker's peak of the budget", float64(r.Tracker)/float64(r.Limit), 1))
			}
			errs = append(errs, within(kind+": resident of tracked × 1.1 + 50 MiB",
				float64(r.RSS)/(float64(r.Tracker)*1.1+50<<20), 1))
		}
	}
	return errors.Join(errs...)
}

func within(what string, got, most float64) error {
	if got > most {
		return fmt.Errorf("%s is %.3f, more than %.2f", what, got, most)
	}
	return nil
}

// circuit is the partition's circuit; its key is prepared once.
func (b *bench) circuit() (*democircuit.Circuit, error) { return democircuit.BitHeavy(b.id, b.log) }

func (b *bench) prepare(ctx context.Context) error {
	if _, err := os.Stat(b.key); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.key), 0o755); err != nil {
		return err
	}
	c, err := b.circuit()
	if err != nil {
		return err
	}
	keys, err := c.Setup(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(native.WriteFile(ctx, b.key, native.Content{Key: keys.Key, VK: keys.VK}), keys.Key.Close())
}

// run is one measured batch, in a process of its own.
func (b *bench) run(ctx context.Context, kind string) error {
	debug.SetGCPercent(50) // as the command does: all that is large lies outside of Go's heap
	c, err := b.circuit()
	if err != nil {
		return err
	}
	p, err := b.prover(ctx, c)
	if err != nil {
		return err
	}
	var o stages.BatchOptions
	for _, s := range stages.Names() {
		if err := o.Settings.Set(s + ".capacity=1"); err != nil {
			return err
		}
	}
	if err := o.Settings.Set(stages.NameSynthesize + ".workers=12"); err != nil {
		return err
	}
	r := result{}
	if kind == "bounded" {
		need, err := stages.Need(p, o)
		if err != nil {
			return err
		}
		r.Limit = afford * need[alloc.Host]
		o.Settings.Budget = map[string]pipeline.Size{"host": pipeline.Size(r.Limit)}
	}
	debug.FreeOSMemory()
	alloc.Default().TrimPool()
	alloc.Default().ResetPeaks()
	base, err := alloc.ResidentNow()
	if err != nil {
		return err
	}
	var report *pipeline.Report
	done := 0
	anon := meter.WatchAnon()
	sample, err := meter.Run(func() error {
		report, err = stages.Batch(ctx, p, jobs(c), func(context.Context, *stages.Result) error {
			done++
			return nil
		}, o)
		return err
	})
	peak, aerr := anon.Stop()
	if err := errors.Join(err, aerr); err != nil {
		return err
	}
	if done != partitions {
		return fmt.Errorf("%d of %d partitions were proved", done, partitions)
	}
	r.Wall, r.InFlight = sample.Wall, report.PeakInFlight
	r.Tracker = alloc.Default().Peak(alloc.Host)
	if report.Budget != nil {
		r.Reserved = report.Budget.Peak[alloc.Host]
	}
	r.Base, r.RSS = base.Anon, peak
	return json.NewEncoder(os.Stdout).Encode(r)
}

func (b *bench) prover(ctx context.Context, c *democircuit.Circuit) (*stages.Prover, error) {
	f, err := native.Open(ctx, b.key, native.Options{SkipPoints: true})
	if err != nil {
		return nil, err
	}
	circuit, err := gnark.NewCircuit(c.CCS)
	if err != nil {
		return nil, err
	}
	ar, err := cpu.New(b.id)
	if err != nil {
		return nil, err
	}
	return &stages.Prover{Key: f.Key, VK: f.VK, Circuit: circuit, Arith: ar}, nil
}

func jobs(c *democircuit.Circuit) func(func(stages.Job) bool) {
	return func(yield func(stages.Job) bool) {
		for i := range partitions {
			w, err := c.Witness(i)
			if err != nil {
				panic(err) // the bundled circuit's own inputs
			}
			if !yield(stages.Job{Key: pipeline.Key{Job: "budget", Part: i}, Input: w}) {
				return
			}
		}
	}
}
