package kernels

import (
	"fmt"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// Plan is how a sum is made: the size of its windows, how many terms a pass
// takes, and where things lie in scratch memory.
type Plan struct {
	N       int      // terms at most in a pass; Add makes several of more
	Sort    SortPlan // windows of Sort.C bits, Sort.W of them
	Scratch int64    // bytes of device memory
	Out     int64    // bytes of pinned host memory

	id            curve.ID
	g             curve.Group
	shape         shape
	affine, point int   // bytes of a point as keys have it, and as a sum
	segment       int   // buckets of a segment
	hb, lb        int   // log of rows and columns of segments of a window
	warps         int64 // that reduce heavy buckets

	at struct{ work, sums, count, plain, weighted, lines, bits int64 }
}

func (p *Plan) linesEach() int { return 2<<p.hb + 1<<p.lb }
func (p *Plan) bitsEach() int  { return p.hb + p.lb + 1 }

// shape is what the kernels of a group are compiled for: threads of a block
// and bytes of shared memory a thread, as in msm.cuh and ec.cuh.
type shape struct {
	threads, blocks, adder    int // of accumulate; blocks an SM
	pairThreads, pairs, pair  int // of segments
	rate, full, latency, step float64
}

func odd16(n int) int { return (n/16 | 1) * 16 }

// shapeOf gives also the rates that choose a plan. An H200 was measured for
// BLS12-381 in G1: 2.9 G additions/s of affine points and 2.1 of sums with the
// card full, 9 and 13 µs for one. The others follow by their multiply-adds (G1
// on BN254: 0.45 of those; in G2: 2.46 and 1.1), not all of it for little
// fields, and with some loss for G2, whose threads are few.
func shapeOf(id curve.ID, g curve.Group) shape {
	f := id.FieldBytes()
	s := shape{threads: 128, blocks: 4, pairThreads: 128, pairs: 3, adder: odd16(9 * f), pair: odd16(10 * f)}
	scale := 1.0
	if id == curve.BN254 {
		scale = 0.5
	}
	if g == curve.InG2 {
		s = shape{threads: 64, blocks: 4, pairThreads: 64, pairs: 3, adder: odd16(18 * f), pair: odd16(22 * f)}
		scale = 2.9
		if id == curve.BN254 {
			s.blocks, s.pairs, scale = 6, 4, 1.3
		}
	}
	s.rate, s.full = 2.9e9/scale, 2.1e9/scale
	s.latency, s.step = 9e-6*scale, 13e-6*scale
	return s
}

// Plan chooses the plan that should be fastest for sums of n terms in all, with
// at most limit bytes of scratch memory. When memory is short a pass takes
// fewer terms: buckets stay, so that this costs little.
func (m *MSM) Plan(n int, limit int64) (Plan, error) {
	return PlanMSM(m.set.dev.Info().SMs, m.set.id, m.g, n, limit)
}

// PlanMSM is Plan for a device of so many SMs.
func PlanMSM(sms int, id curve.ID, g curve.Group, n int, limit int64) (Plan, error) {
	sms = max(sms, 1)
	if n < 0 || n > 1<<28 || !id.Valid() {
		return Plan{}, fmt.Errorf("plan a sum of %d terms on %v: between 0 and 2^28", n, id)
	}
	var best Plan
	least, found := int64(0), 0.0
	for c := MinSortBits; c <= MaxSortBits; c++ {
		for pass := n; ; pass = (pass + 1) / 2 {
			p, err := planMSM(sms, id, g, pass, c)
			if err == nil {
				if least == 0 || p.Scratch < least {
					least = p.Scratch
				}
				if t := p.seconds(sms, n); p.Scratch <= limit && (found == 0 || t < found) {
					best, found = p, t
				}
				if p.Scratch <= limit {
					break // fewer terms a pass cost more
				}
			}
			if pass <= 1<<10 {
				break
			}
		}
	}
	if found == 0 {
		return Plan{}, fmt.Errorf("plan a sum of %d terms in %v of %v: it needs %d bytes of scratch memory at least, and %d are allowed: %w", n, g, id, least, limit, gpu.ErrNoMemory)
	}
	return best, nil
}

// planMSM is the plan for windows of c bits.
func planMSM(sms int, id curve.ID, g curve.Group, n, c int) (Plan, error) {
	return planSegments(sms, id, g, n, c, 0, 0)
}

// planSegments also says how many points a task and how many buckets a segment
// has at most; 0 chooses.
func planSegments(sms int, id curve.ID, g curve.Group, n, c, lmax, size int) (Plan, error) {
	sort, err := PlanSort(id, n, c, lmax)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{N: max(n, 1), Sort: sort, id: id, g: g, shape: shapeOf(id, g), affine: id.PointBytes(g), point: 2 * id.PointBytes(g), warps: int64(16 * sms)}
	p.segment = max(size, 2)
	for more := 4; size == 0 && more <= min(64, sort.NB/sort.W); more *= 2 {
		if p.segmentSeconds(sms, more) < p.segmentSeconds(sms, p.segment) {
			p.segment = more
		}
	}
	log := 0
	for p.segment<<log < 1<<(c-1) {
		log++
	}
	p.lb = (log + 1) / 2
	p.hb = log - p.lb

	var end int64
	room := func(bytes int64) int64 {
		at := end
		end = (at + bytes + 255) &^ 255
		return at
	}
	p.Out = int64(sort.W*p.bitsEach()) * int64(p.point)
	// The sums of segments lie where the sort worked: it is over by then.
	segments := int64(sort.NB / p.segment)
	p.at.plain = room(segments * int64(p.point))
	p.at.weighted = room(segments * int64(p.point))
	p.at.lines = room(int64(sort.W*p.linesEach()) * int64(p.point))
	p.at.bits = room(p.Out)
	end = max(end, sort.Scratch)
	p.at.sums = room(int64(sort.MaxTasks) * int64(p.point))
	p.at.count = room(4)
	p.Scratch = end
	return p, nil
}

// segmentSeconds is what the weighted sum of the buckets takes with segments
// of size, about.
func (p *Plan) segmentSeconds(sms, size int) float64 {
	threads, wave := p.Sort.NB/size, sms*p.shape.pairThreads*p.shape.pairs
	full := float64(wave) / p.shape.full // of one addition by each thread of a wave
	steps := float64(2 * size)
	t := float64(threads/wave) * steps * full
	if rest := threads % wave; rest > 0 {
		t += steps * max(p.shape.step, full*float64(rest)/float64(wave))
	}
	return t + 3*float64(threads)/p.shape.full
}

// seconds is what a sum of n terms takes, about: it need only rank plans.
func (p *Plan) seconds(sms, n int) float64 {
	passes := float64((n + p.N - 1) / p.N)
	digits := float64(min(n, p.N)) * float64(p.Sort.W)
	t := digits/p.shape.rate + digits*40e-12 // 40 ps to sort a digit
	// A card that is not full waits for the longest tasks.
	wave := float64(sms * p.shape.threads * p.shape.blocks)
	if tasks := min(float64(p.Sort.NB), digits); tasks < wave {
		longest := 1 + digits/float64(p.Sort.NB)*1.5
		t = max(t, longest*p.shape.latency)
	}
	t += float64(p.Sort.NB) * float64(2*p.point) / 2e12 // read and write the buckets
	return passes*t + p.segmentSeconds(sms, p.segment) + 1e-3
}
