// Package synth makes runs to look at, for the tests of the packages that show
// one: the shape of a prover's graph, with stages that hold memory and sleep.
package synth

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Options say how the run goes.
type Options struct {
	Items   int
	Step    time.Duration     // that a short stage takes; long ones take thrice
	Bytes   int64             // of a large buffer
	Budget  int64             // 0: none
	FailAt  int               // this item fails, counting from 1; 0: none
	Options []pipeline.Option // of the graph
}

// value is what goes through the graph: a buffer and the item's number.
type value struct {
	n   int
	buf *alloc.Buffer[uint64]
}

// Buffers is for the engine.
func (v value) Buffers() []alloc.Ref {
	if v.buf == nil {
		return nil
	}
	return []alloc.Ref{v.buf}
}

// ErrAsked is what the item that is to fail fails with.
var ErrAsked = errors.New("the witness does not satisfy row 17")

// Graph makes a graph of eight stages, a join and a sink.
func Graph(o Options) *pipeline.Graph {
	opts := append([]pipeline.Option{pipeline.OnError(pipeline.FailKey)}, o.Options...)
	if o.Budget > 0 {
		opts = append(opts, pipeline.Budget(alloc.Host, o.Budget))
	}
	g := pipeline.New("prove", opts...)
	src := pipeline.FromSeq(g, numbers(o.Items), func(n int) pipeline.Key { return pipeline.Key{Job: "w", Part: n} }, pipeline.Name("jobs"))
	syn := pipeline.Via(src, &stage[int]{name: "synthesize", o: &o, times: 3, share: 4, number: func(n int) int { return n }}, pipeline.Workers(4))
	of := func(v value) int { return v.n }
	via := func(p *pipeline.Port[value], name string, times int, share int64, opts ...pipeline.NodeOption) *pipeline.Port[value] {
		return pipeline.Via(p, &stage[value]{name: name, o: &o, times: times, share: share, number: of}, opts...)
	}
	h := via(via(via(syn, "prestage", 1, 3), "ntt", 2, 2, pipeline.Capacity(2)), "h-msm", 2, 1, pipeline.Workers(2))
	tail := via(via(syn, "batch-add", 1, 2), "tail-msm", 1, 1)
	b2 := via(syn, "b_g2_msm", 2, 1, pipeline.Workers(2), pipeline.Capacity(4))
	all := pipeline.Join3(h, tail, b2)
	end := pipeline.Via(all, pipeline.NewStage("assemble", func(ctx context.Context, t pipeline.Tuple3[value, value, value]) (int, error) {
		return t.A.n, nap(ctx, o.Step/4)
	}))
	pipeline.ToFunc(end, func(context.Context, pipeline.Key, int) error { return nil }, pipeline.Name("proofs"))
	return g
}

func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 1; i <= n; i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// stage sleeps and holds memory.
type stage[T any] struct {
	name   string
	o      *Options
	times  int   // steps that it takes
	share  int64 // quarters of Options.Bytes that it makes
	number func(T) int
}

func (s *stage[T]) Name() string { return s.name }

func (s *stage[T]) bytes() int64 { return s.o.Bytes * s.share / 4 }

// Needs is for admission.
func (s *stage[T]) Needs(any) pipeline.Need {
	return pipeline.Need{Makes: []pipeline.Part{{Name: s.name, Bytes: alloc.HostBytes(s.bytes())}}}
}

func (s *stage[T]) Run(ctx context.Context, in T) (value, error) {
	out := value{n: s.number(in)}
	if n := s.bytes() / 8; n > 0 {
		buf, err := alloc.Make[uint64](alloc.ScopeOf(ctx), int(n), alloc.Evaluation, 0)
		if err != nil {
			return value{}, fmt.Errorf("%s: %w", s.name, err)
		}
		out.buf = buf
	}
	err := nap(ctx, time.Duration(s.times)*s.o.Step)
	if err == nil && s.name == "h-msm" && out.n == s.o.FailAt {
		err = ErrAsked
	}
	if err != nil {
		if out.buf != nil {
			out.buf.Release()
		}
		return value{}, err
	}
	return out, nil
}

func nap(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
