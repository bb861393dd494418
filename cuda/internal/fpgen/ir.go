// Command fpgen writes the carry-chain headers of the base fields,
// cuda/kernels/fp_381.cuh and fp_254.cuh. Each routine is a list of
// instructions, printed twice: as one PTX asm block, and as the same list in
// C++ with an explicit carry, so that the emulator runs what the GPU runs.
package main

import (
	"fmt"
	"strings"
)

// instr is one instruction. Operands are registers, elements of a parameter
// ("a[3]") or literals ("0x1f"). The operations are PTX's for 32 bits (add,
// addc, sub, subc, mad.lo, madc.lo, mad.hi, madc.hi, each also with .cc; mul.lo,
// and, mov), and two that stand for a pair: wide (two registers = a·b) and sel
// (d = c ≠ 0 ? a : b).
type instr struct {
	op      string
	d, e    string // e: the high word of wide
	a, b, c string
}

// routine is a function of arrays of 32-bit words.
type routine struct {
	name string
	outs []param // written, never read before
	ins  []param
	mods []param // read and written
	ret  string  // a register that is returned, or ""
	code []instr
	n    int // temporaries so far
}

type param struct {
	name string
	n    int
}

// words are operands, least significant first.
type words []string

func (r *routine) out(name string, n int) words {
	r.outs = append(r.outs, param{name, n})
	return elems(name, n)
}
func (r *routine) in(name string, n int) words {
	r.ins = append(r.ins, param{name, n})
	return elems(name, n)
}
func (r *routine) mod(name string, n int) words {
	r.mods = append(r.mods, param{name, n})
	return elems(name, n)
}

func elems(name string, n int) words {
	w := make(words, n)
	for i := range w {
		w[i] = fmt.Sprintf("%s[%d]", name, i)
	}
	return w
}

func (r *routine) temps(n int) words {
	w := make(words, n)
	for i := range w {
		w[i] = fmt.Sprintf("t%d", r.n)
		r.n++
	}
	return w
}

func (r *routine) temp() string { return r.temps(1)[0] }

func (r *routine) emit(op, d, a, b string) { r.code = append(r.code, instr{op: op, d: d, a: a, b: b}) }
func (r *routine) wide(lo, hi, a, b string) {
	r.code = append(r.code, instr{op: "wide", d: lo, e: hi, a: a, b: b})
}
func (r *routine) mad(op, d, a, b, c string) {
	r.code = append(r.code, instr{op: op, d: d, a: a, b: b, c: c})
}

// pair adds a·b to the words lo, hi, whose values before are inLo, inHi. carryIn
// and carryOut say whether the chain goes on at its ends.
func (r *routine) pair(lo, hi, a, b, inLo, inHi string, carryIn, carryOut bool) {
	op := "mad"
	if carryIn {
		op = "madc"
	}
	r.mad(op+".lo.cc", lo, a, b, inLo)
	op = "madc.hi"
	if carryOut {
		op += ".cc"
	}
	r.mad(op, hi, a, b, inHi)
}

// add is d = a + b (or −, with op "sub") over len(d) words; words missing in b
// are 0. It returns the register of the carry (1 or 0; a borrow is all ones or
// 0) when carry is asked for.
func (r *routine) add(op string, d, a, b words, carry bool) string {
	for i := range d {
		o := op
		if i > 0 {
			o += "c"
		}
		if i < len(d)-1 || carry {
			o += ".cc"
		}
		x := "0"
		if i < len(b) {
			x = b[i]
		}
		r.emit(o, d[i], a[i], x)
	}
	if !carry {
		return ""
	}
	c := r.temp()
	r.emit(op+"c", c, "0", "0")
	return c
}

func (r *routine) copy(d, a words) {
	for i := range d {
		r.emit("mov", d[i], a[i], "")
	}
}

// counts says what a routine is made of.
func (r *routine) counts() (wide, lo, adds, other int) {
	for _, i := range r.code {
		switch {
		case i.op == "wide":
			wide++
		case strings.Contains(i.op, ".hi"):
			wide++ // with the .lo before it, one 32×32→64 multiply-add
		case i.op == "mul.lo":
			lo++
		case strings.HasPrefix(i.op, "add"), strings.HasPrefix(i.op, "sub"):
			adds++
		case strings.Contains(i.op, ".lo"):
		default:
			other++
		}
	}
	return
}
