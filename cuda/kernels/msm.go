package kernels

import (
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// MSM is the sums of one group: scalars times points by Pippenger's method
// with signed digits and sorted buckets, and plain sums of listed points. Its
// methods only queue work, allocate no device memory, and wait for nothing.
// It may be used by any number of goroutines, each with a stream, arguments and
// scratch memory of its own, and is valid until the device is reset.
type MSM struct {
	set  *Set
	g    curve.Group
	sort *Sort
	k    groupKernels
}

// groupKernels are the kernels of g1.cu or g2.cu.
type groupKernels struct {
	accumulate   func(st gpu.Stream, l gpu.Launch, a *gpu.Args, points, index, start, length, order, tasks gpu.Ptr, nb, first uint32, sums gpu.Ptr) error
	heavyGroups  func(st gpu.Stream, l gpu.Launch, a *gpu.Args, groups, count, sums gpu.Ptr) error
	heavyBuckets func(st gpu.Stream, l gpu.Launch, a *gpu.Args, heavy, count gpu.Ptr, group uint32, sums gpu.Ptr) error
	segments     func(st gpu.Stream, l gpu.Launch, a *gpu.Args, buckets gpu.Ptr, n, size uint32, plain, weighted gpu.Ptr) error
	lines        func(st gpu.Stream, l gpu.Launch, a *gpu.Args, plain, weighted gpu.Ptr, windows, hb, lb uint32, out gpu.Ptr) error
	bits         func(st gpu.Stream, l gpu.Launch, a *gpu.Args, in gpu.Ptr, hb, lb uint32, out gpu.Ptr) error
	part         func(st gpu.Stream, l gpu.Launch, a *gpu.Args, count gpu.Ptr, all, from, most uint32, out gpu.Ptr) error
	sumPoints    func(st gpu.Stream, l gpu.Launch, a *gpu.Args, points, list, count gpu.Ptr, most uint32, out gpu.Ptr) error
	sumFold      func(st gpu.Stream, l gpu.Launch, a *gpu.Args, in gpu.Ptr, n, per, last uint32, out gpu.Ptr) error
}

// MSM loads the kernels of group g, and those of the sort.
func (s *Set) MSM(g curve.Group) (*MSM, error) {
	sort, err := s.Sort()
	if err != nil {
		return nil, err
	}
	m := &MSM{set: s, g: g, sort: sort}
	switch g {
	case curve.InG1:
		k, err := s.G1Kernels()
		if err != nil {
			return nil, err
		}
		m.k = groupKernels{k.G1Accumulate, k.G1HeavyGroups, k.G1HeavyBuckets, k.G1Segments, k.G1Lines, k.G1Bits, k.G1Part, k.G1SumPoints, k.G1SumFold}
	case curve.InG2:
		k, err := s.G2Kernels()
		if err != nil {
			return nil, err
		}
		m.k = groupKernels{k.G2Accumulate, k.G2HeavyGroups, k.G2HeavyBuckets, k.G2Segments, k.G2Lines, k.G2Bits, k.G2Part, k.G2SumPoints, k.G2SumFold}
	default:
		return nil, fmt.Errorf("sums in group %d: there are G1 and G2", uint8(g))
	}
	return m, nil
}

// Run is a sum under way on a stream. It is used by one goroutine.
type Run struct {
	m       *MSM
	st      gpu.Stream
	a       *gpu.Args
	p       Plan
	scratch gpu.Ptr
	passes  int
	err     error
	mark    func(phase string) error // between phases, for measurements
}

// Begin starts a sum that follows plan p. scratch has p.Scratch bytes of device
// memory, 256-byte aligned, and is the run's until the stream has passed End.
// An error is given by Add and End.
func (m *MSM) Begin(st gpu.Stream, a *gpu.Args, p Plan, scratch gpu.Ptr) *Run {
	r := &Run{m: m, st: st, a: a, p: p, scratch: scratch}
	if p.id != m.set.id || p.g != m.g {
		r.err = fmt.Errorf("begin a sum in %v of %v with a plan for %v of %v", m.g, m.set.id, p.g, p.id)
		return r
	}
	// All zero is the identity.
	r.fail("clear the buckets", st.Fill(r.at(p.at.sums), 0, int64(p.Sort.NB)*int64(p.point)))
	return r
}

func (r *Run) at(offset int64) gpu.Ptr { return r.scratch + gpu.Ptr(offset) }

func (r *Run) fail(what string, err error) bool {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s of a sum in %v: %w", what, r.m.g, err)
	}
	return r.err != nil
}

func (r *Run) marked(phase string) {
	if r.mark != nil && r.err == nil {
		r.fail("mark the phases", r.mark(phase))
	}
}

// Add queues the terms t: for the picked j, the scalar of j times points[j].
// points are t.List.N affine points in device memory, or those that t picks. It
// may be called any number of times, and takes more terms than the plan's N in
// several passes. Points and scalars are read until the stream has passed them.
func (r *Run) Add(points gpu.Ptr, t Terms) error {
	if r.err != nil {
		return r.err
	}
	if t.Most < 0 || t.Pick == 0 && t.Most > t.List.N {
		r.fail("add terms", fmt.Errorf("%d terms of %d points", t.Most, t.List.N))
		return r.err
	}
	for from := 0; from < t.Most; from += r.p.N {
		n := min(t.Most-from, r.p.N)
		if r.pass(points, t, from, n); r.err != nil {
			return r.err
		}
	}
	return nil
}

// pass adds terms from … from+n−1 of t.
func (r *Run) pass(points gpu.Ptr, t Terms, from, n int) {
	k, p := &r.m.k, &r.p
	if t.Count != 0 && t.Most > n {
		if r.fail("count the terms", k.part(r.st, gpu.Linear(1, 1), r.a, t.Count, uint32(t.Most), uint32(from), uint32(n), r.at(p.at.count))) {
			return
		}
		t.Count = r.at(p.at.count)
	}
	if t.Pick != 0 {
		t.Pick += gpu.Ptr(4 * from)
	} else {
		points += gpu.Ptr(from * p.affine)
		if t.List.Wires != 0 {
			t.List.Wires += gpu.Ptr(4 * from)
		} else {
			t.List.First += uint32(from)
		}
		t.List.N = n
	}
	t.Most = n
	b, err := r.m.sort.Run(r.st, r.a, p.Sort, t, r.at(p.at.work))
	if r.fail("sort the terms", err) {
		return
	}
	r.marked("sort")
	sums, first := r.at(p.at.sums), uint32(0)
	if r.passes == 0 {
		first = 1
	}
	r.passes++
	// What there is to do is known on the device: grids are bounds.
	tasks := min(int64(b.MaxTasks), int64(n)*int64(p.Sort.W))
	l := gpu.Linear(tasks, uint32(p.shape.threads))
	l.Shared = uint32(p.shape.threads * p.shape.adder)
	if r.fail("add up the buckets", k.accumulate(r.st, l, r.a, points, b.Index, b.Start, b.Len, b.Order, b.NTasks, uint32(b.NB), first, sums)) {
		return
	}
	r.marked("accumulate")
	if b.MaxHeavy == 0 {
		return
	}
	l = gpu.Linear(min(int64(b.MaxGroups), p.warps)*32, 64)
	if r.fail("add up the heavy buckets' chunks", k.heavyGroups(r.st, l, r.a, b.Groups, b.NGroups, sums)) {
		return
	}
	l = gpu.Linear(min(int64(b.MaxHeavy), p.warps)*32, 64)
	if r.fail("add up the heavy buckets", k.heavyBuckets(r.st, l, r.a, b.Heavy, b.NHeavy, HeavyGroup, sums)) {
		return
	}
	r.marked("heavy")
}

// End queues the rest, and the copy of p.Out bytes to out, which is pinned host
// memory (other host memory makes the driver wait). Value1 or Value2 gives the
// sum once the stream got there. The run is over.
func (r *Run) End(out unsafe.Pointer) error {
	if r.err != nil {
		return r.err
	}
	k, p := &r.m.k, &r.p
	plain, weighted, lines, bits := r.at(p.at.plain), r.at(p.at.weighted), r.at(p.at.lines), r.at(p.at.bits)
	segments := int64(p.Sort.NB / p.segment)
	w, hb, lb := uint32(p.Sort.W), uint32(p.hb), uint32(p.lb)
	l := gpu.Linear(segments, uint32(p.shape.pairThreads))
	l.Shared = uint32(p.shape.pairThreads * p.shape.pair)
	if r.fail("weigh the buckets", k.segments(r.st, l, r.a, r.at(p.at.sums), uint32(segments), uint32(p.segment), plain, weighted)) {
		return r.err
	}
	r.marked("segments")
	if r.fail("add up lines", k.lines(r.st, gpu.Linear(int64(p.Sort.W*p.linesEach())*32, 64), r.a, plain, weighted, w, hb, lb, lines)) {
		return r.err
	}
	l = gpu.Launch{Grid: [3]uint32{uint32(p.Sort.W * p.bitsEach())}, Block: [3]uint32{32}}
	if r.fail("add up bits", k.bits(r.st, l, r.a, lines, hb, lb, bits)) {
		return r.err
	}
	r.fail("copy the result", r.st.CopyOut(out, bits, p.Out))
	r.marked("tail")
	err := r.err
	if err == nil {
		r.err = fmt.Errorf("the sum in %v has ended", r.m.g)
	}
	return err
}
