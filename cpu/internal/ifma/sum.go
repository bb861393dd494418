package ifma

import (
	"context"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/cpu/internal/par"
)

// infinite reports whether the point of place j is all zero.
func (g *Group) infinite(points []byte, pick []uint32, j int) bool {
	if pick != nil {
		j = int(pick[j])
	}
	size := g.k.pointBytes()
	return allZero(points[j*size : j*size+size])
}

// allZero looks at the end first: that is the top of a coefficient of y, and
// hardly ever zero.
func allZero(p []byte) bool {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0 {
			return false
		}
	}
	return true
}

func (g *Group) sumWorkerBytes() int {
	return summerBytes(g.k) + align((summerRows+1)*8*g.k.rowWords()) + align(4*chunk)
}

// SumScratch is the size in bytes of the scratch that [Group.Sum] takes.
func (g *Group) SumScratch(workers int) int { return max(workers, 1)*g.sumWorkerBytes() + 64 }

// Sum sets out, an affine point in gnark-crypto's layout, to the sum of those
// points for whose index keep is true, or of all when keep is nil. Points are as
// in [Group.MSM]; keep is called from all workers.
func (g *Group) Sum(ctx context.Context, points []byte, keep func(i int) bool, workers int, buf []byte, out []uint64) error {
	workers = max(workers, 1)
	size := g.k.pointBytes()
	n := len(points) / size
	if len(out) < size/8 {
		return fmt.Errorf("sum of points: the result has %d words, a point %d", len(out), size/8)
	}
	if err := checkPoints(points, size, nil, n); err != nil {
		return fmt.Errorf("sum of points: %w", err)
	}
	if need := g.SumScratch(workers); len(buf) < need {
		return fmt.Errorf("sum of points: scratch of %d bytes, needs %d", len(buf), need)
	}
	s := newScratch(buf)
	acc := g.accs(1)
	var mu sync.Mutex
	w := make([]*summer, workers)
	names := make([][]uint32, workers)
	for i := range w {
		w[i] = newSummer(ctx, g, summerRows+1, s)
		w[i].pts = points
		names[i] = s.uint32s(chunk)
	}
	err := par.Run(workers, func(i int) error {
		if err := w[i].sum(g, points, keep, n*i/workers, n*(i+1)/workers, names[i]); err != nil {
			return err
		}
		if !w[i].isInf(0) {
			mu.Lock()
			acc.addRow(0, w[i].row(0))
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sum of points: %w", err)
	}
	acc.affine(0, out)
	return nil
}

// sum puts the sum of points from, …, to−1 in row 0.
func (s *summer) sum(g *Group, points []byte, keep func(i int) bool, from, to int, names []uint32) error {
	s.partial = 0
	for from < to {
		k := 0
		for ; from < to && k < len(names); from++ {
			if keep != nil && !keep(from) || g.infinite(points, nil, from) {
				continue
			}
			names[k] = uint32(from) << 1
			k++
		}
		if err := s.feed(names[:k]); err != nil {
			return err
		}
	}
	return s.finishLong(0)
}
