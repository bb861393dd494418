package ifma

import "context"

const (
	chunk    = 16384 // points that a tree takes at once
	pieces   = 64    // points of a long segment that become one partial sum
	partials = 2048  // partial sums of a long segment that are kept
	singles  = 64    // conversions collected
)

// batch is the number of pairs under one inversion: as many as keep the records
// in the second-level cache.
func (k *kernels) batch() int {
	n := 512
	for (2*n/8)*k.recBytes <= 1200<<10 {
		n *= 2
	}
	return n
}

// A segment is a run of names in a worker's list whose sum goes to a row.
type segment struct {
	off, len int32
	dst      uint32
}

// A summer adds up segments of points by pairwise trees: no two additions of
// a round depend on each other, whatever the points are.
type summer struct {
	*adder
	list, next []uint32 // names of this round and of the following one
	segs       []segment
	ns         int // segments collected
	used       int // names collected

	sa, sd []uint32 // pending conversions of single points
	nsing  int

	bump  uint32 // first of chunk rows for the inner nodes of trees
	parts uint32 // first of partials + partials/pieces rows for partial sums

	partial int // partial sums of a long sum so far
	ctx     context.Context
}

// summerRows is the number of rows a summer takes for itself.
const summerRows = chunk + partials + partials/pieces + 1

func summerBytes(k *kernels) int {
	return adderBytes(k, k.batch()) + 2*align(4*chunk) + align(12*chunk) + 2*align(4*(singles+ahead))
}

// newSummer makes a summer over rows; its own are the last summerRows.
func newSummer(ctx context.Context, g *Group, rows int, s *scratch) *summer {
	w := &summer{adder: newAdder(g.k, g.ops, g.k.batch(), s), ctx: ctx}
	w.list, w.next = s.uint32s(chunk), s.uint32s(chunk)
	w.segs = segments(s, chunk)
	w.sa, w.sd = s.uint32s(singles+ahead), s.uint32s(singles+ahead)
	w.rows = s.bytes(rows * 8 * g.k.rowWords())
	w.bump = uint32(rows - summerRows)
	w.parts = w.bump + chunk
	w.dummy = uint32(rows - 1)
	return w
}

// single writes the operand a to row d.
func (s *summer) single(a, d uint32) {
	if !s.fromPoints && a&1 == 0 {
		copy(s.row(d), s.row(a>>1))
		return
	}
	s.sa[s.nsing], s.sd[s.nsing] = a, d
	if s.nsing++; s.nsing == singles {
		s.flushSingles()
	}
}

func (s *summer) flushSingles() {
	if s.nsing == 0 {
		return
	}
	n := (s.nsing + 7) &^ 7
	for i := s.nsing; i < n; i++ {
		s.sa[i], s.sd[i] = s.sa[0], s.dummy
	}
	s.nsing = 0
	s.k.convert(&s.rows[0], &s.pts[0], &s.sa[0], &s.sd[0], &s.tmp[0], n/8)
}

// tree sums the collected segments. Names are of points when points, else of
// rows without a sign.
func (s *summer) tree(points bool) {
	ns, bump, seen := s.ns, s.bump, s.exceptions
	s.ns, s.used = 0, 0
	s.fromPoints = points
	for ns > 0 {
		if s.exceptions != seen {
			s.dropInfinite(ns)
		}
		o, m := 0, 0
		for i := range ns {
			g := s.segs[i]
			p := s.list[g.off : g.off+g.len]
			switch len(p) {
			case 0:
				s.setInf(g.dst)
				continue
			case 1:
				s.single(p[0], g.dst)
				continue
			case 2:
				s.push(p[0], p[1], g.dst)
				continue
			}
			start := o
			for len(p) > 1 { // push, many at a time
				k := min(len(p)/2, s.most-s.n)
				a, b, d, next := s.a[s.n:][:k], s.b[s.n:][:k], s.d[s.n:][:k], s.next[o:][:k]
				for i := range a {
					a[i], b[i] = p[2*i], p[2*i+1]
					d[i], next[i] = bump, bump<<1
					bump++
				}
				o, p = o+k, p[2*k:]
				if s.n += k; s.n == s.most {
					s.flush()
				}
			}
			if len(p) == 1 {
				s.next[o] = p[0]
				if s.fromPoints {
					s.single(p[0], bump)
					s.next[o] = bump << 1
					bump++
				}
				o++
			}
			s.segs[m] = segment{int32(start), int32(o - start), g.dst}
			m++
		}
		s.flush()
		s.flushSingles()
		s.list, s.next, ns = s.next, s.list, m
		s.fromPoints = false
	}
}

// dropInfinite removes infinite rows from the lists of the segments.
func (s *summer) dropInfinite(ns int) {
	o := int32(0)
	for i := range ns {
		g := &s.segs[i]
		start := o
		for _, a := range s.list[g.off : g.off+g.len] {
			if !s.isInf(a >> 1) {
				s.list[o] = a
				o++
			}
		}
		g.off, g.len = start, o-start
	}
}

// collect adds a segment, and runs the tree first when there is no room. It
// returns the context's error.
func (s *summer) collect(names []uint32, dst uint32, points bool) error {
	if s.used+len(names) > chunk || s.ns == chunk {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.tree(points)
	}
	copy(s.list[s.used:], names)
	s.segs[s.ns] = segment{int32(s.used), int32(len(names)), dst}
	s.used += len(names)
	s.ns++
	return nil
}

// long sums any number of points to row dst; nothing may be collected.
func (s *summer) long(names []uint32, dst uint32) error {
	s.partial = 0
	if err := s.feed(names); err != nil {
		return err
	}
	return s.finishLong(dst)
}

// feed adds points to a long sum, which begins with partial = 0 and ends with
// finishLong. The points are cut in pieces that are summed side by side, so that
// batches stay full, and so are the partial sums.
func (s *summer) feed(names []uint32) error {
	for len(names) > 0 {
		m := min(len(names), pieces)
		if err := s.collect(names[:m], s.parts+uint32(s.partial), true); err != nil {
			return err
		}
		names = names[m:]
		if s.partial++; s.partial == partials {
			s.tree(true)
			s.shrink()
		}
	}
	return nil
}

// finishLong writes a long sum to row dst.
func (s *summer) finishLong(dst uint32) error {
	s.tree(true)
	for s.partial > pieces {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.shrink()
	}
	s.gather(0, s.partial)
	s.segs[0], s.ns = segment{0, int32(s.used), dst}, 1
	s.tree(false)
	return nil
}

// gather collects the finite ones among partial sums from, …, to−1.
func (s *summer) gather(from, to int) {
	for i := from; i < to; i++ {
		if r := s.parts + uint32(i); !s.isInf(r) {
			s.list[s.used] = r << 1
			s.used++
		}
	}
}

// shrink sums the partial sums in pieces.
func (s *summer) shrink() {
	m := 0
	for i := 0; i < s.partial; i += pieces {
		start := s.used
		s.gather(i, min(i+pieces, s.partial))
		s.segs[m] = segment{int32(start), int32(s.used - start), s.parts + partials + uint32(m)}
		m++
	}
	s.ns = m
	s.tree(false)
	for i := range m {
		copy(s.row(s.parts+uint32(i)), s.row(s.parts+partials+uint32(i)))
	}
	s.partial = m
}
