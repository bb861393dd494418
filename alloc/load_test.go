package alloc

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// Goroutines make buffers, fill them, and pass them to each other to be checked
// and freed: no two live buffers share memory, whoever frees them.
func TestAllocatorUnderLoad(t *testing.T) {
	tr := newTracker()
	tr.SetPoolLimit(4 << 20)
	type item struct {
		b    *Buffer[uint64]
		mark uint64
	}
	pass := make(chan item, 64)
	var makers, takers sync.WaitGroup
	for g := range 4 {
		makers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 2))
			for i := range rounds(1500) {
				n := rng.IntN(300)
				switch rng.IntN(10) {
				case 0:
					n = rng.IntN(1 << 16)
				case 1:
					n = rng.IntN(1 << 12)
				}
				b, err := Make[uint64](scope(tr, "load", Host, nil), n, Scratch, Flags(rng.IntN(4)))
				if err != nil {
					t.Error(err)
					return
				}
				x := item{b, uint64(g)<<32 | uint64(i)}
				for j := range b.Slice() {
					b.Slice()[j] = x.mark
				}
				if rng.IntN(3) > 0 {
					b.Hand(StageOf("load-handed"))
				}
				pass <- x
				if i%100 == 0 {
					tr.TrimPool()
				}
			}
		})
		takers.Go(func() {
			for x := range pass {
				l := Adopt(x.b)
				for j, v := range x.b.Slice() {
					if v != x.mark {
						t.Errorf("element %d of %v is %#x, want %#x", j, x.b, v, x.mark)
						break
					}
				}
				l.Done()
			}
		})
	}
	makers.Wait()
	close(pass)
	takers.Wait()
	tr.TrimPool()
	s := tr.Snapshot()
	if h := s.Space(Host); h.Live != 0 || h.Pooled != 0 || h.Slack != 0 || h.Allocated != h.Freed {
		t.Fatalf("at the end: %+v", h)
	}
	var handed int64
	for _, r := range s.Rows {
		if r.Live != 0 || r.Pooled != 0 || r.Allocs != r.Frees {
			t.Errorf("%+v", r)
		}
		handed += r.Allocated
	}
	if h := s.Space(Host); handed <= h.Allocated || s.Stage("load", Host).Allocated != h.Allocated {
		t.Errorf("what was handed over is counted as allocated: %+v, rows %d", h, handed)
	}
}
