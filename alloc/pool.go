package alloc

import (
	"math/bits"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
)

// DefaultPoolLimit is how much freed host memory is kept for reuse unless
// SetPoolLimit says otherwise. Other spaces keep none.
const DefaultPoolLimit = 512 * MiB

const (
	classBits  = 4 // 16 classes an octave: at most 1/16 of a block is slack
	maxClass   = 26 << classBits
	nbShards   = 4       // of a class, so that goroutines seldom meet
	shardBelow = 1 << 20 // larger blocks are rare: one shard, no search
)

var (
	pageSize  = int64(os.Getpagesize())
	pageShift = bits.TrailingZeros64(uint64(pageSize))
)

// pool keeps freed blocks of one space by size class. Each shard has a lock of
// its own that is held for a few instructions; there is no lock for the whole.
type pool struct {
	tracker *Tracker
	total   *cell        // its pooled counter is what the pool holds
	limit   atomic.Int64 // bytes
	hits    atomic.Int64
	misses  atomic.Int64
	hand    atomic.Uint32 // where eviction looks next
	classes [maxClass]atomic.Pointer[class]
}

type class struct {
	shards [nbShards]shard
}

type shard struct {
	mu     sync.Mutex
	blocks []block
	_      [64 - 8 - 24]byte
}

// classOf is the size class of n bytes and the size of its blocks. Class −1
// holds what is too large to pool.
func classOf(n int64) (int16, int64) {
	pages := (n + pageSize - 1) >> pageShift
	// Below 2^classBits pages each number of pages is a class; above, each
	// octave has 2^classBits classes of equal distance.
	shift := max(bits.Len64(uint64(pages-1))-1-classBits, 0)
	steps := (pages + 1<<shift - 1) >> shift
	c := int64(shift)<<classBits + steps - 1
	if c >= maxClass {
		return -1, pages << pageShift
	}
	return int16(c), steps << (shift + pageShift)
}

// classFor is the class and the size of the block for n bytes in this pool.
// What the pool would not keep, and what is in a space without a pool, is not
// rounded up.
func (p *pool) classFor(n int64) (int16, int64) {
	limit := p.limit.Load()
	if limit == 0 {
		return -1, n
	}
	c, size := classOf(n)
	if size > limit {
		return -1, n
	}
	return c, size
}

// get moves a block of class c, which holds blocks of the given size, to b, for
// somebody who needs it. It reports false if there is none.
func (p *pool) get(c int16, size int64, b *block) bool {
	if c < 0 {
		return false
	}
	if !p.pop(c, size, b) {
		p.misses.Add(1)
		return false
	}
	p.hits.Add(1)
	return true
}

// good is get that gives no block whose memory has ended, or is another
// provider's than the present one: such blocks go back where they came from.
func (p *pool) good(c int16, size int64, b *block) bool {
	for p.get(c, size, b) {
		if p.total.space == Host || p.tracker.providers[b.space].Load() == b.from && !b.ended() {
			return true
		}
		_ = p.tracker.discard(b) // kept
	}
	return false
}

// pop is get that does not count as a hit or a miss: for blocks that leave the
// pool without anybody having asked for memory.
func (p *pool) pop(c int16, size int64, b *block) bool {
	cl := p.classes[c].Load()
	if cl == nil {
		return false
	}
	shards, at := uint32(nbShards), uint32(0)
	if size >= shardBelow {
		shards = 1
	} else {
		at = rand.Uint32()
	}
	for i := range shards {
		s := &cl.shards[(at+i)%shards]
		s.mu.Lock()
		if k := len(s.blocks) - 1; k >= 0 {
			*b = s.blocks[k]
			s.blocks[k] = block{}
			s.blocks = s.blocks[:k]
			s.mu.Unlock()
			p.unpooled(b)
			return true
		}
		s.mu.Unlock()
	}
	return false
}

// put keeps a block, if the limit allows.
func (p *pool) put(b *block) bool {
	limit := p.limit.Load()
	if b.class < 0 || b.Size > limit {
		return false
	}
	if p.total.pooled.Add(b.Size) > limit {
		// Full of sizes that nobody has asked for lately, or of this one.
		p.evict(p.total.pooled.Load()-limit, b.class)
		if p.total.pooled.Load() > limit {
			p.total.pooled.Add(-b.Size)
			return false
		}
	}
	if b.last != nil {
		b.last.pooled.Add(b.Size)
	}
	cl := p.classes[b.class].Load()
	if cl == nil {
		p.classes[b.class].CompareAndSwap(nil, new(class))
		cl = p.classes[b.class].Load()
	}
	i := uint32(0)
	if b.Size < shardBelow {
		i = rand.Uint32() % nbShards
	}
	s := &cl.shards[i]
	s.mu.Lock()
	s.blocks = append(s.blocks, *b)
	s.mu.Unlock()
	return true
}

// unpooled uncounts a block that has left the pool.
func (p *pool) unpooled(b *block) {
	p.total.pooled.Add(-b.Size)
	if b.last != nil {
		b.last.pooled.Add(-b.Size)
	}
}

// evict gives at least need bytes back to the system, if there are as many in
// classes other than keep. It goes around the classes like a clock's hand.
func (p *pool) evict(need int64, keep int16) {
	for range maxClass {
		if need <= 0 {
			return
		}
		c := int16(p.hand.Add(1) % maxClass)
		if c == keep {
			continue
		}
		need -= p.drain(c, need)
	}
}

// drain frees blocks of class c until need bytes are gone or none is left.
func (p *pool) drain(c int16, need int64) (gone int64) {
	cl := p.classes[c].Load()
	if cl == nil {
		return 0
	}
	for gone < need {
		var b block
		if !p.pop(c, 0, &b) {
			return gone
		}
		gone += b.Size
		_ = p.tracker.discard(&b) // kept
	}
	return gone
}

// trim gives memory back until at most keep bytes are pooled.
func (p *pool) trim(keep int64) (gone int64) {
	for c := int16(maxClass - 1); c >= 0; c-- {
		if over := p.total.pooled.Load() - keep; over > 0 {
			gone += p.drain(c, over)
		}
	}
	return gone
}
