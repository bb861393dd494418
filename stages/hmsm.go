package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
)

// HMSM is Σ hᵢ·Hᵢ, a dense multi-scalar multiplication.
func HMSM(p *Prover) pipeline.Stage[*Quotient, HSum] {
	return &stage[*Quotient, HSum]{
		name:  NameHMSM,
		needs: p.needHMSM,
		uses:  func(q *Quotient) []alloc.Ref { return q.Buffers() },
		run: func(ctx context.Context, q *Quotient) (HSum, error) {
			query := curve.Query{Points: p.Key.H}
			if q.H == nil || q.H.Len() < query.Len() {
				return HSum{}, fmt.Errorf("sum of H: %w", errNoInput)
			}
			h, err := p.Arith.MSMG1(ctx, alloc.ScopeOf(ctx), query, q.H.Slice(), nil)
			p.Key.Rest(query.Points)
			if err != nil {
				return HSum{}, fmt.Errorf("sum of %d points of H: %w", query.Len(), err)
			}
			return HSum{H: h, Staged: q.Staged}, nil
		},
	}
}
