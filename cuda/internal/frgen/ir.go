// Command frgen writes the carry-chain headers of the scalar fields,
// cuda/kernels/fr_381.cuh and fr_254.cuh. Each routine is a list of
// instructions, printed twice: as one PTX asm block, and as the same list in
// C++ with an explicit carry, so that the emulator runs what the GPU runs.
package main

import "fmt"

// instr is one instruction. Operands are registers, elements of a parameter
// ("a3") or literals ("0x1f"). The operations are PTX's on 32 bits: add, addc,
// sub, subc, mad.lo, madc.lo, madc.hi, each also with .cc; mul.lo; mov. Besides:
//
//	wide     d, d2 = low, high word of a·b
//	shl      d = the high word of (b:a) << c, a funnel shift
//	sel      d = p ? a : b
//	setp.ne  p = a ≠ b
//	setp.gt.or  p = a > b or p
//
// pred: only if p.
type instr struct {
	op      string
	d, d2   string
	a, b, c string
	pred    bool
}

// routine is a function of numbers of eight words; it writes the number t.
type routine struct {
	name string
	doc  string
	ins  []string // names of the parameters, "a" for a0 … a7
	code []instr
}

func (r *routine) emit(op, d, a, b string) { r.code = append(r.code, instr{op: op, d: d, a: a, b: b}) }
func (r *routine) wide(d, d2, a, b string) {
	r.code = append(r.code, instr{op: "wide", d: d, d2: d2, a: a, b: b})
}
func (r *routine) mad(op, d, a, b, c string) {
	r.code = append(r.code, instr{op: op, d: d, a: a, b: b, c: c})
}

// guard makes the instructions that f emits conditional.
func (r *routine) guard(f func()) {
	from := len(r.code)
	f()
	for i := from; i < len(r.code); i++ {
		r.code[i].pred = true
	}
}

// line is one addition (op "add") or subtraction ("sub") of many words, lowest
// first; out says that a carry leaves the last.
func (r *routine) line(op string, out bool, d, a, b []string) {
	for k := range d {
		o := op
		if k > 0 {
			o += "c"
		}
		if k < len(d)-1 || out {
			o += ".cc"
		}
		r.emit(o, d[k], a[k], b[k])
	}
}

// words are the registers name0 … name7.
func words(name string) []string {
	w := make([]string, 8)
	for i := range w {
		w[i] = fmt.Sprint(name, i)
	}
	return w
}

// column adds products up by place: register name<k> holds place k. What was
// never written is 0.
type column struct {
	name string
	set  map[int]bool
}

func newColumn(name string) *column { return &column{name, map[int]bool{}} }

func (c *column) reg(k int) string { return fmt.Sprint(c.name, k) }
func (c *column) get(k int) string {
	if c.set[k] {
		return c.reg(k)
	}
	return "0"
}
func (c *column) mark(ks ...int) {
	for _, k := range ks {
		c.set[k] = true
	}
}

// product is a·b at a place.
type product struct {
	at   int
	a, b string
}

// chain adds products, at every other place and the lowest first, in one run of
// multiply-add pairs with a carry. Places above top are dropped.
func (r *routine) chain(acc *column, top int, ps []product) {
	carry := false // a carry is under way
	for i, p := range ps {
		if p.at == top {
			if carry {
				r.emit("addc", acc.reg(top), acc.get(top), "0")
				acc.mark(top)
			}
			r.mad("mad.lo", acc.reg(top), p.a, p.b, acc.get(top))
			acc.mark(top)
			return
		}
		if !carry && !acc.set[p.at] && !acc.set[p.at+1] {
			r.wide(acc.reg(p.at), acc.reg(p.at+1), p.a, p.b)
			acc.mark(p.at, p.at+1)
			continue
		}
		lo, hi := "mad.lo.cc", "madc.hi"
		if carry {
			lo = "madc.lo.cc"
		}
		last := i == len(ps)-1
		out := !last || acc.set[p.at+1] && p.at+2 <= top
		if out {
			hi += ".cc"
		}
		r.mad(lo, acc.reg(p.at), p.a, p.b, acc.get(p.at))
		r.mad(hi, acc.reg(p.at+1), p.a, p.b, acc.get(p.at+1))
		acc.mark(p.at, p.at+1)
		carry = true
		if last && out {
			if acc.set[p.at+2] {
				panic(fmt.Sprintf("%s: a carry into place %d, which is in use", r.name, p.at+2))
			}
			r.emit("addc", acc.reg(p.at+2), "0", "0")
			acc.mark(p.at + 2)
		}
	}
}

// rows adds the products a_i·b_j with from ≤ i + j ≤ top, row by row, those of
// even places to even and those of odd places to odd. Words of b that are ""
// are left out.
func (r *routine) rows(even, odd *column, from, top int, a, b []string) {
	for i := range a {
		for parity, acc := range []*column{even, odd} {
			var ps []product
			for j := range b {
				if k := i + j; b[j] != "" && k >= from && k <= top && k%2 == parity {
					ps = append(ps, product{k, a[i], b[j]})
				}
			}
			r.chain(acc, top, ps)
		}
	}
}

// counts says what a routine is made of.
func (r *routine) counts() (wide, lo, other int) {
	for _, i := range r.code {
		switch i.op {
		case "wide", "madc.hi", "madc.hi.cc":
			wide++ // with the .lo before it, one 32×32→64 multiply-add
		case "mad.lo", "mul.lo":
			lo++
		case "mad.lo.cc", "madc.lo.cc":
		default:
			other++
		}
	}
	return
}
