package kernels

import (
	"fmt"
	"math/bits"

	"github.com/snarkline/snarkline/gpu"
)

// Words of the control block; the kernels know them by number.
const (
	controlHeavy = iota
	controlChunks
	controlGroups
	controlTasks
	sortControl = 16
)

// Sort cuts scalars into digits and sorts points into the buckets of the
// digits, for all windows at once.
type Sort struct {
	set  *Set
	k    *SortKernels
	mark func(phase string) error // called when a phase is queued, by measurements
}

// Sort loads the kernels. What it returns is valid until the device is reset.
func (s *Set) Sort() (*Sort, error) {
	k, err := s.SortKernels()
	if err != nil {
		return nil, err
	}
	return &Sort{set: s, k: k}, nil
}

func (s *Sort) marked(phase string) error {
	if s.mark == nil {
		return nil
	}
	return s.mark(phase)
}

// WireList says which scalar belongs to point j of N: number Wires[j] (uint32
// on the device), or First + j when Wires is 0.
type WireList struct {
	Wires gpu.Ptr
	First uint32
	N     int
}

// Terms are the terms of a sum of scalars times points.
type Terms struct {
	Scalars gpu.Ptr  // curve.Scalar, in Montgomery form
	List    WireList // the scalar of a point; N is the number of points
	// Reversed is the logarithm of the number of scalars when they lie in
	// bit-reversed order: scalar k is then at rev(k). 0: natural order.
	Reversed int
	Pick     gpu.Ptr // indices of points, uint32, or 0 for points 0 … Most−1
	Count    gpu.Ptr // a uint32 that says how many terms there are, or 0 for Most
	Most     int     // terms at most: a larger Count ends the context with an error
}

// Buckets are sorted points, in the scratch memory of the run that made them.
// All vectors are of uint32.
//
// A slot is a sum to make: slots below NB are buckets (window w, digit ±d at
// w·2^(C−1) + d − 1), those from NB on are chunks of heavy buckets. The points
// of slot s are Index[Start[s]] … Index[Start[s]+Len[s]−1]: the number of a
// point, and bit 31 for its negative.
//
// Order lists the NTasks slots that have work, the longest first: buckets of 1
// … Lmax points, and all chunks. A bucket of more points is heavy: its chunks
// are consecutive slots. Their sums are added up in two levels: each of the
// NGroups groups {slot, count} is the sum of count slots, to be put in the first
// of them; each of the NHeavy heavy buckets {bucket, slot, chunks, 0} is the
// sum of the slots slot, slot + HeavyGroup, … below slot + chunks. Len of a
// heavy bucket is its true length, and it is not in Order.
type Buckets struct {
	Index, Start, Len gpu.Ptr
	Order, NTasks     gpu.Ptr
	Groups, NGroups   gpu.Ptr // pairs
	Heavy, NHeavy     gpu.Ptr // quadruples

	NB                            int
	MaxTasks, MaxGroups, MaxHeavy int // bounds of what is on the device
}

// Run queues the sort of t. scratch has plan.Scratch bytes, 256-byte aligned;
// the result lies in its first plan.Keep bytes.
func (s *Sort) Run(st gpu.Stream, a *gpu.Args, plan SortPlan, t Terms, scratch gpu.Ptr) (Buckets, error) {
	if t.Most < 0 || t.Most > plan.N {
		return Buckets{}, fmt.Errorf("sort %d terms with a plan for %d", t.Most, plan.N)
	}
	r := sortRun{Sort: s, st: st, a: a, p: &plan, t: t, mem: scratch, packed: packedAt(t, plan.low)}
	if err := r.run(); err != nil {
		return Buckets{}, fmt.Errorf("queue the sort of %d terms: %w", t.Most, err)
	}
	control := r.ptr(plan.at.control)
	return Buckets{
		Index: r.ptr(plan.at.index), Start: r.ptr(plan.at.start), Len: r.ptr(plan.at.length),
		Order: r.ptr(plan.at.order), NTasks: control + 4*controlTasks,
		Groups: r.ptr(plan.at.groups), NGroups: control + 4*controlGroups,
		Heavy: r.ptr(plan.at.heavy), NHeavy: control + 4*controlHeavy,
		NB: plan.NB, MaxTasks: plan.MaxTasks, MaxGroups: plan.MaxGroups, MaxHeavy: plan.MaxHeavy,
	}, nil
}

// packedAt is the bit at which an element's bits for the second pass stand
// above the number of its point, if all fits in one word; 0 if it does not.
func packedAt(t Terms, low int) uint32 {
	points := t.Most
	if t.Pick != 0 {
		if points = t.List.N; points == 0 {
			return 0 // nobody says how large the numbers are
		}
	}
	if n := bits.Len(uint(max(points, 2) - 1)); n+low <= 31 {
		return uint32(n)
	}
	return 0
}

// sortRun is one Run, being queued.
type sortRun struct {
	*Sort
	st     gpu.Stream
	a      *gpu.Args
	p      *SortPlan
	t      Terms
	mem    gpu.Ptr
	packed uint32
}

func (r *sortRun) ptr(off int64) gpu.Ptr { return r.mem + gpu.Ptr(off) }

// most blocks that are worth launching for loops over all elements.
func (r *sortRun) blocks(n int64, each, perSM int) gpu.Launch {
	l := gpu.Linear(n, uint32(each))
	l.Grid[0] = min(l.Grid[0], uint32(max(r.set.dev.Info().SMs, 1)*perSM))
	l.Block[0] = sortThreads
	return l
}

const (
	sortThreads = 256  // of the kernels that loop
	tileThreads = 512  // of those that sort a tile
	scanThreads = 1024 // of those that scan in one block
)

func (r *sortRun) run() error {
	p, at := r.p, &r.p.at
	if err := r.st.Fill(r.ptr(at.control), 0, 4*int64(sortControl+sortLengths+p.partitions)); err != nil {
		return err
	}
	if err := r.st.Fill(r.ptr(at.length), 0, 4*int64(p.NB)); err != nil {
		return err
	}
	digits := r.blocks(int64(r.t.Most), 4*sortThreads, 4)
	digits.Shared = uint32(4 * p.partitions)
	if err := r.k.SortDigits(r.st, digits, r.a, r.t.Scalars, r.t.List.Wires, r.t.Pick, r.t.Count, uint32(r.t.Most),
		r.t.List.First, uint32(r.t.Reversed), uint32(p.C), uint32(p.W), uint32(p.high), &p.bias,
		r.ptr(at.planes), uint32(p.N), r.ptr(at.counts)); err != nil {
		return err
	}
	if err := r.marked("digits"); err != nil {
		return err
	}
	one := gpu.Launch{Block: [3]uint32{scanThreads}}
	if err := r.k.SortFirsts(r.st, one, r.a, r.ptr(at.counts), r.ptr(at.firsts), r.ptr(at.tileFirsts), uint32(p.partitions)); err != nil {
		return err
	}
	if err := r.k.SortTiles(r.st, gpu.Linear(int64(p.tiles), sortThreads), r.a, r.ptr(at.firsts), r.ptr(at.tileFirsts), uint32(p.partitions), r.ptr(at.tiles)); err != nil {
		return err
	}
	if err := r.marked("firsts"); err != nil {
		return err
	}
	for w := 0; w < p.W; w += p.batch {
		if err := r.windows(w, min(p.batch, p.W-w)); err != nil {
			return err
		}
	}
	return r.tasks()
}

// windows sorts the digits of count windows from first on.
func (r *sortRun) windows(first, count int) error {
	p, at := r.p, &r.p.at
	per := (int64(r.t.Most) + sortTile - 1) / sortTile
	if per == 0 {
		return nil
	}
	values, lows := r.ptr(at.values), r.ptr(at.lows)
	high := gpu.Launch{Grid: [3]uint32{uint32(per), uint32(count)}, Block: [3]uint32{tileThreads}, Shared: 8 * sortTile}
	if err := r.k.SortHigh(r.st, high, r.a, r.ptr(at.planes), uint32(p.N), r.t.Pick, r.t.Count, uint32(r.t.Most),
		uint32(p.C), uint32(p.W), uint32(first), uint32(p.high), r.packed, r.ptr(at.counts), r.ptr(at.firsts), values, lows); err != nil {
		return err
	}
	if err := r.marked("high"); err != nil {
		return err
	}
	from, to := uint32(first<<p.high), uint32((first+count)<<p.high)
	most := (int64(r.t.Most)*int64(count)+sortTile-1)/sortTile + int64(to-from)
	tiles := gpu.Launch{Grid: [3]uint32{uint32(most)}, Block: [3]uint32{tileThreads}}
	if err := r.k.SortCount(r.st, tiles, r.a, values, lows, r.packed, uint32(p.low), r.ptr(at.tiles), r.ptr(at.firsts), r.ptr(at.tileFirsts), from, to, r.ptr(at.length)); err != nil {
		return err
	}
	if err := r.k.SortStarts(r.st, gpu.Linear(32*int64(to-from), sortThreads), r.a, r.ptr(at.firsts), from, to, uint32(p.low), r.ptr(at.length), r.ptr(at.start)); err != nil {
		return err
	}
	if err := r.marked("count"); err != nil {
		return err
	}
	tiles.Shared = 6 * sortTile
	if err := r.k.SortLow(r.st, tiles, r.a, values, lows, r.packed, uint32(p.low), r.ptr(at.tiles), r.ptr(at.firsts), r.ptr(at.tileFirsts), from, to, r.ptr(at.start), r.ptr(at.index)); err != nil {
		return err
	}
	return r.marked("low")
}

// tasks makes tasks of the buckets.
func (r *sortRun) tasks() error {
	p, at := r.p, &r.p.at
	nb, lmax, control, lengths := uint32(p.NB), uint32(p.Lmax), r.ptr(at.control), r.ptr(at.lengths)
	length, start := r.ptr(at.length), r.ptr(at.start)
	if err := r.k.SortTasks(r.st, r.blocks(int64(p.NB), 4*sortThreads, 8), r.a, length, start, nb, lmax, heavyChunks, control, lengths, r.ptr(at.heavy)); err != nil {
		return err
	}
	if err := r.k.SortChunks(r.st, r.blocks(32*int64(p.MaxHeavy), sortThreads, 8), r.a, length, start, HeavyGroup, control, lengths, r.ptr(at.heavy), r.ptr(at.groups)); err != nil {
		return err
	}
	one := gpu.Launch{Block: [3]uint32{scanThreads}}
	if err := r.k.SortLengths(r.st, one, r.a, control, lengths); err != nil {
		return err
	}
	if err := r.k.SortOrder(r.st, blocksOf(int64(p.MaxTasks), sortTile, tileThreads), r.a, length, nb, lmax, control, lengths, r.ptr(at.order)); err != nil {
		return err
	}
	return r.marked("tasks")
}

// blocksOf is a launch of blocks of threads that do each elements of n.
func blocksOf(n int64, each, threads uint32) gpu.Launch {
	l := gpu.Linear(n, each)
	l.Block[0] = threads
	return l
}
