package main

import (
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

// ranges goes through formulas with upper bounds of the values, in multiples of
// p; a bound that is not allowed fails the test.
type ranges struct {
	t   *testing.T
	bls bool
	rho float64 // R/p
}

// bound is an upper bound of a value, in p. Values are never negative.
type bound = float64

func (r ranges) check(what string, have, limit bound) {
	r.t.Helper()
	if have > limit {
		r.t.Errorf("%s: %.3f p, and %.3f p is allowed", what, have, limit)
	}
}

// fits is for a value that is stored in the field's words.
func (r ranges) fits(v bound) bound {
	r.t.Helper()
	r.check("a value in its words", v, r.rho)
	return v
}

// reduce is fp_reduce of a sum of products, in p².
func (r ranges) reduce(sum float64) bound {
	r.t.Helper()
	r.check("a sum of products in its words, over p", sum/r.rho, r.rho)
	return r.fits(1 + sum/r.rho)
}

func (r ranges) mul(a, b bound) bound { r.t.Helper(); return r.reduce(a * b) }
func (r ranges) add(a, b bound) bound { r.t.Helper(); return r.fits(a + b) }
func (r ranges) csub(k, a bound) bound {
	return max(k, a-k)
}

// sub is a − b + k·p.
func (r ranges) sub(k, a, b bound) bound {
	r.t.Helper()
	r.check("what is subtracted", b, k)
	return r.fits(a + k)
}

func (r ranges) neg(k, a bound) bound { r.t.Helper(); r.check("what is negated", a, k); return k }

func (r ranges) addTight(a, b bound) bound { r.t.Helper(); return r.csub(2, r.add(a, b)) }
func (r ranges) subTight(a, b bound) bound { r.t.Helper(); return r.csub(2, r.sub(2, a, b)) }

func (r ranges) isZero(a bound) bound {
	r.t.Helper()
	r.check("a value that is compared with multiples of p", a, 4)
	return a
}

// The operations of fp.cuh.

func (r ranges) difference(a, b bound) bound {
	r.t.Helper()
	if r.bls {
		return r.sub(2, a, b)
	}
	return r.subTight(a, b)
}

func (r ranges) newX(r2, q, ppp bound) bound {
	r.t.Helper()
	if r.bls {
		return r.csub(2, r.csub(4, r.sub(5, r2, r.add(r.add(q, q), ppp))))
	}
	t := r.subTight(r2, ppp)
	return r.subTight(t, r.csub(2, r.add(q, q)))
}

func (r ranges) newXTight(r2, q, ppp bound) bound {
	r.t.Helper()
	if r.bls {
		return r.csub(2, r.csub(4, r.sub(6, r2, r.add(r.add(q, q), ppp))))
	}
	return r.newX(r2, q, ppp)
}

func (r ranges) stored(what string, v bound) { r.t.Helper(); r.check(what+" as it is stored", v, 2) }

// finish is the end of an addition in G1: P, R, and the factors of Q, Y.
func (r ranges) finish(p, rr, u, s, zz, zzz bound, together bool) {
	r.t.Helper()
	r.isZero(p)
	r.isZero(rr)
	pp, r2 := r.mul(p, p), r.mul(rr, rr)
	ppp := r.mul(p, pp)
	q := r.mul(u, pp)
	r.stored("ZZ", r.mul(zz, pp))
	r.stored("ZZZ", r.mul(zzz, ppp))
	x := r.newX(r2, q, ppp)
	r.stored("X", x)
	d := r.sub(2, q, x)
	y := r.neg(2, s)
	if together {
		r.stored("Y", r.addTight(r.csub(2, r.mul(rr, d)), r.mul(y, ppp)))
		return
	}
	r.stored("Y", r.csub(2, r.reduce(rr*d+y*ppp)))
}

// dot is fp2_dot of pairs of bounds.
func (r ranges) dot(offset float64, pairs ...bound) bound {
	r.t.Helper()
	var cross float64
	for i := 0; i < len(pairs); i += 2 {
		a, b := pairs[i], pairs[i+1]
		sum := r.add(a, a) * r.add(b, b)
		r.check("a wide product in its words, over p", sum/r.rho, r.rho)
		cross += a * b
	}
	r.check("the products that are subtracted, in p²", cross, offset)
	v := r.csub(2, r.reduce(max(offset*1.000001+cross, 2*cross)))
	if !r.bls {
		v = r.csub(2, v)
	}
	r.stored("a product of Fp2", v)
	return v
}

func (r ranges) square2(a bound) bound {
	r.t.Helper()
	v := r.csub(2, max(r.mul(r.add(a, a), r.subTight(a, a)), r.mul(r.add(a, a), a)))
	r.stored("a square of Fp2", v)
	return v
}

func TestRanges(t *testing.T) {
	for _, id := range curve.All() {
		f := newField(id)
		R := new(big.Float).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(32*f.n)))
		rho, _ := R.Quo(R, new(big.Float).SetInt(f.p)).Float64()
		r := ranges{t, id == curve.BLS12381, rho}
		if float64(f.most) > rho {
			t.Errorf("%v: %d p do not fit", id, f.most)
		}
		offset := float64(f.cross)

		// add_affine: sums below 2p, points below p, negated at most p.
		p := r.difference(r.mul(1, 2), 2)
		y := r.neg(1, 1)
		rr := r.difference(r.mul(y, 2), 2)
		r.finish(p, rr, 2, 2, 2, 2, false)

		// add_to and add_together: two sums.
		u := r.mul(2, 2)
		p = r.difference(u, u)
		r.finish(p, p, u, u, u, u, false)
		r.finish(p, p, u, u, u, u, true)

		// double_to, with the products of either field.
		for _, mul := range []func(a, b bound) bound{r.mul, func(a, b bound) bound { return r.dot(offset, a, b) }} {
			sqr := mul
			u := r.addTight(2, 2)
			v := sqr(u, u)
			r.stored("ZZ of a double", mul(2, v))
			w := mul(u, v)
			r.stored("ZZZ of a double", mul(2, w))
			y := mul(r.neg(2, 2), w)
			s := mul(v, 2)
			x2 := sqr(2, 2)
			m := r.addTight(r.addTight(x2, x2), x2)
			x := r.subTight(r.subTight(sqr(m, m), s), s)
			r.stored("X of a double", x)
			r.stored("Y of a double", r.addTight(y, mul(r.subTight(s, x), m)))
		}

		// The same in G2: all products are tight.
		product := r.dot(offset, 2, 2)
		q := r.subTight(product, 2)
		pp := r.square2(q)
		ppp := r.dot(offset, q, pp)
		qq := r.dot(offset, 2, pp)
		x := r.newXTight(r.square2(q), qq, ppp)
		r.stored("X in G2", x)
		d := r.subTight(qq, x)
		if r.bls {
			d = r.sub(2, qq, x)
		}
		r.dot(offset, r.neg(2, 2), ppp, q, d)
		r.dot(offset, q, d) // by itself, in add_together
	}
}

// TestRangesFail makes sure that the bounds can be missed.
func TestRangesFail(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(r ranges)
	}{
		{"a lazy sum where there is no room", func(r ranges) { r.add(3, 3) }},
		{"a difference of too much", func(r ranges) { r.sub(2, 1, 3) }},
		{"a product that is stored", func(r ranges) { r.stored("", r.mul(3, 3)) }},
		{"an offset that is too small", func(r ranges) { r.dot(3, 2, 2) }},
	} {
		var inner testing.T
		c.f(ranges{&inner, false, 5.28})
		if !inner.Failed() {
			t.Errorf("%s is not noticed", c.name)
		}
	}
}
