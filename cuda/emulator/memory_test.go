package emulator

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"unsafe"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

func oneCard(total int64) Config { return Config{Cards: []Card{{Total: total}}} }

// The two pools do not see each other: what was freed in the stream-ordered one
// stays there, and an allocation outside of it fails although the memory is
// free, until the pool is trimmed. The other way round the classic pool keeps
// nothing.
func TestTwoPools(t *testing.T) {
	m := start(t, oneCard(16*mib))
	var p, q uint64
	m.must(m.MemAllocAsync(&p, 12*mib, m.stream))
	m.must(m.MemFreeAsync(p, m.stream))
	m.must(m.StreamSynchronize(m.stream))
	if got := m.free(); got != 4*mib {
		t.Errorf("%d bytes free, want 4 MiB: the pool keeps 12", got)
	}
	m.want(outOfMemory, "classic allocation beside the pool", m.MemAlloc(&q, 8*mib))
	var pool uint64
	m.must(m.DefaultPool(&pool, 0))
	attr := func(a int32) (v uint64) {
		t.Helper()
		m.must(m.PoolGet(pool, a, &v))
		return v
	}
	const reserved, reservedHigh, used, usedHigh = 5, 6, 7, 8
	if attr(reserved) != 12*mib || attr(used) != 0 || attr(reservedHigh) != 12*mib || attr(usedHigh) != 12*mib {
		t.Errorf("pool: reserved %d (high %d), used %d (high %d)", attr(reserved), attr(reservedHigh), attr(used), attr(usedHigh))
	}
	// The pool itself finds it.
	m.must(m.MemAllocAsync(&p, 10*mib, m.stream))
	if attr(reserved) != 12*mib || attr(used) != 10*mib {
		t.Errorf("pool: reserved %d, used %d", attr(reserved), attr(used))
	}
	m.must(m.PoolTrimTo(pool, 0)) // what is in use stays
	if got := m.free(); got != 6*mib {
		t.Errorf("%d bytes free after a trim, want 6 MiB", got)
	}
	m.must(m.MemFreeAsync(p, m.stream))
	m.must(m.StreamSynchronize(m.stream))
	m.must(m.PoolTrimTo(pool, 3*mib))
	if got := m.free(); got != 13*mib {
		t.Errorf("%d bytes free after a trim to 3 MiB, want 13", got)
	}
	m.must(m.PoolTrimTo(pool, 0))
	m.must(m.MemAlloc(&q, 16*mib))
	m.want(outOfMemory, "pool beside a classic allocation", m.MemAllocAsync(&p, 1, m.stream))
	m.must(m.MemFree(q))
	m.must(m.MemAllocAsync(&p, 16*mib, m.stream))
	// Memory of the pool may be freed the classic way, and stays in the pool.
	m.must(m.MemFree(p))
	if got := m.free(); got != 0 {
		t.Errorf("%d bytes free, want none", got)
	}
	if s := m.stats().Cards[0]; s.PoolBlocks+s.ClassicBlocks != 0 || s.Peak != 16*mib {
		t.Errorf("stats: %+v", s)
	}
}

// With a threshold the pool behaves as the driver's does, if told to.
func TestPoolThreshold(t *testing.T) {
	c := oneCard(16 * mib)
	c.Release = true
	m := start(t, c)
	var pool, p uint64
	m.must(m.DefaultPool(&pool, 0))
	for _, keep := range []uint64{0, 5 * mib, ^uint64(0)} {
		m.must(m.PoolSet(pool, 4, &keep))
		m.must(m.MemAllocAsync(&p, 12*mib, m.stream))
		m.must(m.MemFreeAsync(p, m.stream))
		m.must(m.StreamSynchronize(m.stream))
		if got, want := m.free(), int64(16*mib-min(keep, 12*mib)); got != want {
			t.Errorf("threshold %d: %d bytes free, want %d", keep, got, want)
		}
	}
}

// A free that is queued does not hold the next allocation back, but a trim does
// not get at its memory.
func TestFreeThatIsQueued(t *testing.T) {
	c := oneCard(16 * mib)
	c.Mode = Late
	m := start(t, c)
	var p, q, pool uint64
	m.must(m.DefaultPool(&pool, 0))
	m.must(m.MemAllocAsync(&p, 10*mib, m.stream))
	w := m.alloc(8)
	m.must(m.MemsetD8Async(w, 0, 8, m.stream))
	m.must(m.launch("probe_slow", 1, 1, 0, w, uint32(1000)))
	m.must(m.MemFreeAsync(p, m.stream))
	m.must(m.PoolTrimTo(pool, 0))
	if got := m.free(); got > 6*mib {
		t.Errorf("%d bytes free while the free waits", got)
	}
	m.must(m.MemAllocAsync(&q, 10*mib, m.stream))
	m.must(m.StreamSynchronize(m.stream))
	m.must(m.MemFreeAsync(q, m.stream))
	m.must(m.StreamSynchronize(m.stream))
	m.must(m.PoolTrimTo(pool, 0))
	if got := m.free(); got < 15*mib {
		t.Errorf("%d bytes free in the end", got)
	}
}

func TestLimits(t *testing.T) {
	m := start(t, Config{Cards: []Card{{Total: 10 * mib, Others: 2 * mib, Context: mib}}, Granule: 64 * kib})
	if got := m.free(); got != 7*mib {
		t.Errorf("%d bytes free, want 7 MiB", got)
	}
	var p uint64
	m.want(outOfMemory, "too much", m.MemAlloc(&p, 7*mib+1))
	m.want(outOfMemory, "far too much", m.MemAlloc(&p, ^uint64(0)))
	m.want(outOfMemory, "far too much in the pool", m.MemAllocAsync(&p, ^uint64(0), m.stream))
	m.want(invalidValue, "nothing", m.MemAlloc(&p, 0))
	m.want(invalidValue, "nothing in the pool", m.MemAllocAsync(&p, 0, m.stream))
	q := m.alloc(1)
	if got := m.free(); got != 7*mib-64*kib {
		t.Errorf("%d bytes free beside one byte", got)
	}
	if q%256 != 0 {
		t.Errorf("address %#x is not aligned", q)
	}
	m.want(invalidValue, "free within", m.MemFree(q+1))
	m.must(m.MemFree(q))
	m.want(invalidValue, "free twice", m.MemFree(q))
	m.want(invalidValue, "free of the classic pool in a stream", m.MemFreeAsync(m.alloc(1), m.stream))
	m.must(m.MemFree(0))
	if p := m.alloc(4); download[uint32](m, p, 1)[0] != 0xa5a5a5a5 {
		t.Error("new memory holds zeros")
	}
}

func TestCopies(t *testing.T) {
	m := start(t, Config{})
	in := []byte("0123456789abcdef")
	a, b := m.alloc(16), m.alloc(16)
	m.must(m.HtoD(a, unsafe.Pointer(&in[0]), 16))
	m.must(m.DtoDAsync(b, a+4, 12, m.stream))
	m.must(m.MemsetD8Async(b+12, 'x', 2, m.stream))
	m.must(m.MemsetD32Async(b, 0x41424344, 1, m.stream))
	m.must(m.StreamSynchronize(m.stream))
	if got := download[byte](m, b, 16); !bytes.Equal(got[:14], []byte("DCBA89abcdefxx")) {
		t.Errorf("got %q", got)
	}
	m.want(invalidValue, "copy past the end", m.HtoD(a+8, unsafe.Pointer(&in[0]), 16))
	m.want(invalidValue, "copy of nowhere", m.DtoDAsync(a, 12345, 1, m.stream))
	m.want(invalidValue, "device memory as the host's", m.DtoH(*(*unsafe.Pointer)(unsafe.Pointer(&b)), a, 1))
	m.want(invalidValue, "fill past the end", m.MemsetD32Async(a, 0, 5, m.stream))
	m.want(invalidValue, "crooked fill", m.MemsetD32Async(a+2, 0, 1, m.stream))
	m.must(m.HtoD(0, nil, 0))
	m.must(m.MemFree(a))
	m.want(invalidValue, "copy of freed memory", m.HtoD(a, unsafe.Pointer(&in[0]), 16))
	if s := m.stats(); s.Cards[0].BytesIn != 16 || s.Cards[0].BytesOut != 16 || s.Pageable == 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestPinned(t *testing.T) {
	c := oneCard(mib)
	c.Pinned = mib
	m := start(t, c)
	var p unsafe.Pointer
	m.must(m.HostAlloc(&p, 100*kib, 0))
	m.want(outOfMemory, "too much pinned memory", m.HostAlloc(new(unsafe.Pointer), mib, 0))
	host := hostMemory(t, 64*kib)
	at := unsafe.Pointer(&host[0])
	m.must(m.HostRegister(at, 10*kib, 0))
	m.want(registered, "the same again", m.HostRegister(at, 10*kib, 0))
	m.want(registered, "its last page", m.HostRegister(unsafe.Pointer(&host[11*kib]), 8*kib, 0))
	m.must(m.HostRegister(unsafe.Pointer(&host[16*kib]), 16*kib, 0))
	m.want(registered, "what lies around", m.HostRegister(at, 64*kib, 0))
	m.want(registered, "what is pinned", m.HostRegister(p, 8, 0))
	m.want(invalidValue, "nothing", m.HostRegister(at, 0, 0))
	m.want(invalidValue, "no memory", m.HostRegister(*(*unsafe.Pointer)(unsafe.Pointer(new(uintptr(1 << 40)))), 4096, 0))
	m.want(notRegistered, "within", m.HostUnregister(unsafe.Pointer(&host[1])))
	m.want(notRegistered, "allocated", m.HostUnregister(p))
	m.want(invalidValue, "registered", m.FreeHost(at))
	s := m.stats().Cards[0]
	if s.Pinned != 100*kib || s.PinnedBlocks != 1 || s.Registered != 26*kib || s.Registrations != 2 {
		t.Errorf("stats: %+v", s)
	}
	d := m.alloc(100 * kib)
	m.must(m.HtoDAsync(d, p, 100*kib, m.stream))
	m.must(m.DtoHAsync(at, d, 10*kib, m.stream))
	if n := m.stats().Pageable; n != 0 {
		t.Errorf("%d copies counted as of pageable memory", n)
	}
	m.must(m.DtoHAsync(at, d, 11*kib, m.stream)) // half of it is not pinned
	if n := m.stats().Pageable; n != 1 {
		t.Errorf("%d copies counted as of pageable memory, want 1", n)
	}
	m.must(m.StreamSynchronize(m.stream))
	m.must(m.HostUnregister(at))
	m.want(notRegistered, "again", m.HostUnregister(at))
	m.must(m.HostUnregister(unsafe.Pointer(&host[16*kib])))
	m.must(m.FreeHost(p))
	m.want(invalidValue, "freed again", m.FreeHost(p))
	if s := m.stats(); s.Cards[0].Pinned+s.Cards[0].Registered != 0 || s.PinnedPeak != 126*kib {
		t.Errorf("stats: %+v", s)
	}
}

// Memory of a card is what all processes use of it.
func TestTwoProcesses(t *testing.T) {
	share := filepath.Join(t.TempDir(), "cards")
	c := Config{Cards: []Card{{Total: 16 * mib}, {Total: 16 * mib}}, Share: share}
	m := start(t, c)
	m.alloc(4 * mib)
	other := again(t, "hold", share)
	if got := other.line(); got != "free 12 MiB" {
		t.Errorf("the other process sees %q", got)
	}
	other.say("take")
	if got := other.line(); got != "took 8 MiB" {
		t.Errorf("the other process %q", got)
	}
	if got := m.free(); got != 4*mib {
		t.Errorf("%d bytes free beside the other process", got)
	}
	var p uint64
	m.want(outOfMemory, "what the other has", m.MemAlloc(&p, 5*mib))
	var h uint64
	m.must(m.NvmlInit())
	m.must(m.NvmlByIndex(0, &h))
	var n = uint32(8)
	procs := make([]nvmlProcess, n)
	m.must(m.NvmlProcesses(h, &n, &procs[0]))
	if n != 2 || procs[0].used != 4*mib || procs[1].used != 8*mib || int(procs[1].pid) != other.cmd.Process.Pid {
		t.Errorf("processes: %+v", procs[:n])
	}
	other.say("again")
	if got := other.line(); got != "out of memory" {
		t.Errorf("the other process %q", got)
	}
	// One that is killed leaves nothing behind.
	if err := other.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.cmd.Wait()
	if got := m.free(); got != 12*mib {
		t.Errorf("%d bytes free after the other process was killed", got)
	}
	m.must(m.MemAlloc(&p, 12*mib))
}

// hold is the other process.
func hold(m *machine, in func() string) {
	fmt.Printf("free %d MiB\n", m.free()/mib)
	for in() != "" {
		var p uint64
		switch code := m.MemAlloc(&p, 8*mib); code {
		case ok:
			fmt.Println("took 8 MiB")
		case outOfMemory:
			fmt.Println("out of memory")
		default:
			fmt.Println(m.name(code))
		}
	}
}
