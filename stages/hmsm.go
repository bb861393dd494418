package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// HMSM is Σ hᵢ·Hᵢ, a dense multi-scalar multiplication.
func HMSM(p *Prover) pipeline.Stage[*Quotient, HSum] {
	return &stage[*Quotient, HSum]{
		p:     p,
		name:  NameHMSM,
		needs: p.needHMSM,
		uses:  func(q *Quotient) []alloc.Ref { return q.Buffers() },
		run: watched(p, NameHMSM, func(ctx context.Context, q *Quotient) (HSum, error) {
			if q.Held == nil {
				return HSum{}, fmt.Errorf("sum of H: %w", errNoInput)
			}
			h, err := p.staging(ctx).SumH(ctx, alloc.ScopeOf(ctx), p.Key.H, q.Held)
			p.Key.Rest(p.Key.H)
			if err != nil {
				return HSum{}, fmt.Errorf("sum of %d points of H: %w", p.Key.H.Len(), err)
			}
			return HSum{H: h, Staged: q.Staged}, nil
		}),
	}
}
