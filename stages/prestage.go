package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Prestage brings a, b and c to where ntt wants them. On a CPU they are there;
// on a device their copies have begun when the stage ends. The result says
// where they are (Staged).
func Prestage(p *Prover) pipeline.Stage[*groth16.Assignment, *Evaluations] {
	return &stage[*groth16.Assignment, *Evaluations]{
		p:     p,
		name:  NamePrestage,
		needs: p.needPrestage,
		uses:  func(a *groth16.Assignment) []alloc.Ref { return refs(a.A, a.B, a.C) },
		run: watched(p, NamePrestage, func(ctx context.Context, a *groth16.Assignment) (*Evaluations, error) {
			if a.A == nil || a.B == nil || a.C == nil && !p.Key.Folded {
				return nil, fmt.Errorf("prestage: %w", errNoInput)
			}
			held, err := p.staging(ctx).Prestage(ctx, alloc.ScopeOf(ctx), p.Key.Domain, p.Key.Basis, a.A, a.B, a.C)
			if err != nil {
				return nil, fmt.Errorf("prestage: %w", err)
			}
			if c, ok := held.(interface{ WhenCopied(func()) }); ok {
				end := pipeline.EndParts(ctx)
				c.WhenCopied(func() { end(PartA, PartB, PartC) })
			}
			return &Evaluations{Held: held, Staged: held.String()}, nil
		}),
	}
}
