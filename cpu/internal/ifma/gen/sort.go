package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// placeAhead is how many terms ahead place asks for the cache line that it will
// write: there are more buckets than the first-level cache has lines.
const placeAhead = 16

// emitSort writes the kernels that sort terms by bucket; no field has a part in
// them.
func emitSort() {
	emitDigits()
	emitPlace("place", false)
	emitPlace("placePicked", true)
}

// The words that describe a window to digits: digitWindow in package ifma.
const (
	windowLo = iota
	windowHi
	windowShift
	windowLoMask
	windowHiMask
	windowMask
	windowOff
)

func emitDigits() {
	const name = "digits"
	TEXT(name, NOSPLIT, "func(dst *uint32, scalars *uint64, n int, w *uint64)")
	Doc(name + " writes the digits of n > 0 shifted scalars in a window: the magnitude, and the sign in the top bit.")
	Pragma("noescape")
	dst, s := Load(Param("dst"), GP64()), Load(Param("scalars"), GP64())
	n, w := Load(Param("n"), GP64()), Load(Param("w"), GP64())
	field := func(i int) Mem { return Mem{Base: w, Disp: 8 * i} }
	lo, hi, top := GP64(), GP64(), GP64()
	MOVQ(field(windowLo), lo)
	MOVQ(field(windowHi), hi)
	LEAQ(Mem{Base: s, Index: lo, Scale: 8}, lo)
	LEAQ(Mem{Base: s, Index: hi, Scale: 8}, hi)
	LEAQ(Mem{Base: s, Disp: 24}, top)

	// Eight scalars are four words apart.
	idx, t := ZMM(), GP64()
	MOVQ(U64(0x1c1814100c080400), t)
	x := XMM()
	VMOVQ(t, x)
	VPMOVZXBQ(x, idx)

	bcast := func(i int) VecVirtual {
		r := ZMM()
		VPBROADCASTQ(field(i), r)
		return r
	}
	shift, loMask, hiMask := bcast(windowShift), bcast(windowLoMask), bcast(windowHiMask)
	mask, off := bcast(windowMask), bcast(windowOff)
	signBit := ZMM()
	MOVQ(U64(1<<31), t)
	VPBROADCASTQ(t, signBit)

	all, count := GP64(), GP64()
	MOVQ(U64(0xff), all)
	Label(name + "_loop")
	// the lanes that are left
	MOVQ(n, count)
	CMPQ(count, U8(8))
	k := GP64()
	MOVQ(U64(8), k)
	CMOVQGT(k, count)
	BZHIQ(count, all, k)
	gather := func(base Register) VecVirtual {
		r, kk := ZMM(), K()
		KMOVW(k.As32(), kk)
		zero(r)
		VPGATHERQQ(Mem{Base: base, Index: idx, Scale: 8}, kk, r)
		return r
	}
	a, b, c := gather(lo), gather(hi), gather(top)
	VPANDQ(loMask, a, a)
	VPANDQ(hiMask, b, b)
	VPSHRDVQ(shift, b, a)
	VPANDQ(mask, a, a)
	VPSUBQ(off, a, a)
	VPSRAQ(U8(63), c, c)
	VPXORQ(c, a, a)
	VPSUBQ(c, a, a)
	VPSRLQ(U8(32), a, c)
	VPANDQ(signBit, c, c)
	VPABSQ(a, a)
	VPORQ(c, a, a)
	kk := K()
	KMOVW(k.As32(), kk)
	VPMOVQD(a, kk, Mem{Base: dst})
	ADDQ(U32(256), lo)
	ADDQ(U32(256), hi)
	ADDQ(U32(256), top)
	ADDQ(U8(32), dst)
	SUBQ(U8(8), n)
	JG(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

// emitPlace writes the second half of a counting sort. A digit may be read up to
// placeAhead places past the end.
func emitPlace(name string, picked bool) {
	last := "first uint32"
	if picked {
		last = "pick *uint32"
	}
	TEXT(name, NOSPLIT, "func(entries, at, digit *uint32, n int, "+last+")")
	Doc(name+" puts n > 0 terms, index<<1 | sign, where their bucket's at says, and counts that up.",
		"It reads 16 digits past the end.")
	Pragma("noescape")
	entries, at := Load(Param("entries"), GP64()), Load(Param("at"), GP64())
	digit, n := Load(Param("digit"), GP64()), Load(Param("n"), GP64())
	var pick, term Register
	if picked {
		pick, term = Load(Param("pick"), GP64()), GP32()
	} else {
		term = Load(Param("first"), GP32())
		ADDL(term, term)
	}
	d, p, e := GP64(), GP64(), GP32()
	Label(name + "_loop")
	MOVL(Mem{Base: digit, Disp: 4 * placeAhead}, d.As32())
	BTRL(U8(31), d.As32())
	MOVL(Mem{Base: at, Index: d, Scale: 4}, p.As32())
	PREFETCHT0(Mem{Base: entries, Index: p, Scale: 4})

	MOVL(Mem{Base: digit}, d.As32())
	if picked {
		MOVL(Mem{Base: pick}, e)
		ADDL(e, e)
		ADDQ(U8(4), pick)
	} else {
		MOVL(term, e)
		ADDL(U8(2), term)
	}
	s := GP32()
	MOVL(d.As32(), s)
	SHRL(U8(31), s)
	ORL(s, e)
	BTRL(U8(31), d.As32())
	MOVL(Mem{Base: at, Index: d, Scale: 4}, p.As32())
	MOVL(e, Mem{Base: entries, Index: p, Scale: 4})
	ADDL(U8(1), p.As32())
	MOVL(p.As32(), Mem{Base: at, Index: d, Scale: 4})
	ADDQ(U8(4), digit)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	RET()
}
