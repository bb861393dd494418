package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
)

// NTT turns a, b and c into the quotient h in the key's basis. It works in
// place: h takes the memory of a, and b and c end here.
//
// A failure is final, whatever its cause, since the input is overwritten.
func NTT(p *Prover) pipeline.Stage[*Evaluations, *Quotient] {
	return &stage[*Evaluations, *Quotient]{
		name:  NameNTT,
		needs: p.needNTT,
		uses:  func(e *Evaluations) []alloc.Ref { return e.Buffers() },
		run: func(ctx context.Context, e *Evaluations) (*Quotient, error) {
			if e.A == nil || e.B == nil || e.C == nil && !p.Key.Folded {
				return nil, fmt.Errorf("quotient: %w", errNoInput)
			}
			var c []curve.Scalar
			if !p.Key.Folded {
				c = e.C.Slice()
			}
			err := p.Arith.Quotient(ctx, alloc.ScopeOf(ctx), p.Key.Domain, p.Key.Basis,
				e.A.Slice(), e.B.Slice(), c)
			if err != nil {
				return nil, spoiled{fmt.Errorf("quotient over 2^%d: %w", p.Key.Domain.Log, err)}
			}
			e.A.Retain()
			return &Quotient{H: e.A, Staged: e.Staged}, nil
		},
	}
}
