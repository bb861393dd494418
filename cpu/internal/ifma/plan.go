package ifma

import "math/bits"

// msmPlan is how a multi-scalar multiplication is cut up: windows of c bits,
// each over parts of the points, one task a window and part.
type msmPlan struct {
	n, part, parts int // points, points a part, parts
	c, windows     int
	top            int // buckets of the top window
	workers        int
	recode         [4]uint64 // see setTop
}

const (
	maxWindow = 18
	maxPart   = 1 << 20 // a worker's scratch grows with a part
	minPart   = 256
)

// plan chooses the cut that is done first: workers take tasks in turns, and a
// task costs an addition a point, about 2.6 a bucket for the reduction, and a
// constant.
func (g *Group) plan(n, workers int) msmPlan {
	workers = max(workers, 1)
	var best msmPlan
	least := -1
	for c := 4; c <= maxWindow; c++ {
		p := msmPlan{n: n, c: c, windows: (g.bits + c - 1) / c}
		for p.parts = 1; p.parts == 1 || n/p.parts >= minPart; p.parts *= 2 {
			if n/p.parts > maxPart {
				continue
			}
			tasks := p.windows * p.parts
			rounds := (tasks + workers - 1) / workers
			cost := rounds * (n/p.parts + 3000 + 26<<(c-1)/10)
			if least < 0 || cost < least {
				least, best = cost, p
			}
			if tasks >= 4*workers {
				break
			}
		}
	}
	best.setTop(g)
	best.part = (n + best.parts - 1) / best.parts
	best.workers = min(workers, best.parts*best.windows)
	return best
}

// setTop works out the recoding: a scalar plus recode, cut in windows of c bits,
// has digits d + 2^(c−1) with −2^(c−1) ≤ d < 2^(c−1), and the plain digit in the
// top window, at most top.
func (p *msmPlan) setTop(g *Group) {
	for w := range p.windows - 1 {
		b := w*p.c + p.c - 1
		p.recode[b>>6] |= 1 << (b & 63)
	}
	s := p.shifted(g.last)
	b := (p.windows - 1) * p.c
	p.top = int(s[b>>6] >> (b & 63))
	if b>>6 < 3 {
		p.top |= int(s[b>>6+1] << (64 - b&63))
	}
}

// shifted is s + recode modulo 2^256.
func (p *msmPlan) shifted(s [4]uint64) [4]uint64 {
	var c uint64
	for i := range s {
		s[i], c = bits.Add64(s[i], p.recode[i], c)
	}
	return s
}

// buckets is the largest number of buckets of a window.
func (p *msmPlan) buckets() int { return max(1<<(p.c-1), p.top) }

// rows is the number of rows of a worker.
func (p *msmPlan) rows() int { return p.buckets() + reduceRows(p.buckets()) + summerRows }

// workerBytes is the scratch of a worker.
func (p *msmPlan) workerBytes(k *kernels) int {
	return summerBytes(k) + align(p.rows()*8*k.rowWords()) + 2*align(4*p.part) + align(4*(p.buckets()+2))
}
