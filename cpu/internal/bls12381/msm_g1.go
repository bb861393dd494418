package bls12381

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/cpu/internal/window"
	"github.com/snarkline/snarkline/curve"
)

// termsG1 are the terms of one sum: the points and the scalars that go with them.
type termsG1 struct {
	q      curve.Query
	points []pointG1
	w      []curve.Scalar
	pick   []uint32
	n      int
}

func newTermsG1(q curve.Query, w []curve.Scalar, pick []uint32) (*termsG1, error) {
	if q.Len() > 0 && (q.Points.Curve != id || q.Points.Group != curve.InG1) {
		return nil, fmt.Errorf("points are of %v on %v, want %v on %v", q.Points.Group, q.Points.Curve, curve.InG1, id)
	}
	points, err := curve.View[pointG1](q.Points.Data)
	if err != nil {
		return nil, err
	}
	if q.Wires != nil && len(q.Wires) != len(points) {
		return nil, fmt.Errorf("%d wires for %d points", len(q.Wires), len(points))
	}
	if int64(len(points)) >= 1<<31 {
		return nil, fmt.Errorf("%d points are more than 2^31 − 1", len(points))
	}
	t := &termsG1{q: q, points: points, w: w, pick: pick, n: len(points)}
	if pick != nil {
		t.n = len(pick)
	}
	return t, nil
}

// scalars writes the terms [from, to) to dst: the scalars folded, those of
// points at infinity as zero. It counts them by length in h.
func (t *termsG1) scalars(dst []window.Scalar, from, to int, r *[4]uint64, h *window.Histogram) error {
	for i := from; i < to; i++ {
		j := uint32(i)
		if t.pick != nil {
			j = t.pick[i]
		}
		if int(j) >= len(t.points) {
			return fmt.Errorf("term %d: point %d of %d", i, j, len(t.points))
		}
		wire := t.q.Wire(int(j))
		if int(wire) >= len(t.w) {
			return fmt.Errorf("term %d: wire %d of a witness of %d", i, wire, len(t.w))
		}
		s := &dst[i-from]
		if t.w[wire].IsZero() || t.points[j].IsInfinity() {
			*s = window.Scalar{}
			h[0]++
			continue
		}
		*s = (*fr.Element)(&t.w[wire]).Bits()
		h[window.Fold(s, r)]++
	}
	return nil
}

// sumG1 is one multi-scalar multiplication under way.
type sumG1 struct {
	window.Layout
	ctx    context.Context
	points []pointG1
	sort   window.Sort
	edges  []uint32 // the bucket of each edge
	own    []pointG1
	trees  []treeG1
}

// The places in sumG1.own.
func (s *sumG1) edgeAt() int { return s.Buckets }
func (s *sumG1) runAt() int  { return s.Buckets + s.Edges }
func (s *sumG1) treeAt() int { return s.Buckets + s.Edges + 2*s.Segs }

// tinyG1 is the number of terms up to which buckets do not pay.
const tinyG1 = 24

// layoutG1 is the layout of the largest sum of n terms.
func (e *Engine) layoutG1(p window.Plan, n int) window.Layout {
	return window.NewLayout(p, n, e.Workers, bytesG1)
}

// msmBytesG1 bounds what MSMG1 of n terms draws.
func (e *Engine) msmBytesG1(n int) int64 {
	if n <= tinyG1 {
		return 0
	}
	most := window.Bound(n, foldedBits, e.Workers, bytesG1)
	if e.vectorsG1(n) {
		most = max(most, 34*int64(n)+int64(e.VecG1.MSMScratch(n, e.Workers)))
	}
	return most
}

// vectorsG1 says whether vector kernels may take sums of n terms.
func (e *Engine) vectorsG1(n int) bool { return e.VecG1 != nil && n >= vecMin }

// vectorPlanG1 is the plan by which the vector kernels would sum n terms with
// the histogram h, in the memory of a sum of total, and whether they are
// faster that way than the code in this package.
func (e *Engine) vectorPlanG1(n, total int, h *window.Histogram) (ifma.Plan, bool) {
	if !e.vectorsG1(n) {
		return ifma.Plan{}, false
	}
	weight := h.Weight(foldedBits)
	p := e.VecG1.Plan(n, h.Bits(), weight, e.Workers, e.VecG1.MSMScratch(total, e.Workers))
	return p, p.Cost(e.VecG1, weight) < vecGain*window.Cost(n, h)
}

// vectorG1 has the vector kernels compute Σ scalars[i]·points[index[i]] of
// folded scalars.
func (e *Engine) vectorG1(ctx context.Context, sc *alloc.Scope, t *termsG1, index []uint32, scalars []window.Scalar, plan ifma.Plan) (p pointG1, err error) {
	buf, err := alloc.Make[byte](sc, plan.Bytes(e.VecG1), alloc.Bucket, alloc.Secret|alloc.Dirty)
	if err != nil {
		return p, err
	}
	defer buf.Release()
	s := unsafe.Slice((*curve.Scalar)(unsafe.SliceData(scalars)), len(scalars))
	out := unsafe.Slice((*uint64)(unsafe.Pointer(&p)), bytesG1/8)
	err = e.VecG1.Folded(ctx, plan, t.q.Points.Data, index, s, buf.Slice(), out)
	return p, err
}

// MSMG1 is Σ w[q.Wire(j)]·q.Points[j] over the j in pick, or all j.
func (e *Engine) MSMG1(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G1, error) {
	p, err := e.msmG1(ctx, sc, q, w, pick)
	if err != nil {
		return curve.G1{}, fmt.Errorf("%v multi-scalar multiplication: %w", curve.InG1, err)
	}
	return valueG1(&p), nil
}

func (e *Engine) msmG1(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (pointG1, error) {
	if err := ctx.Err(); err != nil {
		return pointG1{}, err
	}
	t, err := newTermsG1(q, w, pick)
	if err != nil {
		return pointG1{}, err
	}
	if t.n <= tinyG1 {
		return t.tiny()
	}
	end, err := e.turn(ctx, t.n)
	if err != nil {
		return pointG1{}, err
	}
	defer end()

	buf, err := alloc.Make[window.Scalar](sc, t.n, alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return pointG1{}, err
	}
	defer buf.Release()
	scalars := buf.Slice()
	r := modulus()
	workers := max(1, min(e.Workers, t.n/1024))
	hist := make([]window.Histogram, workers)
	err = par.Blocks(ctx, workers, t.n, blockLen, func(worker, from, to int) error {
		return t.scalars(scalars[from:to], from, to, &r, &hist[worker])
	})
	if err != nil {
		return pointG1{}, err
	}
	for i := range hist[1:] {
		hist[0].Add(&hist[i+1])
	}
	terms := hist[0].Terms()
	if terms == 0 {
		return pointG1{}, nil
	}
	index := pick
	// The caller has reserved for the whole query, however few are picked.
	total := max(t.n, len(t.points))
	if terms <= t.n/2 {
		few, err := alloc.Make[uint32](sc, terms, alloc.Scratch, alloc.Secret|alloc.Dirty)
		if err != nil {
			return pointG1{}, err
		}
		defer few.Release()
		index = few.Slice()
		window.Compact(scalars, index, pick)
		scalars = scalars[:terms]
	}
	n := len(scalars)
	if p, faster := e.vectorPlanG1(n, total, &hist[0]); faster {
		return e.vectorG1(ctx, sc, t, index, scalars, p)
	}
	plan := window.For(total, n, foldedBits, &hist[0])
	offset := plan.Offset()
	err = par.Blocks(ctx, workers, n, blockLen, func(_, from, to int) error {
		for i := from; i < to; i++ {
			window.AddOffset(&scalars[i], &offset)
		}
		return nil
	})
	if err != nil {
		return pointG1{}, err
	}

	s := &sumG1{Layout: e.layoutG1(plan, n), ctx: ctx, points: t.points}
	release, err := s.make(sc)
	if err != nil {
		return pointG1{}, err
	}
	defer release()
	s.sort.Scalars, s.sort.Index = scalars, index
	return s.run()
}

// make draws the memory of the sum.
func (s *sumG1) make(sc *alloc.Scope) (release func(), err error) {
	var held []alloc.Ref
	release = func() {
		for _, r := range held {
			r.Release()
		}
	}
	// Digits and their order are the witness: what holds them is wiped.
	words, err := alloc.Make[uint32](sc, s.Words(), alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return nil, err
	}
	held = append(held, words)
	own, err := alloc.Make[pointG1](sc, s.Points(), alloc.Bucket, alloc.Dirty)
	if err != nil {
		release()
		return nil, err
	}
	held = append(held, own)
	trees, free, err := makeTreesG1(sc, s.Workers, s.Chunk, s.Batch)
	if err != nil {
		release()
		return nil, err
	}
	held = append(held, free...)
	u := words.Slice()
	cut := func(n int) []uint32 {
		v := u[:n:n]
		u = u[n:]
		return v
	}
	s.own, s.trees = own.Slice(), trees
	for i := range s.trees {
		s.trees[i].area = uint32(s.treeAt() + i*s.Chunk)
	}
	s.sort = window.Sort{
		Plan: s.Plan, Parts: s.Workers,
		Entries: cut(s.Entries), Counts: cut(s.Workers * s.Buckets), Start: cut(s.Buckets + 1),
	}
	s.edges = cut(s.Edges)
	return release, nil
}

// makeTreesG1 draws what trees for so many workers need beside their points.
func makeTreesG1(sc *alloc.Scope, workers, chunk, batch int) ([]treeG1, []alloc.Ref, error) {
	var held []alloc.Ref
	fail := func(err error) ([]treeG1, []alloc.Ref, error) {
		for _, r := range held {
			r.Release()
		}
		return nil, nil, err
	}
	pairs, err := alloc.Make[window.Pair](sc, workers*batch, alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return fail(err)
	}
	held = append(held, pairs)
	runs, err := alloc.Make[window.Run](sc, workers*chunk, alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return fail(err)
	}
	held = append(held, runs)
	coords, err := alloc.Make[coordG1](sc, 2*workers*batch, alloc.Scratch, alloc.Dirty)
	if err != nil {
		return fail(err)
	}
	held = append(held, coords)
	kinds, err := alloc.Make[uint8](sc, workers*batch, alloc.Scratch, alloc.Dirty)
	if err != nil {
		return fail(err)
	}
	held = append(held, kinds)
	trees := make([]treeG1, workers)
	for i := range trees {
		b, c := i*batch, i*chunk
		trees[i] = treeG1{
			pairs: pairs.Slice()[b : b : b+batch],
			runs:  runs.Slice()[c : c : c+chunk],
			den:   coords.Slice()[2*b : 2*b+batch],
			pre:   coords.Slice()[2*b+batch : 2*b+2*batch],
			kind:  kinds.Slice()[b : b+batch],
		}
	}
	return trees, held, nil
}

// run goes through the windows from the top one down.
func (s *sumG1) run() (pointG1, error) {
	var acc xyzzG1
	p := s.Plan
	for round := (p.Windows+p.Group-1)/p.Group - 1; round >= 0; round-- {
		low := round * p.Group
		sums, err := s.round(low, min(p.Group, p.Windows-low))
		if err != nil {
			return pointG1{}, err
		}
		for g := len(sums) - 1; g >= 0; g-- {
			for range p.C {
				acc.double()
			}
			acc.add(&sums[g])
		}
	}
	return acc.affine(), nil
}

// round sums up the windows [low, low+group).
func (s *sumG1) round(low, group int) ([]xyzzG1, error) {
	used := group * s.Plan.Buckets()
	err := par.Run(s.Workers, func(i int) error {
		s.sort.Count(i, low, group)
		return s.ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	terms := s.sort.Prefix(group)
	if terms == 0 {
		return make([]xyzzG1, group), nil
	}
	err = par.Run(s.Workers, func(i int) error {
		s.sort.Place(i, low, group)
		clear(s.own[i*used/s.Workers : (i+1)*used/s.Workers])
		return s.ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	err = par.Blocks(s.ctx, s.Workers, terms, s.Chunk, func(worker, from, to int) error {
		s.chunk(&s.trees[worker], uint32(from), uint32(to), used)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.merge(&s.trees[0], (terms+s.Chunk-1)/s.Chunk)
	segs := used / s.SegLen
	task := min(s.Batch/2, max(32, segs/s.Workers))
	err = par.Blocks(s.ctx, s.Workers, segs, task, func(worker, from, to int) error {
		s.segments(&s.trees[worker], from, to)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.windows(group)
}

// chunk adds up the sorted terms [from, to) within their buckets. A bucket
// that lies in more than one chunk goes to the chunk's edges: the first one to
// the even, the last one to the odd.
func (s *sumG1) chunk(t *treeG1, from, to uint32, used int) {
	start := s.sort.Start
	at := int(from) / s.Chunk * 2
	s.edges[at], s.edges[at+1] = window.None, window.None
	runs := t.runs[:0]
	k := s.sort.Bucket(from, used)
	for pos := from; pos < to; k++ {
		end := min(start[k+1], to)
		if end == pos {
			continue
		}
		out := uint32(k)
		switch {
		case start[k] < from:
			s.edges[at] = out
			out = uint32(s.edgeAt() + at)
		case start[k+1] > to:
			s.edges[at+1] = out
			out = uint32(s.edgeAt() + at + 1)
		}
		runs = append(runs, window.Run{Out: out, N: end - pos})
		pos = end
	}
	t.gather(s.own[t.area:], s.points, s.sort.Entries[from:to])
	t.sum(s.own, runs)
}

// merge adds up the edges of so many chunks into their buckets.
func (s *sumG1) merge(t *treeG1, chunks int) {
	runs := t.runs[:0]
	area := s.own[t.area:]
	n := 0
	for i, k := range s.edges[:2*chunks] {
		if k == window.None {
			continue
		}
		area[n] = s.own[s.edgeAt()+i]
		n++
		if m := len(runs); m > 0 && runs[m-1].Out == k {
			runs[m-1].N++
		} else {
			runs = append(runs, window.Run{Out: k, N: 1})
		}
	}
	t.sum(s.own, runs)
}

// segments computes, for the segments [from, to) of buckets B_1 … B_L, the
// sums ΣB_j and Σj·B_j, all segments in step so that they share inversions.
func (s *sumG1) segments(t *treeG1, from, to int) {
	runs, totals := s.runAt(), s.runAt()+s.Segs
	clear(s.own[runs+from : runs+to])
	clear(s.own[totals+from : totals+to])
	for step := 0; step <= s.SegLen; step++ {
		pairs := t.pairs[:0]
		for i := from; i < to; i++ {
			run, total := uint32(runs+i), uint32(totals+i)
			// the total takes the sum before this step's bucket is in it
			if step > 0 {
				pairs = append(pairs, window.Pair{A: total, B: run, Out: total})
			}
			if step < s.SegLen {
				bucket := uint32((i+1)*s.SegLen - 1 - step)
				pairs = append(pairs, window.Pair{A: run, B: bucket, Out: run})
			}
		}
		t.add(s.own, pairs)
	}
}

// windows puts the segments of each window together, in parts if there are
// fewer windows than workers.
func (s *sumG1) windows(group int) ([]xyzzG1, error) {
	per := s.Plan.Buckets() / s.SegLen
	parts := 1
	if group < s.Workers {
		parts = max(1, min(s.Workers/group, per/16))
	}
	sums := make([]xyzzG1, group*parts)
	err := par.Blocks(s.ctx, s.Workers, len(sums), 1, func(_, i, _ int) error {
		g, part := i/parts, i%parts
		first := part * per / parts
		sums[i] = s.part(g*per, first, (part+1)*per/parts)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for g := range group {
		sum := sums[g*parts]
		for i := 1; i < parts; i++ {
			sum.add(&sums[g*parts+i])
		}
		sums[g] = sum
	}
	return sums[:group], nil
}

// part is the sum of the buckets, each times its magnitude, in the segments
// [from, to) of the window whose first segment is base.
func (s *sumG1) part(base, from, to int) xyzzG1 {
	runs, totals := s.own[s.runAt()+base:], s.own[s.runAt()+s.Segs+base:]
	var total, run, sum xyzzG1
	for i := to - 1; i >= from; i-- {
		total.addAffine(&totals[i])
		run.addAffine(&runs[i])
		if i > from {
			sum.add(&run)
		}
	}
	// Σ i·run_i = Σ (i − from)·run_i + from·Σ run_i
	run.times(from)
	sum.add(&run)
	sum.times(s.SegLen)
	total.add(&sum)
	return total
}

// tiny is the sum of a few terms, bit by bit, with no memory.
func (t *termsG1) tiny() (pointG1, error) {
	var scalars [tinyG1]window.Scalar
	var h window.Histogram
	r := modulus()
	if err := t.scalars(scalars[:t.n], 0, t.n, &r, &h); err != nil {
		return pointG1{}, err
	}
	var acc xyzzG1
	for bit := h.Bits() - 1; bit >= 0; bit-- {
		acc.double()
		for i := range t.n {
			if scalars[i][bit/64]>>(bit%64)&1 == 0 {
				continue
			}
			p := t.points[t.point(i)]
			if scalars[i][3]>>63 == 1 {
				p.Y.Neg(&p.Y)
			}
			acc.addAffine(&p)
		}
	}
	return acc.affine(), nil
}

// point is the point of term i.
func (t *termsG1) point(i int) int {
	if t.pick != nil {
		return int(t.pick[i])
	}
	return i
}
