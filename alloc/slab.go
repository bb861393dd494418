package alloc

import (
	"math/bits"
	"sync"
)

const (
	minSmall = 64       // the smallest block, a cache line
	maxSmall = 2048     // the largest block that comes from a slab
	slabSize = 64 << 10 // of which blocks are carved
	nbSmall  = 6        // 64, 128 … 2048
)

// slab is a piece of host memory that is carved into blocks of one size.
type slab struct {
	region     Region
	from       *Provider
	free       []int32 // indices of free blocks; capacity for all from the start
	used       int
	prev, next *slab // among those with free blocks
	class      *smallClass
}

// smallClass has the slabs of one block size. Its lock is held for a few
// instructions, never while memory is mapped or unmapped.
type smallClass struct {
	mu    sync.Mutex
	size  int64
	first *slab // slabs with free blocks
	empty int   // slabs in the list with no block in use
	_     [64]byte
}

// slabs serve small host buffers, so that they do not take a page each.
type slabs struct {
	tracker *Tracker
	classes [nbSmall]smallClass
}

func (s *slabs) init(t *Tracker) {
	s.tracker = t
	for i := range s.classes {
		s.classes[i].size = minSmall << i
	}
}

// take fills b in with n bytes, 0 < n ≤ maxSmall.
func (s *slabs) take(n int64, b *block) error {
	c := &s.classes[max(bits.Len64(uint64(n-1))-6, 0)]
	c.mu.Lock()
	if c.first == nil {
		c.mu.Unlock()
		fresh, err := s.fresh(c)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.push(fresh)
		c.empty++
	}
	sl := c.first
	k := len(sl.free) - 1
	i := sl.free[k]
	sl.free = sl.free[:k]
	if sl.used == 0 {
		c.empty--
	}
	sl.used++
	if k == 0 {
		c.remove(sl)
	}
	c.mu.Unlock()
	s.tracker.pools[Host].total.pooled.Add(-c.size)
	at := int64(i) * c.size
	mem := sl.region.Bytes[at : at+c.size : at+c.size]
	*b = block{
		Region: Region{Bytes: mem, Addr: sl.region.Addr + uintptr(at), Size: c.size},
		from:   sl.from, slab: sl, class: -1, index: i, space: Host,
	}
	return nil
}

// fresh makes a slab. What is free in slabs counts as pooled.
func (s *slabs) fresh(c *smallClass) (*slab, error) {
	from := s.tracker.providers[Host].Load()
	r, err := (*from).Alloc(slabSize)
	if err != nil {
		return nil, err
	}
	n := int32(slabSize / c.size)
	sl := &slab{region: r, from: from, free: make([]int32, n), class: c}
	for i := range sl.free {
		sl.free[i] = n - 1 - int32(i)
	}
	s.tracker.pools[Host].total.pooled.Add(int64(n) * c.size)
	return sl, nil
}

// give takes a block back. Of the slabs that nobody uses one is kept.
func (s *slabs) give(b *block) {
	sl := b.slab
	c := sl.class
	s.tracker.pools[Host].total.pooled.Add(c.size)
	c.mu.Lock()
	sl.free = append(sl.free, b.index)
	sl.used--
	if len(sl.free) == 1 {
		c.push(sl)
	}
	drop := false
	if sl.used == 0 {
		if drop = c.empty > 0; drop {
			c.remove(sl)
		} else {
			c.empty++
		}
	}
	c.mu.Unlock()
	if drop {
		s.drop(sl)
	}
}

func (s *slabs) drop(sl *slab) {
	s.tracker.pools[Host].total.pooled.Add(-slabSize / sl.class.size * sl.class.size)
	if err := (*sl.from).Free(sl.region); err != nil {
		s.tracker.failed(err)
	}
}

// trim gives the slabs that nobody uses back to the system.
func (s *slabs) trim() (n int64) {
	for i := range s.classes {
		c := &s.classes[i]
		var drop *slab
		c.mu.Lock()
		for sl := c.first; sl != nil; {
			next := sl.next
			if sl.used == 0 {
				c.remove(sl)
				c.empty--
				sl.next, drop = drop, sl
			}
			sl = next
		}
		c.mu.Unlock()
		for drop != nil {
			sl := drop
			drop = sl.next
			s.drop(sl)
			n += slabSize
		}
	}
	return n
}

func (c *smallClass) push(sl *slab) {
	sl.prev, sl.next = nil, c.first
	if c.first != nil {
		c.first.prev = sl
	}
	c.first = sl
}

func (c *smallClass) remove(sl *slab) {
	if sl.prev == nil {
		c.first = sl.next
	} else {
		sl.prev.next = sl.next
	}
	if sl.next != nil {
		sl.next.prev = sl.prev
	}
	sl.prev, sl.next = nil, nil
}
