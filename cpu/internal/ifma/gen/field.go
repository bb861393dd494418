package main

import (
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// field is a prime field in limbs of 52 bits, one element a lane. A vector is
// nl registers; vector register j holds limb j of eight elements.
//
// Elements are lazy: a value is any representative below a small multiple of
// p. A vector is normalised when its limbs are below 2^52 (the top limb may be
// larger by what the multiple needs), and raw when a carry is still due; raw
// limbs are signed.
type field struct {
	name  string
	p     *big.Int
	nl    int // limbs of 52 bits
	words int // 64-bit words in gnark-crypto's layout
	c     Mem // constants
	off   map[string]int
}

func hex(s string) *big.Int {
	v, ok := new(big.Int).SetString(s, 16)
	if !ok {
		panic("bad constant")
	}
	return v
}

var (
	fp381 = &field{name: "381", nl: 8, words: 6, p: hex("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab")}
	fp254 = &field{name: "254", nl: 5, words: 4, p: hex("30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47")}
	fr381 = &field{name: "381", nl: 5, words: 4, p: hex("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001")}
	fr254 = &field{name: "254", nl: 5, words: 4, p: hex("30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001")}
)

const mask52 = 1<<52 - 1

// shift is log2 of the ratio of the two Montgomery radices, 2^(52·nl) and 2^(64·words).
func (f *field) shift() int { return 52*f.nl - 64*f.words }

// bytes is the size of a vector.
func (f *field) bytes() int { return 64 * f.nl }

func (f *field) radix() *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(52*f.nl)) }

// data emits the constants of the field into the file.
func (f *field) data() {
	f.c = GLOBL("field"+f.name, RODATA|NOPTR)
	f.off = map[string]int{}
	at := 0
	word := func(v uint64) {
		DATA(at, U64(v))
		at += 8
	}
	limbs := func(name string, v *big.Int) {
		f.off[name] = at
		for i := 0; i < f.nl; i++ {
			l := new(big.Int).Rsh(v, uint(52*i))
			if i < f.nl-1 {
				l.And(l, big.NewInt(mask52))
			}
			word(l.Uint64())
		}
	}
	two52 := new(big.Int).Lsh(big.NewInt(1), 52)
	pinv := new(big.Int).ModInverse(f.p, two52)
	f.off["pinv"] = at
	word(pinv.Sub(two52, pinv).Uint64())
	f.off["mask"] = at
	word(mask52)
	f.off["mu"] = at
	word(new(big.Int).Div(f.radix(), f.p).Uint64())
	f.off["one"] = at
	word(1)
	for k := int64(1); k <= 5; k++ {
		limbs(multiple(k), new(big.Int).Mul(f.p, big.NewInt(k)))
	}
	if f.nl == 8 { // room for sums and differences of elements that are not reduced
		limbs("2^32p", new(big.Int).Lsh(f.p, 32))
		limbs("2^33p", new(big.Int).Lsh(f.p, 33))
		limbs("2^33p+2p", new(big.Int).Mul(f.p, big.NewInt(1<<33+2)))
	}
	limbs("pbar", new(big.Int).Sub(f.radix(), f.p))
}

func multiple(k int64) string { return string(rune('0'+k)) + "p" }

// k is limb j of a constant in memory, to be broadcast.
func (f *field) k(name string, j int) Mem {
	o, ok := f.off[name]
	if !ok {
		panic("no constant " + name)
	}
	return f.c.Offset(o + 8*j)
}

func (f *field) bcast(name string) VecVirtual {
	r := ZMM()
	VPBROADCASTQ(f.k(name, 0), r)
	return r
}

// vec are the registers of one vector.
type vec []VecVirtual

func (f *field) newVec() vec {
	v := make(vec, f.nl)
	for j := range v {
		v[j] = ZMM()
	}
	return v
}

// zero clears r. avo does not know that the 512-bit form does not read r.
func zero(r VecVirtual) {
	i, err := x86.VPXORQ(r, r, r)
	if err != nil {
		panic(err)
	}
	i.CancellingInputs = true
	Instruction(i)
}

// at is register j of the vector at byte offset disp from base.
func at(base Register, disp, j int) Mem { return Mem{Base: base, Disp: disp + 64*j} }

func (f *field) load(base Register, disp int) vec {
	v := f.newVec()
	for j := range v {
		VMOVDQU64(at(base, disp, j), v[j])
	}
	return v
}

func (f *field) store(v vec, base Register, disp int) {
	for j := range v {
		VMOVDQU64(v[j], at(base, disp, j))
	}
}

// carry normalises raw limbs; signed limbs are allowed when the value is not
// negative.
func (f *field) carry(v vec, mask VecVirtual) {
	t := ZMM()
	for j := 0; j < f.nl-1; j++ {
		VPSRAQ(U8(52), v[j], t)
		VPADDQ(t, v[j+1], v[j+1])
		VPANDQ(mask, v[j], v[j])
	}
}

// weak brings a raw value V with p ≤ V < 2^(52·nl) to a normalised one below
// 2p + V·p/R: q = ⌊top·⌊R/p⌋/2^52⌋ is at most V/p and less than V/p by less than
// 1 + V/R plus the truncation of top; V + q·(R − p) is V − q·p modulo R.
func (f *field) weak(v vec, mask VecVirtual) {
	top, q := ZMM(), ZMM()
	VPSRAQ(U8(52), v[f.nl-2], top)
	VPADDQ(top, v[f.nl-1], top)
	VPSUBQ_BCST(f.k("one", 0), top, top)
	f.weakFrom(v, top, q, mask)
}

// weakNorm is weak for a normalised value, which may be below p.
func (f *field) weakNorm(v vec, mask VecVirtual) {
	f.weakFrom(v, v[f.nl-1], ZMM(), mask)
}

func (f *field) weakFrom(v vec, top, q, mask VecVirtual) {
	zero(q)
	VPMADD52HUQ_BCST(f.k("mu", 0), top, q)
	pb := ZMM()
	for j := 0; j < f.nl; j++ {
		VPBROADCASTQ(f.k("pbar", j), pb)
		VPMADD52LUQ(pb, q, v[j])
		if j < f.nl-1 {
			VPMADD52HUQ(pb, q, v[j+1])
		}
	}
	f.carry(v, mask)
	VPANDQ(mask, v[f.nl-1], v[f.nl-1])
}

// subtractOnce brings a normalised value below 2p to the one below p.
func (f *field) subtractOnce(v vec, mask VecVirtual) {
	d := f.newVec()
	for j := range d {
		VMOVDQA64(v[j], d[j])
		VPSUBQ_BCST(f.k("1p", j), d[j], d[j])
	}
	f.carry(d, mask)
	neg := K()
	VPMOVQ2M(d[f.nl-1], neg)
	for j := range v { // keep v where v − p is negative
		VPBLENDMQ(v[j], d[j], neg, v[j])
	}
}

// term is one product that a way of mul accumulates: a puts limb i of one
// factor, which is scanned once, in r; b(j) is limb j of the other one in memory.
type term struct {
	a func(i int, r VecVirtual)
	b func(j int) Op
	// bcast: b(j) is one word for all lanes
	bcast bool
}

func memTerm(a Register, ad int, b Register, bd int) term {
	return term{
		a: func(i int, r VecVirtual) { VMOVDQU64(at(a, ad, i), r) },
		b: func(j int) Op { return at(b, bd, j) },
	}
}

// mul is Montgomery multiplication by operand scanning with the reduction
// interleaved. Each way is a sum of products under one reduction; the ways are
// independent of each other and interleaved, to fill the multipliers' latency.
// The carry out of column 0 is taken as (t0 + 2^52 − 1) >> 52, which saves the
// product m·p0. Factors a must be normalised. The results are raw and not
// negative, and below p + (sum of products)/R.
func (f *field) mul(ways ...[]term) []vec {
	pinv, mask := f.bcast("pinv"), f.bcast("mask")
	n := len(ways)
	t := make([]vec, n)
	for w := range t {
		t[w] = make(vec, f.nl+1)
		for j := range t[w] {
			t[w][j] = ZMM()
			zero(t[w][j])
		}
	}
	m, cy := make(vec, n), make(vec, n)
	ai := make([]vec, n)
	for w := range m {
		m[w], cy[w] = ZMM(), ZMM()
		ai[w] = make(vec, len(ways[w]))
		for k := range ai[w] {
			ai[w][k] = ZMM()
		}
	}
	pj, bj := ZMM(), ZMM()
	// operand gives b(j) as a register, loading it once for both halves
	operand := func(x term, j int) Op {
		b := x.b(j)
		if x.bcast {
			VPBROADCASTQ(b, bj)
			return bj
		}
		return b
	}
	for i := 0; i < f.nl; i++ {
		for w, terms := range ways {
			for k, x := range terms {
				x.a(i, ai[w][k])
				VPMADD52LUQ(operand(x, 0), ai[w][k], t[w][0])
			}
			zero(m[w])
		}
		for w := range ways {
			VPMADD52LUQ(pinv, t[w][0], m[w])
			VPADDQ(mask, t[w][0], cy[w])
			VPSRLQ(U8(52), cy[w], cy[w])
		}
		for k := range ways[0] {
			for j := 1; j < f.nl; j++ {
				for w := range ways {
					VPMADD52LUQ(operand(ways[w][k], j), ai[w][k], t[w][j])
				}
			}
			for j := 0; j < f.nl; j++ {
				for w := range ways {
					VPMADD52HUQ(operand(ways[w][k], j), ai[w][k], t[w][j+1])
				}
			}
		}
		for w := range ways {
			VPADDQ(cy[w], t[w][1], t[w][1])
		}
		for j := 0; j < f.nl; j++ {
			VPBROADCASTQ(f.k("1p", j), pj)
			for w := range ways {
				if j > 0 {
					VPMADD52LUQ(pj, m[w], t[w][j])
				}
				VPMADD52HUQ(pj, m[w], t[w][j+1])
			}
		}
		for w := range ways { // column 0 is spent
			z := t[w][0]
			copy(t[w], t[w][1:])
			t[w][f.nl] = z
			if i < f.nl-1 {
				zero(z)
			}
		}
	}
	for w := range t {
		t[w] = t[w][:f.nl]
	}
	return t
}

// transpose turns eight rows of eight words into eight columns.
func transpose(r vec) vec {
	a := make(vec, 8)
	for i := 0; i < 8; i += 2 {
		a[i], a[i+1] = ZMM(), ZMM()
		VPUNPCKLQDQ(r[i+1], r[i], a[i])
		VPUNPCKHQDQ(r[i+1], r[i], a[i+1])
	}
	b := make(vec, 8)
	for i := range b {
		b[i] = ZMM()
	}
	for h := 0; h < 2; h++ {
		x := a[4*h:]
		VSHUFI64X2(U8(0x88), x[2], x[0], b[4*h])
		VSHUFI64X2(U8(0x88), x[3], x[1], b[4*h+1])
		VSHUFI64X2(U8(0xdd), x[2], x[0], b[4*h+2])
		VSHUFI64X2(U8(0xdd), x[3], x[1], b[4*h+3])
	}
	o := make(vec, 8)
	for i := 0; i < 4; i++ {
		o[i], o[i+4] = ZMM(), ZMM()
		VSHUFI64X2(U8(0x88), b[i+4], b[i], o[i])
		VSHUFI64X2(U8(0xdd), b[i+4], b[i], o[i+4])
	}
	return o
}

// unpack cuts words of 64 bits into normalised limbs of the value times 2^shift.
func (f *field) unpack(w vec, shift int, mask VecVirtual) vec {
	v := f.newVec()
	for j := range v {
		lo := 52*j - shift
		switch {
		case lo < 0:
			VPSLLQ(U8(-lo), w[0], v[j])
		case lo%64 == 0:
			VMOVDQA64(w[lo/64], v[j])
		case lo%64+52 > 64 && lo/64+1 < f.words:
			VPSHRDQ(U8(lo%64), w[lo/64+1], w[lo/64], v[j])
		default:
			VPSRLQ(U8(lo%64), w[lo/64], v[j])
		}
		if j < f.nl-1 {
			VPANDQ(mask, v[j], v[j])
		}
	}
	return v
}

// pack joins normalised limbs of a value below 2^(64·words) to words.
func (f *field) pack(v vec) vec {
	w := make(vec, f.words)
	t := ZMM()
	for i := range w {
		w[i] = ZMM()
		j := 64 * i / 52 // the limb with bit 64·i
		VPSRLQ(U8(64*i-52*j), v[j], w[i])
		for k := j + 1; k < f.nl && 52*k < 64*(i+1); k++ {
			VPSLLQ(U8(52*k-64*i), v[k], t)
			VPORQ(t, w[i], w[i])
		}
	}
	return w
}
