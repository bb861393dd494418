package alloc

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<36).Draw(t, "n")
		c, size := classOf(n)
		if c < 0 || c >= maxClass {
			t.Fatalf("class %d", c)
		}
		if size < n || size%pageSize != 0 || size-n >= max(n/16+1, pageSize) {
			t.Fatalf("%d bytes get %d", n, size)
		}
		if c2, size2 := classOf(size); c2 != c || size2 != size {
			t.Fatalf("class %d of %d bytes is class %d of %d", c, size, c2, size2)
		}
		if c2, size2 := classOf(size + 1); c2 != c+1 || size2 <= size {
			t.Fatalf("after class %d of %d bytes comes %d of %d", c, size, c2, size2)
		}
	})
	if c, size := classOf(maxBytes); c >= 0 && size < maxBytes {
		t.Fatal("the largest size is in a class that is too small")
	}
}

func TestFreedMemoryIsReusedAndCounted(t *testing.T) {
	if Debug {
		t.Skip("debug builds keep freed memory in quarantine first")
	}
	tr := newTracker()
	sc := scope(tr, "pool", Host, nil)
	a := must[*Buffer[byte]](t)(Make[byte](sc, 100_000, Scratch, 0))
	at, size := a.Addr(), a.block.Size
	if s := tr.Snapshot().Space(Host); s.Slack != size-100_000 || s.Pooled != 0 {
		t.Fatalf("%+v", s)
	}
	a.Slice()[99_999] = 1
	a.Release()
	s := tr.Snapshot()
	if s.Space(Host).Pooled != size || s.Space(Host).Slack != 0 || s.Rows[0].Pooled != size {
		t.Fatalf("freed: %+v %+v", s.Space(Host), s.Rows)
	}
	b := must[*Buffer[byte]](t)(Make[byte](sc, 100_001, Scratch, 0)) // same class
	if b.Addr() != at {
		t.Fatal("not reused")
	}
	if b.Slice()[99_999] != 0 {
		t.Fatal("reused memory is not zero")
	}
	if s := tr.Snapshot(); s.Space(Host).Pooled != 0 || s.Rows[0].Pooled != 0 || s.Space(Host).PoolHits != 1 {
		t.Fatalf("reused: %+v", s.Space(Host))
	}
	b.Release()
	if n := tr.TrimPool(); n != size || tr.Pooled(Host) != 0 {
		t.Fatalf("TrimPool gave %d of %d, %d left", n, size, tr.Pooled(Host))
	}
}

func TestPoolIsBounded(t *testing.T) {
	tr := newTracker()
	tr.SetPoolLimit(1 << 20)
	sc := scope(tr, "pool", Host, nil)
	fill := func(n, count int) {
		var bs []*Buffer[byte]
		for range count {
			bs = append(bs, must[*Buffer[byte]](t)(Make[byte](sc, n, Scratch, Dirty)))
		}
		for _, b := range bs {
			b.Release()
			if p := tr.Pooled(Host); !Debug && p > 1<<20 {
				t.Fatalf("%d bytes are pooled", p)
			}
		}
	}
	fill(64<<10, 32)
	tr.debugDrain()
	if p := tr.Pooled(Host); p != 1<<20 {
		t.Fatalf("%d bytes are pooled, want it full", p)
	}
	// Another size pushes the old one out.
	fill(256<<10, 8)
	tr.debugDrain()
	c, _ := classOf(256 << 10)
	if n := tr.pools[Host].classes[c].Load().count(); n != 4 {
		t.Fatalf("%d blocks of the new size are pooled, want 4", n)
	}
	tr.SetPoolLimit(0)
	if p := tr.Pooled(Host); p != 0 {
		t.Fatalf("%d bytes are pooled without a pool", p)
	}
	fill(64<<10, 2)
	tr.debugDrain()
	if p := tr.Pooled(Host); p != 0 {
		t.Fatalf("%d bytes are pooled without a pool", p)
	}
}

// Hits and misses are what allocations found: blocks that are trimmed or
// evicted are neither.
func TestTrimsAreNoHits(t *testing.T) {
	tr := newTracker()
	tr.SetPoolLimit(1 << 20)
	sc := scope(tr, "pool", Host, nil)
	made := int64(0)
	fill := func(n, count int) {
		var bs []*Buffer[byte]
		for range count {
			bs = append(bs, must[*Buffer[byte]](t)(Make[byte](sc, n, Scratch, Dirty)))
			made++
		}
		for _, b := range bs {
			b.Release()
		}
		tr.debugDrain()
	}
	fill(64<<10, 16)
	fill(256<<10, 4) // evicts
	if p := tr.Pooled(Host); p != 1<<20 {
		t.Fatalf("%d bytes are pooled: nothing was evicted", p)
	}
	if n := tr.TrimPool(); n != 1<<20 {
		t.Fatalf("%d bytes were trimmed", n)
	}
	tr.TrimPool() // of an empty pool
	if s := tr.Snapshot().Space(Host); s.PoolHits != 0 || s.PoolMisses != made {
		t.Fatalf("%d hits and %d misses after %d allocations that found nothing", s.PoolHits, s.PoolMisses, made)
	}
}

// debugDrain ends the quarantine that debug builds keep.
func (t *Tracker) debugDrain() {
	if Debug {
		t.debug.drain(Host)
	}
}

// What is live and what is pooled together never exceed what was live at the
// peak: a pool must not make a program larger.
func TestPoolDoesNotRaiseTheMark(t *testing.T) {
	if Debug {
		t.Skip("debug builds keep freed memory in quarantine first")
	}
	tr := newTracker()
	sc := scope(tr, "pool", Host, nil)
	for _, n := range []int{4 << 20, 5 << 20, 6 << 20, 7 << 20, 8 << 20, 3 << 20} {
		b := must[*Buffer[byte]](t)(Make[byte](sc, n, Scratch, Dirty))
		if sum := tr.Live(Host) + tr.Pooled(Host); sum > tr.Peak(Host) {
			t.Fatalf("%d bytes live and pooled, with a peak of %d", sum, tr.Peak(Host))
		}
		b.Release()
	}
}

// The pool of a device keeps blocks of other sizes than the last: to free them
// there takes long, and the engine gives them up when it needs the room.
func TestPoolOfADeviceFills(t *testing.T) {
	if Debug {
		t.Skip("debug builds keep freed memory in quarantine first")
	}
	tr := newTracker()
	dev := newTestProvider(1 << 20)
	_, _ = tr.Register(Device(0), dev)
	tr.SetPoolLimitOf(Device(0), 400<<10)
	sc := scope(tr, "pool", Device(0), nil)
	for range 3 {
		for _, n := range []int{128 << 10, 64 << 10, 96 << 10} {
			must[*Buffer[byte]](t)(Make[byte](sc, n, Scratch, Dirty)).Release()
		}
	}
	if len(dev.freed) != 0 || tr.Pooled(Device(0)) != 288<<10 {
		t.Errorf("%d blocks were freed, %d bytes are pooled", len(dev.freed), tr.Pooled(Device(0)))
	}
}

func TestSmallBuffersShareSlabs(t *testing.T) {
	tr := newTracker()
	sc := scope(tr, "small", Host, nil)
	var bs []*Buffer[byte]
	seen := map[uintptr]bool{}
	for i := range 5000 {
		b := must[*Buffer[byte]](t)(Make[byte](sc, 1+i%100, Scratch, 0))
		if seen[b.Addr()] {
			t.Fatal("two live buffers have one address")
		}
		seen[b.Addr()] = true
		for _, v := range b.Slice() {
			if v != 0 {
				t.Fatal("not zero")
			}
		}
		fillBytes(b.Slice(), 0xFF)
		bs = append(bs, b)
	}
	s := tr.Snapshot().Space(Host)
	if total := s.Live + s.Slack + s.Pooled; total > 5000*128+2*slabSize {
		t.Fatalf("5000 small buffers take %d bytes", total)
	}
	for i := range bs {
		bs[(i*7)%5000].Release() // 7 and 5000 have no common factor
	}
	tr.TrimPool()
	if s := tr.Snapshot().Space(Host); s.Live != 0 || s.Slack != 0 || s.Pooled != 0 {
		t.Fatalf("at the end: %+v", s)
	}
	for i := range tr.slabs.classes {
		if c := &tr.slabs.classes[i]; c.first != nil || c.empty != 0 {
			t.Fatalf("class %d keeps a slab", i)
		}
	}
}

// Random sizes, with contents checked: no two live buffers overlap, and
// everything adds up.
func TestAllocatorProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTracker()
		tr.SetPoolLimit(rapid.SampledFrom([]int64{0, 1 << 16, 1 << 20, 1 << 30}).Draw(t, "pool"))
		sc := scope(tr, "random", Host, nil)
		type held struct {
			b    *Buffer[uint32]
			mark uint32
		}
		var bs []held
		var live int64
		check := func(h held) {
			for i, v := range h.b.Slice() {
				if v != h.mark {
					t.Fatalf("element %d of buffer %d is %#x", i, h.mark, v)
				}
			}
		}
		for k, n := range rapid.SliceOfN(rapid.IntRange(-20, 40_000), 1, 60).Draw(t, "sizes") {
			if n < 0 && len(bs) > 0 {
				i := -n % len(bs)
				check(bs[i])
				live -= bs[i].b.Bytes()
				bs[i].b.Release()
				bs = append(bs[:i], bs[i+1:]...)
				continue
			}
			n = max(n, 0)
			if n%3 == 0 {
				n /= 100
			}
			b, err := Make[uint32](sc, n, Scratch, 0)
			if err != nil {
				t.Fatal(err)
			}
			h := held{b, uint32(k + 1)}
			for i, v := range b.Slice() {
				if v != 0 {
					t.Fatalf("element %d of a new buffer is %#x", i, v)
				}
				b.Slice()[i] = h.mark
			}
			live += b.Bytes()
			bs = append(bs, h)
			if tr.Live(Host) != live {
				t.Fatalf("live %d, want %d", tr.Live(Host), live)
			}
		}
		for _, h := range bs {
			check(h)
			h.b.Release()
		}
		tr.TrimPool()
		if s := tr.Snapshot().Space(Host); s.Live != 0 || s.Pooled != 0 || s.Slack != 0 || s.Allocated != s.Freed {
			t.Fatalf("at the end: %+v", s)
		}
	})
}

func TestSecretsAreWiped(t *testing.T) {
	if Debug {
		t.Skip("debug builds poison everything")
	}
	for _, n := range []int{100, 10_000, 200_000} {
		for _, f := range []Flags{0, Secret} {
			tr := newTracker()
			b := must[*Buffer[byte]](t)(Make[byte](scope(tr, "secret", Host, nil), n, Witness, f))
			fillBytes(b.Slice(), 0x5A)
			p := unsafe.Pointer(unsafe.SliceData(b.Slice()))
			b.Release() // to the pool or the slab: still mapped
			left := 0
			for _, v := range bytesAt(p, n) {
				if v == 0x5A {
					left++
				}
			}
			if f == Secret && left > 0 {
				t.Errorf("%d of %d bytes of a secret are left", left, n)
			}
			if f == 0 && left == 0 {
				t.Errorf("the test looks at the wrong place")
			}
		}
	}
}

func (c *class) count() (n int) {
	for i := range c.shards {
		n += len(c.shards[i].blocks)
	}
	return n
}

// TestForeignMemoryTakesThePoolsPlace: what somebody else is about to allocate
// makes the pool give way like memory of our own, so that both together stay
// within the peak of what was needed.
func TestForeignMemoryTakesThePoolsPlace(t *testing.T) {
	if Debug {
		t.Skip("debug builds keep freed memory in quarantine first")
	}
	tr := newTracker()
	sc := scope(tr, "solve", Host, nil)
	b := must[*Buffer[byte]](t)(Make[byte](sc, 8<<20, Scratch, 0))
	b.Release()
	if tr.Pooled(Host) < 8<<20 {
		t.Fatalf("%d bytes are pooled", tr.Pooled(Host))
	}
	c := must[*Charge](t)(Foreign(sc, External, 6<<20))
	defer c.Release()
	if sum := tr.Live(Host) + tr.Pooled(Host); sum > tr.Peak(Host) {
		t.Errorf("%d bytes live and pooled, the peak of live is %d", sum, tr.Peak(Host))
	}
}
