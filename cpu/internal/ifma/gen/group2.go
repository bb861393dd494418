package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// product is a·b in the quadratic extension, schoolbook, two products under
// one reduction: a0·b0 + a1·(kp − b1) and a0·b1 + a1·b0, kp being above b. The
// factors are normalised, a a product; the complement of b1 goes to tmp.
func (g *group) product(a Register, ad int, b Register, bd int, tmp Register, td int, mask VecVirtual) []vec {
	s := g.bytes()
	nb := g.newVec()
	for j := range nb {
		VPBROADCASTQ(g.k(g.multiple("2^33p", "4p"), j), nb[j])
		VPSUBQ(at(b, bd+s, j), nb[j], nb[j])
	}
	g.carry(nb, mask)
	g.store(nb, tmp, td)
	return g.mul(
		[]term{memTerm(a, ad, b, bd), memTerm(a, ad+s, tmp, td)},
		[]term{memTerm(a, ad, b, bd+s), memTerm(a, ad+s, b, bd)},
	)
}

// mulG2 multiplies fields of records, one record an iteration.
func (g *group) mulG2() {
	name := "mul" + g.tag
	TEXT(name, NOSPLIT, "func(dst, a, b, tmp *byte, n, step int)")
	Doc(fmt.Sprintf("%s sets dst = a·b for n records of %d bytes, step bytes apart; tmp is a vector of scratch.", name, g.recBytes()))
	Pragma("noescape")
	dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	tmp := Load(Param("tmp"), GP64())
	n, step := Load(Param("n"), GP64()), Load(Param("step"), GP64())
	Label(name + "_loop")
	mask := g.bcast("mask")
	t := g.product(a, 0, b, 0, tmp, 0, mask)
	for w := range t {
		g.carry(t[w], mask)
		g.store(t[w], dst, w*g.bytes())
	}
	ADDQ(step, dst)
	ADDQ(step, a)
	ADDQ(step, b)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (g *group) x3G2() {
	name := "x3" + g.tag
	TEXT(name, NOSPLIT, "func(rec *byte, n int)")
	Doc(name + " sets x3 = λ² − x1 − x2 in n records, and x1 − x3 in place of x1.")
	Pragma("noescape")
	rec, n := Load(Param("rec"), GP64()), Load(Param("n"), GP64())
	Label(name + "_loop")
	mask := g.bcast("mask")
	// λ² = (λ0 + λ1)(λ0 − λ1) + 2·λ0·λ1·u
	l0, l1 := g.f(fdy, 0), g.f(fdy, 1)
	sum, dif, dbl := g.f(fpre, 0), g.f(fpre, 1), g.f(finv, 0)
	v := g.load(rec, l0)
	w := g.newVec()
	for j := range v {
		VPADDQ(v[j], v[j], w[j])
	}
	g.carry(w, mask)
	g.store(w, rec, dbl)
	for j := range v {
		VPADDQ(at(rec, l1, j), v[j], w[j])
		VPSUBQ(at(rec, l1, j), v[j], v[j])
		VPADDQ_BCST(g.k("2p", j), v[j], v[j])
	}
	g.carry(w, mask)
	g.store(w, rec, sum)
	g.carry(v, mask)
	g.store(v, rec, dif)
	t := g.mul([]term{memTerm(rec, sum, rec, dif)}, []term{memTerm(rec, dbl, rec, l1)})
	for c := range t {
		g.combine(t[c], rec, g.f(fsx, c), g.multiple("2^33p+2p", "5p"))
		g.weak(t[c], mask)
		g.store(t[c], rec, g.f(fsx, c))
		d := g.difference(rec, g.f(fx1, c), t[c], mask)
		g.store(d, rec, g.f(fx1, c))
	}
	ADDQ(U32(g.recBytes()), rec)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (g *group) y3G2() {
	name := "y3" + g.tag
	TEXT(name, NOSPLIT, "func(rec, rows *byte, dst *uint32, n int)")
	Doc(name + " computes y3 = λ(x1 − x3) − y1 in n records and writes the 8n sums to the rows named in dst.")
	Pragma("noescape")
	rec, rows := Load(Param("rec"), GP64()), Load(Param("rows"), GP64())
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	Label(name + "_loop")
	mask := g.bcast("mask")
	t := g.product(rec, g.f(fdy, 0), rec, g.f(fx1, 0), rec, g.f(fpre, 0), mask)
	for c := range t {
		g.combine(t[c], rec, g.f(fy1, c), g.multiple("2^33p+2p", "3p"))
		g.weak(t[c], mask)
	}
	g.storeRows(rows, dst, 0, func(c int) vec {
		if c < g.nc {
			return g.load(rec, g.f(fsx, c))
		}
		return t[c-g.nc]
	})
	ADDQ(U32(g.recBytes()), rec)
	ADDQ(U8(32), dst)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}
