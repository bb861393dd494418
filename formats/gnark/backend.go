package gnark

import (
	"fmt"

	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/constraint/solver"

	"github.com/consensys/gnark-crypto/ecc"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/bls12381"
	"github.com/snarkline/snarkline/formats/gnark/internal/bn254"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	ours "github.com/snarkline/snarkline/groth16"
)

//go:generate go run ../../internal/gen -from formats/gnark/internal/bls12381

// backend is the part of the work that needs a concrete curve.
type backend interface {
	ID() curve.ID
	Decode(buf []byte, out curve.Points) (int, error)
	Element(b *[curve.ScalarBytes]byte) (curve.Scalar, error)
	ToGnark(k *parts.Key) groth16.ProvingKey
	CopyKey(g groth16.ProvingKey)
	FromGnark(g groth16.ProvingKey) (*parts.Key, bool)
	IsWitness(w witness.Witness) bool
	Values(w witness.Witness) []curve.Scalar
	Wipe(w witness.Witness)
	Solve(c constraint.ConstraintSystem, w witness.Witness, keys []ours.CommitmentKey, opts []solver.Option) (*parts.Solved, error)
}

func backendOf(id curve.ID) (backend, error) {
	switch id {
	case curve.BN254:
		return bn254.Backend{}, nil
	case curve.BLS12381:
		return bls12381.Backend{}, nil
	}
	return nil, fmt.Errorf("%w: gnark's files are read for bn254 and bls12-381, not %v", ErrCurve, id)
}

// eccOf is gnark-crypto's name of the curve.
func eccOf(id curve.ID) ecc.ID {
	if id == curve.BN254 {
		return ecc.BN254
	}
	return ecc.BLS12_381
}

// system is the curve-neutral view of a compiled circuit.
type system struct {
	*constraint.System
	curve  curve.ID
	coeffs []curve.Scalar
}

// systemOf looks into a compiled circuit; an error when it is on another curve
// or not an R1CS.
func systemOf(c constraint.ConstraintSystem) (*system, error) {
	var s system
	if sys, coeffs, ok := (bn254.Backend{}).System(c); ok {
		s = system{System: sys, curve: curve.BN254, coeffs: make([]curve.Scalar, len(coeffs))}
		for i := range coeffs {
			s.coeffs[i] = curve.Scalar(coeffs[i])
		}
	} else if sys, coeffs, ok := (bls12381.Backend{}).System(c); ok {
		s = system{System: sys, curve: curve.BLS12381, coeffs: make([]curve.Scalar, len(coeffs))}
		for i := range coeffs {
			s.coeffs[i] = curve.Scalar(coeffs[i])
		}
	} else {
		return nil, fmt.Errorf("a %T is no constraint system on bn254 or bls12-381", c)
	}
	if s.Type != constraint.SystemR1CS {
		return nil, fmt.Errorf("the constraint system is no R1CS (compile it with gnark's r1cs builder)")
	}
	if _, ok := s.CommitmentInfo.(constraint.Groth16Commitments); !ok {
		return nil, fmt.Errorf("the constraint system's commitments are %T, not Groth16's", s.CommitmentInfo)
	}
	return &s, nil
}

// wires is the length of the circuit's full witness.
func (s *system) wires() int {
	return s.GetNbPublicVariables() + s.GetNbSecretVariables() + s.NbInternalVariables
}

// commitments are what the circuit commits to.
func (s *system) commitments() []ours.Commitment {
	info, _ := s.CommitmentInfo.(constraint.Groth16Commitments) // checked by systemOf
	if len(info) == 0 {
		return nil
	}
	covered := info.GetPublicAndCommitmentCommitted(info.CommitmentIndexes(), s.GetNbPublicVariables())
	out := make([]ours.Commitment, len(info))
	for i, c := range info {
		out[i] = ours.Commitment{Wire: uint32(c.CommitmentIndex), Covered: covered[i]}
		for _, w := range c.PrivateCommitted {
			out[i].Private = append(out[i].Private, uint32(w))
		}
	}
	return out
}
