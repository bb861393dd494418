package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// NTT turns a, b and c into the quotient h in the key's basis. It works in
// place: h takes the memory of a, and b and c end here.
//
// The stage is not run again after a failure, whatever its cause, since its
// input is overwritten.
func NTT(p *Prover) pipeline.Stage[*Evaluations, *Quotient] {
	return &stage[*Evaluations, *Quotient]{
		p:     p,
		name:  NameNTT,
		needs: p.needNTT,
		uses:  func(e *Evaluations) []alloc.Ref { return e.Buffers() },
		run: watched(p, NameNTT, func(ctx context.Context, e *Evaluations) (*Quotient, error) {
			if e.Held == nil {
				return nil, fmt.Errorf("quotient: %w", errNoInput)
			}
			h, err := p.staging(ctx).QuotientOf(ctx, alloc.ScopeOf(ctx), e.Held)
			if err != nil {
				return nil, spoiled{fmt.Errorf("quotient over 2^%d: %w", p.Key.Domain.Log, err)}
			}
			return &Quotient{Held: h, Staged: e.Staged}, nil
		}),
	}
}
