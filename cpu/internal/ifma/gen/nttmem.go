package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Loads and stores of transforms. Between the two passes a transform keeps
// eight elements as four vectors of words, values below 2p, in the place of
// the eight elements.

// below2p brings a raw value ≥ 0 below 2p, normalised.
func (n *ntt) below2p(v vec, mask VecVirtual) {
	for j := range v {
		VPADDQ_BCST(n.k("1p", j), v[j], v[j])
	}
	n.weak(v, mask)
}

// canonical brings a raw value ≥ 0 below p.
func (n *ntt) canonical(v vec, mask VecVirtual) {
	n.below2p(v, mask)
	n.subtractOnce(v, mask)
}

// stepped begins a kernel with n vectors on one side and memory in steps on the other.
func (n *ntt) stepped(name, sig, doc string, body func(v, m Register)) {
	TEXT(name, NOSPLIT, sig)
	Doc(name + " " + doc)
	Pragma("noescape")
	v, m := Load(Param("v"), GP64()), Load(Param("m"), GP64())
	cnt, step := Load(Param("n"), GP64()), Load(Param("step"), GP64())
	Label(name + "_loop")
	body(v, m)
	ADDQ(U32(vecBytes), v)
	ADDQ(step, m)
	DECQ(cnt)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

const steppedSig = "func(v, m *byte, n, step int)"

func (n *ntt) indices() (i0, i1 VecVirtual) {
	i0, i1 = ZMM(), ZMM()
	VMOVDQU64(n.index, i0)
	VMOVDQU64(n.index.Offset(64), i1)
	return i0, i1
}

func (n *ntt) loadElements() {
	n.stepped("loadElementsX"+n.name, steppedSig, "loads n vectors of eight elements each, step bytes apart.", func(v, m Register) {
		i0, i1 := n.indices()
		half := func(disp int) (lo, hi VecVirtual) {
			lo, hi = ZMM(), ZMM()
			second := ZMM()
			VMOVDQU64(Mem{Base: m, Disp: disp}, lo)
			VMOVDQA64(lo, hi)
			VMOVDQU64(Mem{Base: m, Disp: disp + 64}, second)
			VPERMT2Q(second, i0, lo)
			VPERMT2Q(second, i1, hi)
			return lo, hi
		}
		ab0, ab1 := half(0)
		cd0, cd1 := half(128)
		w := vec{ZMM(), ZMM(), ZMM(), ZMM()}
		VSHUFI64X2(U8(0x44), cd0, ab0, w[0])
		VSHUFI64X2(U8(0xee), cd0, ab0, w[1])
		VSHUFI64X2(U8(0x44), cd1, ab1, w[2])
		VSHUFI64X2(U8(0xee), cd1, ab1, w[3])
		n.store(n.unpack(w, 0, n.bcast("mask")), v, 0)
	})
}

func (n *ntt) storeElements() {
	n.stepped("storeElementsX"+n.name, steppedSig, "reduces n vectors below p and stores eight elements of each, step bytes apart.", func(v, m Register) {
		x := n.load(v, 0)
		n.canonical(x, n.bcast("mask"))
		w := n.pack(x)
		i0, i1 := n.indices()
		for h := 0; h < 2; h++ {
			sel := U8(0x44 + 0xaa*h)
			a, b, second := ZMM(), ZMM(), ZMM()
			VSHUFI64X2(sel, w[1], w[0], a)
			VSHUFI64X2(sel, w[3], w[2], second)
			VMOVDQA64(a, b)
			VPERMT2Q(second, i0, a)
			VPERMT2Q(second, i1, b)
			VMOVDQU64(a, Mem{Base: m, Disp: 128 * h})
			VMOVDQU64(b, Mem{Base: m, Disp: 128*h + 64})
		}
	})
}

func (n *ntt) loadWords() {
	n.stepped("loadWordsX"+n.name, steppedSig, "loads n vectors from words, step bytes apart.", func(v, m Register) {
		w := make(vec, 4)
		for i := range w {
			w[i] = ZMM()
			VMOVDQU64(at(m, 0, i), w[i])
		}
		n.store(n.unpack(w, 0, n.bcast("mask")), v, 0)
	})
}

func (n *ntt) storeWords() {
	n.stepped("storeWordsX"+n.name, steppedSig, "reduces n vectors below 2p and stores their words, step bytes apart.", func(v, m Register) {
		x := n.load(v, 0)
		n.below2p(x, n.bcast("mask"))
		for i, w := range n.pack(x) {
			VMOVDQU64(w, at(m, 0, i))
		}
	})
}

// grouped begins a kernel over groups of eight vectors and 64 elements.
func (n *ntt) grouped(name, doc string, body func(v, m Register)) {
	TEXT(name, NOSPLIT, "func(v, m *byte, groups int)")
	Doc(name + " " + doc)
	Pragma("noescape")
	v, m := Load(Param("v"), GP64()), Load(Param("m"), GP64())
	groups := Load(Param("groups"), GP64())
	Label(name + "_loop")
	body(v, m)
	ADDQ(U32(8*vecBytes), v)
	ADDQ(U32(2048), m)
	DECQ(groups)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (n *ntt) loadBlocks() {
	n.grouped("loadBlocksX"+n.name, "loads groups of 64 elements: element 8e+t to lane e of vector t.", func(v, m Register) {
		mask := n.bcast("mask")
		for t := 0; t < 8; t += 2 {
			r := make(vec, 8)
			for e := range r {
				r[e] = ZMM()
				VMOVDQU64(Mem{Base: m, Disp: 256*e + 32*t}, r[e])
			}
			w := transpose(r)
			n.store(n.unpack(w[:4], 0, mask), v, vecBytes*t)
			n.store(n.unpack(w[4:], 0, mask), v, vecBytes*(t+1))
		}
	})
}

func (n *ntt) storeBlocks() {
	n.grouped("storeBlocksX"+n.name, "reduces groups of eight vectors below p and stores lane e of vector t as element 8e+t.", func(v, m Register) {
		mask := n.bcast("mask")
		for t := 0; t < 8; t += 2 {
			var w vec
			for h := 0; h < 2; h++ {
				x := n.load(v, vecBytes*(t+h))
				n.canonical(x, mask)
				w = append(w, n.pack(x)...)
			}
			for e, r := range transpose(w) {
				VMOVDQU64(r, Mem{Base: m, Disp: 256*e + 32*t})
			}
		}
	})
}
