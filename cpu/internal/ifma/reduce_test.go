package ifma

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
)

// TestWeighted weights rows of every number, with infinite, equal and opposite
// ones among them, from none to all, against running sums.
func TestWeighted(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		rng := rand.New(rand.NewPCG(3, 4))
		const most = 2100
		pb := g.k.pointBytes()
		pts := o.random(16)
		for i := range 4 {
			copy(pts[(8+i)*pb:], o.neg(pts[i*pb:(i+1)*pb]))
			copy(pts[(12+i)*pb:], pts[i*pb:(i+1)*pb])
		}
		rows := 1 + most + summerRows
		buf := make([]byte, summerBytes(g.k)+rows*8*g.k.rowWords()+64)
		r := &reducer{summer: newSummer(context.Background(), g, rows, newScratch(buf)), acc: g.accs(accCount)}
		r.pts = pts
		sizes := []int{1, 2, 31, 32, 33, 34, 63, 64, 65, 100, 128, 129, 1000, 1024, 1025, most}
		for _, m := range sizes {
			for _, infinite := range []int{0, 1, 50, 99, 100} { // of a hundred
				ref := g.accs(3) // Σ X, Σ i·X, one row
				point := make([]int, m)
				r.fromPoints = true
				for i := range m {
					point[i] = rng.IntN(16)
					r.single(uint32(point[i]<<1), uint32(1+i))
				}
				r.flushSingles()
				for i := m - 1; i >= 0; i-- {
					ref.add(1, 0)
					if rng.IntN(100) < infinite {
						r.setInf(uint32(1 + i))
						continue
					}
					ref.addAffine(0, words(pts, point[i]*pb, pb/8))
				}
				if err := r.weighted(1, m); err != nil {
					t.Fatal(err)
				}
				for a, want := range map[int]int{accSum: 0, accWhole: 1} {
					x, y := make([]uint64, pb/8), make([]uint64, pb/8)
					r.acc.affine(a, x)
					ref.affine(want, y)
					if !bytes.Equal(mem(x), mem(y)) {
						t.Fatalf("%d rows, %d%% infinite: accumulator %d differs", m, infinite, a)
					}
				}
			}
		}
	})
}
