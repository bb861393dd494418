// Package model holds the curve-neutral shapes that groth16 and its per-curve
// packages share.
package model

import "github.com/snarkline/snarkline/curve"

// Proof is groth16.Proof.
type Proof struct {
	Curve         curve.ID
	A             curve.G1
	B             curve.G2
	C             curve.G1
	Commitments   []curve.G1
	CommitmentPok curve.G1
}

// CommitmentVerifyingKey is groth16.CommitmentVerifyingKey.
type CommitmentVerifyingKey struct {
	G         curve.G2
	GSigmaNeg curve.G2
}

// VerifyingKey holds the fields of groth16.VerifyingKey.
type VerifyingKey struct {
	Curve                 curve.ID
	Alpha1, Beta1, Delta1 curve.G1
	Beta2, Gamma2, Delta2 curve.G2
	IC                    []curve.G1
	Commitments           []CommitmentVerifyingKey
	Committed             [][]int
}

// Parts are the key's points and a witness's sums that make a proof.
type Parts struct {
	Alpha1, Beta1, Delta1 curve.G1
	Beta2, Delta2         curve.G2
	A, B1, L, H           curve.G1
	B2                    curve.G2
}
