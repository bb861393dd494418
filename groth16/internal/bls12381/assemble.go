package bls12381

import (
	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

// Assemble blinds the sums with r and s (Groth 2016, section 3.2):
// A = α + a + rδ, B = β + b + sδ, C = l + h + sA + rB₁ − rsδ.
func (Backend) Assemble(p *model.Parts, r, s *curve.Scalar) (a curve.G1, b curve.G2, c curve.G1) {
	_r, _s := fr.Element(*r), fr.Element(*s)
	var rs fr.Element
	rs.Mul(&_r, &_s).Neg(&rs)
	rb, sb, rsb := _r.Bits(), _s.Bits(), rs.Bits()
	defer func() {
		for _, v := range [][]uint64{_r[:], _s[:], rs[:], rb[:], sb[:], rsb[:]} {
			wipe(v)
		}
	}()

	delta1, delta2 := ToG1(&p.Delta1), ToG2(&p.Delta2)
	aPoint := timesG1(&delta1, &rb)
	addG1(&aPoint, &p.Alpha1)
	addG1(&aPoint, &p.A)
	var aff ec.G1Affine
	aff.FromJacobian(&aPoint)
	a = FromG1(&aff)

	b1 := timesG1(&delta1, &sb)
	addG1(&b1, &p.Beta1)
	addG1(&b1, &p.B1)
	var b1Aff ec.G1Affine
	b1Aff.FromJacobian(&b1)

	b2 := timesG2(&delta2, &sb)
	addG2(&b2, &p.Beta2)
	addG2(&b2, &p.B2)
	var b2Aff ec.G2Affine
	b2Aff.FromJacobian(&b2)
	b = FromG2(&b2Aff)

	cPoint := timesG1(&aff, &sb)
	t := timesG1(&b1Aff, &rb)
	cPoint.AddAssign(&t)
	t = timesG1(&delta1, &rsb)
	cPoint.AddAssign(&t)
	addG1(&cPoint, &p.L)
	addG1(&cPoint, &p.H)
	aff.FromJacobian(&cPoint)
	c = FromG1(&aff)
	return a, b, c
}

// wipe clears the limbs of a secret. It is not inlined, so that the compiler does
// not leave the stores out where nobody reads them afterwards.
//
//go:noinline
func wipe(limbs []uint64) { clear(limbs) }

func addG1(p *ec.G1Jac, q *curve.G1) {
	a := ToG1(q)
	p.AddMixed(&a)
}

func addG2(p *ec.G2Jac, q *curve.G2) {
	a := ToG2(q)
	p.AddMixed(&a)
}

// timesG1 is bits·q by doubling and adding. gnark-crypto's faster one takes a
// big.Int and leaves pieces of it on the heap; here the scalar is a secret.
func timesG1(q *ec.G1Affine, bits *[4]uint64) (p ec.G1Jac) {
	for i := fr.Bits - 1; i >= 0; i-- {
		p.DoubleAssign()
		if bits[i/64]>>(i%64)&1 == 1 {
			p.AddMixed(q)
		}
	}
	return p
}

// timesG2 is timesG1 in G2.
func timesG2(q *ec.G2Affine, bits *[4]uint64) (p ec.G2Jac) {
	for i := fr.Bits - 1; i >= 0; i-- {
		p.DoubleAssign()
		if bits[i/64]>>(i%64)&1 == 1 {
			p.AddMixed(q)
		}
	}
	return p
}

// TimesG1 is s·q for one secret scalar.
func (Backend) TimesG1(q curve.G1, s curve.Scalar) curve.G1 {
	e, a := fr.Element(s), ToG1(&q)
	b := e.Bits()
	p := timesG1(&a, &b)
	wipe(e[:])
	wipe(b[:])
	a.FromJacobian(&p)
	return FromG1(&a)
}

// TimesG2 is s·q for one secret scalar.
func (Backend) TimesG2(q curve.G2, s curve.Scalar) curve.G2 {
	e, a := fr.Element(s), ToG2(&q)
	b := e.Bits()
	p := timesG2(&a, &b)
	wipe(e[:])
	wipe(b[:])
	a.FromJacobian(&p)
	return FromG2(&a)
}

// Generators are the generators of the groups.
func (Backend) Generators() (curve.G1, curve.G2) {
	_, _, g1, g2 := ec.Generators()
	return FromG1(&g1), FromG2(&g2)
}
