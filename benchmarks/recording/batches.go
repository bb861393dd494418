package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/internal/democircuit"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// proofs is a batch of partitions on the CPU. end closes its key.
func proofs(id curve.ID, log, items int) (b batch, end func(), err error) {
	c, err := democircuit.BitHeavy(id, log)
	if err != nil {
		return b, nil, err
	}
	keys, err := c.Setup(context.Background(), nil)
	if err != nil {
		return b, nil, err
	}
	var jobs []stages.Job
	for i := range items {
		w, err := c.Witness(i)
		if err != nil {
			return b, nil, err
		}
		jobs = append(jobs, stages.Job{Key: pipeline.Key{Job: "recording", Part: i}, Input: w})
	}
	p := &stages.Prover{Key: keys.Key, VK: keys.VK, Circuit: keys.Circuit, Arith: keys.Arith}
	b = batch{name: fmt.Sprintf("%d proofs of 2^%d", items, log), must: true}
	b.run = func(ctx context.Context, opts ...pipeline.Option) (*pipeline.Report, error) {
		return stages.Batch(ctx, p, slices.Values(jobs), func(context.Context, *stages.Result) error { return nil },
			stages.BatchOptions{Options: opts})
	}
	return b, func() { _ = keys.Key.Close() }, nil
}

// worst is a chain of five stages with nothing to do.
func worst(items int) batch {
	b := batch{name: fmt.Sprintf("%d items, 5 empty stages", items)}
	numbers := make([]int, items)
	b.run = func(ctx context.Context, opts ...pipeline.Option) (*pipeline.Report, error) {
		g := pipeline.New("worst", opts...)
		port := pipeline.Via(pipeline.FromSlice(g, numbers, nil), pipeline.NewStage("make", func(ctx context.Context, _ int) (*alloc.Buffer[byte], error) {
			return alloc.Make[byte](alloc.ScopeOf(ctx), 1024, alloc.Scratch, alloc.Dirty)
		}), pipeline.Capacity(16))
		for i := range 4 {
			port = pipeline.Via(port, pipeline.NewStage(fmt.Sprintf("pass-%d", i), func(_ context.Context, b *alloc.Buffer[byte]) (*alloc.Buffer[byte], error) {
				b.Retain()
				return b, nil
			}), pipeline.Capacity(16))
		}
		pipeline.ToFunc(port, func(context.Context, pipeline.Key, *alloc.Buffer[byte]) error { return nil }, pipeline.Capacity(16))
		return g.Run(ctx)
	}
	return b
}

func median[T cmp.Ordered](v []T) T {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}
