package alloc

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// scope is a scope in a tracker of the test's own.
func scope(tr *Tracker, stage string, s Space, r *Reservation) *Scope {
	return &Scope{tracker: tr, stage: StageOf(stage), space: s, res: r}
}

// on is an amount of host memory and of the memory of the first device.
func on(host, device int64) Amount { return HostBytes(host).Add(BytesIn(Device(0), device)) }

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// thrown is what f panics with, or nil.
func thrown(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// memTB is a TB that remembers.
type memTB struct{ errs []string }

func (*memTB) Helper()                     {}
func (m *memTB) Errorf(f string, a ...any) { m.errs = append(m.errs, fmt.Sprintf(f, a...)) }

var errNoDevice = errors.New("the device is out of memory")

// testProvider is the memory of a pretended device: Go cannot address it, there
// is a limit, and any allocation, fill or free can be made to fail.
type testProvider struct {
	mu       sync.Mutex
	limit    int64
	used     int64
	next     uintptr
	mem      map[uintptr][]byte
	freed    map[uintptr][]byte // what was in it when it was freed
	failNext bool
	failFill bool
	failFree bool
	allocs   int
}

func newTestProvider(limit int64) *testProvider {
	return &testProvider{limit: limit, next: 0x1000, mem: map[uintptr][]byte{}, freed: map[uintptr][]byte{}}
}

func (p *testProvider) Alloc(n int64) (Region, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failNext || p.used+n > p.limit {
		p.failNext = false
		return Region{}, errNoDevice
	}
	p.allocs++
	p.used += n
	a := p.next
	p.next += uintptr(n+255) &^ 255
	p.mem[a] = slices.Repeat([]byte{0xEE}, int(n))
	return Region{Addr: a, Size: n}, nil
}

func (p *testProvider) Free(r Region) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.mem[r.Addr]
	if m == nil {
		return fmt.Errorf("free of unknown address %#x", r.Addr)
	}
	p.used -= int64(len(m))
	p.freed[r.Addr] = m
	delete(p.mem, r.Addr)
	if p.failFree {
		return errors.New("the device lost the memory")
	}
	return nil
}

func (p *testProvider) Fill(r Region, n int64, v byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failFill {
		return errors.New("the device cannot fill")
	}
	fillBytes(p.mem[r.Addr][:n], v)
	return nil
}

func (p *testProvider) inUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// bytesAt looks at memory again after it was freed to a pool.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// rounds is n, or less in debug builds, which fill and check every byte.
func rounds(n int) int {
	if Debug {
		return n / 10
	}
	return n
}
