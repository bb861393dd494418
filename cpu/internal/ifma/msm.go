package ifma

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/cpu/internal/window"
	"github.com/snarkline/snarkline/curve"
)

// errScalar is the error for a scalar that is not reduced.
var errScalar = errors.New("a scalar is not below the group's order")

// MSMScratch is the size in bytes of the scratch that [Group.MSM] takes for n
// points and so many workers, whatever the scalars.
func (g *Group) MSMScratch(n, workers int) int {
	if n == 0 {
		return 0
	}
	p := g.plan(n, workers)
	return p.Bytes(g)
}

// MSM sets out, an affine point in gnark-crypto's layout, to the sum of
// scalars[j]·points[pick[j]] over all j, or scalars[j]·points[j] when pick is
// nil. Points are in gnark-crypto's layout, on the curve; infinite, repeated
// and opposite ones are allowed. Scalars are plain (not in Montgomery form) and
// below the group's order; they are overwritten. There are at most 2^31 points.
//
// The method is Pippenger's with signed digits, a window at a time; each
// bucket is summed by a pairwise tree in affine coordinates.
func (g *Group) MSM(ctx context.Context, points []byte, pick []uint32, scalars []curve.Scalar, workers int, buf []byte, out []uint64) error {
	for i := range scalars {
		window.Fold((*window.Scalar)(&scalars[i]), &g.order)
	}
	return g.Folded(ctx, g.plan(len(scalars), workers), points, pick, scalars, buf, out)
}

// Folded is MSM for scalars s given as the smaller of s and r − s, with the top
// bit set where that is r − s, by a plan for so many of so many bits.
func (g *Group) Folded(ctx context.Context, p Plan, points []byte, pick []uint32, scalars []curve.Scalar, buf []byte, out []uint64) error {
	n := len(scalars)
	size := g.k.pointBytes()
	if len(out) < size/8 {
		return fmt.Errorf("multi-scalar multiplication: the result has %d words, a point %d", len(out), size/8)
	}
	if n == 0 {
		clear(out[:size/8])
		return nil
	}
	if n != p.n {
		return fmt.Errorf("multi-scalar multiplication: %d scalars by a plan for %d", n, p.n)
	}
	if err := checkPoints(points, size, pick, n); err != nil {
		return fmt.Errorf("multi-scalar multiplication: %w", err)
	}
	if need := p.Bytes(g); len(buf) < need {
		return fmt.Errorf("multi-scalar multiplication: scratch of %d bytes, needs %d", len(buf), need)
	}
	m := &msm{Group: g, Plan: p, points: points, pick: pick, scalars: scalars}
	m.sums = make([]uint64, m.tasks()*size/8)
	if err := m.run(ctx, newScratch(buf)); err != nil {
		return fmt.Errorf("multi-scalar multiplication: %w", err)
	}
	m.combine(out)
	return nil
}

// checkPoints makes sure that all names are inside points.
func checkPoints(points []byte, size int, pick []uint32, n int) error {
	have := len(points) / size
	if have > 1<<31 {
		return fmt.Errorf("%d points, at most 2^31 are possible", have)
	}
	if pick == nil {
		if n > have {
			return fmt.Errorf("%d scalars for %d points", n, have)
		}
		return nil
	}
	if len(pick) != n {
		return fmt.Errorf("%d scalars for %d picked points", n, len(pick))
	}
	for j, i := range pick {
		if int(i) >= have {
			return fmt.Errorf("pick %d is point %d of %d", j, i, have)
		}
	}
	return nil
}

type msm struct {
	*Group
	Plan
	points  []byte
	pick    []uint32
	scalars []curve.Scalar
	sums    []uint64 // affine, by task
}

// msmWorker is what one goroutine works in.
type msmWorker struct {
	reducer
	*msm
	entries []uint32 // index<<1 | sign, by bucket
	digit   []uint32 // magnitude, sign in the top bit
	hist    []uint32
}

func (m *msm) newWorker(ctx context.Context, s *scratch) *msmWorker {
	w := &msmWorker{msm: m}
	w.summer = newSummer(ctx, m.Group, m.rows(), s)
	w.pts = m.points
	w.acc = m.accs(accCount)
	w.entries, w.digit = s.uint32s(m.part()), s.uint32s(m.part()+placeAhead)
	w.hist = s.uint32s(m.buckets() + 2)
	return w
}

// run fills m.sums.
func (m *msm) run(ctx context.Context, s *scratch) error {
	w := make([]*msmWorker, m.workers)
	for i := range w {
		w[i] = m.newWorker(ctx, s)
	}
	if err := par.Run(m.workers, func(i int) error {
		return m.prepare(ctx, m.n*i/m.workers, m.n*(i+1)/m.workers)
	}); err != nil {
		return err
	}
	var next atomic.Int64
	return par.Run(m.workers, func(i int) error {
		for {
			t := int(next.Add(1)) - 1
			if t >= m.tasks() {
				return nil
			}
			if err := w[i].task(t); err != nil {
				next.Store(int64(m.tasks()))
				return err
			}
		}
	})
}

// signBit, in the last word, is the sign of a folded scalar.
const signBit = 1 << 63

// prepare shifts the scalars for recoding; those of infinite points become 0.
func (m *msm) prepare(ctx context.Context, from, to int) error {
	for j := from; j < to; j++ {
		if j%chunk == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		s := m.scalars[j]
		if m.infinite(m.points, m.pick, j) {
			s = curve.Scalar{}
		}
		plain := s
		plain[3] &^= signBit
		if window.Len((*window.Scalar)(&plain)) > m.Plan.bits {
			return fmt.Errorf("scalar %d: %w", j, errScalar)
		}
		m.scalars[j] = m.shifted(s)
	}
	return nil
}

// task sums a window over a part of the points: counting sort by digit, bucket
// sums, reduction.
func (w *msmWorker) task(t int) error {
	win, from, to := w.Plan.task(t)
	nb := w.sort(from, to, win)
	if err := w.fill(nb); err != nil {
		return err
	}
	// Bucket b is row b−1.
	if err := w.weighted(0, nb); err != nil {
		return err
	}
	w.acc.add(accWhole, accSum)
	n := w.k.pointBytes() / 8
	w.acc.affine(accWhole, w.sums[t*n:][:n])
	return nil
}

// fill sums the entries of every bucket to its row.
func (w *msmWorker) fill(nb int) error {
	for b := 1; b <= nb; b++ {
		e := w.entries[w.hist[b-1]:w.hist[b]]
		if len(e) > chunk/2 {
			w.tree(true)
			if err := w.long(e, uint32(b-1)); err != nil {
				return err
			}
			continue
		}
		if err := w.collect(e, uint32(b-1), true); err != nil {
			return err
		}
	}
	w.tree(true)
	return nil
}

// combine adds the windows' sums, doubling in between.
func (m *msm) combine(out []uint64) {
	acc := m.accs(1)
	n := m.k.pointBytes() / 8
	t := m.tasks()
	for win := m.windows - 1; win >= 0; win-- {
		if win < m.windows-1 {
			for range m.c {
				acc.double(0)
			}
		}
		for t > 0 {
			if w, _, _ := m.task(t - 1); w != win {
				break
			}
			t--
			acc.addAffine(0, m.sums[t*n:][:n])
		}
	}
	acc.affine(0, out)
}
