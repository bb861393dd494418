package alloc

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

var benchSizes = []int{64, 4 << 10, 256 << 10, 4 << 20}

// BenchmarkMake is the whole of an allocation and its free: from the pool,
// counted, contents as they come.
func BenchmarkMake(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sc := scope(newTracker(), "bench", Host, nil)
			b.ReportAllocs()
			for b.Loop() {
				x, err := Make[byte](sc, n, Scratch, Dirty)
				if err != nil {
					b.Fatal(err)
				}
				x.Release()
			}
		})
	}
}

// BenchmarkMakeReserved also draws from a reservation.
func BenchmarkMakeReserved(b *testing.B) {
	r, err := NewBudget(HostBytes(1 << 30)).TryReserve(HostBytes(1 << 30))
	if err != nil {
		b.Fatal(err)
	}
	sc := scope(newTracker(), "bench", Host, r)
	b.ReportAllocs()
	for b.Loop() {
		x, err := Make[byte](sc, 256<<10, Scratch, Dirty)
		if err != nil {
			b.Fatal(err)
		}
		x.Release()
	}
}

// BenchmarkRawPool is the pool alone, without a buffer and without counting it:
// what the numbers above are to be compared with.
func BenchmarkRawPool(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tr := newTracker()
			p := &tr.pools[Host]
			c, size := p.classFor(int64(n))
			small := n <= maxSmall
			b.ReportAllocs()
			for b.Loop() {
				var blk block
				if small {
					if err := tr.slabs.take(int64(n), &blk); err != nil {
						b.Fatal(err)
					}
					tr.slabs.give(&blk)
					continue
				}
				if !p.get(c, size, &blk) {
					if err := p.fresh(tr.providers[Host].Load(), c, size, int64(n), &blk); err != nil {
						b.Fatal(err)
					}
				}
				p.put(&blk)
			}
		})
	}
}

// BenchmarkPlain is what a program without this package would do: make, and a
// map of sizes behind one mutex to know what is live.
func BenchmarkPlain(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var p plainCounter
			p.live = make(map[*byte]int)
			b.ReportAllocs()
			for b.Loop() {
				p.free(p.make(n))
			}
		})
	}
}

type plainCounter struct {
	mu   sync.Mutex
	live map[*byte]int
	sum  int
	peak int
}

func (p *plainCounter) make(n int) []byte {
	x := make([]byte, n)
	p.mu.Lock()
	p.live[&x[0]] = n
	p.sum += n
	p.peak = max(p.peak, p.sum)
	p.mu.Unlock()
	return x
}

func (p *plainCounter) free(x []byte) {
	p.mu.Lock()
	p.sum -= p.live[&x[0]]
	delete(p.live, &x[0])
	p.mu.Unlock()
}

// BenchmarkParallel is BenchmarkMake on all processors, beside the same with
// the plain counter, and with frees through one goroutine (F10).
func BenchmarkParallel(b *testing.B) {
	const n = 64 << 10
	pooled := func(b *testing.B, tr *Tracker) {
		b.RunParallel(func(pb *testing.PB) {
			sc := scope(tr, "bench", Host, nil)
			for pb.Next() {
				x, err := Make[byte](sc, n, Scratch, Dirty)
				if err != nil {
					b.Error(err)
					return
				}
				x.Release()
			}
		})
	}
	b.Run("alloc", func(b *testing.B) { pooled(b, newTracker()) })
	b.Run("one-goroutine", func(b *testing.B) {
		tr := newTracker()
		d := newDetour()
		tr.detour.Store(d)
		pooled(b, tr)
		b.ReportMetric(float64(d.peak.Load()), "pending-bytes")
		b.StopTimer()
		for d.pending.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		d.close()
	})
	b.Run("plain", func(b *testing.B) {
		p := plainCounter{live: make(map[*byte]int)}
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.free(p.make(n))
			}
		})
	})
}

func BenchmarkRetainRelease(b *testing.B) {
	x, err := Make[byte](scope(newTracker(), "bench", Host, nil), 1<<16, Scratch, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Retain()
		x.Release()
	}
	x.Release()
}

func BenchmarkHand(b *testing.B) {
	x, err := Make[byte](scope(newTracker(), "bench", Host, nil), 1<<16, Scratch, 0)
	if err != nil {
		b.Fatal(err)
	}
	to := [2]Stage{StageOf("bench-a"), StageOf("bench-b")}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		x.Hand(to[i&1])
		i++
	}
	x.Release()
}

func BenchmarkLease(b *testing.B) {
	x, err := Make[byte](scope(newTracker(), "bench", Host, nil), 1<<16, Scratch, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		NewLease(x, x).Done()
	}
	x.Release()
}

func BenchmarkLive(b *testing.B) {
	tr := newTracker()
	b.ReportAllocs()
	for b.Loop() {
		_ = tr.Live(Host)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	tr, done := filled(b)
	defer done()
	b.ReportAllocs()
	for b.Loop() {
		_ = tr.Snapshot()
	}
}

func BenchmarkReserve(b *testing.B) {
	bud := NewBudget(HostBytes(1 << 30))
	b.ReportAllocs()
	for b.Loop() {
		r, err := bud.Reserve(b.Context(), HostBytes(1<<20))
		if err != nil {
			b.Fatal(err)
		}
		r.Shrink(HostBytes(1 << 19))
		r.Close()
	}
}
