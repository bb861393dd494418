package ifma

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/curve"

	"pgregory.net/rapid"
)

// TestSort compares the order of the terms of every window with a plain stable
// sort by digit, whose digits come from the recoding that TestRecoding checks.
func TestSort(t *testing.T) {
	g := NewGroup(curve.BLS12381, curve.InG1)
	if g == nil {
		t.Skip("no AVX-512 IFMA here")
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		from := rapid.IntRange(0, n-1).Draw(t, "from")
		to := rapid.IntRange(from+1, n).Draw(t, "to")
		p := g.Plan(n, g.bits, n, rapid.IntRange(1, 3).Draw(t, "workers"), 0)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		m := &msm{Group: g, Plan: p, scalars: make([]curve.Scalar, n)}
		few := rapid.Bool().Draw(t, "few values")
		for i := range m.scalars {
			s := curve.Scalar{rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64()>>3 | rnd.Uint64()&signBit}
			if few {
				s = curve.Scalar{rnd.Uint64N(3)}
			}
			m.scalars[i] = p.shifted(s)
		}
		if rapid.Bool().Draw(t, "picked") {
			m.pick = make([]uint32, n)
			for i := range m.pick {
				m.pick[i] = rnd.Uint32() >> 1
			}
		}
		p.few, p.whole, p.many = 1, p.windows, 1 // scratch for all terms at once
		m.Plan = p
		w := m.newWorker(context.Background(), newScratch(make([]byte, p.workerBytes(g.k)+64)))
		for win := range p.windows {
			for i := range w.digit {
				w.digit[i] = ^uint32(0) // what was there before does not matter
			}
			nb := w.sort(from, to, win)
			digits := make([]uint32, to-from)
			m.digits(digits, m.scalars[from:to], win)
			order := make([]int, to-from)
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int {
				return int(digits[a]&^digitSign) - int(digits[b]&^digitSign)
			})
			ends := make([]uint32, nb+1)
			for at, i := range order {
				name := uint32(from+i) << 1
				if m.pick != nil {
					name = m.pick[from+i] << 1
				}
				if name |= digits[i] >> 31; w.entries[at] != name {
					t.Fatalf("window %d of %d, place %d: %#x, want %#x", win, p.windows, at, w.entries[at], name)
				}
				for b := digits[i] &^ digitSign; int(b) <= nb; b++ {
					ends[b] = uint32(at + 1)
				}
			}
			if !slices.Equal(w.hist[:nb+1], ends) {
				t.Fatalf("window %d of %d: buckets end at %v, want %v", win, p.windows, w.hist[:nb+1], ends)
			}
		}
	})
}
