package ifma

import (
	"math/bits"

	"github.com/snarkline/snarkline/curve"
)

// A Plan is how a multi-scalar multiplication is cut up. Its windows have c bits
// each, but for the top one. As many windows as the workers take in full turns
// are tasks of their own; the rest is cut by points, so that the workers end
// together. A task is one window over one part of the points.
type Plan struct {
	n, bits int // terms, length of the longest scalar after folding
	c       int
	windows int
	top     int // buckets of the top window
	workers int
	whole   int // windows, from the lowest, that are cut in few parts
	few     int // parts of those: more than one beyond maxPart points
	many    int // parts of the other windows
	recode  [4]uint64
}

const (
	maxWindow = 18
	maxPart   = 1 << 20 // a worker's scratch grows with a part
	minPart   = 256
)

// Costs in additions, measured: a task has some of its own, and its buckets
// take 2.6 each: two to be weighted, and more of them make the sort and the
// trees leave the caches.
const taskCost = 3000

func bucketCost(buckets int) int { return 21 * buckets / 10 }

// plan is the plan for n scalars of full length.
func (g *Group) plan(n, workers int) Plan { return g.Plan(n, g.bits, n, workers, 0) }

// Plan chooses the cut that is done first for n scalars of so many bits at the
// most, folded, which together have as many bits as weight scalars of full
// length. Its scratch is at most limit bytes, if limit is not 0 and not below
// the scratch of a sum of n or more terms.
func (g *Group) Plan(n, bits, weight, workers, limit int) Plan {
	for workers = max(workers, 1); ; workers = (workers + 1) / 2 {
		p, ok := g.cheapest(n, max(bits, 1), weight, workers, limit)
		if ok || workers == 1 {
			return p
		}
	}
}

func (g *Group) cheapest(n, bits, weight, workers, limit int) (best Plan, ok bool) {
	least := -1
	for c := 4; c <= maxWindow; c++ {
		// With one window less than this the top window has up to c bits, and
		// the digits there are not signed.
		most := (bits + c) / c
		for windows := most; windows >= max(1, most-1) && bits-c*(windows-1) <= maxWindow; windows-- {
			for _, p := range g.cuts(Plan{n: n, bits: bits, c: c, windows: windows}, workers) {
				if limit > 0 && p.Bytes(g) > limit {
					continue
				}
				if cost := p.cost(g, weight); least < 0 || cost < least {
					least, best = cost, p
				}
			}
		}
	}
	if least < 0 { // nothing fits: the least there is
		best = g.cuts(Plan{n: n, bits: bits, c: 4, windows: (bits + 4) / 4}, 1)[0]
		return best, false
	}
	return best, true
}

// Cost is what a sum by this plan costs all workers together, in additions of
// this package, for scalars with as many bits as weight of full length.
func (p *Plan) Cost(g *Group, weight int) int { return p.workers * p.cost(g, weight) }

// cuts are ways to share the windows of p out among workers.
func (g *Group) cuts(p Plan, workers int) []Plan {
	p.setTop()
	p.few = (p.n + maxPart - 1) / maxPart
	p.few = max(p.few, 1)
	rest := p.windows % workers
	p.whole = p.windows - rest
	var out []Plan
	for p.many = p.few; p.many == p.few || p.n/p.many >= minPart && p.many <= 4*workers; p.many++ {
		q := p
		q.workers = min(workers, q.tasks())
		out = append(out, q)
		if rest == 0 {
			break
		}
	}
	return out
}

// tasks is the number of tasks.
func (p *Plan) tasks() int { return p.whole*p.few + (p.windows-p.whole)*p.many }

// task is what task t does: a window, and the terms from, …, to−1.
func (p *Plan) task(t int) (window, from, to int) {
	parts, first := p.few, 0
	if t >= p.whole*p.few {
		t -= p.whole * p.few
		parts, first = p.many, p.whole
	}
	i := t % parts
	return first + t/parts, p.n * i / parts, p.n * (i + 1) / parts
}

// part is the most terms of a task.
func (p *Plan) part() int {
	parts := p.few
	if p.whole == 0 {
		parts = p.many
	}
	return (p.n + parts - 1) / parts
}

// cost is the additions of the worker that ends last, weight being spread
// evenly over the windows, and looking at a digit a twelfth of an addition.
func (p *Plan) cost(g *Group, weight int) int {
	task := func(parts int) int {
		terms := weight * g.bits / p.bits // terms of a window
		return (min(terms, p.n)+p.n/12)/parts + taskCost + bucketCost(1<<(p.c-1))
	}
	rest := (p.windows - p.whole) * p.many
	cost := p.whole*p.few/p.workers*task(p.few) + (rest+p.workers-1)/p.workers*task(p.many)
	// the top window differs
	return cost + (bucketCost(p.top)-bucketCost(1<<(p.c-1)))/min(p.workers, p.many)
}

// setTop works out the recoding: a scalar plus recode, cut in windows of c bits,
// has digits d + 2^(c−1) with −2^(c−1) ≤ d < 2^(c−1), and the plain digit in the
// top window, at most top.
func (p *Plan) setTop() {
	p.recode = [4]uint64{}
	for w := range p.windows - 1 {
		b := w*p.c + p.c - 1
		p.recode[b>>6] |= 1 << (b & 63)
	}
	// The lower windows carry one to the top one at the most.
	p.top = 1 << max(p.bits-(p.windows-1)*p.c, 0)
}

// shifted is the folded scalar s + recode; its sign, in the top bit, stays.
func (p *Plan) shifted(s curve.Scalar) curve.Scalar {
	var c uint64
	for i := range s {
		s[i], c = bits.Add64(s[i], p.recode[i], c)
	}
	return s
}

// buckets is the largest number of buckets of a window.
func (p *Plan) buckets() int { return max(1<<(p.c-1), p.top) }

// rows is the number of rows of a worker.
func (p *Plan) rows() int { return p.buckets() + summerRows }

// workerBytes is the scratch of a worker.
func (p *Plan) workerBytes(k *kernels) int {
	return summerBytes(k) + align(p.rows()*8*k.rowWords()) + align(4*p.part()) + align(4*(p.part()+placeAhead)) + align(4*(p.buckets()+2))
}

// Bytes is the scratch that a sum by this plan takes.
func (p *Plan) Bytes(g *Group) int { return p.workers*p.workerBytes(g.k) + 64 }
