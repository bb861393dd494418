package main

import (
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// vector emits plain arithmetic on vectors of one field: from gnark-crypto's
// layout, products, and back.
type vector struct {
	*field
	tag string // Fp381
}

// prepare adds the constant that takes the package's radix to gnark-crypto's:
// a product with it divides by 2^(52·nl) and multiplies by 2^(64·words).
func (g *vector) prepare() {
	g.data()
	c := new(big.Int).Lsh(big.NewInt(1), uint(64*g.words))
	c.Mod(c, g.p)
	at := 0
	for _, o := range g.off {
		at = max(at, o)
	}
	at += 8 * g.nl // the last constant has limbs
	g.off["down"] = at
	for i := 0; i < g.nl; i++ {
		l := new(big.Int).Rsh(c, uint(52*i))
		DATA(at+8*i, U64(l.And(l, big.NewInt(mask52)).Uint64()))
	}
}

func (g *vector) emit() {
	g.load8()
	g.store8()
	g.product()
}

// wordMask is the mask of an element's words in a register.
func (g *vector) wordMask() Register {
	r, k := GP32(), K()
	MOVL(U32(1<<g.words-1), r)
	KMOVW(r, k)
	return k
}

func (g *vector) load8() {
	name := "load" + g.tag
	TEXT(name, NOSPLIT, "func(v, m *byte, n int)")
	Doc(name + " makes n vectors of 8n elements in gnark-crypto's layout, which need not be reduced: below 2p, normalised.")
	Pragma("noescape")
	v, m, n := Load(Param("v"), GP64()), Load(Param("m"), GP64()), Load(Param("n"), GP64())
	k := g.wordMask()
	Label(name + "_loop")
	mask := g.bcast("mask")
	r := make(vec, 8)
	for i := range r {
		r[i] = ZMM()
		VMOVDQU64_Z(Mem{Base: m, Disp: 8 * g.words * i}, k, r[i])
	}
	x := g.unpack(transpose(r)[:g.words], g.shift(), mask)
	g.weakNorm(x, mask)
	g.store(x, v, 0)
	ADDQ(U32(g.bytes()), v)
	ADDQ(U32(64*g.words), m)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (g *vector) store8() {
	name := "store" + g.tag
	TEXT(name, NOSPLIT, "func(m, v *byte, n int)")
	Doc(name + " writes n vectors, values below 4p and normalised, as 8n reduced elements in gnark-crypto's layout.")
	Pragma("noescape")
	m, v, n := Load(Param("m"), GP64()), Load(Param("v"), GP64()), Load(Param("n"), GP64())
	k := g.wordMask()
	Label(name + "_loop")
	mask := g.bcast("mask")
	// the product is below p + 4p·p/2^(52·nl), and so below 2p
	x := g.mul([]term{{
		a:     func(i int, r VecVirtual) { VMOVDQU64(at(v, 0, i), r) },
		b:     func(j int) Op { return g.k("down", j) },
		bcast: true,
	}})[0]
	g.carry(x, mask)
	g.subtractOnce(x, mask)
	w := g.pack(x)
	z := ZMM()
	zero(z)
	for len(w) < 8 {
		w = append(w, z)
	}
	for i, r := range transpose(w) {
		VMOVDQU64(r, k, Mem{Base: m, Disp: 8 * g.words * i})
	}
	ADDQ(U32(g.bytes()), v)
	ADDQ(U32(64*g.words), m)
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (g *vector) product() {
	name := "mul" + g.tag
	TEXT(name, NOSPLIT, "func(dst, a, b *byte, n int)")
	Doc(name + " sets dst = a·b for 2n vectors, normalised, the factors below 4p; the products are below 2p.")
	Pragma("noescape")
	dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	n := Load(Param("n"), GP64())
	Label(name + "_loop")
	s := g.bytes()
	t := g.mul([]term{memTerm(a, 0, b, 0)}, []term{memTerm(a, s, b, s)})
	mask := g.bcast("mask")
	for w := range t {
		g.carry(t[w], mask)
		g.store(t[w], dst, w*s)
	}
	for _, p := range []Register{dst, a, b} {
		ADDQ(U32(2*s), p)
	}
	DECQ(n)
	JNZ(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}
