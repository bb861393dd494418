// Command recording says what a recording costs: it runs the same batch with and
// without one, in turns, in one process, and prints the medians of time and
// processor time and the median of the ratios of neighbours. The batches are
// proofs of SHA-256 partitions of several sizes and, as the worst case, a chain of
// stages that do nothing but allocate and free a small buffer. It ends with an
// error if a recording costs proofs 2% or more of their processor time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/consensys/gnark/logger"
	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/benchmarks/internal/meter"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// most is what a recording may cost proofs, as a ratio.
const most = 1.02

func main() {
	logs := flag.String("log", "12,14", "log2 of the constraints of a partition, several by commas")
	rounds := flag.Int("rounds", 15, "runs of each kind, in turns")
	items := flag.Int("items", 6, "partitions of a batch")
	tiny := flag.Int("tiny", 20000, "items of the worst case")
	name := flag.String("curve", "bls12-381", "curve")
	flag.Parse()
	logger.Disable()
	if err := compare(*logs, *name, *rounds, *items, *tiny); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

// batch is one thing to run, with the options of its graph.
type batch struct {
	name string
	run  func(context.Context, ...pipeline.Option) (*pipeline.Report, error)
	must bool // it must cost less than most
}

func compare(logs, name string, rounds, items, tiny int) error {
	debug.SetGCPercent(50) // as the command does
	id, err := curve.Parse(name)
	if err != nil {
		return err
	}
	var all []batch
	for text := range strings.SplitSeq(logs, ",") {
		log, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-log: %w", err)
		}
		b, end, err := proofs(id, log, items)
		if err != nil {
			return err
		}
		defer end()
		all = append(all, b)
	}
	all = append(all, worst(tiny))
	dir, err := os.MkdirTemp("", "snarkline-recording")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "batch\twall without\twith\tratio\tprocessor time without\twith\tratio\tfile\tcalls\tbuffers")
	var errs []error
	for _, b := range all {
		r, err := b.measure(filepath.Join(dir, "run.trace"), rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		_, _ = fmt.Fprintf(tw, "%s\t%v\t%v\t%.4f\t%v\t%v\t%.4f\t%s\t%d\t%d\n", b.name, round(r.wall[0]), round(r.wall[1]), r.wallRatio,
			round(r.cpu[0]), round(r.cpu[1]), r.cpuRatio, humanize.IBytes(uint64(r.file)), r.calls, r.buffers)
		if b.must && r.cpuRatio >= most {
			errs = append(errs, fmt.Errorf("%s: a recording costs %.1f%% of processor time, not less than 2%%", b.name, 100*(r.cpuRatio-1)))
		}
	}
	return errors.Join(append(errs, tw.Flush())...)
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// result is medians, without a recording and with one.
type result struct {
	wall, cpu           [2]time.Duration
	wallRatio, cpuRatio float64 // medians of the ratios of neighbours
	file                int64
	calls, buffers      int
}

// measure runs a batch with and without a recording in turns. The first pair
// warms up and does not count.
func (b *batch) measure(path string, rounds int) (*result, error) {
	var wall, cpu [2][]time.Duration
	var wallRatios, cpuRatios []float64
	for i := range rounds + 1 {
		var pair [2]meter.Sample
		for k := range 2 {
			with := (i + k) % 2 // who is first changes from pair to pair
			s, err := b.once(path, with == 1)
			if err != nil {
				return nil, err
			}
			pair[with] = s
		}
		if i == 0 {
			continue
		}
		for with, s := range pair {
			wall[with] = append(wall[with], s.Wall)
			cpu[with] = append(cpu[with], s.CPU)
		}
		wallRatios = append(wallRatios, pair[1].Wall.Seconds()/pair[0].Wall.Seconds())
		cpuRatios = append(cpuRatios, pair[1].CPU.Seconds()/pair[0].CPU.Seconds())
	}
	r := &result{wallRatio: median(wallRatios), cpuRatio: median(cpuRatios)}
	for with := range 2 {
		r.wall[with], r.cpu[with] = median(wall[with]), median(cpu[with])
	}
	t, err := trace.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if t.Cut {
		return nil, errors.New("the recording is not whole")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r.file, r.calls, r.buffers = info.Size(), len(t.Calls), len(t.Buffers)
	return r, nil
}

func (b *batch) once(path string, with bool) (meter.Sample, error) {
	return meter.Run(func() error {
		if !with {
			_, err := b.run(context.Background())
			return err
		}
		rec, err := trace.Create(path)
		if err != nil {
			return err
		}
		report, err := b.run(context.Background(), rec.Option())
		return errors.Join(err, rec.Close(report))
	})
}
