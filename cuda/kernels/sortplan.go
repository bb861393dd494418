package kernels

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/snarkline/snarkline/curve"
)

// The sizes that sort.cu is compiled with.
const (
	sortTile     = 8192    // elements that a block sorts at a time
	sortLengths  = 1024    // lengths of tasks that are told apart
	sortHighBits = 10      // of a bucket's number, in the first pass, at most
	sortLowBits  = 11      // and in the second
	sortBatch    = 1 << 27 // elements that are under way at a time

	// HeavyGroup is how many chunks of a heavy bucket one group has, at most.
	HeavyGroup = 128
	// heavyChunks is how many chunks a heavy bucket is cut in, at most: its
	// groups are a group again.
	heavyChunks = HeavyGroup * HeavyGroup
)

// SortPlan is how scalars are cut into digits and sorted into buckets, and
// how much device memory that takes.
//
// A scalar s is taken as the representative of s between −r/2 and r/2, and
// written as Σ d_w·2^(C·w), w < W, with digits of −2^(C−1) … 2^(C−1). Bucket
// w·2^(C−1) + |d| − 1 gets the point, negated if d < 0; none does for d = 0.
type SortPlan struct {
	N  int // terms, at most
	C  int // bits of a digit
	W  int // windows
	NB int // buckets of all windows: W·2^(C−1)

	Lmax      int // the longest task; longer buckets are cut, see Buckets
	MaxTasks  int // NB + MaxChunks
	MaxChunks int // of heavy buckets
	MaxHeavy  int
	MaxGroups int

	// Scratch is the device memory of a run, in bytes; the first Keep bytes of
	// it hold the result, and the rest is free for other use when it is done.
	Scratch, Keep int64

	high, low  int // bits of a bucket's number in the first and second pass
	partitions int // W·2^high
	bias       [8]uint32
	batch      int // windows that are sorted at a time
	tiles      int // of the second pass, at most

	at sortOffsets
}

// sortOffsets are where the parts lie in the scratch memory.
type sortOffsets struct {
	index, planes, length, start, order, heavy, groups, control, lengths, counts int64
	firsts, tileFirsts, tiles, values, lows                                      int64
}

// Bounds of SortPlan's window bits.
const (
	MinSortBits = 6
	MaxSortBits = 22
)

// sortWindows is how many windows of c bits take every scalar, and the sum of
// 2^(cw+c−1) over all windows but the last, which makes their digits positive.
func sortWindows(id curve.ID, c int) (int, *big.Int) {
	half := new(big.Int).Rsh(id.ScalarModulus(), 1) // (r − 1)/2
	limit := new(big.Int).Lsh(big.NewInt(1), uint(c-1))
	bias := new(big.Int)
	for w := 1; ; w++ {
		shift := uint(c * (w - 1))
		top := new(big.Int).Add(half, bias)
		top.Rsh(top, shift)
		bottom := new(big.Int).Sub(bias, half)
		bottom.Rsh(bottom, shift) // rounds down
		if top.Cmp(limit) <= 0 && bottom.CmpAbs(limit) <= 0 {
			return w, bias
		}
		bias.SetBit(bias, c*w-1, 1)
	}
}

// Plan is the plan for n terms at most in windows of c bits, MinSortBits …
// MaxSortBits. n·W must stay below 2^32.
func (s *Sort) Plan(n, c int) (SortPlan, error) { return PlanSort(s.set.id, n, c, 0) }

// PlanSort is Plan without a device, with a choice of the longest task, 1023 at
// most; 0 chooses one.
func PlanSort(id curve.ID, n, c, lmax int) (SortPlan, error) {
	if !id.Valid() {
		return SortPlan{}, fmt.Errorf("plan a sort: %v", id)
	}
	if n < 0 || c < MinSortBits || c > MaxSortBits {
		return SortPlan{}, fmt.Errorf("plan a sort of %d terms in windows of %d bits: bits go from %d to %d", n, c, MinSortBits, MaxSortBits)
	}
	if lmax < 0 || lmax >= sortLengths {
		return SortPlan{}, fmt.Errorf("plan a sort with tasks of %d points: between 1 and %d", lmax, sortLengths-1)
	}
	n = max(n, 1)
	w, bias := sortWindows(id, c)
	all := int64(n) * int64(w)
	if n > 1<<28 || all >= 1<<32-sortTile {
		return SortPlan{}, fmt.Errorf("plan a sort of %d terms in %d windows of %d bits: more than 2^28 terms or 2^32 digits", n, w, c)
	}
	p := SortPlan{N: n, C: c, W: w, NB: w << (c - 1)}
	for i := range p.bias {
		p.bias[i] = uint32(new(big.Int).Rsh(bias, uint(32*i)).Uint64())
	}
	// Partitions of a quarter of a tile or more, if there are so many terms.
	p.high = max(min(sortHighBits, c/2, bits.Len(uint(n))-12), c-1-sortLowBits, 0)
	p.low = c - 1 - p.high
	p.partitions = w << p.high

	if p.Lmax = lmax; lmax == 0 {
		p.Lmax = longestTask(all, p.NB)
	}
	p.MaxHeavy = int(all / int64(p.Lmax+1))
	p.MaxChunks = int(2 * all / int64(p.Lmax))
	p.MaxGroups = p.MaxHeavy + p.MaxChunks/HeavyGroup
	p.MaxTasks = p.NB + p.MaxChunks

	batches := (all + sortBatch - 1) / sortBatch
	p.batch = int((int64(w) + batches - 1) / batches)
	p.tiles = int((all+sortTile-1)/sortTile) + p.partitions
	p.layout()
	return p, nil
}

// longestTask is where a bucket is cut, with digits in buckets. The card runs
// some 2^16 threads: a task may be an eighth of a thread's work. To cut a bucket
// costs some twenty additions one after the other, so that buckets of evenly
// spread scalars are left whole (those of the last window may be twice as long
// as the mean), unless they are long and too few to fill the card.
func longestTask(digits int64, buckets int) int {
	thread, mean := int(digits>>16), int(digits/int64(buckets))
	longest := max(thread/8, 2*mean+int(6*math.Sqrt(float64(2*mean)))+8)
	if buckets < 1<<15 && mean > 64 {
		longest = min(longest, max(thread, 48))
	}
	return min(max(longest, 16), sortLengths-1)
}

func (p *SortPlan) layout() {
	var end int64
	room := func(bytes int64) int64 {
		at := end
		end = (at + bytes + 255) &^ 255
		return at
	}
	n := int64(p.N)
	p.at.index = room(4 * n * int64(p.W))
	p.at.length = room(4 * int64(p.MaxTasks))
	p.at.start = room(4 * int64(p.MaxTasks))
	p.at.order = room(4 * int64(p.MaxTasks))
	p.at.heavy = room(16 * int64(p.MaxHeavy))
	p.at.groups = room(8 * int64(p.MaxGroups))
	p.at.control = room(4 * int64(sortControl+sortLengths+p.partitions))
	p.at.lengths = p.at.control + 4*sortControl
	p.at.counts = p.at.lengths + 4*sortLengths
	p.Keep = end
	p.at.firsts = room(4 * int64(p.partitions+1))
	p.at.tileFirsts = room(4 * int64(p.partitions+1))
	p.at.tiles = room(16 * int64(p.tiles))
	p.at.values = room(4 * n * int64(p.batch))
	p.at.lows = room(2 * n * int64(p.batch))
	if p.planesFit() {
		p.at.planes = p.at.index + 4*n*int64(p.W-8)
	} else {
		p.at.planes = room(32 * n)
	}
	p.Scratch = end
}

// planesFit reports whether the biased scalars, as eight vectors of words, can
// lie at the end of the index: the index of the windows that are sorted must
// not reach a word that a later window needs.
func (p *SortPlan) planesFit() bool {
	for w := p.batch; w < p.W; w += p.batch {
		if p.C*w/32 < w-p.W+8 {
			return false
		}
	}
	return p.W >= 8
}
