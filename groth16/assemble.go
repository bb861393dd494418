package groth16

import (
	"errors"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

// Assemble makes the proof of the sums, blinded with fresh r and s:
// A = α + a + rδ, B = β + b + sδ, C = l + h + sA + rB₁ − rsδ. Of a only
// Commitments and CommitmentPok are read, so its buffers may be gone; nil means
// a circuit without commitments. random is where r and s come from; nil, as it
// should be outside of tests, means crypto/rand. They are wiped before Assemble
// returns. The proof is not verified.
func Assemble(key *ProvingKey, sums *Sums, a *Assignment, random io.Reader) (*Proof, error) {
	if key == nil || sums == nil {
		return nil, errors.New("assemble: no key or no sums")
	}
	f, err := backendOf(key.Curve)
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	proof := &Proof{Curve: key.Curve}
	if a != nil {
		proof.Commitments, proof.CommitmentPok = a.Commitments, a.CommitmentPok
	}
	if len(proof.Commitments) != len(key.Commitments) {
		return nil, fmt.Errorf("assemble: the assignment has %d commitments, the key takes %d", len(proof.Commitments), len(key.Commitments))
	}
	var blind [2]curve.Scalar
	defer clear(blind[:])
	for i := range blind {
		if blind[i], err = f.Random(random); err != nil {
			return nil, fmt.Errorf("assemble: %w", err)
		}
	}
	parts := model.Parts{
		Alpha1: key.Alpha1, Beta1: key.Beta1, Delta1: key.Delta1, Beta2: key.Beta2, Delta2: key.Delta2,
		A: sums.A, B1: sums.B1, L: sums.L, H: sums.H, B2: sums.B2,
	}
	proof.A, proof.B, proof.C = f.Assemble(&parts, &blind[0], &blind[1])
	return proof, nil
}
