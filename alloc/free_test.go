package alloc

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowProvider takes a while to free, as unmapping gigabytes does.
type slowProvider struct {
	*testProvider
	freeing, together *atomic.Int64 // frees that go on now, and the most there were
}

func (p slowProvider) Free(r Region) error {
	n := p.freeing.Add(1)
	defer p.freeing.Add(-1)
	for m := p.together.Load(); n > m && !p.together.CompareAndSwap(m, n); m = p.together.Load() {
	}
	time.Sleep(time.Millisecond)
	return p.testProvider.Free(r)
}

// freeAll has workers make and release buffers, and returns the most bytes that
// were released and not freed at any moment.
func freeAll(t *testing.T, tr *Tracker, workers, each, size int) int64 {
	t.Helper()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			sc := scope(tr, "free", Device(0), nil)
			for range each {
				b, err := Make[byte](sc, size, Scratch, Dirty)
				if err != nil {
					t.Error(err)
					return
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if d := tr.detour.Load(); d != nil {
		return d.peak.Load()
	}
	return tr.Live(Device(0)) // all are released
}

// F10: every free went through one thread behind one mutex, and freed memory
// queued up. Provoked by the detour; without it, memory is gone when Release
// returns, and frees of several goroutines go on side by side.
func TestFreesDoNotQueue(t *testing.T) {
	const workers, each, size = 8, 12, 1000
	device := func() (*Tracker, slowProvider) {
		tr, p := newTracker(), slowProvider{newTestProvider(1 << 30), new(atomic.Int64), new(atomic.Int64)}
		_, _ = tr.Register(Device(0), p)
		return tr, p
	}

	t.Run("through one goroutine", func(t *testing.T) {
		tr, p := device()
		d := newDetour()
		tr.detour.Store(d)
		pending := freeAll(t, tr, workers, each, size)
		if pending < workers*size {
			t.Fatalf("only %d bytes were pending: the fault was not provoked", pending)
		}
		if tr.Live(Device(0)) == 0 {
			t.Fatal("nothing was left in the queue: the fault was not provoked")
		}
		t.Logf("%d of %d bytes were released and not freed", pending, workers*each*size)
		for d.pending.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		d.close()
		if n := p.together.Load(); n != 1 {
			t.Fatalf("%d frees went on together: the fault was not provoked", n)
		}
	})

	t.Run("in the goroutine that releases", func(t *testing.T) {
		tr, p := device()
		pending := freeAll(t, tr, workers, each, size)
		if pending != 0 || p.inUse() != 0 {
			t.Fatalf("%d bytes are pending, the device has %d", pending, p.inUse())
		}
		if tr.Peak(Device(0)) > workers*size {
			t.Fatalf("the peak is %d bytes, %d workers hold %d each", tr.Peak(Device(0)), workers, size)
		}
		if n := p.together.Load(); n < workers/2 {
			t.Errorf("at most %d of %d frees went on together", n, workers)
		}
	})
}

// Released memory is gone, in every class of size, when Release returns.
func TestReleaseFreesAtOnce(t *testing.T) {
	for _, size := range []int{10, 5000, 1 << 20, 5 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			tr := newTracker()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range rounds(50) {
						b, err := Make[byte](scope(tr, "free", Host, nil), size, Scratch, Dirty)
						if err != nil {
							t.Error(err)
							return
						}
						b.Release()
					}
				})
			}
			wg.Wait()
			if tr.Live(Host) != 0 {
				t.Fatalf("%d bytes are live", tr.Live(Host))
			}
		})
	}
}
