package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/benchmarks/internal/synthetic"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// bench is a setting with its key, ready to prove.
type bench struct {
	setting
	p       *stages.Prover
	witness []synthetic.Copied
	host    *cpu.Engine
	drv     *cuda.Driver   // nil on a CPU
	nvml    *driver.NVML   // nil: there is none
	engines []*cuda.Engine // none on a CPU
	cards   []*driver.Card // NVML's, as far as it knows the cards
	there   int            // proofs of the last run that a card evaluated a, b and c for
	close   []func() error
}

func (s setting) run(ctx context.Context) (err error) {
	b := &bench{setting: s}
	defer func() {
		for _, f := range slices.Backward(b.close) {
			err = errors.Join(err, f())
		}
	}()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return b.places(ctx)
}

// places opens the cards and measures each place of the evaluation and of b_g2_msm.
func (b *bench) places(ctx context.Context) (err error) {
	// The engine keeps the matrices where some measurement has it evaluate them,
	// whatever the one before had.
	b.p.HostEvaluation = !slices.Contains(b.eval, "card")
	if b.drv != nil {
		defer func() { err = errors.Join(err, b.shut()) }()
		for _, name := range strings.Split(b.device, ",") {
			if err := b.open(name); err != nil {
				return err
			}
		}
		if err := b.bring(ctx); err != nil {
			return err
		}
	}
	for _, where := range b.eval {
		if where != "card" && where != "host" {
			return fmt.Errorf("-evaluate %q: want card or host", where)
		}
		b.p.HostEvaluation = where == "host"
		for _, b2 := range strings.Split(b.b2s, ",") {
			b.b2 = b2
			fmt.Printf("\na, b and c evaluated on the %s; -b2 %s\n", where, b2)
			if err := b.measure(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// shut closes the engines.
func (b *bench) shut() (err error) {
	for _, e := range b.engines {
		err = errors.Join(err, e.Close())
	}
	b.engines, b.cards = nil, nil
	return err
}

// measure proves a partition alone, and batches with each setting.
func (b *bench) measure(ctx context.Context) error {
	b.onOne()
	if b.rounds > 0 {
		if err := b.alone(ctx); err != nil {
			return err
		}
	}
	for _, set := range b.workers {
		b.onOne()
		for _, n := range b.batches {
			b.batch = n
			if _, err := b.together(ctx, set); err != nil {
				return err
			}
		}
		if len(b.engines) < 2 || b.batch == 0 {
			continue
		}
		if err := b.compare(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// onOne makes the prover use the first card.
func (b *bench) onOne() {
	if len(b.engines) == 0 {
		return
	}
	b.p.Arith, b.p.B2 = b.engines[0], nil
	switch b.b2 {
	case "auto":
		b.p.B2 = stages.Either(b.p.Arith, b.host)
	case "cpu":
		b.p.B2 = b.host
	}
}

// prepare makes circuit, witnesses and key, and opens the card.
func (b *bench) prepare(ctx context.Context) error {
	begun := time.Now()
	c, err := synthetic.New(b.id, b.log, b.bits)
	if err != nil {
		return err
	}
	for seed := range uint64(2) {
		w, err := c.Witness(seed)
		if err != nil {
			return err
		}
		b.witness = append(b.witness, synthetic.Copied(w))
	}
	made := time.Since(begun)
	host, err := cpu.New(b.id, cpu.Workers(b.cores))
	if err != nil {
		return err
	}
	begun = time.Now()
	key, vk, err := groth16.UnsafeSetup(ctx, &c.R1CS, groth16.SetupOptions{Folded: true})
	if err != nil {
		return err
	}
	b.close = append(b.close, key.Close)
	fmt.Printf("\n%v, 2^%d constraints, %d wires, %.0f%% of the scalars 0 or 1; circuit and 2 witnesses in %.1f s, key of %s in %.1f s\n",
		b.id, b.log, c.Wires, 100*b.bits, made.Seconds(), size(key.Bytes()), time.Since(begun).Seconds())
	b.p = &stages.Prover{Key: key, VK: vk, Circuit: c, Arith: host, NoCheck: !b.check}
	if err := await(ctx, b.after); err != nil {
		return err
	}
	if b.device == "cpu" {
		return nil
	}
	b.host = host
	drv, err := cuda.Open("")
	if err != nil {
		return err
	}
	b.drv = drv
	b.close = append(b.close, drv.Close)
	if nvml, err := driver.OpenNVML(""); err == nil {
		b.nvml = nvml
		b.close = append(b.close, nvml.Close)
	}
	return nil
}

// await waits until a file is there; for none if it has no name.
func await(ctx context.Context, name string) error {
	for name != "" {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// open makes an engine on a card.
func (b *bench) open(name string) error {
	card, err := b.drv.Card(name)
	if err != nil {
		return err
	}
	if b.nvml != nil {
		c, err := b.nvml.Card(card.Info().UUID)
		if err != nil {
			fmt.Println("utilisation:", err)
		} else {
			b.cards = append(b.cards, c)
		}
	}
	opts := []cuda.Option{cuda.Packing(b.pack)}
	if b.streams > 0 {
		opts = append(opts, cuda.Streams(b.streams))
	}
	if !b.keep {
		opts = append(opts, cuda.KeyMemory(0))
	}
	engine, err := cuda.New(card, b.id, b.host, opts...)
	if err != nil {
		return err
	}
	b.engines = append(b.engines, engine)
	return nil
}

// bring brings the key and the circuit's matrices to all cards, as the command does.
func (b *bench) bring(ctx context.Context) error {
	begun := time.Now()
	if b.keep {
		set, err := b.set(nil)
		if err != nil {
			return err
		}
		b.p.Arith, b.p.B2 = set, nil
		if err := stages.Keep(ctx, b.p); err != nil {
			return err
		}
	}
	took := time.Since(begun)
	for _, e := range b.engines {
		d, err := e.Describe()
		if err != nil {
			return err
		}
		fmt.Println(d)
	}
	fmt.Printf("key and matrices on %d cards in %.1f s\n", len(b.engines), took.Seconds())
	return nil
}

// jobs are n partitions; the witnesses take turns.
func (b *bench) jobs(n int) func(func(stages.Job) bool) {
	return func(yield func(stages.Job) bool) {
		for i := range n {
			if !yield(stages.Job{Key: pipeline.Key{Job: "partition", Part: i}, Input: b.witness[i%len(b.witness)]}) {
				return
			}
		}
	}
}

// prove runs n partitions and counts what verified. One partition has the
// pipeline for itself: its stages still run side by side as the graph lets them.
func (b *bench) prove(ctx context.Context, n int, o stages.BatchOptions) (*pipeline.Report, *stages.Result, error) {
	var mu sync.Mutex
	var last *stages.Result
	good := 0
	b.there = 0
	report, err := stages.Batch(ctx, b.p, b.jobs(n), func(_ context.Context, r *stages.Result) error {
		if err := b.p.VK.Verify(r.Proof, r.Public); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		good, last = good+1, r
		if strings.Contains(r.Staged, "evaluated there") {
			b.there++
		}
		return nil
	}, o)
	if err == nil && good != n {
		err = fmt.Errorf("%d proofs of %d", good, n)
	}
	return report, last, err
}

// alone proves one partition at a time: what each stage takes.
func (b *bench) alone(ctx context.Context) error {
	first := time.Now()
	if _, _, err := b.prove(ctx, 1, stages.BatchOptions{}); err != nil { // kernels are compiled, tables made
		return err
	}
	warm := time.Since(first)
	type run struct {
		wall   time.Duration
		report *pipeline.Report
		result *stages.Result
		up     int64
		down   int64
		peaks  alloc.Amount
	}
	var runs []run
	for range b.rounds {
		alloc.Default().ResetPeaks()
		up, down := b.traffic()
		begun := time.Now()
		report, result, err := b.prove(ctx, 1, stages.BatchOptions{})
		if err != nil {
			return err
		}
		wall := time.Since(begun)
		u, d := b.traffic()
		runs = append(runs, run{wall, report, result, u - up, d - down, peaks()})
	}
	slices.SortFunc(runs, func(x, y run) int { return int(x.wall - y.wall) })
	m := runs[len(runs)/2]
	fmt.Printf("\none partition: %.3f s (median of %d; the first, with tables and compilation, %.1f s); %s; b_g2_msm on %s\n",
		m.wall.Seconds(), len(runs), warm.Seconds(), m.result.Staged, m.result.B2On)
	if err := m.report.WriteTable(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("peaks: %s; over PCIe %s up, %s down\n", peaksText(m.peaks), size(m.up), size(m.down))
	return nil
}

// together proves a batch.
func (b *bench) together(ctx context.Context, set string) (time.Duration, error) {
	if b.batch == 0 {
		return 0, nil
	}
	settings, err := parsed(set)
	if err != nil {
		return 0, err
	}
	alloc.Default().ResetPeaks()
	up, down := b.traffic()
	w := newWatch(b.engines, b.cards)
	begun := time.Now()
	report, result, err := b.prove(ctx, b.batch, stages.BatchOptions{Settings: settings, Options: []pipeline.Option{w.option()}})
	wall := time.Since(begun)
	usage := w.done()
	if err != nil {
		return 0, err
	}
	u, d := b.traffic()
	fmt.Printf("\na batch of %d in a row, no gap between them, on %s (%s): %.3f s, %.3f s a proof; a, b and c evaluated on the card for %d; the last one's b_g2_msm on %s\n",
		b.batch, b.p.Arith.Name(), set, wall.Seconds(), wall.Seconds()/float64(b.batch), b.there, result.B2On)
	if err := report.WriteTable(os.Stdout); err != nil {
		return 0, err
	}
	fmt.Printf("peaks: %s; over PCIe %s up, %s down\n", peaksText(peaks()), size(u-up), size(d-down))
	for _, u := range usage {
		fmt.Println(u)
	}
	if err := b.record(w, set, wall, u-up, d-down, usage); err != nil {
		return 0, err
	}
	for _, e := range b.engines {
		fmt.Println(e.Stats())
	}
	return wall, nil
}

func (b *bench) traffic() (up, down int64) {
	for _, e := range b.engines {
		s := e.Stats()
		up, down = up+s.Up, down+s.Down
	}
	return up, down
}

func peaks() (a alloc.Amount) {
	for s := range a {
		a[s] = alloc.Default().Peak(alloc.Space(s))
	}
	return a
}

func peaksText(a alloc.Amount) (s string) {
	for i, n := range a {
		if n == 0 {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%v %s", alloc.Space(i), size(n))
	}
	return s
}

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
