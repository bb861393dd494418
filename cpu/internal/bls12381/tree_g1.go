package bls12381

import "github.com/snarkline/snarkline/cpu/internal/window"

// treeG1 adds up rows of affine points by pairs, level by level, with one
// inversion for a whole batch of additions (Montgomery's trick). No two
// additions of a batch touch the same sum, so nothing ever waits for a bucket,
// and a million equal scalars go as fast as random ones. Equal and opposite
// points and infinity are exact.
//
// It is the seam for vector kernels: whatever can do gather, sum and add on
// these layouts can take its place.
type treeG1 struct {
	area  uint32 // the worker's own points lie at pts[area:]
	pairs []window.Pair
	runs  []window.Run
	den   []coordG1
	pre   []coordG1
	kind  []uint8
}

// gather copies the points that the entries name, with their signs.
func (t *treeG1) gather(dst, src []pointG1, entries []uint32) {
	dst = dst[:len(entries)]
	var neg coordG1
	for i, e := range entries {
		p, d := &src[e>>1], &dst[i]
		d.X = p.X
		neg.Neg(&p.Y)
		d.Y.Select(int(e&1), &p.Y, &neg)
	}
}

// sum adds up rows of points that lie one after the other from t.area on. The
// rows' memory and the list of rows are used up.
func (t *treeG1) sum(pts []pointG1, runs []window.Run) {
	for len(runs) > 0 {
		in, out := t.area, t.area
		pairs, keep := t.pairs[:0], runs[:0]
		for _, r := range runs {
			if r.N <= 2 {
				b := in + 1
				if r.N == 1 {
					b = window.None
				}
				pairs = t.push(pts, pairs, window.Pair{A: in, B: b, Out: r.Out})
				in += r.N
				continue
			}
			for j := uint32(0); j+1 < r.N; j += 2 {
				pairs = t.push(pts, pairs, window.Pair{A: in, B: in + 1, Out: out})
				in += 2
				out++
			}
			if r.N%2 == 1 {
				pairs = t.push(pts, pairs, window.Pair{A: in, B: window.None, Out: out})
				in++
				out++
			}
			keep = append(keep, window.Run{Out: r.Out, N: (r.N + 1) / 2})
		}
		t.add(pts, pairs)
		runs = keep
	}
}

func (t *treeG1) push(pts []pointG1, pairs []window.Pair, p window.Pair) []window.Pair {
	if len(pairs) == cap(pairs) {
		t.add(pts, pairs)
		pairs = pairs[:0]
	}
	return append(pairs, p)
}

// add does a batch of additions. All differences are taken before any sum is
// written, and sums are written in the order of the pairs: a pair may write
// where an earlier pair, or itself, reads.
func (t *treeG1) add(pts []pointG1, pairs []window.Pair) {
	if len(pairs) == 0 {
		return
	}
	den, pre, kind := t.den[:len(pairs)], t.pre[:len(pairs)], t.kind[:len(pairs)]
	var acc coordG1
	acc.SetOne()
	for i := len(pairs) - 1; i >= 0; i-- {
		p := &pairs[i]
		if p.B == window.None {
			kind[i] = pairTakeA
			continue
		}
		a, b, d := &pts[p.A], &pts[p.B], &den[i]
		subG1(d, &b.X, &a.X)
		k := uint8(pairAdd)
		if d.IsZero() || a.Y.IsZero() || b.Y.IsZero() {
			k = pairKindG1(d, a, b)
		}
		kind[i] = k
		if k > pairDouble {
			continue
		}
		pre[i] = acc
		acc.Mul(&acc, d)
	}
	acc.Inverse(&acc)
	var l, x, y coordG1
	for i := range pairs {
		p := &pairs[i]
		a, out := &pts[p.A], &pts[p.Out]
		switch kind[i] {
		case pairTakeA:
			*out = *a
			continue
		case pairTakeB:
			*out = pts[p.B]
			continue
		case pairInfinity:
			*out = pointG1{}
			continue
		}
		b := &pts[p.B]
		l.Mul(&acc, &pre[i])
		acc.Mul(&acc, &den[i])
		if kind[i] == pairAdd {
			subG1(&y, &b.Y, &a.Y)
		} else {
			x.Square(&a.X)
			y.Double(&x)
			y.Add(&y, &x)
		}
		l.Mul(&l, &y)
		x.Square(&l)
		subG1(&x, &x, &a.X)
		subG1(&x, &x, &b.X)
		subG1(&y, &a.X, &x)
		y.Mul(&y, &l)
		subG1(&out.Y, &y, &a.Y)
		out.X = x
	}
}

// pairKindG1 decides about a pair that may be special, and sets d to what must
// be inverted.
func pairKindG1(d *coordG1, a, b *pointG1) uint8 {
	switch {
	case b.IsInfinity():
		return pairTakeA
	case a.IsInfinity():
		return pairTakeB
	case !d.IsZero():
		return pairAdd
	case a.Y.Equal(&b.Y) && !a.Y.IsZero():
		d.Double(&a.Y)
		return pairDouble
	}
	return pairInfinity
}
