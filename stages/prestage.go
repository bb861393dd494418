package stages

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Prestage brings a, b and c to where ntt wants them. On a CPU they are there;
// on a device their copies have begun when the stage ends, or they are made there
// of the witness (then this is where a witness that does not satisfy the circuit
// is refused). The result says where they are (Staged).
func Prestage(p *Prover) pipeline.Stage[*groth16.Assignment, *Evaluations] {
	return &stage[*groth16.Assignment, *Evaluations]{
		p:     p,
		name:  NamePrestage,
		needs: p.needPrestage,
		uses: func(a *groth16.Assignment) []alloc.Ref {
			if a.A == nil {
				return refs(a.W)
			}
			return refs(a.A, a.B, a.C)
		},
		run: watched(p, NamePrestage, func(ctx context.Context, a *groth16.Assignment) (*Evaluations, error) {
			if e := p.evaluation(ctx); e != nil && a.W != nil {
				return p.evaluate(ctx, e, a)
			}
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

// evaluate has a, b and c made of w where ntt wants them.
func (p *Prover) evaluate(ctx context.Context, e *evaluation, a *groth16.Assignment) (*Evaluations, error) {
	held, row, err := e.ev.PrestageOf(ctx, alloc.ScopeOf(ctx), p.Key.Domain, p.Key.Basis, e.s, p.Key.Folded, !p.NoCheck, a.W)
	switch {
	case err != nil:
		return nil, fmt.Errorf("prestage: %w", err)
	case row >= 0:
		return nil, fmt.Errorf("prestage: %w", &groth16.UnsatisfiedError{Row: row})
	}
	return &Evaluations{Held: held, Staged: held.String()}, nil
}
