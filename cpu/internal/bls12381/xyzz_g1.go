package bls12381

import "math/bits"

// xyzzG1 is a point in extended Jacobian coordinates: x = X/ZZ, y = Y/ZZZ with
// ZZ³ = ZZZ². Infinity has ZZ = 0. The formulas are madd-2008-s, add-2008-s,
// dbl-2008-s-1 and mdbl-2008-s-1 of the Explicit-Formulas Database, a = 0.
type xyzzG1 struct{ X, Y, ZZ, ZZZ coordG1 }

func (p *xyzzG1) isInfinity() bool { return p.ZZ.IsZero() }

func (p *xyzzG1) setAffine(a *pointG1) {
	if a.IsInfinity() {
		*p = xyzzG1{}
		return
	}
	p.X, p.Y = a.X, a.Y
	p.ZZ.SetOne()
	p.ZZZ.SetOne()
}

// affine is p in affine coordinates, with one inversion.
func (p *xyzzG1) affine() (a pointG1) {
	if p.isInfinity() {
		return a
	}
	var inv coordG1
	inv.Mul(&p.ZZ, &p.ZZZ)
	inv.Inverse(&inv)
	a.X.Mul(&p.X, &inv)
	a.X.Mul(&a.X, &p.ZZZ)
	a.Y.Mul(&p.Y, &inv)
	a.Y.Mul(&a.Y, &p.ZZ)
	return a
}

// addAffine adds a to p.
func (p *xyzzG1) addAffine(a *pointG1) {
	if a.IsInfinity() {
		return
	}
	if p.isInfinity() {
		p.setAffine(a)
		return
	}
	var u, s coordG1
	u.Mul(&a.X, &p.ZZ)
	s.Mul(&a.Y, &p.ZZZ)
	u.Sub(&u, &p.X)
	s.Sub(&s, &p.Y)
	if u.IsZero() {
		p.same(s.IsZero())
		return
	}
	p.finish(&u, &s, &p.X, &p.Y)
}

// add adds q to p.
func (p *xyzzG1) add(q *xyzzG1) {
	if q.isInfinity() {
		return
	}
	if p.isInfinity() {
		*p = *q
		return
	}
	var u1, u2, s1, s2 coordG1
	u1.Mul(&p.X, &q.ZZ)
	u2.Mul(&q.X, &p.ZZ)
	s1.Mul(&p.Y, &q.ZZZ)
	s2.Mul(&q.Y, &p.ZZZ)
	u2.Sub(&u2, &u1)
	s2.Sub(&s2, &s1)
	if u2.IsZero() {
		p.same(s2.IsZero())
		return
	}
	p.ZZ.Mul(&p.ZZ, &q.ZZ)
	p.ZZZ.Mul(&p.ZZZ, &q.ZZZ)
	p.finish(&u2, &s2, &u1, &s1)
}

// same is what is left when the two points have one x: the double, or
// infinity when they are opposite.
func (p *xyzzG1) same(equal bool) {
	if equal {
		p.double()
	} else {
		*p = xyzzG1{}
	}
}

// finish completes an addition from the differences dx and dy, and the first
// point's x and y, all in the common coordinates that ZZ and ZZZ hold.
func (p *xyzzG1) finish(dx, dy, x, y *coordG1) {
	var pp, ppp, q, t, ny coordG1
	pp.Square(dx)
	ppp.Mul(&pp, dx)
	q.Mul(x, &pp)
	ny.Mul(y, &ppp)
	t.Square(dy)
	t.Sub(&t, &ppp)
	t.Sub(&t, &q)
	t.Sub(&t, &q)
	p.X = t
	q.Sub(&q, &t)
	p.Y.Mul(&q, dy)
	p.Y.Sub(&p.Y, &ny)
	p.ZZ.Mul(&p.ZZ, &pp)
	p.ZZZ.Mul(&p.ZZZ, &ppp)
}

// double doubles p. A point of order two has Y = 0 and gives ZZ = 0.
func (p *xyzzG1) double() {
	if p.isInfinity() {
		return
	}
	var u, v, w, s, m, t coordG1
	u.Double(&p.Y)
	v.Square(&u)
	w.Mul(&u, &v)
	s.Mul(&p.X, &v)
	t.Square(&p.X)
	m.Double(&t)
	m.Add(&m, &t)
	t.Square(&m)
	t.Sub(&t, &s)
	t.Sub(&t, &s)
	p.X = t
	s.Sub(&s, &t)
	s.Mul(&s, &m)
	t.Mul(&w, &p.Y)
	p.Y.Sub(&s, &t)
	p.ZZ.Mul(&p.ZZ, &v)
	p.ZZZ.Mul(&p.ZZZ, &w)
}

// times multiplies p by a small integer.
func (p *xyzzG1) times(k int) {
	var r xyzzG1
	for i := bits.Len(uint(k)) - 1; i >= 0; i-- {
		r.double()
		if k>>i&1 == 1 {
			r.add(p)
		}
	}
	*p = r
}
