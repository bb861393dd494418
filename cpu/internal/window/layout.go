package window

import "math/bits"

// None is an index that points nowhere.
const None = ^uint32(0)

// Pair is one addition of a batch: the point at Out becomes the sum of those
// at A and B, or a copy of A when B is None.
type Pair struct{ A, B, Out uint32 }

// Run is a row of N points, one after the other, whose sum goes to Out.
type Run struct{ Out, N uint32 }

// The sizes that were measured best: a worker's chunk of points with its batch
// stays in the second-level cache, and one inversion is shared by enough
// additions that it hardly counts.
const (
	chunkBytes = 384 << 10
	maxBatch   = 1024
	minChunk   = 128
	// SegmentLen is how many buckets a running sum takes: long enough that
	// putting the segments together is cheap, short enough that there are
	// many to add at the same time.
	segmentLen = 32
	// partTerms is how many terms make one more worker worth its start.
	partTerms = 1024
)

// Layout is how the memory of one sum is laid out. All sizes are in elements.
type Layout struct {
	Plan    Plan
	N       int // scalars
	Workers int
	Entries int // terms of a round
	Buckets int // of a round
	Chunk   int // points that a worker adds up at a time
	Edges   int // places for buckets that lie in more than one chunk
	SegLen  int
	Segs    int
	Batch   int // additions that share an inversion
}

// NewLayout lays out the sum of n points of pointBytes each.
func NewLayout(p Plan, n, workers, pointBytes int) Layout {
	return newLayout(p, n, p.Entries(n), workers, pointBytes)
}

func newLayout(p Plan, n, entries, workers, pointBytes int) Layout {
	l := Layout{Plan: p, N: n, Entries: entries, Buckets: p.RoundBuckets()}
	l.Workers = max(1, min(workers, l.Entries/partTerms))
	l.Chunk = Chunk(l.Entries, l.Workers, pointBytes)
	l.Edges = 2 * ((l.Entries + l.Chunk - 1) / l.Chunk)
	l.SegLen = min(segmentLen, p.Buckets())
	l.Segs = l.Buckets / l.SegLen
	l.Batch = Batch(l.Chunk)
	return l
}

// Chunk is the number of points that a worker adds up at a time. The edges of
// all chunks must fit in one, which matters for very large sums.
func Chunk(entries, workers, pointBytes int) int {
	c := pow2(chunkBytes / pointBytes)
	c = min(c, max(minChunk, pow2(entries/(4*workers))))
	for c*c < 4*entries {
		c *= 2
	}
	return c
}

// Batch is how many additions share an inversion.
func Batch(chunk int) int { return max(64, min(maxBatch, chunk/2)) }

// pow2 is the largest power of two ≤ max(x, 1).
func pow2(x int) int {
	if x < 1 {
		return 1
	}
	return 1 << (bits.Len(uint(x)) - 1)
}

// Points is how many points the sum keeps: buckets, edges, two running sums a
// segment, and a chunk a worker, in this order.
func (l Layout) Points() int {
	return l.Buckets + l.Edges + 2*l.Segs + l.Workers*l.Chunk
}

// Words is how many 32-bit words the sort and the edges' keys take.
func (l Layout) Words() int {
	return l.Entries + l.Workers*l.Buckets + l.Buckets + 1 + l.Edges
}

// TreeBytes is what adding up points costs one worker beside the points.
func TreeBytes(chunk, batch, pointBytes int) int {
	return batch*(12+1+pointBytes) + 8*chunk
}

// Bytes is all the memory that the sum draws.
func (l Layout) Bytes(pointBytes int) int64 {
	return 32*int64(l.N) + 4*int64(l.Words()) + int64(l.Points())*int64(pointBytes) +
		int64(l.Workers)*int64(TreeBytes(l.Chunk, l.Batch, pointBytes))
}

// Bound is the most that a sum of n terms draws, whatever its scalars are: the
// largest layout over all plans that For can give, and an index of the terms
// when at most half of them are not zero.
func Bound(n, bits, workers, pointBytes int) int64 {
	d := Dense(n, bits)
	most := int64(0)
	for c := minBits; c <= MaxBits; c++ {
		p := Plan{C: c, Windows: (bits + c) / c}
		if p.Buckets() > d.RoundBuckets() {
			break
		}
		p.Group = min(p.Windows, max(1, d.RoundBuckets()/p.Buckets()))
		l := newLayout(p, n, min(p.Entries(n), d.Entries(n)), workers, pointBytes)
		most = max(most, l.Bytes(pointBytes))
	}
	return most + 2*int64(n)
}
