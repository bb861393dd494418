package bls12381

import (
	"fmt"

	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/pedersen"
	gnark "github.com/consensys/gnark/backend/groth16"
	impl "github.com/consensys/gnark/backend/groth16/bls12-381"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

// Prepare converts a verifying key to gnark's type and computes its pairing.
func (Backend) Prepare(vk *model.VerifyingKey) (any, error) {
	out := &impl.VerifyingKey{}
	out.G1.Alpha, out.G1.Beta, out.G1.Delta = ToG1(&vk.Alpha1), ToG1(&vk.Beta1), ToG1(&vk.Delta1)
	out.G2.Beta, out.G2.Gamma, out.G2.Delta = ToG2(&vk.Beta2), ToG2(&vk.Gamma2), ToG2(&vk.Delta2)
	out.G1.K = make([]ec.G1Affine, len(vk.IC))
	for i := range vk.IC {
		out.G1.K[i] = ToG1(&vk.IC[i])
	}
	for i := range vk.Commitments {
		k := &vk.Commitments[i]
		out.CommitmentKeys = append(out.CommitmentKeys, pedersen.VerifyingKey{G: ToG2(&k.G), GSigmaNeg: ToG2(&k.GSigmaNeg)})
	}
	out.PublicAndCommitmentCommitted = make([][]int, len(vk.Committed))
	for i, c := range vk.Committed {
		out.PublicAndCommitmentCommitted[i] = append([]int{}, c...)
	}
	if err := out.Precompute(); err != nil {
		return nil, fmt.Errorf("pairing of the verifying key: %w", err)
	}
	return out, nil
}

// Verify runs gnark's verifier on a key that Prepare made.
func (Backend) Verify(prepared any, proof *model.Proof, public []curve.Scalar) error {
	vk, ok := prepared.(*impl.VerifyingKey)
	if !ok {
		return fmt.Errorf("the prepared verifying key is a %T", prepared)
	}
	// gnark appends to its copy of the public inputs.
	witness := make(fr.Vector, len(public), len(public)+len(vk.CommitmentKeys))
	copy(witness, elements(public))
	return impl.Verify(toProof(proof), vk, witness)
}

func toProof(p *model.Proof) *impl.Proof {
	out := &impl.Proof{Ar: ToG1(&p.A), Bs: ToG2(&p.B), Krs: ToG1(&p.C), CommitmentPok: ToG1(&p.CommitmentPok)}
	out.Commitments = make([]ec.G1Affine, len(p.Commitments))
	for i := range p.Commitments {
		out.Commitments[i] = ToG1(&p.Commitments[i])
	}
	return out
}

// ToGnarkProof is the proof in gnark's type.
func (Backend) ToGnarkProof(p *model.Proof) gnark.Proof { return toProof(p) }

// FromGnarkProof reads gnark's type; false when it is another curve's.
func (Backend) FromGnarkProof(g gnark.Proof) (*model.Proof, bool) {
	p, ok := g.(*impl.Proof)
	if !ok {
		return nil, false
	}
	out := &model.Proof{
		Curve: curve.BLS12381,
		A:     FromG1(&p.Ar), B: FromG2(&p.Bs), C: FromG1(&p.Krs),
		CommitmentPok: FromG1(&p.CommitmentPok),
	}
	for i := range p.Commitments {
		out.Commitments = append(out.Commitments, FromG1(&p.Commitments[i]))
	}
	return out, true
}

// FromGnarkVerifyingKey reads gnark's type; false when it is another curve's.
func (Backend) FromGnarkVerifyingKey(g gnark.VerifyingKey) (*model.VerifyingKey, bool) {
	k, ok := g.(*impl.VerifyingKey)
	if !ok {
		return nil, false
	}
	out := &model.VerifyingKey{
		Curve:  curve.BLS12381,
		Alpha1: FromG1(&k.G1.Alpha), Beta1: FromG1(&k.G1.Beta), Delta1: FromG1(&k.G1.Delta),
		Beta2: FromG2(&k.G2.Beta), Gamma2: FromG2(&k.G2.Gamma), Delta2: FromG2(&k.G2.Delta),
	}
	for i := range k.G1.K {
		out.IC = append(out.IC, FromG1(&k.G1.K[i]))
	}
	for i := range k.CommitmentKeys {
		out.Commitments = append(out.Commitments, model.CommitmentVerifyingKey{
			G: FromG2(&k.CommitmentKeys[i].G), GSigmaNeg: FromG2(&k.CommitmentKeys[i].GSigmaNeg),
		})
	}
	for _, c := range k.PublicAndCommitmentCommitted {
		out.Committed = append(out.Committed, append([]int{}, c...))
	}
	return out, true
}
