package stages

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Assemble puts a proof together from the sums, with a fresh r and s, and
// verifies it before it hands it over, unless the prover says NoVerify. A
// proof that does not verify is a *VerifyError and goes nowhere.
func Assemble(p *Prover) pipeline.Stage[pipeline.Tuple3[HSum, *WireSums, B2Sum], *Result] {
	return &stage[pipeline.Tuple3[HSum, *WireSums, B2Sum], *Result]{
		p:    p,
		name: NameAssemble,
		run: func(ctx context.Context, in pipeline.Tuple3[HSum, *WireSums, B2Sum]) (*Result, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if in.B == nil {
				return nil, fmt.Errorf("assemble: %w", errNoInput)
			}
			sums := groth16.Sums{H: in.A.H, L: in.B.L, A: in.B.A, B1: in.B.B1, B2: in.C.B2}
			small := &groth16.Assignment{Commitments: in.B.Commitments, CommitmentPok: in.B.CommitmentPok}
			proof, err := groth16.Assemble(p.Key, &sums, small, p.Rand)
			if err != nil {
				return nil, fmt.Errorf("assemble the proof: %w", err)
			}
			past := pipeline.PastOf(ctx)
			out := &Result{Key: pipeline.KeyOf(ctx), Proof: proof, Public: in.B.Public, Counts: in.B.Counts,
				Staged: in.A.Staged, On: p.staging(ctx).Name(), B2On: in.C.On,
				Attempts: len(past) + 1, Again: past}
			if p.NoVerify {
				return out, nil
			}
			err = p.VK.Verify(proof, out.Public)
			if errors.Is(err, groth16.ErrInvalidProof) {
				return nil, &VerifyError{Key: out.Key, Suspects: suspects(p.Key.Curve, sums),
					On: out.On, B2On: out.B2On, Err: err, again: p.mayBeProcessor(past)}
			}
			if err != nil { // no judgement on the proof: the verifying key is broken, say
				return nil, fmt.Errorf("verify the proof: %w", err)
			}
			return out, nil
		},
	}
}

// mayBeProcessor reports whether a proof that does not verify may be the fault
// of a processor, so that the job is worth to be made again: where it can come
// out otherwise, and not if an attempt before has ended in the same way. Then it
// is rather the witness.
func (p *Prover) mayBeProcessor(past []error) bool {
	for _, err := range past {
		var refused *VerifyError
		if errors.As(err, &refused) {
			return false
		}
	}
	return p.canFail()
}
