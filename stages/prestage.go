package stages

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// stagedOnHost is what prestage says on a CPU.
const stagedOnHost = "passed through: a, b, c stay in host memory"

// Prestage brings a, b and c to where ntt wants them. On a CPU they are there:
// the stage passes them on, and says so in the
// result (Staged).
func Prestage(p *Prover) pipeline.Stage[*groth16.Assignment, *Evaluations] {
	return &stage[*groth16.Assignment, *Evaluations]{
		name: NamePrestage,
		uses: func(a *groth16.Assignment) []alloc.Ref { return refs(a.A, a.B, a.C) },
		run: func(ctx context.Context, a *groth16.Assignment) (*Evaluations, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out := &Evaluations{A: a.A, B: a.B, C: a.C, Staged: stagedOnHost}
			for _, b := range out.Buffers() {
				b.Retain()
			}
			return out, nil
		},
	}
}
