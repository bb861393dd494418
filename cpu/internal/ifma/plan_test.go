package ifma

import (
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

// TestRecoding puts scalars together again from their digits, for all windows.
func TestRecoding(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		s := append(edgeScalars(o.id), randomScalars(o.id, 20)...)
		for c := 4; c <= maxWindow; c++ {
			p := msmPlan{c: c, windows: (g.bits + c - 1) / c}
			p.setTop(g)
			for _, s := range s {
				v := curve.Scalar(p.shifted(s))
				sum := new(big.Int)
				for w := p.windows - 1; w >= 0; w-- {
					n, off, most := c, int64(1)<<(c-1), int64(1)<<(c-1)
					if w == p.windows-1 {
						n, off, most = 64, 0, int64(p.top)
					}
					d := int64(cut(&v, w*c, n)) - off
					if d > most || -d > most {
						t.Fatalf("c=%d window %d: digit %d", c, w, d)
					}
					sum.Add(sum.Lsh(sum, uint(c)), big.NewInt(d))
				}
				if sum.Cmp(scalarInt(s)) != 0 {
					t.Fatalf("c=%d: %v is recoded as %v", c, scalarInt(s), sum)
				}
			}
		}
	})
}

// TestPlan looks at the cuts for all sizes: parts cover the points, and more
// workers do not make scratch that nobody uses.
func TestPlan(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		for log := range 27 {
			for _, n := range []int{1 << log, 1<<log + 1, 3 << log} {
				for _, workers := range []int{0, 1, 2, 16, 128} {
					p := g.plan(n, workers)
					if p.part*p.parts < n || p.part*(p.parts-1) >= max(n, 2) || p.workers < 1 || p.workers > max(workers, 1) || p.workers > p.parts*p.windows || p.part > maxPart+1 {
						t.Fatalf("n=%d workers=%d: %+v", n, workers, p)
					}
				}
			}
		}
	})
}

// TestMSMParts has so many workers that the points are cut in parts.
func TestMSMParts(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		const n = 8000
		if o.g == curve.InG2 {
			return // the same code, and slow to check
		}
		if p := g.plan(n, 80); p.parts < 2 {
			t.Fatalf("one part: %+v", p)
		}
		checkMSM(t, o, g, o.random(n), nil, randomScalars(o.id, n), 80)
	})
}
