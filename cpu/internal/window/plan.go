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

// Weight is how many scalars of the given length have as many bits together.
func (h *Histogram) Weight(bits int) int {
	n := 0
	for b, v := range h {
		n += b * v
	}
	return n / bits
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
// less one for the sign).
func Dense(n, bits int) Plan {
	var h Histogram
	h[bits] = n
	p, _ := choose(n, &h, math.MaxInt, math.MaxInt)
	return p
}

// For is the plan for n scalars that are distributed as h says, out of a sum of
// total. Its rounds have no more buckets and terms than those of Dense(total,
// bits), whose width it keeps unless another one is clearly better.
func For(total, n, bits int, h *Histogram) Plan {
	d := Dense(total, bits)
	best, cost := choose(n, h, d.RoundBuckets(), d.Entries(total))
	if p := width(d.C, n, h, d.RoundBuckets(), d.Entries(total)); cost > 0.95*p.cost(n, h) {
		return p
	}
	return best
}

// width is the plan with windows of c bits whose rounds fit the limits.
func width(c, n int, h *Histogram, maxBuckets, maxEntries int) Plan {
	p := Plan{C: c, Windows: max(1, (h.Bits()+c)/c)}
	n = max(n, 1)
	p.Group = max(1, min(p.Windows, roundTerms/n, maxBuckets/p.Buckets(), maxEntries/n))
	return p
}

// choose minimises the cost over the widths whose round fits the limits.
func choose(n int, h *Histogram, maxBuckets, maxEntries int) (best Plan, cost float64) {
	best = width(minBits, n, h, maxBuckets, maxEntries)
	cost = best.cost(n, h)
	for c := minBits + 1; c <= MaxBits && 1<<(c-1) <= maxBuckets; c++ {
		p := width(c, n, h, maxBuckets, maxEntries)
		if v := p.cost(n, h); v < cost {
			best, cost = p, v
		}
	}
	return best, cost
}

// Cost is what the best plan of any width costs for n scalars that are
// distributed as h says, in point additions.
func Cost(n int, h *Histogram) int {
	_, cost := choose(n, h, math.MaxInt, math.MaxInt)
	return int(cost)
}

// cost is what a plan costs, in point additions:
//
//	terms:   a bucket with k terms takes k − 1 additions
//	buckets: two additions a bucket for the running sums, one for an empty one
//	digits:  each scalar is looked at twice a window, about 1/40 addition
//	windows: a doubling a bit at the end
func (p Plan) cost(n int, h *Histogram) float64 {
	buckets := float64(p.Buckets())
	terms := h.Terms()
	bit, cost := 1, 0.0
	for w := range p.Windows {
		for ; bit < w*p.C && bit < len(h); bit++ {
			terms -= h[bit]
		}
		filled := buckets * -math.Expm1(-float64(terms)/buckets)
		cost += float64(terms) - filled + buckets + filled + float64(n)/40
	}
	return cost + float64(p.Windows*p.C*2)
}
