package ifma

import (
	"sort"
	"unsafe"
)

const (
	chains   = 4  // independent running products in a batch
	blockLen = 8  // records that the second half of a batch walks through at once
	ahead    = 32 // names that the kernels may read past a batch, for prefetching
)

// An adder sums pairs of points in affine coordinates, many at once under one
// inversion (Montgomery's trick). Pairs are collected with push and done when
// the adder is full or on flush; all operands of a batch are read before any
// sum is written. Sums are exact: equal points are doubled, opposite points
// give an infinite row. Operands must be finite.
type adder struct {
	k   *kernels
	ops lanes

	rec  []byte // records: most/8 + chains
	tmp  []byte
	rows []byte // rows that operands and sums are named in
	pts  []byte // points that operands are named in when fromPoints

	a, b, d []uint32 // operands index<<1 | sign, destination row
	n, most int      // pending, capacity
	dummy   uint32   // a row for sums that nobody wants

	fromPoints bool
	inf        []uint32 // lanes of the running batch that are infinite
	exceptions int      // batches so far that held equal or opposite points
}

// adderBytes is the scratch that an adder of the given capacity takes.
func adderBytes(k *kernels, most int) int {
	return (most/8+chains)*k.recBytes + k.recBytes + 4*4*(most+ahead) + 6*64
}

func newAdder(k *kernels, ops lanes, most int, s *scratch) *adder {
	return &adder{
		k: k, ops: ops, most: most,
		rec: s.bytes((most/8 + chains) * k.recBytes),
		tmp: s.bytes(k.recBytes),
		a:   s.uint32s(most + ahead), b: s.uint32s(most + ahead), d: s.uint32s(most + ahead),
		inf: s.uint32s(most)[:0],
	}
}

// push adds the pair a, b; the sum goes to row d.
func (s *adder) push(a, b, d uint32) {
	s.a[s.n], s.b[s.n], s.d[s.n] = a, b, d
	if s.n++; s.n == s.most {
		s.flush()
	}
}

// coord is field f of record v.
func (s *adder) coord(v, f int) []uint64 {
	return words(s.rec, v*s.k.recBytes+f*s.k.coordBytes(), s.k.coordBytes()/8)
}

func (s *adder) at(v, f int) *byte { return ptr(s.rec, v*s.k.recBytes+f*s.k.coordBytes()) }

func (s *adder) mul(v, dst, a, b, n int, backward bool) {
	s.k.mul(s.at(v, dst), s.at(v, a), s.at(v, b), &s.tmp[0], n, backward)
}

// flush does the pending additions.
func (s *adder) flush() {
	if s.n == 0 {
		return
	}
	n := (s.n + 8*chains - 1) &^ (8*chains - 1)
	for i := s.n; i < n; i++ {
		s.a[i], s.b[i], s.d[i] = s.a[0], s.b[0], s.dummy
	}
	s.n = 0
	nv := n / 8
	s.inf = s.inf[:0]
	if s.fromPoints {
		s.k.loadPoints(&s.rec[0], &s.pts[0], &s.a[0], &s.b[0], nv)
	} else {
		s.k.loadRows(&s.rec[0], &s.rows[0], &s.a[0], &s.b[0], nv)
	}
	s.ones()
	if !s.invert(nv) {
		s.exceptions++
		s.patch(nv)
		s.ones()
		s.invert(nv)
	}
	s.finish(nv)
	for _, i := range s.inf {
		s.setInf(s.d[i])
	}
}

// ones starts the running products.
func (s *adder) ones() {
	nl := s.k.nl
	for v := range chains {
		c := s.coord(v, fieldPre)
		clear(c)
		for j := range nl {
			for l := range 8 {
				c[8*j+l] = s.k.one[j]
			}
		}
	}
}

// invert multiplies the dx along the chains, pre[v+4] = pre[v]·dx[v], and leaves
// in inv of the last records the inverses of the chains' products. It reports
// false when some dx is zero.
func (s *adder) invert(nv int) bool {
	r := s.k.recBytes
	s.k.mul(s.at(chains, fieldPre), s.at(0, fieldPre), s.at(0, fieldDX), &s.tmp[0], nv, false)
	// The products of the chains are at nv … nv+3. m0 = p0·p2, m1 = p1·p3.
	s.k.mul(s.at(nv, fieldInv), s.at(nv, fieldPre), s.at(nv+2, fieldPre), &s.tmp[0], 2, false)
	// t = m0·m1, in the first of two records.
	s.k.mul(s.at(nv+2, fieldInv), s.at(nv, fieldInv), s.at(nv+1, fieldInv), &s.tmp[0], 2, false)
	t := s.coord(nv+2, fieldInv)
	if !s.ops.invert(t) {
		return false
	}
	// (1/m0, 1/m1) = t⁻¹·(m1, m0)
	copy(s.coord(nv, fieldDX), t)
	copy(s.coord(nv+1, fieldDX), t)
	copy(s.coord(nv, fieldSX), s.coord(nv+1, fieldInv))
	copy(s.coord(nv+1, fieldSX), s.coord(nv, fieldInv))
	s.k.mul(s.at(nv, fieldDY), s.at(nv, fieldDX), s.at(nv, fieldSX), &s.tmp[0], 2, false)
	// 1/p0 = p2/m0, 1/p1 = p3/m1, 1/p2 = p0/m0, 1/p3 = p1/m1
	last := s.at(nv-chains, fieldInv)
	s.k.mul(last, s.at(nv, fieldDY), s.at(nv+2, fieldPre), &s.tmp[0], 2, false)
	s.k.mul((*byte)(unsafe.Add(unsafe.Pointer(last), 2*r)), s.at(nv, fieldDY), s.at(nv, fieldPre), &s.tmp[0], 2, false)
	return true
}

// finish goes back along the chains, a block of records at a time while they
// are in the first-level cache: inv[v−4] = inv[v]·dx[v], 1/dx = inv·pre, the
// slopes, and the sums.
func (s *adder) finish(nv int) {
	for hi := nv; hi > 0; {
		lo := max(hi-blockLen, 0)
		n := hi - lo
		if c := max(lo, chains); hi > c {
			s.k.mul(s.at(c-chains, fieldInv), s.at(c, fieldInv), s.at(c, fieldDX), &s.tmp[0], hi-c, true)
		}
		s.mul(lo, fieldPre, fieldInv, fieldPre, n, false)
		s.mul(lo, fieldDY, fieldPre, fieldDY, n, false)
		s.k.x3(s.at(lo, 0), n)
		s.k.y3(s.at(lo, 0), &s.rows[0], &s.d[8*lo], n)
		hi = lo
	}
}

// patch replaces the pairs whose dx is zero. A chain's running product in a
// lane is zero from the first of them on, so that a batch with few costs little.
func (s *adder) patch(nv int) {
	zero := func(v, l int) bool { return s.ops.isZero(s.coord(v, fieldPre), l) }
	for c := range chains {
		for l := range 8 {
			if !zero(nv+c, l) {
				continue
			}
			first := sort.Search(nv/chains, func(i int) bool { return zero(c+chains*(i+1), l) })
			for v := c + chains*first; v < nv; v += chains {
				s.patchPair(v, l)
			}
		}
	}
}

// patchPair replaces a pair if its dx is zero: equal points by the slope of the
// tangent, opposite points by anything, their sum being infinite.
func (s *adder) patchPair(v, l int) {
	dx, dy := s.coord(v, fieldDX), s.coord(v, fieldDY)
	if !s.ops.isZero(dx, l) {
		return
	}
	if !s.ops.isZero(dy, l) || !s.ops.tangent(dx, dy, s.coord(v, fieldX1), s.coord(v, fieldY1), l) {
		s.ops.setOne(dx, l)
		s.inf = append(s.inf, uint32(8*v+l))
	}
}

// row is row i.
func (s *adder) row(i uint32) []uint64 {
	n := s.k.rowWords()
	return words(s.rows, int(i)*8*n, n)
}

func (s *adder) isInf(i uint32) bool {
	n := s.k.rowWords()
	return words(s.rows, int(i)*8*n, n)[s.k.infWord]>>63 != 0
}

func (s *adder) setInf(i uint32) {
	r := s.row(i)
	clear(r)
	r[s.k.infWord] = 1 << 63
}
