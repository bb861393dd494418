// Package window is the part of a windowed multi-scalar multiplication
// (Pippenger's bucket method) that does not depend on the curve: how wide the
// windows are, the signed digits of the scalars, and the sort of the terms by
// bucket.
package window

import "math"

// MaxBits is the widest window, minBits the narrowest: below it, segments are
// so short that they take as much memory as the buckets.
const (
	MaxBits = 18
	minBits = 4
)

// Histogram counts the scalars of a sum by bit length, after the smaller of s
// and r − s was taken. Entry 0 counts those that add nothing.
type Histogram [257]int

// Add adds the counts of g.
func (h *Histogram) Add(g *Histogram) {
	for i, v := range g {
		h[i] += v
	}
}

// Bits is the largest bit length that occurs.
func (h *Histogram) Bits() int {
	for b := len(h) - 1; b > 0; b-- {
		if h[b] != 0 {
			return b
		}
	}
	return 0
}

// Terms is the number of scalars that are not zero.
func (h *Histogram) Terms() int {
	n := 0
	for _, v := range h[1:] {
		n += v
	}
	return n
}

// Plan says how a sum is cut. Windows are taken in rounds of Group windows at
// a time, so that small sums have batches as long as large ones.
type Plan struct {
	C       int // bits of a window
	Windows int
	Group   int // windows of a round
}

// Buckets is the number of buckets of one window: the digits are signed.
func (p Plan) Buckets() int { return 1 << (p.C - 1) }

// RoundBuckets is the number of buckets of a round.
func (p Plan) RoundBuckets() int { return p.Group * p.Buckets() }

// roundTerms is how many terms a round has at least, if the sum has them: a
// round costs a few meetings of all workers, whatever its size.
const roundTerms = 1 << 16

// Entries is how many terms a round of a sum of n points may hold.
func (p Plan) Entries(n int) int { return p.Group * n }

// Dense is the plan for n scalars of full length (bits of the group's order,
// less one for the sign). It needs the most memory of all plans for n.
func Dense(n, bits int) Plan {
	var h Histogram
	h[bits] = n
	return choose(n, &h, math.MaxInt, math.MaxInt)
}

// For is the plan for n scalars that are distributed as h says, out of a sum of
// total. It needs no more memory than Dense(total, bits).
func For(total, n, bits int, h *Histogram) Plan {
	d := Dense(total, bits)
	return choose(n, h, d.RoundBuckets(), d.Entries(total))
}

// choose minimises the cost in point additions, over the widths whose round
// fits the limits:
//
//	terms:   a bucket with k terms takes k − 1 additions
//	buckets: two additions a bucket for the running sums
//	digits:  each scalar is looked at twice a window, about 1/40 addition
func choose(n int, h *Histogram, maxBuckets, maxEntries int) Plan {
	top := h.Bits()
	best, bestCost := Plan{C: minBits, Windows: max(1, (top+minBits)/minBits), Group: 1}, math.Inf(1)
	for c := minBits; c <= MaxBits; c++ {
		p := Plan{C: c, Windows: max(1, (top+c)/c)}
		b := p.Buckets()
		if b > maxBuckets || n > maxEntries {
			break
		}
		p.Group = max(1, min(p.Windows, roundTerms/max(n, 1), maxBuckets/b, maxEntries/max(n, 1)))
		cost := 0.0
		terms := h.Terms()
		bit := 1
		for w := range p.Windows {
			for ; bit < w*c && bit < len(h); bit++ {
				terms -= h[bit]
			}
			fb, ft := float64(b), float64(terms)
			filled := fb * -math.Expm1(-ft/fb)
			cost += ft - filled + fb + filled + float64(n)/40
		}
		cost += float64(p.Windows * c * 2)
		if cost < bestCost {
			best, bestCost = p, cost
		}
	}
	return best
}
