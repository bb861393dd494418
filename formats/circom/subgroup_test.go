package circom

import (
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"github.com/snarkline/snarkline/curve"
)

// outsideSubgroup is a point of the curve in G1 and one in G2, in the memory of
// a key, that are not in the subgroup of order r; nil where there is none.
func outsideSubgroup(id curve.ID) (g1, g2 []byte) {
	if id == curve.BN254 {
		return nil, outsideBN254()
	}
	return outsideBLS12381()
}

func outsideBN254() []byte {
	var nine, b bn254.E2
	nine.A0.SetUint64(9)
	nine.A1.SetOne()
	b.Inverse(&nine)
	b.MulByElement(&b, nine.A0.SetUint64(3)) // 3/(9 + u)
	var p bn254.G2Affine
	for x := uint64(1); ; x++ {
		p.X.A0.SetUint64(x)
		var y bn254.E2
		y.Square(&p.X).Mul(&y, &p.X).Add(&y, &b)
		if y.Legendre() != 1 {
			continue
		}
		if p.Y.Sqrt(&y); p.IsOnCurve() && !p.IsInSubGroup() {
			return append([]byte(nil), curve.Bytes([]bn254.G2Affine{p})...)
		}
	}
}

func outsideBLS12381() (g1, g2 []byte) {
	var p bls.G1Affine
	for x := uint64(1); g1 == nil; x++ {
		p.X.SetUint64(x)
		y := p.X
		y.Square(&y).Mul(&y, &p.X)
		four := p.Y
		y.Add(&y, four.SetUint64(4))
		if y.Legendre() != 1 {
			continue
		}
		if p.Y.Sqrt(&y); p.IsOnCurve() && !p.IsInSubGroup() {
			g1 = append([]byte(nil), curve.Bytes([]bls.G1Affine{p})...)
		}
	}
	var q bls.G2Affine
	var b bls.E2
	b.A0.SetUint64(4)
	b.A1.SetUint64(4)
	for x := uint64(1); ; x++ {
		q.X.A0.SetUint64(x)
		var y bls.E2
		y.Square(&q.X).Mul(&y, &q.X).Add(&y, &b)
		if y.Legendre() != 1 {
			continue
		}
		if q.Y.Sqrt(&y); q.IsOnCurve() && !q.IsInSubGroup() {
			return g1, append([]byte(nil), curve.Bytes([]bls.G2Affine{q})...)
		}
	}
}
