package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// parsed is -set, one batch's part.
func parsed(set string) (s pipeline.Settings, err error) {
	for w := range strings.SplitSeq(set, ",") {
		if w == "" {
			continue
		}
		if err := s.Set(w); err != nil {
			return s, err
		}
	}
	return s, nil
}

// forCards is what settings for one card are for n: the stages that work at a card
// have lanes, as many on each as they had workers, and a worker for every job that
// may come; those of the host have n times the workers.
func forCards(s pipeline.Settings, n int) (many pipeline.Settings, lanes map[string]int) {
	many, lanes = s.Merge(pipeline.Settings{}), map[string]int{}
	if many.Stages == nil {
		many.Stages = map[string]pipeline.StageSetting{}
	}
	for name := range stages.DefaultLanes() {
		st := many.Stages[name]
		if st.Workers > 0 {
			lanes[name] = st.Workers
		}
		st.Workers = 0 // the set's
		many.Stages[name] = st
	}
	for _, name := range []string{stages.NameSynthesize, stages.NameAssemble} {
		st := many.Stages[name]
		st.Workers = max(st.Workers, 1) * n
		many.Stages[name] = st
	}
	return many, lanes
}

// set is every card.
func (b *bench) set(lanes map[string]int) (*stages.Set, error) {
	var members []groth16.Arithmetic
	for _, e := range b.engines {
		members = append(members, e)
	}
	return stages.SpreadOptions{Lanes: lanes}.Spread(members...)
}

// use makes the prover use a set, which knows the cards' speed from one batch to
// the next.
func (b *bench) use(set *stages.Set) {
	b.p.Arith, b.p.B2 = set, nil
	switch b.b2 {
	case "auto":
		b.p.B2 = stages.Either(set, b.host)
	case "cpu":
		b.p.B2 = b.host
	}
}

// compare proves the batch on the first card and on all of them, in turns, and
// says by what the throughput differs, by the medians.
func (b *bench) compare(ctx context.Context, set string) error {
	one, err := parsed(set)
	if err != nil {
		return err
	}
	n := len(b.engines)
	many, lanes := forCards(one, n)
	spread, err := b.set(lanes)
	if err != nil {
		return err
	}
	b.use(spread)
	// Page-locked buffers, pools and tables of every card are made by the first.
	if _, _, err := b.prove(ctx, max(b.batch, 4*n), stages.BatchOptions{Settings: many}); err != nil {
		return err
	}
	fmt.Printf("\na batch of %d on %s and on %d cards, in turns\n", b.batch, b.engines[0].Name(), n)
	var alone, all []time.Duration
	for round := range max(b.rounds, 1) {
		b.onOne()
		begun := time.Now()
		if _, _, err := b.prove(ctx, b.batch, stages.BatchOptions{Settings: one}); err != nil {
			return err
		}
		alone = append(alone, time.Since(begun))
		b.use(spread)
		took, err := b.turn(ctx, spread, many, round == max(b.rounds, 1)-1)
		if err != nil {
			return err
		}
		all = append(all, took)
		fmt.Printf("round %d: one card %.3f s (%.2f proofs/s), %d cards %.3f s (%.2f proofs/s)\n", round+1,
			alone[round].Seconds(), b.rate(alone[round]), n, all[round].Seconds(), b.rate(all[round]))
	}
	x, y := median(alone), median(all)
	fmt.Printf("%d cards: %.2f times the throughput of one (medians of %d: %.3f s and %.3f s; %.2f and %.2f proofs/s)\n",
		n, x.Seconds()/y.Seconds(), len(all), x.Seconds(), y.Seconds(), b.rate(x), b.rate(y))
	return nil
}

func (b *bench) rate(d time.Duration) float64 { return float64(b.batch) / d.Seconds() }

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// turn proves the batch on all cards; told says to print the tables.
func (b *bench) turn(ctx context.Context, set *stages.Set, settings pipeline.Settings, told bool) (time.Duration, error) {
	alloc.Default().ResetPeaks()
	var before []cuda.Stats
	for _, e := range b.engines {
		before = append(before, e.Stats())
	}
	worked := set.Balance().Stats()
	var samplers []*driver.Sampler
	for _, c := range b.cards {
		samplers = append(samplers, c.Sample(false))
	}
	begun := time.Now()
	report, _, err := b.prove(ctx, b.batch, stages.BatchOptions{Settings: settings})
	took := time.Since(begun)
	var usage []driver.Usage
	for _, s := range samplers {
		usage = append(usage, s.Stop())
	}
	if err != nil || !told {
		return took, err
	}
	if err := report.WriteTable(os.Stdout); err != nil {
		return 0, err
	}
	fmt.Printf("\n%-10s%8s%10s%10s%8s%14s%14s%12s%12s\n", "card", "items", "at once", "ms each", "at work", "memory, peak", "keys, tables", "up", "down")
	for i, s := range set.Balance().Stats() {
		e := b.engines[i].Stats()
		fmt.Printf("%-10s%8d%10d%10.1f%7.0f%%%14s%14s%12s%12s\n", s.Name, s.Finished-worked[i].Finished, s.Most, s.Each.Seconds()*1e3, 100*(s.Busy-worked[i].Busy).Seconds()/took.Seconds(),
			size(alloc.Default().Peak(b.engines[i].Device().Space())), size(e.Resident+e.Tables), size(e.Up-before[i].Up), size(e.Down-before[i].Down))
	}
	for i, u := range usage {
		fmt.Printf("%s: %v\n", b.engines[i].Name(), u)
	}
	fmt.Printf("peaks: %s\n", peaksText(peaks()))
	for _, e := range b.engines {
		fmt.Println(e.Stats())
	}
	return took, nil
}
