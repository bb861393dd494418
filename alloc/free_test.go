package alloc

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// slowProvider takes a while to free, as unmapping gigabytes does.
type slowProvider struct {
	*testProvider
	freeTime time.Duration
}

func (p slowProvider) Free(r Region) error {
	time.Sleep(p.freeTime)
	return p.testProvider.Free(r)
}

// freeAll has workers make and release buffers, and returns how long that took
// and the most bytes that were released and not freed at any moment.
func freeAll(t *testing.T, tr *Tracker, workers, each, size int) (time.Duration, int64) {
	t.Helper()
	var wg sync.WaitGroup
	start := time.Now()
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
	took := time.Since(start)
	if d := tr.detour.Load(); d != nil {
		return took, d.peak.Load()
	}
	return took, tr.Live(Device(0)) // all are released
}

// F10: every free went through one thread behind one mutex, and freed memory
// queued up. Provoked by the detour; without it, memory is gone when Release
// returns, and frees of several goroutines go on side by side.
func TestFreesDoNotQueue(t *testing.T) {
	const workers, each, size = 8, 12, 1000
	make := func() (*Tracker, *testProvider) {
		tr, p := newTracker(), newTestProvider(1<<30)
		_, _ = tr.Register(Device(0), slowProvider{p, time.Millisecond})
		return tr, p
	}

	t.Run("through one goroutine", func(t *testing.T) {
		tr, _ := make()
		d := newDetour()
		tr.detour.Store(d)
		_, pending := freeAll(t, tr, workers, each, size)
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
	})

	t.Run("in the goroutine that releases", func(t *testing.T) {
		tr, p := make()
		took, pending := freeAll(t, tr, workers, each, size)
		if pending != 0 || p.inUse() != 0 {
			t.Fatalf("%d bytes are pending, the device has %d", pending, p.inUse())
		}
		if tr.Peak(Device(0)) > workers*size {
			t.Fatalf("the peak is %d bytes, %d workers hold %d each", tr.Peak(Device(0)), workers, size)
		}
		// One after another the frees alone would take workers·each ms.
		if took > workers*each*time.Millisecond/2 {
			t.Errorf("%d frees of 1 ms took %v on %d goroutines", workers*each, took, workers)
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
					for range 50 {
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
