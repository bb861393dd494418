package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

type batchAddStage = pipeline.Stage[*groth16.Assignment, *Split]

// BatchAdd classifies the witness once for the queries L, A and B1, adds the
// points whose scalar is 1, and leaves to tail-msm those whose scalar is
// neither 0 nor 1. A witness with a smaller share of ones than the prover's
// MinOnes is handed on whole.
func BatchAdd(p *Prover) pipeline.Stage[*groth16.Assignment, *Split] {
	return &stage[*groth16.Assignment, *Split]{
		p:     p,
		name:  NameBatchAdd,
		needs: p.needBatchAdd,
		uses:  func(a *groth16.Assignment) []alloc.Ref { return refs(a.W) },
		run:   watched(p, NameBatchAdd, p.batchAdd),
	}
}

func (p *Prover) batchAdd(ctx context.Context, a *groth16.Assignment) (*Split, error) {
	if a.W == nil {
		return nil, fmt.Errorf("classify: %w", errNoInput)
	}
	st, scope := p.staging(ctx), alloc.ScopeOf(ctx)
	held, counts, err := st.Split(ctx, scope, a.W)
	if err != nil {
		return nil, fmt.Errorf("split the witness: %w", err)
	}
	defer release(held)

	out := &Split{
		Small: Small{
			Public:        append([]curve.Scalar(nil), a.W.Slice()[1:1+p.Key.NbPublic]...),
			Commitments:   a.Commitments,
			CommitmentPok: a.CommitmentPok,
		},
		Counts: counts,
		Whole:  float64(counts[curve.One]) < p.minOnes()*float64(a.W.Len()),
	}
	if !out.Whole {
		for _, q := range p.wireQueries() {
			if *q.ones(out), err = st.SumOnes(ctx, scope, q.query, held); err != nil {
				return nil, fmt.Errorf("sum the ones of %s: %w", q.name, err)
			}
			p.Key.Rest(q.query.Points)
		}
	}
	out.Held, err = st.Others(ctx, scope, held, out.Whole, p.Key.L, p.Key.A, p.Key.B1)
	if err != nil {
		return nil, fmt.Errorf("pick the tails: %w", err)
	}
	return out, nil
}

// wireQuery is one of the three queries whose scalars are wires and that are in G1.
type wireQuery struct {
	name  string
	query curve.Query
	ones  func(*Split) *curve.G1
	sum   func(*WireSums) *curve.G1
}

func (p *Prover) wireQueries() [3]wireQuery {
	return [...]wireQuery{
		{"L", p.Key.L, func(s *Split) *curve.G1 { return &s.LOnes }, func(s *WireSums) *curve.G1 { return &s.L }},
		{"A", p.Key.A, func(s *Split) *curve.G1 { return &s.AOnes }, func(s *WireSums) *curve.G1 { return &s.A }},
		{"B1", p.Key.B1, func(s *Split) *curve.G1 { return &s.B1Ones }, func(s *WireSums) *curve.G1 { return &s.B1 }},
	}
}
