// Package parts holds the curve-neutral shapes that formats/gnark and its
// per-curve packages share.
package parts

import (
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// Key is gnark's Groth16 proving key with its vectors as views.
type Key struct {
	Curve                 curve.ID
	Domain                curve.Domain
	Alpha1, Beta1, Delta1 curve.G1
	Beta2, Delta2         curve.G2
	A, B1, Z, K, B2       curve.Points // A, B1 and B2 without infinities, Z bit-reversed
	InfinityA, InfinityB  []bool       // by wire
	Commitments           []groth16.CommitmentKey
}

// Solved is what gnark's solver found. The vectors are on Go's heap.
type Solved struct {
	W, A, B, C    []curve.Scalar
	Commitments   []curve.G1
	CommitmentPok curve.G1
}

// Wipe clears the vectors and lets go of them.
func (s *Solved) Wipe() {
	for _, v := range []*[]curve.Scalar{&s.W, &s.A, &s.B, &s.C} {
		clear(*v)
		*v = nil
	}
}

// Vectors are the key's vectors of points, in place.
func (k *Key) Vectors() []*curve.Points {
	v := []*curve.Points{&k.A, &k.B1, &k.Z, &k.K, &k.B2}
	for i := range k.Commitments {
		v = append(v, &k.Commitments[i].Basis, &k.Commitments[i].BasisExpSigma)
	}
	return v
}
