package stages

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Synthesize runs the circuit on a job's input: the witness w and, unless the
// processor evaluates the circuit's matrices itself, the vectors a, b and, for a
// key that is not folded, c.
func Synthesize(p *Prover) pipeline.Stage[Job, *groth16.Assignment] {
	return &stage[Job, *groth16.Assignment]{
		p:     p,
		name:  NameSynthesize,
		needs: p.needSynthesize,
		run: watched(p, NameSynthesize, func(ctx context.Context, job Job) (*groth16.Assignment, error) {
			if err := p.stands(ctx); err != nil {
				return nil, fmt.Errorf("synthesize: %w", err)
			}
			a, err := p.Circuit.Synthesize(ctx, alloc.ScopeOf(ctx), job.Input, p.want(ctx))
			if err != nil {
				return nil, err // it says "synthesize" itself
			}
			if err := p.checkAssignment(a, p.evaluation(ctx) != nil); err != nil {
				a.Release()
				return nil, err
			}
			return a, nil
		}),
	}
}

// checkAssignment catches a circuit of somebody else's making that returns
// vectors of other lengths than the key's: every stage after it relies on them.
func (p *Prover) checkAssignment(a *groth16.Assignment, witnessOnly bool) error {
	n := p.Key.Domain.Size()
	switch {
	case a.W == nil || a.W.Len() != p.Key.NbWires:
		return fmt.Errorf("synthesize: the circuit gave no witness of %d wires", p.Key.NbWires)
	case witnessOnly && (a.A != nil || a.B != nil || a.C != nil):
		return errors.New("synthesize: the circuit gave more than the witness that it was asked for")
	case witnessOnly:
	case a.A == nil || a.A.Len() != n || a.B == nil || a.B.Len() != n:
		return fmt.Errorf("synthesize: the circuit gave no vectors a, b of length %d", n)
	case !p.Key.Folded && (a.C == nil || a.C.Len() != n):
		return fmt.Errorf("synthesize: the circuit gave no vector c of length %d", n)
	}
	return nil
}
