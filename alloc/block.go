package alloc

import "sync"

// block is a region on its way between provider, pool and buffer.
type block struct {
	Region
	from  *Provider // where it goes back to
	slab  *slab     // small blocks only
	last  *cell     // who used it last, which counts it as pooled
	rec   *record
	index int32 // in the slab
	class int16 // of the pool; −1 for memory that is not pooled
	space Space
}

// ended reports whether the provider's memory is gone.
func (b *block) ended() bool {
	e, ok := (*b.from).(Ender)
	return ok && e.Ended()
}

// fill sets the first n bytes to v.
func (b *block) fill(n int64, v byte) error {
	if b.Bytes == nil {
		if n == 0 {
			return nil
		}
		return (*b.from).Fill(b.Region, n, v)
	}
	fillBytes(b.Bytes[:n], v)
	return nil
}

// wipeMin is the size from which it is worth several goroutines to clear memory,
// and wipeOver how many.
const (
	wipeMin  = 32 << 20
	wipeOver = 4
)

func fillBytes(p []byte, v byte) {
	if v == 0 && len(p) >= wipeMin {
		// One core is far from the memory's limit, and who frees a vector waits.
		var wg sync.WaitGroup
		step := (len(p)/wipeOver + 4095) &^ 4095
		for ; len(p) > step; p = p[step:] {
			part := p[:step]
			wg.Go(func() { clear(part) })
		}
		clear(p)
		wg.Wait()
		return
	}
	if v == 0 || len(p) == 0 {
		clear(p)
		return
	}
	p[0] = v
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// take finds n > 0 bytes in a space: from a slab, from the pool, or from the
// provider. It fills b in.
func (t *Tracker) take(space Space, n int64, f Flags, b *block) error {
	provider := t.providers[space].Load()
	if provider == nil {
		return ErrNoProvider
	}
	p := &t.pools[space]
	if space == Host && n <= maxSmall {
		if err := t.slabs.take(n, b); err != nil {
			return err
		}
	} else if c, size := p.classFor(n); !p.good(c, size, b) {
		if err := p.fresh(provider, c, size, n, b); err != nil {
			return err
		}
	}
	if Debug {
		b.leaveQuarantine(n)
	}
	var err error
	switch {
	case f&Dirty == 0 && !b.Zeroed:
		err = b.fill(n, 0)
	case Debug && f&Dirty != 0:
		err = b.fill(n, dirtyPattern) // so that nobody comes to rely on zeros
	}
	if err != nil {
		if !t.keeps.Load() {
			_ = t.discard(b) // err is why; the other one is kept
		}
		return err
	}
	b.Zeroed = false
	if d := b.Size - n; d != 0 {
		p.total.slack.Add(d)
	}
	return nil
}

// makeRoom trims the pool before n more bytes are there. The pool must not raise
// the mark of memory that was really needed: what is live and what is pooled
// stay within the peak of live. A device's pool may fill up to its limit: it is
// no part of the program's size, and to free memory there waits for the device.
func (p *pool) makeRoom(n int64) {
	if p.total.space > Pinned {
		return
	}
	pooled := p.total.pooled.Load()
	if pooled == 0 {
		return
	}
	live := p.total.live.Load() + n
	if over := live + pooled - max(live, p.total.peak.Load()); over > 0 {
		p.trim(max(pooled-over, 0))
	}
}

// fresh asks the provider for size bytes, of which n are needed now.
func (p *pool) fresh(from *Provider, c int16, size, n int64, b *block) error {
	if size >= shardBelow {
		p.makeRoom(n)
	}
	r, err := (*from).Alloc(size)
	if err != nil && p.total.pooled.Load() > 0 {
		// Pooled memory is of no use to anybody if there is no other.
		p.tracker.TrimPoolOf(p.total.space)
		r, err = (*from).Alloc(size)
	}
	if err != nil {
		return err
	}
	*b = block{Region: r, from: from, class: c, space: p.total.space}
	return nil
}

// give takes back the memory of a buffer of n bytes that was counted in at. An
// error has been kept already (see failed).
func (t *Tracker) give(b *block, n int64, secret bool, at *cell, rec *record) error {
	p := &t.pools[b.space]
	if d := b.Size - n; d != 0 {
		p.total.slack.Add(-d)
	}
	b.last = at
	var err error
	if Debug {
		// Poison wipes as well.
		var kept bool
		if kept, err = t.debug.quarantine(b, n, rec); kept {
			return nil
		}
	} else if secret {
		err = b.fill(n, 0)
	}
	if err != nil {
		// It cannot be wiped, so it is not kept for others either.
		t.failed(err)
		_ = t.discard(b)
		return err
	}
	return t.settle(b)
}

// settle keeps a block for reuse or gives it back to where it came from.
func (t *Tracker) settle(b *block) error {
	if b.slab != nil {
		return t.discard(b)
	}
	p := &t.pools[b.space]
	if t.providers[b.space].Load() == b.from && p.put(b) {
		if t.providers[b.space].Load() != b.from { // changed since, and did not see it
			p.trim(0)
		}
		return nil
	}
	return t.discard(b)
}

// discard gives a block back to where it came from. An error has been kept.
func (t *Tracker) discard(b *block) error {
	if Debug {
		b.leaveQuarantine(0)
	}
	if b.slab != nil {
		t.slabs.give(b)
		return nil
	}
	err := (*b.from).Free(b.Region)
	if err != nil {
		t.failed(err)
	}
	return err
}

// failed keeps an error that Release cannot return.
func (t *Tracker) failed(err error) {
	t.freeErrors.Add(1)
	t.freeError.Store(&err)
}

// FreeErrors is how often a provider could not free or wipe memory, and the
// last error of that kind.
func (t *Tracker) FreeErrors() (n int64, last error) {
	if p := t.freeError.Load(); p != nil {
		last = *p
	}
	return t.freeErrors.Load(), last
}

// SetPoolLimit bounds how many bytes of freed host memory are kept for reuse; 0
// keeps none. What is pooled beyond it is given back at once.
func (t *Tracker) SetPoolLimit(bytes int64) { t.SetPoolLimitOf(Host, bytes) }

// SetPoolLimitOf is SetPoolLimit for any space. Spaces other than Host begin
// with 0. Where a pool is used, sizes are rounded up by at most a sixteenth.
func (t *Tracker) SetPoolLimitOf(s Space, bytes int64) {
	if s.Valid() {
		t.pools[s].limit.Store(max(bytes, 0))
		t.pools[s].trim(max(bytes, 0))
	}
}

// TrimPool gives all pooled memory of every space back to the system and
// returns how many bytes that was.
func (t *Tracker) TrimPool() (n int64) {
	for s := Host; s.Valid(); s++ {
		n += t.TrimPoolOf(s)
	}
	return n
}

// TrimPoolOf is TrimPool for one space.
func (t *Tracker) TrimPoolOf(s Space) int64 {
	if !s.Valid() {
		return 0
	}
	if Debug {
		t.debug.drain(s)
	}
	n := t.pools[s].trim(0)
	if s == Host {
		n += t.slabs.trim()
	}
	return n
}
