package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ntt emits the kernels of transforms over a scalar field of 5 limbs. Vectors
// are 320 bytes. Values grow by 2p a level and stay below 2^260; twiddles are
// below 1.1p.
type ntt struct {
	*field
	index Mem // permutations for gnark-crypto's layout
}

const vecBytes = 320

func (n *ntt) emit() {
	n.index = GLOBL("index"+n.name, RODATA|NOPTR)
	for i, x := range []uint64{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15} {
		DATA(8*i, U64(x))
	}
	n.loadElements()
	n.storeElements()
	n.loadWords()
	n.storeWords()
	n.loadBlocks()
	n.storeBlocks()
	n.splitR4()
	n.splitR2()
	n.splitLast()
	n.joinFirst()
	n.joinR4()
	n.joinR2()
	n.products()
}

// rawTerm is a raw factor at disp from a, its carry done on the way (the
// multipliers read 52 bits only), times the vector b or, bcast, a word a limb.
func (n *ntt) rawTerm(a Register, disp int, b func(j int) Op, bcast bool) term {
	c := ZMM()
	return term{
		a: func(i int, r VecVirtual) {
			if i == 0 {
				VMOVDQU64(at(a, disp, 0), r)
			} else {
				VPADDQ(at(a, disp, i), c, r)
			}
			if i < n.nl-1 {
				VPSRAQ(U8(52), r, c)
			}
		},
		b: b, bcast: bcast,
	}
}

// word64 is a twiddle that is broadcast: limb j at 64·j.
func word64(z Register, disp int) func(j int) Op {
	return func(j int) Op { return Mem{Base: z, Disp: disp + 64*j} }
}

// addsub sets (a, c) = (a + m, a − m + 2p) in memory.
func (n *ntt) addsub(base Register, a, c int, m vec) {
	x, y := ZMM(), ZMM()
	for j := range m {
		VMOVDQU64(at(base, a, j), x)
		VPSUBQ(m[j], x, y)
		VPADDQ(m[j], x, x)
		VPADDQ_BCST(n.k("2p", j), y, y)
		VMOVDQU64(x, at(base, a, j))
		VMOVDQU64(y, at(base, c, j))
	}
}

// addsub2 is addsub with a and c under registers of their own.
func (n *ntt) addsub2(ab Register, a int, cb Register, c int, m vec) {
	x, y := ZMM(), ZMM()
	for j := range m {
		VMOVDQU64(at(ab, a, j), x)
		VPSUBQ(m[j], x, y)
		VPADDQ(m[j], x, x)
		VPADDQ_BCST(n.k("2p", j), y, y)
		VMOVDQU64(x, at(ab, a, j))
		VMOVDQU64(y, at(cb, c, j))
	}
}

type twiddle struct {
	b     func(j int) Op
	bcast bool
}

// butterfly4 does two levels on four vectors in memory: (A, C) and (B, D) with
// z0, then (A, B) with z1 and (C, D) with z2.
func (n *ntt) butterfly4(a, b, c, d Register, disp [4]int, z0, z1, z2 twiddle) {
	t := n.mul(
		[]term{n.rawTerm(c, disp[2], z0.b, z0.bcast)},
		[]term{n.rawTerm(d, disp[3], z0.b, z0.bcast)},
	)
	n.addsub2(a, disp[0], c, disp[2], t[0])
	n.addsub2(b, disp[1], d, disp[3], t[1])
	t = n.mul(
		[]term{n.rawTerm(b, disp[1], z1.b, z1.bcast)},
		[]term{n.rawTerm(d, disp[3], z2.b, z2.bcast)},
	)
	n.addsub2(a, disp[0], b, disp[1], t[0])
	n.addsub2(c, disp[2], d, disp[3], t[1])
}

// heapAddress sets z to the address of entry h of a table in groups of eight.
func heapAddress(z, table, h GPVirtual) {
	t := GP64()
	MOVQ(h, t)
	SHRQ(U8(3), t)
	IMUL3Q(U32(vecBytes), t, t)
	MOVQ(h, z)
	ANDQ(U8(7), z)
	LEAQ(Mem{Base: t, Index: z, Scale: 8}, z)
	ADDQ(table, z)
}

// quarters sets the addresses of the quarters of a block of 4q vectors.
func quarters(v, q GPVirtual) (b, c, d, size GPVirtual) {
	b, c, d, size = GP64(), GP64(), GP64(), GP64()
	IMUL3Q(U32(vecBytes), q, size)
	LEAQ(Mem{Base: v, Index: size, Scale: 1}, b)
	LEAQ(Mem{Base: v, Index: size, Scale: 2}, c)
	LEAQ(Mem{Base: b, Index: size, Scale: 2}, d)
	return b, c, d, size
}

func (n *ntt) splitR4() {
	name := "splitR4x" + n.name
	TEXT(name, NOSPLIT, "func(v, table *byte, h, blocks, q int)")
	Doc(name + " does two levels of splitting on blocks of 4q vectors; block i has the twiddles h+i, 2(h+i), 2(h+i)+1.")
	Pragma("noescape")
	v, table := Load(Param("v"), GP64()).(GPVirtual), Load(Param("table"), GP64()).(GPVirtual)
	h, blocks := Load(Param("h"), GP64()).(GPVirtual), Load(Param("blocks"), GP64()).(GPVirtual)
	Label(name + "_block")
	i := Load(Param("q"), GP64()).(GPVirtual)
	b, c, d, size := quarters(v, i)
	z0, z1, h2 := GP64(), GP64(), GP64()
	heapAddress(z0, table, h)
	LEAQ(Mem{Base: h, Index: h, Scale: 1}, h2)
	heapAddress(z1, table, h2)
	Label(name + "_loop")
	n.butterfly4(v, b, c, d, [4]int{}, twiddle{word64(z0, 0), true}, twiddle{word64(z1, 0), true}, twiddle{word64(z1, 8), true})
	for _, p := range []GPVirtual{v, b, c, d} {
		ADDQ(U32(vecBytes), p)
	}
	DECQ(i)
	JNZ(LabelRef(name + "_loop"))
	LEAQ(Mem{Base: size, Index: size, Scale: 2}, size)
	ADDQ(size, v)
	INCQ(h)
	DECQ(blocks)
	JNZ(LabelRef(name + "_block"))
	VZEROUPPER()
	RET()
}

func (n *ntt) splitR2() {
	name := "splitR2x" + n.name
	TEXT(name, NOSPLIT, "func(v, z *byte, q int)")
	Doc(name + " does one level of splitting on a block of 2q vectors, q even, with the twiddle at z.")
	Pragma("noescape")
	v, z := Load(Param("v"), GP64()).(GPVirtual), Load(Param("z"), GP64())
	q := Load(Param("q"), GP64()).(GPVirtual)
	b, _, _, _ := quarters(v, q)
	Label(name + "_loop")
	t := n.mul(
		[]term{n.rawTerm(b, 0, word64(z, 0), true)},
		[]term{n.rawTerm(b, vecBytes, word64(z, 0), true)},
	)
	n.addsub2(v, 0, b, 0, t[0])
	n.addsub2(v, vecBytes, b, vecBytes, t[1])
	ADDQ(U32(2*vecBytes), v)
	ADDQ(U32(2*vecBytes), b)
	SUBQ(U8(2), q)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

// transposeGroup transposes eight vectors in place, limb by limb.
func (n *ntt) transposeGroup(v Register) {
	for j := 0; j < n.nl; j++ {
		r := make(vec, 8)
		for i := range r {
			r[i] = ZMM()
			VMOVDQU64(at(v, vecBytes*i, j), r[i])
		}
		for i, x := range transpose(r) {
			VMOVDQU64(x, at(v, vecBytes*i, j))
		}
	}
}

func (n *ntt) vecAt(b Register, i int) twiddle {
	return twiddle{func(j int) Op { return at(b, vecBytes*i, j) }, false}
}

func (n *ntt) splitLast() {
	name := "splitLastX" + n.name
	TEXT(name, NOSPLIT, "func(v, a, b, c *byte, groups int)")
	Doc(name + " transposes groups of eight vectors and does the last three levels of splitting, a block in each lane; a group has 1, 2 and 4 vectors of twiddles at a, b, c.")
	Pragma("noescape")
	v, a := Load(Param("v"), GP64()), Load(Param("a"), GP64())
	b, c := Load(Param("b"), GP64()), Load(Param("c"), GP64())
	groups := Load(Param("groups"), GP64())
	k := GP64()
	Label(name + "_group")
	n.transposeGroup(v)
	MOVQ(U32(2), k)
	Label(name + "_four")
	n.butterfly4(v, v, v, v, [4]int{0, 2 * vecBytes, 4 * vecBytes, 6 * vecBytes}, n.vecAt(a, 0), n.vecAt(b, 0), n.vecAt(b, 1))
	ADDQ(U32(vecBytes), v)
	DECQ(k)
	JNZ(LabelRef(name + "_four"))
	SUBQ(U32(2*vecBytes), v)
	MOVQ(U32(2), k)
	Label(name + "_two")
	t := n.mul(
		[]term{n.rawTerm(v, vecBytes, n.vecAt(c, 0).b, false)},
		[]term{n.rawTerm(v, 3*vecBytes, n.vecAt(c, 1).b, false)},
	)
	n.addsub(v, 0, vecBytes, t[0])
	n.addsub(v, 2*vecBytes, 3*vecBytes, t[1])
	ADDQ(U32(4*vecBytes), v)
	ADDQ(U32(2*vecBytes), c)
	DECQ(k)
	JNZ(LabelRef(name + "_two"))
	ADDQ(U32(vecBytes), a)
	ADDQ(U32(2*vecBytes), b)
	DECQ(groups)
	JNZ(LabelRef(name + "_group"))
	VZEROUPPER()
	RET()
}

func (n *ntt) joinFirst() {
	name := "joinFirstX" + n.name
	TEXT(name, NOSPLIT, "func(v, table *byte, groups int)")
	Doc(name + " does the first three levels of joining on groups of eight vectors, a block in each lane, and transposes; level m has the twiddles m … 2m−1 of the table's first group.")
	Pragma("noescape")
	v, table := Load(Param("v"), GP64()), Load(Param("table"), GP64()).(GPVirtual)
	groups := Load(Param("groups"), GP64())
	k, z := GP64(), GP64()
	Label(name + "_group")
	MOVQ(U32(2), k)
	Label(name + "_four")
	n.butterfly4(v, v, v, v, [4]int{0, 2 * vecBytes, vecBytes, 3 * vecBytes},
		twiddle{word64(table, 8), true}, twiddle{word64(table, 16), true}, twiddle{word64(table, 24), true})
	ADDQ(U32(4*vecBytes), v)
	DECQ(k)
	JNZ(LabelRef(name + "_four"))
	SUBQ(U32(8*vecBytes), v)
	MOVQ(U32(2), k)
	MOVQ(table, z)
	Label(name + "_two")
	t := n.mul(
		[]term{n.rawTerm(v, 4*vecBytes, word64(z, 32), true)},
		[]term{n.rawTerm(v, 5*vecBytes, word64(z, 40), true)},
	)
	n.addsub(v, 0, 4*vecBytes, t[0])
	n.addsub(v, vecBytes, 5*vecBytes, t[1])
	ADDQ(U32(2*vecBytes), v)
	ADDQ(U8(16), z)
	DECQ(k)
	JNZ(LabelRef(name + "_two"))
	SUBQ(U32(4*vecBytes), v)
	n.transposeGroup(v)
	ADDQ(U32(8*vecBytes), v)
	DECQ(groups)
	JNZ(LabelRef(name + "_group"))
	VZEROUPPER()
	RET()
}

func (n *ntt) joinR4() {
	name := "joinR4x" + n.name
	TEXT(name, NOSPLIT, "func(v, w *byte, blocks, q int)")
	Doc(name + " does two levels of joining on blocks of 4q vectors; vector i of a quarter has the twiddles q+i, 2q+i, 3q+i of w.")
	Pragma("noescape")
	v := Load(Param("v"), GP64()).(GPVirtual)
	blocks := Load(Param("blocks"), GP64())
	Label(name + "_block")
	i := Load(Param("q"), GP64()).(GPVirtual)
	b, c, d, size := quarters(v, i)
	w := Load(Param("w"), GP64())
	w1, w2, w3 := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: w, Index: size, Scale: 1}, w1)
	LEAQ(Mem{Base: w, Index: size, Scale: 2}, w2)
	LEAQ(Mem{Base: w1, Index: size, Scale: 2}, w3)
	Label(name + "_loop")
	n.butterfly4(v, c, b, d, [4]int{}, n.vecAt(w1, 0), n.vecAt(w2, 0), n.vecAt(w3, 0))
	for _, p := range []GPVirtual{v, b, c, d, w1, w2, w3} {
		ADDQ(U32(vecBytes), p)
	}
	DECQ(i)
	JNZ(LabelRef(name + "_loop"))
	LEAQ(Mem{Base: size, Index: size, Scale: 2}, size)
	ADDQ(size, v)
	DECQ(blocks)
	JNZ(LabelRef(name + "_block"))
	VZEROUPPER()
	RET()
}

func (n *ntt) joinR2() {
	name := "joinR2x" + n.name
	TEXT(name, NOSPLIT, "func(v, w *byte, q int)")
	Doc(name + " does one level of joining on a block of 2q vectors, q even; vector i has the twiddle q+i of w.")
	Pragma("noescape")
	v, w := Load(Param("v"), GP64()).(GPVirtual), Load(Param("w"), GP64()).(GPVirtual)
	q := Load(Param("q"), GP64()).(GPVirtual)
	b, _, _, size := quarters(v, q)
	ADDQ(size, w)
	Label(name + "_loop")
	t := n.mul(
		[]term{n.rawTerm(b, 0, n.vecAt(w, 0).b, false)},
		[]term{n.rawTerm(b, vecBytes, n.vecAt(w, 1).b, false)},
	)
	n.addsub2(v, 0, b, 0, t[0])
	n.addsub2(v, vecBytes, b, vecBytes, t[1])
	for _, p := range []GPVirtual{v, b, w} {
		ADDQ(U32(2*vecBytes), p)
	}
	SUBQ(U8(2), q)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

// products emits the plain products: vectors by vectors, by one element, and
// one vector by elements. All take an even number of vectors.
func (n *ntt) products() {
	for _, k := range []struct {
		name, doc      string
		aStep, bStep   int
		b              func(b Register, way int) term
		bcast, constAt bool
	}{
		{name: "mulVec", doc: "sets dst[i] = a[i]·b[i], vectors.", aStep: vecBytes, bStep: vecBytes},
		{name: "mulOne", doc: "sets dst[i] = a[i]·b, b an element with limb j at 64·j.", aStep: vecBytes, bcast: true},
		{name: "expand", doc: "sets dst[i] = a·b[i], a a vector, b elements of five words.", bStep: 40, bcast: true},
	} {
		name := k.name + "x" + n.name
		TEXT(name, NOSPLIT, "func(dst, a, b *byte, n int)")
		Doc(name + " " + k.doc + " a may be raw; n is even.")
		Pragma("noescape")
		dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
		cnt := Load(Param("n"), GP64())
		Label(name + "_loop")
		way := func(w int) []term {
			f := func(j int) Op {
				limb := 64
				if k.bStep == 40 {
					limb = 8
				}
				return Mem{Base: b, Disp: w*k.bStep + limb*j}
			}
			return []term{n.rawTerm(a, w*k.aStep, f, k.bcast)}
		}
		t := n.mul(way(0), way(1))
		mask := n.bcast("mask")
		for w := range t {
			n.carry(t[w], mask)
			n.store(t[w], dst, w*vecBytes)
		}
		ADDQ(U32(2*vecBytes), dst)
		if k.aStep > 0 {
			ADDQ(U32(2*k.aStep), a)
		}
		if k.bStep > 0 {
			ADDQ(U32(2*k.bStep), b)
		}
		SUBQ(U8(2), cnt)
		JNZ(LabelRef(name + "_loop"))
		VZEROUPPER()
		RET()
	}
}
