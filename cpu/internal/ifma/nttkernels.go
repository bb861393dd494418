package ifma

import (
	"github.com/snarkline/snarkline/curve"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn "github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// frVec is the size of a vector of eight scalars: five limbs of eight words.
const frVec = 320

// nttKernels are the vector kernels of transforms over one scalar field. See
// the generator for what each does.
type nttKernels struct {
	loadElements, storeElements, loadWords, storeWords func(v, m *byte, n, step int)
	loadBlocks, storeBlocks                            func(v, m *byte, groups int)

	splitR4   func(v, table *byte, h, blocks, q int)
	splitR2   func(v, z *byte, q int)
	splitLast func(v, a, b, c *byte, groups int)

	joinFirst func(v, table *byte, groups int)
	joinR4    func(v, w *byte, blocks, q int)
	joinR2    func(v, w *byte, q int)

	mulVec, mulOne, expand func(dst, a, b *byte, n int)
}

// frField is a scalar field by way of gnark-crypto, for tables.
type frField struct {
	mul     func(a, b curve.Scalar) curve.Scalar
	inverse func(a curve.Scalar) curve.Scalar
	small   func(v uint64) curve.Scalar
}

func field381() frField {
	return frField{
		func(a, b curve.Scalar) curve.Scalar {
			x, y := bls.Element(a), bls.Element(b)
			return curve.Scalar(*x.Mul(&x, &y))
		},
		func(a curve.Scalar) curve.Scalar {
			x := bls.Element(a)
			return curve.Scalar(*x.Inverse(&x))
		},
		func(v uint64) curve.Scalar { return curve.Scalar(bls.NewElement(v)) },
	}
}

func field254() frField {
	return frField{
		func(a, b curve.Scalar) curve.Scalar {
			x, y := bn.Element(a), bn.Element(b)
			return curve.Scalar(*x.Mul(&x, &y))
		},
		func(a curve.Scalar) curve.Scalar {
			x := bn.Element(a)
			return curve.Scalar(*x.Inverse(&x))
		},
		func(v uint64) curve.Scalar { return curve.Scalar(bn.NewElement(v)) },
	}
}

// square n times.
func (f *frField) squares(a curve.Scalar, n int) curve.Scalar {
	for range n {
		a = f.mul(a, a)
	}
	return a
}

// limbs gives the five limbs of e with the radix 2^260; sixteen is 16.
func (f *frField) limbs(e, sixteen curve.Scalar) [5]uint64 {
	e = f.mul(e, sixteen)
	return [5]uint64{
		e[0] & mask52, (e[0]>>52 | e[1]<<12) & mask52, (e[1]>>40 | e[2]<<24) & mask52,
		(e[2]>>28 | e[3]<<36) & mask52, e[3] >> 16,
	}
}
