package main

import (
	"fmt"
	"math/big"

	"github.com/snarkline/snarkline/curve"
)

// field is a scalar field.
type field struct {
	file string // "fr_381"
	id   curve.ID
	r    *big.Int
	low  uint // 2^256 − r is 2^low − 1 modulo 2^32; 32 means that its second word is 0, too
}

func fields() []field {
	return []field{
		{"fr_381", curve.BLS12381, curve.BLS12381.ScalarModulus(), 32},
		{"fr_254", curve.BN254, curve.BN254.ScalarModulus(), 28},
	}
}

// limbs are the eight words of v as literals.
func limbs(v *big.Int) []string {
	var w big.Int
	out := make([]string, 8)
	for i := range out {
		w.Rsh(v, uint(32*i))
		out[i] = fmt.Sprintf("0x%x", uint32(w.Uint64()))
	}
	return out
}

func (f field) twice() *big.Int { return new(big.Int).Lsh(f.r, 1) }

// roomy says that 4r and a little more is below 2^256.
func (f field) roomy() bool { return f.r.BitLen() <= 254 }

// shoup multiplies by a number w < r for which v = ⌊w·2^256/r⌋ is known (V.
// Shoup's trick, in D. Harvey, "Faster arithmetic for number-theoretic
// transforms", 2014): q is the upper half of v·x without the products below
// place 6, and t the lower half of w·x − q·r. For any x < 2^256,
// t < (1 + x/2^256 + 2^−28)·r.
//
// q·r is taken as q·(2^256 − r) with the other sign, since the lowest word of
// that is 2^32 − 1 or 2^28 − 1: shifts and additions in place of products.
func (f field) shoup() *routine {
	r := &routine{name: "fr_shoup", ins: []string{"x", "w", "v"},
		doc: "t = w·x modulo r for v = ⌊w·2^256/r⌋; t < (1 + x/2^256 + 2^−28)·r"}
	x, q := words("x"), words("q")
	e, o := newColumn("e"), newColumn("o")
	r.rows(e, o, 6, 99, x, words("v"))
	z, up := []string{"z"}, []string{e.get(7)}
	down := []string{o.get(7)}
	for k := range q {
		z, up, down = append(z, q[k]), append(up, e.get(8+k)), append(down, o.get(8+k))
	}
	r.line("add", false, z, up, down)

	l, h := newColumn("l"), newColumn("h")
	r.rows(l, h, 0, 7, x, words("w"))
	minus := limbs(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), f.r))
	minus[0] = ""
	shifted := words("s")
	if f.low == 32 {
		minus[1] = "" // it is 0
		shifted = append([]string{"0"}, q[:7]...)
	}
	r.rows(l, h, 0, 7, q, minus)
	if f.low < 32 {
		below := "0"
		for k := range q {
			r.mad("shl", shifted[k], below, q[k], fmt.Sprint(f.low))
			below = q[k]
		}
	}
	lw, hw := words("l"), words("h")
	r.line("add", false, hw[1:], hw[1:], shifted[1:])
	r.line("sub", false, lw, lw, q)
	hw[0] = shifted[0]
	if hw[0] == "0" {
		r.emit("mov", "t0", lw[0], "")
		r.line("add", false, words("t")[1:], lw[1:], hw[1:])
	} else {
		r.line("add", false, words("t"), lw, hw)
	}
	return r
}

// mont is Montgomery's product (P. L. Montgomery, "Modular multiplication
// without trial division", 1985): the whole product, then a multiple of r added
// for each word. Carries out of a row's upper end are counted in registers of
// their own, c<place>, and added at the end.
func (f field) mont() *routine {
	r := &routine{name: "fr_mont", ins: []string{"a", "b"},
		doc: "t = a·b/2^256 modulo r; t < r + a·b/2^256, which must be below 2^256"}
	e, o := newColumn("e"), newColumn("o")
	r.rows(e, o, 0, 99, words("a"), words("b"))
	var y, ys, os []string
	for k := 1; k < 16; k++ {
		y, ys, os = append(y, fmt.Sprint("y", k)), append(ys, e.get(k)), append(os, o.get(k))
	}
	r.emit("mov", "y0", e.get(0), "")
	r.line("add", false, y, ys, os)

	inv := new(big.Int).ModInverse(f.r, new(big.Int).Lsh(big.NewInt(1), 32))
	inv.Sub(new(big.Int).Lsh(big.NewInt(1), 32), inv)
	p := limbs(f.r)
	counted := newColumn("c")
	at := func(k int) string { return fmt.Sprint("y", k) }
	for i := range 8 {
		m := fmt.Sprint("m", i)
		r.emit("mul.lo", m, at(i), fmt.Sprintf("0x%x", inv))
		for parity := range 2 {
			lo := "mad.lo.cc"
			for j := parity; j < 8; j += 2 {
				r.mad(lo, at(i+j), m, p[j], at(i+j))
				r.mad("madc.hi.cc", at(i+j+1), m, p[j], at(i+j+1))
				lo = "madc.lo.cc"
			}
			top := i + 8 + parity
			if top < 16 {
				r.emit("addc", counted.reg(top), counted.get(top), "0")
				counted.mark(top)
			}
		}
	}
	var up, down []string
	for k := range 8 {
		up, down = append(up, at(8+k)), append(down, counted.get(8+k))
	}
	r.line("add", false, words("t"), up, down)
	return r
}

// addLazy adds to a number below 2r + 2^224 one below 2r, and gives one below
// 2r + 2^224: it subtracts 2r if the sum's highest word is above that of 2r.
func (f field) addLazy() *routine {
	r := &routine{name: "fr_add_lazy", ins: []string{"a", "b"},
		doc: "t = a + b or that − 2r; a, t < 2r + 2^224, b < 2r"}
	p := limbs(f.twice())
	t := words("t")
	r.line("add", !f.roomy(), t, words("a"), words("b"))
	if f.roomy() {
		r.emit("setp.gt", "", t[7], p[7])
	} else {
		r.emit("addc", "c", "0", "0")
		r.emit("setp.ne", "", "c", "0")
		r.emit("setp.gt.or", "", t[7], p[7])
	}
	r.guard(func() { r.line("sub", false, t, t, p) })
	return r
}

// sub subtracts, and adds m if that is below 0.
func (f field) sub(name, doc string, m *big.Int) *routine {
	r := &routine{name: name, ins: []string{"a", "b"}, doc: doc}
	t := words("t")
	r.line("sub", true, t, words("a"), words("b"))
	r.emit("subc", "c", "0", "0")
	r.emit("setp.ne", "", "c", "0")
	r.guard(func() { r.line("add", false, t, t, limbs(m)) })
	return r
}

// reduced adds (or, with one parameter, takes) a number and subtracts m unless
// that is below 0.
func (f field) reduced(name, doc string, m *big.Int, ins ...string) *routine {
	r := &routine{name: name, ins: ins, doc: doc}
	s, d, t := words("a"), words("d"), words("t")
	c := "0"
	if len(ins) == 2 {
		s = words("s")
		r.line("add", !f.roomy(), s, words("a"), words("b"))
		if !f.roomy() {
			c = "c"
			r.emit("addc", c, "0", "0")
		}
	}
	r.line("sub", true, d, s, limbs(m))
	r.emit("subc", "c", c, "0")
	r.emit("setp.ne", "", "c", "0")
	for k := range t {
		r.code = append(r.code, instr{op: "sel", d: t[k], a: s[k], b: d[k]})
	}
	return r
}

func (f field) routines() []*routine {
	return []*routine{
		f.shoup(),
		f.mont(),
		f.addLazy(),
		f.reduced("fr_add_2r", "t = a + b modulo 2r; a, b, t < 2r", f.twice(), "a", "b"),
		f.sub("fr_sub_2r", "t = a − b modulo 2r; a < 2r + 2^224, b < 2r; t < 2r + 2^224, and < 2r if a is", f.twice()),
		f.reduced("fr_cut_2r", "t = a − 2r if a ≥ 2r, else a", f.twice(), "a"),
		f.reduced("fr_cut_r", "t = a − r if a ≥ r, else a", f.r, "a"),
		f.sub("fr_sub_r", "t = a − b modulo r; a, b, t < r", f.r),
	}
}
