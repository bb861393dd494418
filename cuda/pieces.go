package cuda

import (
	"context"
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// terms are what a sum is made of, wherever they are.
type terms struct {
	q    curve.Query
	kept *keptPoints // the points, if they are on the card
	pick []uint32    // points on the host that are meant; nil: all

	// The scalars: a vector on the card with its classes, or on the host.
	dev     *vector
	classes *block
	host    []curve.Scalar
}

// n is how many there are.
func (x *terms) n() int {
	if x.pick != nil {
		return len(x.pick)
	}
	return x.q.Len()
}

// streamed reports whether anything comes from the host in pieces.
func (x *terms) streamed() bool { return x.kept == nil || x.dev == nil }

// check is what is wrong with the terms.
func (x *terms) check(keys *keyCache, g curve.Group, wires int) error {
	id := keys.e.id
	p := x.q.Points
	if x.q.Len() > 0 && (p.Curve != id || p.Group != g) {
		return argument("points are of %v on %v, want %v on %v", p.Group, p.Curve, g, id)
	}
	if len(p.Data)%id.PointBytes(g) != 0 {
		return argument("%d bytes are no whole number of points", len(p.Data))
	}
	if x.q.Len() > 1<<28 {
		return argument("%d points are more than 2^28", x.q.Len())
	}
	if x.q.Wires != nil && len(x.q.Wires) != x.q.Len() {
		return argument("%d wires for %d points", len(x.q.Wires), x.q.Len())
	}
	if x.pick != nil {
		for i, j := range x.pick {
			if int(j) >= x.q.Len() {
				return argument("term %d: point %d of %d", i, j, x.q.Len())
			}
			if w := x.q.Wire(int(j)); int(w) >= wires {
				return argument("term %d: wire %d of a witness of %d", i, w, wires)
			}
		}
		return nil
	}
	if len(x.q.Wires) == 0 {
		if l := x.q.Len(); l > 0 && int64(x.q.First)+int64(l) > int64(wires) {
			return argument("wires %d to %d of a witness of %d", x.q.First, int64(x.q.First)+int64(l)-1, wires)
		}
		return nil
	}
	last, known := keys.lastWire(x.q, x.kept)
	if !known {
		last = largest(x.q.Wires)
	}
	if int64(last) >= int64(wires) {
		return argument("wire %d of a witness of %d", last, wires)
	}
	return nil
}

// largest is the largest of list.
func largest(list []uint32) (most uint32) {
	var mu sync.Mutex
	share(len(list), func(lo, hi int) {
		var m uint32
		for _, w := range list[lo:hi] {
			m = max(m, w)
		}
		mu.Lock()
		most = max(most, m)
		mu.Unlock()
	})
	return most
}

// layout is what a stream of pieces takes of device memory.
type layout struct {
	n       int // terms
	piece   int // terms of a piece
	points  bool
	wires   bool
	scalars bool
	split   bool // lists of one class are made
	bytes   int64
}

// minPiece is the fewest terms that a piece is cut down to.
const minPiece = 256

// layoutOf is the layout for pieces that take at most about room bytes.
func (e *Engine) layoutOf(x *terms, g curve.Group, split bool, room int64) layout {
	l := layout{n: x.n(), points: x.kept == nil, scalars: x.dev == nil, split: split}
	l.wires = x.dev != nil && x.q.Wires != nil && x.kept == nil
	return l.cut(e, g, x.streamed(), room)
}

// cut chooses the length of a piece and counts its bytes.
func (l layout) cut(e *Engine, g curve.Group, streamed bool, room int64) layout {
	l.piece = max(l.n, 1)
	if streamed {
		size := int64(curve.ScalarBytes)
		if l.points {
			size = int64(e.id.PointBytes(g))
		}
		each := 2 * int64(e.id.PointBytes(g)+curve.ScalarBytes+4)
		l.piece = max(min(l.piece, int(e.pieceBytes()/size)), 1)
		l.piece = min(l.piece, max(minPiece, int(room/4/each)))
	}
	n := int64(l.piece)
	var half int64
	if l.points {
		half += aligned(n * int64(e.id.PointBytes(g)))
	}
	if l.wires {
		half += aligned(4 * n)
	}
	if l.scalars {
		half += aligned(curve.ScalarBytes * n)
	}
	l.bytes = 2 * half
	if l.split {
		l.bytes += aligned(4*n) + aligned(4)
		if l.scalars {
			l.bytes += aligned(n) + aligned(12)
		}
	}
	return l
}

// pieceBytes is the size of a piece: a large one has fewer passes over the
// buckets, and a small card has other uses for the memory.
func (e *Engine) pieceBytes() int64 {
	return max(e.o.chunk, min(e.o.pieces*e.o.chunk, e.card.share/16))
}

// most is the most that any layout for n terms takes.
func (e *Engine) mostLayout(g curve.Group, n int) int64 {
	all := layout{n: n, points: true, wires: true, scalars: true, split: true}.cut(e, g, true, 1<<62)
	return max(all.bytes, 2*aligned(4*int64(n))+aligned(4)) // a list, and wires, of points that are on the card
}

// pieceOn is a piece on the card.
type pieceOn struct {
	n       int
	points  gpu.Ptr
	scalars gpu.Ptr
	list    kernels.WireList
	classes gpu.Ptr
}

// stream is a run over terms in pieces.
type stream struct {
	t *task
	x *terms
	l layout
	g curve.Group

	points, wires, scalars [2]gpu.Ptr
	all                    pieceOn // what is on the card whole
	list, count            gpu.Ptr
	classes, counts        gpu.Ptr
}

// newStream takes the scratch for a run over x, whose first piece it is then
// for each to bring.
func (t *task) newStream(x *terms, g curve.Group, l layout) (*stream, error) {
	s := &stream{t: t, x: x, l: l, g: g}
	if x.kept != nil {
		mem, err := x.kept.there(&t.e.keys)
		if err != nil {
			return nil, err
		}
		s.all.points = mem.ptr()
		if x.dev != nil {
			if s.all.list.Wires, err = t.wires(x.q, x.kept); err != nil {
				return nil, err
			}
		}
	}
	if x.dev != nil {
		p, err := x.dev.ready(t.ctx, t.st)
		if err != nil {
			return nil, err
		}
		s.all.scalars = p
		if x.classes != nil {
			if err := x.classes.live(); err != nil {
				return nil, err
			}
			s.all.classes = x.classes.ptr()
		}
	}
	mem, err := t.take(l.bytes, alloc.Scratch)
	if err != nil {
		return nil, err
	}
	cut := carved{mem, mem + gpu.Ptr(l.bytes)}
	n := int64(l.piece)
	for i := range 2 {
		if l.points {
			s.points[i] = cut.carve(n * int64(t.e.id.PointBytes(g)))
		}
		if l.wires {
			s.wires[i] = cut.carve(4 * n)
		}
		if l.scalars {
			s.scalars[i] = cut.carve(curve.ScalarBytes * n)
		}
	}
	if l.split {
		s.list, s.count = cut.carve(4*n), cut.carve(4)
		if l.scalars {
			s.classes, s.counts = cut.carve(n), cut.carve(12)
		}
	}
	return s, nil
}

// each calls work for one piece after the other, with the piece on its way: what
// work queues on the task's stream comes after it. While the work of one piece
// runs, the next one is copied.
func (s *stream) each(wires *kernels.Wires, work func(i int, p pieceOn) error) error {
	t := s.t
	var p pieceOn
	bring := func(half, from, n int) error {
		p = pieceOn{n: n}
		return s.bring(half, from, &p)
	}
	return t.inPieces(s.l.n, s.l.piece, s.x.streamed(), bring, func(i, _, _ int) error {
		if s.classes != 0 {
			if err := wires.Classify(t.st, t.args, p.scalars, p.n, s.classes, s.counts); err != nil {
				return err
			}
			p.classes = s.classes
		}
		return work(i, p)
	})
}

// inPieces goes through n things, piece at a time: bring queues copies on the
// belt to memory that it has for this half (0 or 1, in turns), and work, which is
// told the number of the piece, queues on the task's stream what reads it. The
// card orders them; the host waits for neither.
func (t *task) inPieces(n, piece int, streamed bool, bring func(half, from, n int) error, work func(i, from, n int) error) error {
	b := t.l.belt
	for i, from := 0, 0; from < n; i, from = i+1, from+piece {
		if err := t.check(); err != nil {
			return err
		}
		half, k := i%2, min(piece, n-from)
		if streamed && t.l.read[half] {
			if err := b.stream.Wait(t.l.used[half]); err != nil {
				return err
			}
		}
		if err := bring(half, from, k); err != nil {
			return err
		}
		if streamed {
			if err := b.stream.Record(t.l.landed[half]); err != nil {
				return err
			}
			if err := t.st.Wait(t.l.landed[half]); err != nil {
				return err
			}
		}
		if err := work(i, from, k); err != nil {
			return err
		}
		if !streamed {
			continue
		}
		if err := t.st.Record(t.l.used[half]); err != nil {
			return err
		}
		t.l.read[half] = true
		if t.e.o.unguarded.sync {
			if err := drain(t.st); err != nil {
				return err
			}
		}
	}
	return nil
}

// bring queues the copies of the piece of terms [from, from+p.n).
func (s *stream) bring(half, from int, p *pieceOn) error {
	t, x := s.t, s.x
	b := t.l.belt
	p.list = kernels.WireList{First: x.q.First, N: p.n}
	p.scalars, p.classes = s.all.scalars, s.all.classes
	switch {
	case x.dev == nil:
		p.scalars, p.list.First = s.scalars[half], 0
		if err := s.gather(p.scalars, curve.ScalarBytes, from, p.n, s.scalarsOf); err != nil {
			return err
		}
	case x.kept != nil:
		p.list.Wires = s.all.list.Wires
	case x.q.Wires != nil:
		p.list.Wires, p.list.First = s.wires[half], 0
		if err := b.carry(t.ctx, p.list.Wires, curve.Bytes(x.q.Wires[from:from+p.n])); err != nil {
			return err
		}
	default:
		p.list.First += uint32(from)
	}
	if x.kept != nil {
		p.points = t.e.pointAt(s.all.points, s.g, from)
		return nil
	}
	p.points = s.points[half]
	size := t.e.id.PointBytes(s.g)
	if x.pick != nil {
		return s.gather(p.points, size, from, p.n, s.pointsOf)
	}
	return b.carry(t.ctx, p.points, x.q.Points.Data[from*size:(from+p.n)*size])
}

// gather carries n elements of size bytes that f writes, for terms from … on.
func (s *stream) gather(dst gpu.Ptr, size, from, n int, f func(p []byte, from int)) error {
	t := s.t
	most := int(t.l.belt.size) / size
	for at := 0; at < n; at += most {
		if err := t.check(); err != nil {
			return err
		}
		k := min(most, n-at)
		err := t.l.belt.fill(dst+gpu.Ptr(at*size), int64(k*size), func(p []byte) error {
			share(k, func(lo, hi int) { f(p[lo*size:hi*size], from+at+lo) })
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// share splits [0, n) over a few goroutines where that is worth it.
func share(n int, f func(lo, hi int)) {
	const least = 1 << 16
	if n < 2*least {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	step := max((n+spreadOver-1)/spreadOver, least)
	for lo := 0; lo < n; lo += step {
		wg.Go(func() { f(lo, min(lo+step, n)) })
	}
	wg.Wait()
}

// term is the point of term i.
func (x *terms) term(i int) int {
	if x.pick != nil {
		return int(x.pick[i])
	}
	return i
}

// scalarsOf writes the scalars of the terms from … on to p.
func (s *stream) scalarsOf(p []byte, from int) {
	x := s.x
	if x.pick == nil && x.q.Wires == nil {
		copy(p, curve.Bytes(x.host[int(x.q.First)+from:]))
		return
	}
	dst, err := curve.View[curve.Scalar](p)
	if err != nil {
		return // page-locked memory is aligned, and cut in whole scalars
	}
	for i := range dst {
		dst[i] = x.host[x.q.Wire(x.term(from+i))]
	}
}

// pointsOf writes the points of the terms from … on to p.
func (s *stream) pointsOf(p []byte, from int) {
	size := s.t.e.id.PointBytes(s.g)
	for i := range len(p) / size {
		j := s.x.term(from+i) * size
		copy(p[i*size:(i+1)*size], s.x.q.Points.Data[j:j+size])
	}
}

// countClasses counts the scalars of w by class.
func (e *Engine) countClasses(ctx context.Context, w []curve.Scalar) (curve.Counts, error) {
	var mu sync.Mutex
	var all curve.Counts
	const block = 1 << 20
	for at := 0; at < len(w); at += block {
		if err := ctx.Err(); err != nil {
			return all, context.Cause(ctx)
		}
		part := w[at:min(at+block, len(w))]
		share(len(part), func(lo, hi int) {
			var n curve.Counts
			for i := range part[lo:hi] {
				switch s := &part[lo+i]; {
				case s.IsZero():
					n[curve.Zero]++
				case *s == e.one:
					n[curve.One]++
				default:
					n[curve.Other]++
				}
			}
			mu.Lock()
			for c := range n {
				all[c] += n[c]
			}
			mu.Unlock()
		})
	}
	return all, nil
}
