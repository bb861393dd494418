package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// group emits the kernels of affine pair addition for one source group. nc is
// the number of base field coefficients of a coordinate: 1 for G1, 2 for G2
// (u² = −1 on both curves).
//
// Bounds, for BLS12-381, where R/p is above 2^35.2: coordinates of points come in
// as x·2^32, below 2^32·p, and are not reduced, so dx, dy, x1 + x2 and x1 − x3 are
// below 2^33·p. Their products with a product (which is below 2p: at most p and
// two times 2p·2^33p/R) are products again, and what is written to rows, reduced
// from less than 2^34·p, is below 3p. For BN254, R/p is 85: points are reduced when
// they are loaded, rows and products are below 2p, and the rest is below 4p.
//
// A record holds eight additions, a field a vector (G2: two):
// dx, dy, x1, y1, x1+x2, pre, inv.
type group struct {
	*field
	nc  int
	tag string
}

// The fields of a record.
const (
	fdx = iota
	fdy // later the slope
	fx1 // later x1 − x3
	fy1
	fsx  // later x3
	fpre // prefix product, later 1/dx, later scratch
	finv
	recFields
)

// multiple is the name of the multiple of p for a place, wide for coordinates
// that are not reduced.
func (g *group) multiple(wide, narrow string) string {
	if g.nl == 8 {
		return wide
	}
	return narrow
}

func (g *group) recBytes() int { return recFields * g.nc * g.bytes() }

// f is the byte offset of coefficient c of a field.
func (g *group) f(name, c int) int { return (name*g.nc + c) * g.bytes() }

func (g *group) ptBytes() int { return 16 * g.nc * g.words }

// rowShift is log2 of the size of an internal point.
func (g *group) rowShift() int {
	s := 6
	if g.nl == 8 {
		s = 7
	}
	return s + g.nc - 1
}

func (g *group) emit() {
	g.loadPairs("loadPoints"+g.tag, true)
	g.loadPairs("loadRows"+g.tag, false)
	g.convert()
	if g.nc == 1 {
		g.mulG1()
		g.x3G1()
		g.y3G1()
	} else {
		g.mulG2()
		g.x3G2()
		g.y3G2()
	}
}

// address sets the addresses of eight points named by index<<1 | sign.
func (g *group) address(r []GPVirtual, idx, src Register, disp int, pt bool) {
	for i := range r {
		MOVL(Mem{Base: idx, Disp: disp + 4*i}, r[i].As32())
		SHRQ(U8(1), r[i])
		if pt {
			IMUL3Q(U32(g.ptBytes()), r[i], r[i])
		} else {
			SHLQ(U8(g.rowShift()), r[i])
		}
		ADDQ(src, r[i])
	}
}

// signs is the mask of the points to negate.
func (g *group) signs(idx Register) Register {
	z, k := ZMM(), K()
	VPMOVZXDQ(Mem{Base: idx}, z)
	VPTESTMQ_BCST(g.k("one", 0), z, k)
	return k
}

// coords loads eight points and hands over their coefficients one by one,
// normalised, but for negated ones, which are raw. Those of points are reduced
// if the field has no room for more, or if reduce.
func (g *group) coords(addr []GPVirtual, pt, reduce bool, neg Register, mask VecVirtual, use func(c int, v vec)) {
	reduce = reduce || g.nl != 8
	above := "2p" // the least multiple of p that no coefficient is above
	switch {
	case g.nl == 8 && pt && !reduce:
		above = "2^32p"
	case g.nl == 8:
		above = "3p"
	}
	rows := func(disp int) vec {
		r := make(vec, 8)
		for i := range r {
			r[i] = ZMM()
			VMOVDQU64(Mem{Base: addr[i], Disp: disp}, r[i])
		}
		return transpose(r)
	}
	emit := func(c int, v vec) {
		if c >= g.nc {
			t := ZMM()
			for j := range v {
				VPBROADCASTQ(g.k(above, j), t)
				VPSUBQ(v[j], t, neg, v[j])
			}
		}
		use(c, v)
	}
	widen := func(w vec) vec {
		v := g.unpack(w, g.shift(), mask)
		if reduce {
			g.weakNorm(v, mask)
		}
		return v
	}
	for c := 0; c < 2*g.nc; c++ {
		switch {
		case g.nl == 8 && !pt:
			emit(c, rows(64*c))
		case g.nl == 8 && c%2 == 0:
			emit(c, widen(rows(48 * c)[:6]))
		case g.nl == 8: // end at the coordinate's end, to stay inside the array
			emit(c, widen(rows(48*c - 16)[2:]))
		case c%2 == 0:
			w := rows(32 * c)
			for h := 0; h < 2; h++ {
				if pt {
					emit(c+h, widen(w[4*h:4*h+4]))
				} else {
					emit(c+h, g.unpack(w[4*h:4*h+4], 0, mask))
				}
			}
		}
	}
}

func (g *group) prefetch(idx, src Register, ahead int, t GPVirtual) {
	for i := 0; i < 8; i++ {
		MOVL(Mem{Base: idx, Disp: 32*ahead + 4*i}, t.As32())
		SHRQ(U8(1), t)
		IMUL3Q(U32(g.ptBytes()), t, t)
		for d := 0; d < g.ptBytes(); d += 64 {
			PREFETCHT0(Mem{Base: src, Index: t, Scale: 1, Disp: d})
		}
		PREFETCHT0(Mem{Base: src, Index: t, Scale: 1, Disp: g.ptBytes() - 1})
	}
}

// loadPairs fills records with dx, dy, x1, y1, x1+x2 of pairs of points.
func (g *group) loadPairs(name string, pt bool) {
	TEXT(name, NOSPLIT, "func(rec, src *byte, a, b *uint32, n int)")
	Doc(name + " fills n records from 8n pairs of points named by index<<1 | sign; reads 16 names past the end.")
	Pragma("noescape")
	rec, src := Load(Param("rec"), GP64()), Load(Param("src"), GP64())
	a, b := Load(Param("a"), GP64()), Load(Param("b"), GP64())
	n := Load(Param("n"), GP64())
	addr := make([]GPVirtual, 8)
	for i := range addr {
		addr[i] = GP64()
	}
	Label(name + "_loop")
	mask := g.bcast("mask")
	if pt {
		g.prefetch(a, src, 2, addr[0])
		g.prefetch(b, src, 2, addr[1])
	}
	g.address(addr, a, src, 0, pt)
	above := g.multiple("3p", "2p")
	if pt {
		above = g.multiple("2^32p", "2p")
	}
	g.coords(addr, pt, false, g.signs(a), mask, func(c int, v vec) {
		f, e := fx1, c
		if c >= g.nc {
			f, e = fy1, c-g.nc
		}
		g.store(v, rec, g.f(f, e))
	})
	g.address(addr, b, src, 0, pt)
	g.coords(addr, pt, false, g.signs(b), mask, func(c int, v vec) {
		one, d, e := fx1, fdx, c
		if c >= g.nc {
			one, d, e = fy1, fdy, c-g.nc
		}
		x, s := ZMM(), ZMM()
		for j := range v {
			VMOVDQU64(at(rec, g.f(one, e), j), x)
			if c < g.nc {
				VPADDQ(x, v[j], s)
				VMOVDQU64(s, at(rec, g.f(fsx, e), j))
			}
			VPSUBQ(x, v[j], v[j])
			VPADDQ_BCST(g.k(above, j), v[j], v[j])
		}
		g.carry(v, mask)
		g.store(v, rec, g.f(d, e))
	})
	ADDQ(U32(g.recBytes()), rec)
	ADDQ(U8(32), a)
	ADDQ(U8(32), b)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

// storeRows writes eight points, whose coefficients coord gives normalised and
// below 3p (BN254: 2p), to the rows named in dst.
func (g *group) storeRows(rows, dst Register, disp int, coord func(c int) vec) {
	put := func(r vec, off int) {
		r = transpose(r)
		t := GP64()
		for i := range r {
			MOVL(Mem{Base: dst, Disp: disp + 4*i}, t.As32())
			SHLQ(U8(g.rowShift()), t)
			VMOVDQU64(r[i], Mem{Base: rows, Index: t, Scale: 1, Disp: off})
		}
	}
	if g.nl == 8 {
		for c := 2*g.nc - 1; c >= 0; c-- {
			put(coord(c), 64*c)
		}
		return
	}
	for c := 2*g.nc - 2; c >= 0; c -= 2 {
		hi := g.pack(coord(c + 1))
		put(append(g.pack(coord(c)), hi...), 32*c)
	}
}

// convert writes points in gnark-crypto's layout to rows.
func (g *group) convert() {
	name := "convert" + g.tag
	TEXT(name, NOSPLIT, "func(rows, src *byte, a, dst *uint32, tmp *byte, n int)")
	Doc(name + " writes 8n points named by index<<1 | sign to rows; tmp is a record of scratch.")
	Pragma("noescape")
	rows, src := Load(Param("rows"), GP64()), Load(Param("src"), GP64())
	a, dst := Load(Param("a"), GP64()), Load(Param("dst"), GP64())
	tmp, n := Load(Param("tmp"), GP64()), Load(Param("n"), GP64())
	addr := make([]GPVirtual, 8)
	for i := range addr {
		addr[i] = GP64()
	}
	Label(name + "_loop")
	mask := g.bcast("mask")
	g.address(addr, a, src, 0, true)
	g.coords(addr, true, true, g.signs(a), mask, func(c int, v vec) {
		g.carry(v, mask)
		g.store(v, tmp, c*g.bytes())
	})
	g.storeRows(rows, dst, 0, func(c int) vec { return g.load(tmp, c*g.bytes()) })
	ADDQ(U8(32), a)
	ADDQ(U8(32), dst)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

// mulG1 multiplies fields of records, two records an iteration.
func (g *group) mulG1() {
	name := "mul" + g.tag
	TEXT(name, NOSPLIT, "func(dst, a, b *byte, n, step int)")
	Doc(fmt.Sprintf("%s sets dst = a·b for n pairs of records that are %d bytes apart; step leads to the next pair.", name, g.recBytes()))
	Pragma("noescape")
	dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	n, step := Load(Param("n"), GP64()), Load(Param("step"), GP64())
	Label(name + "_loop")
	r := g.recBytes()
	t := g.mul([]term{memTerm(a, 0, b, 0)}, []term{memTerm(a, r, b, r)})
	mask := g.bcast("mask")
	for w := range t {
		g.carry(t[w], mask)
		g.store(t[w], dst, w*r)
	}
	ADDQ(step, dst)
	ADDQ(step, a)
	ADDQ(step, b)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

// combine sets v = v − mem + k·p, raw.
func (g *group) combine(v vec, base Register, disp int, k string) {
	for j := range v {
		VPSUBQ(at(base, disp, j), v[j], v[j])
		VPADDQ_BCST(g.k(k, j), v[j], v[j])
	}
}

// difference returns mem − v and a multiple of p that is above v, normalised.
func (g *group) difference(base Register, disp int, v vec, mask VecVirtual) vec {
	d := g.load(base, disp)
	for j := range d {
		VPSUBQ(v[j], d[j], d[j])
		VPADDQ_BCST(g.k(g.multiple("3p", "2p"), j), d[j], d[j])
	}
	g.carry(d, mask)
	return d
}

func (g *group) x3G1() {
	name := "x3" + g.tag
	TEXT(name, NOSPLIT, "func(rec *byte, n int)")
	Doc(name + " sets x3 = λ² − x1 − x2 in n pairs of records, and x1 − x3 in place of x1.")
	Pragma("noescape")
	rec, n := Load(Param("rec"), GP64()), Load(Param("n"), GP64())
	Label(name + "_loop")
	r := g.recBytes()
	l := g.f(fdy, 0)
	t := g.mul([]term{memTerm(rec, l, rec, l)}, []term{memTerm(rec, l+r, rec, l+r)})
	mask := g.bcast("mask")
	for w := range t {
		g.combine(t[w], rec, w*r+g.f(fsx, 0), g.multiple("2^33p+2p", "5p"))
		g.weak(t[w], mask)
		g.store(t[w], rec, w*r+g.f(fsx, 0))
		d := g.difference(rec, w*r+g.f(fx1, 0), t[w], mask)
		g.store(d, rec, w*r+g.f(fx1, 0))
	}
	ADDQ(U32(2*r), rec)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (g *group) y3G1() {
	name := "y3" + g.tag
	TEXT(name, NOSPLIT, "func(rec, rows *byte, dst *uint32, n int)")
	Doc(name + " computes y3 = λ(x1 − x3) − y1 in n pairs of records and writes the 16n sums to the rows named in dst.")
	Pragma("noescape")
	rec, rows := Load(Param("rec"), GP64()), Load(Param("rows"), GP64())
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	Label(name + "_loop")
	r := g.recBytes()
	l, d := g.f(fdy, 0), g.f(fx1, 0)
	t := g.mul([]term{memTerm(rec, l, rec, d)}, []term{memTerm(rec, l+r, rec, d+r)})
	mask := g.bcast("mask")
	for w := range t {
		g.combine(t[w], rec, w*r+g.f(fy1, 0), g.multiple("2^33p+2p", "3p"))
		g.weak(t[w], mask)
		g.storeRows(rows, dst, 32*w, func(c int) vec {
			if c == 0 {
				return g.load(rec, w*r+g.f(fsx, 0))
			}
			return t[w]
		})
	}
	ADDQ(U32(2*r), rec)
	ADDQ(U8(64), dst)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}
