package arith

import (
	"fmt"
	"math/big"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"github.com/snarkline/snarkline/curve"
)

// Pairing is e(p, q) of points in the subgroups, as the decimal coordinates of
// its tower of extensions: degree 2 over degree 3 over degree 2.
func Pairing(id curve.ID, p *curve.G1, q *curve.G2) (out [2][3][2]string, err error) {
	switch id {
	case curve.BN254:
		a, b, err := affines[bn254.G1Affine, bn254.G2Affine](id, p, q)
		if err != nil {
			return out, err
		}
		e, err := bn254.Pair(a, b)
		if err != nil {
			return out, fmt.Errorf("pairing on %v: %w", id, err)
		}
		for i, six := range []*bn254.E6{&e.C0, &e.C1} {
			for j, two := range []*bn254.E2{&six.B0, &six.B1, &six.B2} {
				out[i][j] = [2]string{two.A0.BigInt(new(big.Int)).String(), two.A1.BigInt(new(big.Int)).String()}
			}
		}
	case curve.BLS12381:
		a, b, err := affines[bls.G1Affine, bls.G2Affine](id, p, q)
		if err != nil {
			return out, err
		}
		e, err := bls.Pair(a, b)
		if err != nil {
			return out, fmt.Errorf("pairing on %v: %w", id, err)
		}
		for i, six := range []*bls.E6{&e.C0, &e.C1} {
			for j, two := range []*bls.E2{&six.B0, &six.B1, &six.B2} {
				out[i][j] = [2]string{two.A0.BigInt(new(big.Int)).String(), two.A1.BigInt(new(big.Int)).String()}
			}
		}
	default:
		return out, fmt.Errorf("pairing on %v: unknown curve", id)
	}
	return out, nil
}

// affines views two points as one curve's types.
func affines[A, B any](id curve.ID, p *curve.G1, q *curve.G2) ([]A, []B, error) {
	a, err := curve.View[A](curve.Bytes(p[:words(id, curve.InG1)]))
	if err != nil {
		return nil, nil, err
	}
	b, err := curve.View[B](curve.Bytes(q[:words(id, curve.InG2)]))
	return a, b, err
}
