package ifma

import (
	"math/bits"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
)

// Tables of a transform. A transform of n = R·C elements sees them as R rows
// of C. With ω of order n and rev the reversal of bits:
//
// Splitting (natural to reversed order) divides xᵐ² − z² into xᵐ ∓ z level by
// level; block b of level l has z = ω^(rev_l(b)·n/2^(l+1)), entry 2^l + b of a
// heap. R levels go down the columns; row k then is a transform of C elements
// whose twiddles are z·γₖᵐ with γₖ = ω^rev(k) and m half the block. A shift s of
// the inputs, xᵢ·sⁱ, only scales twiddles: z·(s^C)ᵐ in columns, γₖ·s for rows.
//
// Joining (reversed to natural order) first transforms the rows; level m has
// the twiddles ω^(j·n/2m), entries m+j. Then the columns, where column c has
// h = ω^c for the element of row k to be scaled by h^rev(k): its twiddles are
// multiplied by h^(R/2m). A shift of the inputs is h·s in columns, and s^R in
// place of h for rows.
//
// Tables are in vectors of eight entries, limb j of entry e at word 8j+e,
// unless said to be in elements: five words each.
type nttTables struct {
	splitCol []byte // heap of R entries
	splitRow []byte // heap of C/4 entries, then two and four vectors a group
	gamma    []byte // γₖ·s, R entries
	joinCol  []byte // R elements, without h
	joinRow  []byte // C entries
	h        []byte // h·s, C entries
}

// shape is the size of a transform.
type shape struct{ l1, l2 int }

func (s shape) rows() int { return 1 << s.l1 }
func (s shape) cols() int { return 1 << s.l2 }
func (s shape) log() int  { return s.l1 + s.l2 }

// MinNTT and MaxNTT are the least and the largest log2 of a transform's size.
const (
	MinNTT = 8
	MaxNTT = 26
)

// shapeOf balances what a column and a row need of the second-level cache.
func shapeOf(log int) shape {
	l1 := max(2, (log-3)/2)
	l2 := max(6, log-l1)
	return shape{log - l2, l2}
}

// vecs is the number of vectors for n entries, with one to spare.
func vecs(n int) int { return (n+7)/8 + 1 }

func (s shape) tableBytes() int {
	r, c := s.rows(), s.cols()
	return frVec*(2*vecs(r)+3*vecs(c)) + align(40*(r+2))
}

// put writes entry i of a table in vectors.
func putEntry(t []byte, i int, l [5]uint64) {
	w := words(t, i/8*frVec, frVec/8)
	for j, x := range l {
		w[8*j+i%8] = x
	}
}

// putElement writes entry i of a table in elements.
func putElement(t []byte, i int, l [5]uint64) {
	copy(unsafe.Slice((*uint64)(unsafe.Pointer(&t[40*i])), 5), l[:])
}

func reverse(v, n int) int {
	if n == 0 {
		return 0
	}
	return int(bits.Reverse64(uint64(v)) >> (64 - n))
}

// tableBuilder makes the tables of one root of unity.
type tableBuilder struct {
	shape
	f       frField
	root    []curve.Scalar // root[i] has order 2^i
	sixteen curve.Scalar
}

func newTableBuilder(s shape, f frField, generator curve.Scalar) *tableBuilder {
	b := &tableBuilder{shape: s, f: f, root: make([]curve.Scalar, s.log()+1), sixteen: f.small(16)}
	for i := s.log(); i >= 0; i-- {
		b.root[i] = generator
		generator = f.mul(generator, generator)
	}
	return b
}

// powers calls f with first·ratio^j for j < n.
func (b *tableBuilder) powers(first, ratio curve.Scalar, n int, f func(j int, l [5]uint64)) {
	for j := range n {
		f(j, b.f.limbs(first, b.sixteen))
		first = b.f.mul(first, ratio)
	}
}

// build makes the tables for a shift; mem has tableBytes.
func (b *tableBuilder) build(shift curve.Scalar, s *scratch) *nttTables {
	r, c := b.rows(), b.cols()
	unit := b.f.small(1)
	t := &nttTables{
		splitCol: s.bytes(frVec * vecs(r)), gamma: s.bytes(frVec * vecs(r)),
		splitRow: s.bytes(frVec * vecs(c)), joinRow: s.bytes(frVec * vecs(c)), h: s.bytes(frVec * vecs(c)),
		joinCol: s.bytes(40 * (r + 2)),
	}
	for _, m := range [][]byte{t.splitCol, t.gamma, t.splitRow, t.joinRow, t.h, t.joinCol} {
		clear(m)
	}
	down := b.f.squares(shift, b.l2) // s^C
	for l := range b.l1 {
		b.powers(b.f.squares(down, b.l1-1-l), b.root[l+1], 1<<l, func(j int, x [5]uint64) {
			putEntry(t.splitCol, 1<<l+reverse(j, l), x)
		})
		b.powers(unit, b.root[l+1], 1<<l, func(j int, x [5]uint64) {
			putElement(t.joinCol, 1<<l+j, x)
		})
	}
	b.powers(shift, b.root[b.log()], r, func(j int, x [5]uint64) {
		putEntry(t.gamma, reverse(j, b.l1), x)
	})
	b.powers(shift, b.root[b.log()], c, func(j int, x [5]uint64) { putEntry(t.h, j, x) })
	along := b.f.squares(shift, b.l1) // s^R
	for l := range b.l2 {
		b.powers(unit, b.root[l+1], 1<<l, func(j int, x [5]uint64) {
			putEntry(t.splitRow, b.rowEntry(l, reverse(j, l)), x)
		})
		b.powers(b.f.squares(along, b.l2-1-l), b.root[l+1], 1<<l, func(j int, x [5]uint64) {
			putEntry(t.joinRow, 1<<l+j, x)
		})
	}
	return t
}

// rowEntry is where the twiddle of block i of level l of a row goes in splitRow:
// a heap for all but the last two levels, whose blocks are dealt out to the
// lanes of the group that they belong to.
func (s shape) rowEntry(l, i int) int {
	c := s.cols()
	switch l {
	case s.l2 - 2: // block 16g + 2e + o to lane e of vector 2g + o
		return c/4 + 8*(2*(i/16)+i%2) + i%16/2
	case s.l2 - 1: // block 32g + 4e + o to lane e of vector 4g + o
		return c/2 + 8*(4*(i/32)+i%4) + i%32/4
	}
	return 1<<l + i
}
