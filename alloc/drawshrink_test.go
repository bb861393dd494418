package alloc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestDrawBesideShrink: while one stage frees its memory and ends, so that the
// reservation shrinks by that, another one draws what is its own. It is never
// refused, and at the end nothing stays in use. A draw is refused wrongly only when
// the neighbour frees and shrinks between two of its instructions: hence as many
// rounds as fit in the time, which on two free cores is hundreds of such cases.
func TestDrawBesideShrink(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("the two must run at once")
	}
	const own, others, steps = 10, 1000, 20 // bytes; the neighbour ends in so many steps
	tr := newTracker()
	b := NewBudget(HostBytes(own + steps*others))
	var refused, rounds int
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end) && refused == 0; rounds++ {
		r := must[*Reservation](t)(b.TryReserve(b.Limit()))
		mine, neighbour := scope(tr, "mine", Host, r), scope(tr, "neighbour", Host, r)
		if err := neighbour.res.draw(neighbour, Bucket, steps*others); err != nil {
			t.Fatal(err)
		}
		var ready, ended atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer ended.Store(true)
			for !ready.Load() {
				runtime.Gosched()
			}
			for left := int64(steps - 1); left >= 0; left-- {
				r.undraw(Host, others)
				r.Shrink(HostBytes(own + left*others))
			}
		})
		for more := true; more; {
			ready.Store(true)
			more = !ended.Load()
			if err := mine.res.draw(mine, Bucket, own); err != nil {
				refused++
				t.Errorf("round %d: %v", rounds, err)
				break
			}
			r.undraw(Host, own)
		}
		wg.Wait()
		if used := r.Used(); !used.IsZero() {
			t.Fatalf("%v stays in use", used)
		}
		r.Close()
	}
	if st := b.Stats(); !st.Charged.IsZero() {
		t.Errorf("%v stays charged after %d rounds", st.Charged, rounds)
	}
}
