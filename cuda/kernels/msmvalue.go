package kernels

import (
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfp "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	bnfp "github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/snarkline/snarkline/curve"
)

// field is an element of the field of a group's coordinates.
type fieldElement[E any] interface {
	*E
	Mul(x, y *E) *E
	Square(x *E) *E
	IsZero() bool
}

// jacobian is a point of gnark-crypto's: three elements x, y, z.
type jacobian[J any] interface {
	*J
	AddAssign(*J) *J
	DoubleAssign() *J
}

// sumOf is a point as the kernels have it: x = X/ZZ, y = Y/ZZZ, ZZ³ = ZZZ²; the
// identity has ZZ = 0.
type sumOf[E any] struct{ x, y, zz, zzz E }

// put writes a sum as a Jacobian point with Z = ZZZ and reports whether it is
// not the identity.
func put[E any, J any, PE fieldElement[E]](j *J, s *sumOf[E]) bool {
	if PE(&s.zz).IsZero() {
		return false
	}
	// X/ZZ = X·ZZ²/ZZZ², Y/ZZZ = Y·ZZZ²/ZZZ³
	v := (*[3]E)(unsafe.Pointer(j))
	PE(&v[2]).Square(&s.zz)
	PE(&v[0]).Mul(&s.x, &v[2])
	PE(&v[2]).Square(&s.zzz)
	PE(&v[1]).Mul(&s.y, &v[2])
	v[2] = s.zzz
	return true
}

// horner puts the sums of the bits of all windows together.
func horner[E any, J any, PE fieldElement[E], PJ jacobian[J]](p *Plan, out unsafe.Pointer, identity J) J {
	sums := unsafe.Slice((*sumOf[E])(out), p.Sort.W*p.bitsEach())
	log := 0
	for 1<<log < p.segment {
		log++
	}
	// at[e] is what counts 2^e times.
	at := make([]J, p.Sort.W*p.Sort.C+1)
	for e := range at {
		at[e] = identity
	}
	for i := range sums {
		w, k := i/p.bitsEach(), i%p.bitsEach()
		e := w * p.Sort.C
		switch {
		case k < p.hb:
			e += log + p.lb + k
		case k < p.hb+p.lb:
			e += log + k - p.hb
		}
		var j J
		if put[E, J, PE](&j, &sums[i]) {
			PJ(&at[e]).AddAssign(&j)
		}
	}
	r := identity
	for e := len(at) - 1; e >= 0; e-- {
		PJ(&r).DoubleAssign()
		PJ(&r).AddAssign(&at[e])
	}
	return r
}

// total is the plain sum of n sums.
func total[E any, J any, PE fieldElement[E], PJ jacobian[J]](n int, out unsafe.Pointer, identity J) J {
	r := identity
	for i := range n {
		var j J
		if put[E, J, PE](&j, &unsafe.Slice((*sumOf[E])(out), n)[i]) {
			PJ(&r).AddAssign(&j)
		}
	}
	return r
}

// Value1 is the sum in G1 that a run of plan p has copied to out.
func (m *MSM) Value1(p Plan, out unsafe.Pointer) curve.G1 {
	if p.id == curve.BN254 {
		return bnG1(horner[bnfp.Element](&p, out, bn254.G1Jac{}))
	}
	return blsG1(horner[blsfp.Element](&p, out, bls12381.G1Jac{}))
}

// Value2 is the sum in G2 that a run of plan p has copied to out.
func (m *MSM) Value2(p Plan, out unsafe.Pointer) curve.G2 {
	if p.id == curve.BN254 {
		return bnG2(horner[bn254.E2](&p, out, bn254.G2Jac{}))
	}
	return blsG2(horner[bls12381.E2](&p, out, bls12381.G2Jac{}))
}

// SumValue1 is the sum in G1 that Sum has copied to out.
func (m *MSM) SumValue1(p SumPlan, out unsafe.Pointer) curve.G1 {
	if m.set.id == curve.BN254 {
		return bnG1(total[bnfp.Element](p.results, out, bn254.G1Jac{}))
	}
	return blsG1(total[blsfp.Element](p.results, out, bls12381.G1Jac{}))
}

// SumValue2 is the sum in G2 that Sum has copied to out.
func (m *MSM) SumValue2(p SumPlan, out unsafe.Pointer) curve.G2 {
	if m.set.id == curve.BN254 {
		return bnG2(total[bn254.E2](p.results, out, bn254.G2Jac{}))
	}
	return blsG2(total[bls12381.E2](p.results, out, bls12381.G2Jac{}))
}

func bnG1(j bn254.G1Jac) (g curve.G1) {
	(*bn254.G1Affine)(unsafe.Pointer(&g)).FromJacobian(&j)
	return g
}

func blsG1(j bls12381.G1Jac) (g curve.G1) {
	(*bls12381.G1Affine)(unsafe.Pointer(&g)).FromJacobian(&j)
	return g
}

func bnG2(j bn254.G2Jac) (g curve.G2) {
	(*bn254.G2Affine)(unsafe.Pointer(&g)).FromJacobian(&j)
	return g
}

func blsG2(j bls12381.G2Jac) (g curve.G2) {
	(*bls12381.G2Affine)(unsafe.Pointer(&g)).FromJacobian(&j)
	return g
}
