package ifma

import (
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/cpu/internal/window"
	"github.com/snarkline/snarkline/curve"
)

// TestRecoding puts scalars together again from their digits, for all windows.
func TestRecoding(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		plain := append(edgeScalars(o.id), randomScalars(o.id, 20)...)
		r := o.id.ScalarModulus()
		for c := 4; c <= maxWindow; c++ {
			for less := range 2 {
				p := Plan{n: len(plain), bits: g.bits, c: c, windows: (g.bits+c)/c - less}
				if p.setTop(); p.top > 1<<maxWindow {
					continue
				}
				m := &msm{Group: g, Plan: p}
				s := append([]curve.Scalar(nil), plain...)
				for i := range s {
					window.Fold((*window.Scalar)(&s[i]), &g.order)
					s[i] = p.shifted(s[i])
				}
				sums := make([]*big.Int, len(s))
				for i := range sums {
					sums[i] = new(big.Int)
				}
				d := make([]uint32, len(s))
				for w := p.windows - 1; w >= 0; w-- {
					most := int64(1) << (c - 1)
					if w == p.windows-1 {
						most = int64(p.top)
					}
					m.digits(d, s, w)
					for i, x := range d {
						v := int64(x &^ digitSign)
						if x&digitSign != 0 {
							v = -v
						}
						if v > most || -v > most {
							t.Fatalf("c=%d window %d: digit %d", c, w, v)
						}
						sums[i].Add(sums[i].Lsh(sums[i], uint(c)), big.NewInt(v))
					}
				}
				for i := range s {
					if sums[i].Mod(sums[i], r).Cmp(scalarInt(plain[i])) != 0 {
						t.Fatalf("c=%d: %v is recoded as %v", c, scalarInt(plain[i]), sums[i])
					}
				}
			}
		}
	})
}

// TestPlan looks at the cuts for all sizes: tasks cover every term of every
// window once, scratch that limits is not passed, and more workers do not make
// scratch that nobody uses.
func TestPlan(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		for log := range 27 {
			for _, n := range []int{1 << log, 1<<log + 1, 3 << log} {
				for _, workers := range []int{0, 1, 2, 3, 16, 128} {
					p := g.plan(n, workers)
					limit := p.Bytes(g)
					checkPlan(t, p, workers)
					for _, bits := range []int{1, 7, 64, 65, g.bits} {
						for _, weight := range []int{1, n / 3, n} {
							q := g.Plan(n, bits, weight, workers, limit)
							checkPlan(t, q, workers)
							if got := q.Bytes(g); got > limit {
								t.Fatalf("n=%d workers=%d bits=%d weight=%d: %d bytes, the limit is %d", n, workers, bits, weight, got, limit)
							}
						}
					}
					if q := g.Plan(n/2+1, g.bits, n/2+1, workers, limit); q.Bytes(g) > limit {
						t.Fatalf("n=%d workers=%d: half of it takes more", n, workers)
					}
				}
			}
		}
	})
}

func checkPlan(t *testing.T, p Plan, workers int) {
	t.Helper()
	if p.workers < 1 || p.workers > max(workers, 1) || p.workers > p.tasks() || p.part() > maxPart {
		t.Fatalf("%d workers: %+v", workers, p)
	}
	if p.windows > 1 && p.c*(p.windows-1) > 254 || p.bits > p.c*(p.windows-1)+maxWindow {
		t.Fatalf("windows: %+v", p)
	}
	win, at := 0, 0
	for i := range p.tasks() {
		w, from, to := p.task(i)
		if at == p.n {
			win, at = win+1, 0
		}
		if w != win || from != at || to < from || to-from > p.part() {
			t.Fatalf("task %d is window %d, %d to %d: %+v", i, w, from, to, p)
		}
		at = to
	}
	if win != p.windows-1 || at != p.n {
		t.Fatalf("tasks end at window %d, %d: %+v", win, at, p)
	}
}

// TestMSMParts has so many workers that the points are cut in parts.
func TestMSMParts(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		const n = 8000
		if o.g == curve.InG2 {
			return // the same code, and slow to check
		}
		if p := g.plan(n, 80); p.whole != 0 || p.many < 2 {
			t.Fatalf("one part: %+v", p)
		}
		checkMSM(t, o, g, o.random(n), nil, randomScalars(o.id, n), 80)
	})
}
