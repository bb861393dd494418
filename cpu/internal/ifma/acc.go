package ifma

import (
	"math/big"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"
)

var one = big.NewInt(1)

// word is 64-bit word i of v.
func word(v *big.Int, i int) uint64 {
	return new(big.Int).Rsh(v, uint(64*i)).Uint64()
}

// accumulators are a few points in gnark-crypto's Jacobian coordinates, for the
// last steps of a sum. All start at infinity.
type accumulators interface {
	addRow(i int, row []uint64)  // row is finite
	addAffine(i int, p []uint64) // gnark-crypto's affine layout
	add(i, j int)                // i += j
	double(i int)
	set(i, j int) // i = j
	clear(i int)
	affine(i int, out []uint64) // gnark-crypto's affine layout
}

type jacobian[J, A any] interface {
	*J
	AddAssign(q *J) *J
	AddMixed(a *A) *J
	DoubleAssign() *J
}

type accSlice[J, A any, P jacobian[J, A]] struct {
	p        []J
	fromRow  func(row []uint64) A
	toAffine func(p *J) A
}

func (s *accSlice[J, A, P]) addRow(i int, row []uint64) {
	a := s.fromRow(row)
	P(&s.p[i]).AddMixed(&a)
}
func (s *accSlice[J, A, P]) addAffine(i int, p []uint64) {
	var a A
	copy(unsafe.Slice((*uint64)(unsafe.Pointer(&a)), unsafe.Sizeof(a)/8), p)
	P(&s.p[i]).AddMixed(&a)
}
func (s *accSlice[J, A, P]) add(i, j int) { P(&s.p[i]).AddAssign(&s.p[j]) }
func (s *accSlice[J, A, P]) double(i int) { P(&s.p[i]).DoubleAssign() }
func (s *accSlice[J, A, P]) set(i, j int) { s.p[i] = s.p[j] }
func (s *accSlice[J, A, P]) clear(i int) {
	var z J
	s.p[i] = z
}
func (s *accSlice[J, A, P]) affine(i int, out []uint64) {
	a := s.toAffine(&s.p[i])
	copy(out, unsafe.Slice((*uint64)(unsafe.Pointer(&a)), unsafe.Sizeof(a)/8))
}

func accsG1x381(n int) accumulators {
	return &accSlice[bls.G1Jac, bls.G1Affine, *bls.G1Jac]{
		make([]bls.G1Jac, n),
		func(r []uint64) (a bls.G1Affine) {
			a.X, a.Y = get381(r, 1), get381(r[8:], 1)
			return a
		},
		func(p *bls.G1Jac) (a bls.G1Affine) { return *a.FromJacobian(p) },
	}
}

func accsG2x381(n int) accumulators {
	return &accSlice[bls.G2Jac, bls.G2Affine, *bls.G2Jac]{
		make([]bls.G2Jac, n),
		func(r []uint64) (a bls.G2Affine) {
			a.X.A0, a.X.A1 = get381(r, 1), get381(r[8:], 1)
			a.Y.A0, a.Y.A1 = get381(r[16:], 1), get381(r[24:], 1)
			return a
		},
		func(p *bls.G2Jac) (a bls.G2Affine) { return *a.FromJacobian(p) },
	}
}

func accsG1x254(n int) accumulators {
	return &accSlice[bn.G1Jac, bn.G1Affine, *bn.G1Jac]{
		make([]bn.G1Jac, n),
		func(r []uint64) (a bn.G1Affine) {
			a.X, a.Y = fromWords254([4]uint64(r)), fromWords254([4]uint64(r[4:]))
			return a
		},
		func(p *bn.G1Jac) (a bn.G1Affine) { return *a.FromJacobian(p) },
	}
}

func accsG2x254(n int) accumulators {
	return &accSlice[bn.G2Jac, bn.G2Affine, *bn.G2Jac]{
		make([]bn.G2Jac, n),
		func(r []uint64) (a bn.G2Affine) {
			a.X.A0, a.X.A1 = fromWords254([4]uint64(r)), fromWords254([4]uint64(r[4:]))
			a.Y.A0, a.Y.A1 = fromWords254([4]uint64(r[8:])), fromWords254([4]uint64(r[12:]))
			return a
		},
		func(p *bn.G2Jac) (a bn.G2Affine) { return *a.FromJacobian(p) },
	}
}
