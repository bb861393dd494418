package stages

import (
	"context"

	"github.com/snarkline/snarkline/groth16"
)

// staging is the processor of the job that ctx belongs to. It is the one place
// where stages ask for one.
func (p *Prover) staging(_ context.Context) groth16.Staging {
	return groth16.StagingOf(p.Arith)
}
