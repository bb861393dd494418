package alloc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTooLargeIsRefusedAtOnce(t *testing.T) {
	b := NewBudget(on(100, 50))
	var e *TooLargeError
	if _, err := b.Reserve(context.Background(), on(10, 51)); !errors.As(err, &e) || e.Limit[Device(0)] != 50 {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(e.Error(), "device0 51 B") {
		t.Errorf("message: %v", e)
	}
	if _, err := b.TryReserve(HostBytes(101)); !errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
	if _, err := b.Reserve(context.Background(), HostBytes(-1)); err == nil {
		t.Fatal("a negative amount is accepted")
	}
	r := must[*Reservation](t)(b.Reserve(context.Background(), Amount{Host: 100, Pinned: 1 << 50}))
	if b.Stats().Charged[Pinned] != 1<<50 {
		t.Fatal("a space without a limit is not counted")
	}
	r.Close()
}

func TestOverdrawNamesTheStage(t *testing.T) {
	tr := newTracker()
	b := NewBudget(HostBytes(100))
	r := must[*Reservation](t)(b.Reserve(context.Background(), HostBytes(100)))
	sc := scope(tr, "ntt", Host, r)
	x := must[*Buffer[byte]](t)(Make[byte](sc, 60, Evaluation, 0))
	var e *OverdrawError
	if _, err := Make[byte](sc, 41, Bucket, 0); !errors.As(err, &e) || e.Stage != StageOf("ntt") || e.Asked != 41 || e.Left != 40 || e.Purpose != Bucket {
		t.Fatalf("%v", err)
	}
	must[*Buffer[byte]](t)(Make[byte](sc, 0, Bucket, 0)).Release() // nothing never overdraws
	x.Release()
	y := must[*Buffer[byte]](t)(Make[byte](sc, 100, Bucket, 0)) // freed memory can be drawn again
	if r.Peak()[Host] != 100 || r.Used()[Host] != 100 {
		t.Fatalf("peak %v, used %v", r.Peak(), r.Used())
	}
	r.Close()
	r.Close()
	if _, err := Make[byte](sc, 1, Bucket, 0); !errors.Is(err, ErrClosed) {
		t.Fatalf("a draw on a closed reservation: %v", err)
	}
	if got := b.Stats(); got.Charged != HostBytes(100) || got.Open != 0 {
		t.Fatalf("memory in use after Close must stay charged: %+v", got)
	}
	y.Release()
	if got := b.Stats().Charged; !got.IsZero() {
		t.Fatalf("%v is charged at the end", got)
	}
}

// waiting starts a request and returns once it is in the queue.
func waiting(t *testing.T, b *Budget, ctx context.Context, a Amount) <-chan *Reservation {
	t.Helper()
	before := b.Stats().Waiting
	out := make(chan *Reservation, 1)
	go func() {
		r, _ := b.Reserve(ctx, a)
		out <- r
	}()
	for end := time.Now().Add(5 * time.Second); b.Stats().Waiting == before; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("the request did not queue")
		}
	}
	return out
}

func arrives(t *testing.T, c <-chan *Reservation) *Reservation {
	t.Helper()
	select {
	case r := <-c:
		return r
	case <-time.After(5 * time.Second):
		t.Fatal("a request that fits is not admitted")
		return nil
	}
}

func stays(t *testing.T, c <-chan *Reservation) {
	t.Helper()
	select {
	case <-c:
		t.Fatal("a request was admitted out of turn")
	case <-time.After(5 * time.Millisecond):
	}
}

func TestSmallDoesNotOvertakeLarge(t *testing.T) {
	ctx := context.Background()
	b := NewBudget(HostBytes(100))
	first := must[*Reservation](t)(b.Reserve(ctx, HostBytes(60)))
	large := waiting(t, b, ctx, HostBytes(80))
	small := waiting(t, b, ctx, HostBytes(10)) // would fit now
	stays(t, small)
	if r, err := b.TryReserve(HostBytes(1)); r != nil || err != nil {
		t.Fatal("TryReserve overtakes")
	}
	first.Shrink(HostBytes(20))
	l := arrives(t, large)
	stays(t, small)
	first.Shrink(HostBytes(30)) // never grows
	if first.Limit()[Host] != 20 {
		t.Fatal("Shrink grew the reservation")
	}
	first.Close()
	s := arrives(t, small)
	l.Close()
	s.Close()
	if st := b.Stats(); !st.Charged.IsZero() || st.Peak[Host] != 100 || st.Open != 0 || st.Waiting != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestCancelLetsTheNextIn(t *testing.T) {
	b := NewBudget(HostBytes(100))
	bg := context.Background()
	first := must[*Reservation](t)(b.Reserve(bg, HostBytes(60)))
	ctx, cancel := context.WithCancelCause(bg)
	large := waiting(t, b, ctx, HostBytes(80))
	small := waiting(t, b, bg, HostBytes(40))
	why := errors.New("changed my mind")
	cancel(why)
	if r := arrives(t, large); r != nil {
		t.Fatal("a cancelled request is granted")
	}
	arrives(t, small).Close()
	first.Close()
	if _, err := b.Reserve(ctx, HostBytes(1)); !errors.Is(err, why) {
		t.Fatalf("a cancelled context: %v", err)
	}
}

func TestShrinkBelowUseReturnsOnFree(t *testing.T) {
	tr := newTracker()
	ctx := context.Background()
	b := NewBudget(HostBytes(100))
	r := must[*Reservation](t)(b.Reserve(ctx, HostBytes(100)))
	x := must[*Buffer[byte]](t)(Make[byte](scope(tr, "s", Host, r), 70, Scratch, 0))
	y := must[*Buffer[byte]](t)(Make[byte](scope(tr, "s", Host, r), 10, Scratch, 0))
	next := waiting(t, b, ctx, HostBytes(50))
	r.Shrink(HostBytes(20))
	if got := b.Stats().Charged[Host]; got != 80 {
		t.Fatalf("%d bytes are charged, 80 are in use", got)
	}
	stays(t, next)
	x.Release()
	arrives(t, next).Close()
	if got := b.Stats().Charged[Host]; got != 20 {
		t.Fatalf("%d bytes are charged, want what it shrank to", got)
	}
	y.Release()
	r.Close()
}

func TestSetLimit(t *testing.T) {
	ctx := context.Background()
	b := NewBudget(HostBytes(100))
	r := must[*Reservation](t)(b.Reserve(ctx, HostBytes(90)))
	mid := waiting(t, b, ctx, HostBytes(50))
	big := waiting(t, b, ctx, HostBytes(95))
	b.SetLimit(HostBytes(92))
	if got := arrives(t, big); got != nil {
		t.Fatal("a request that can never fit is granted")
	}
	stays(t, mid)
	b.SetLimit(HostBytes(140))
	arrives(t, mid).Close()
	r.Close()
	if b.Limit()[Host] != 140 {
		t.Fatal("the limit is not what was set")
	}
}

// Many goroutines reserve, draw, free, shrink and close at random: all finish,
// the budget is never exceeded, and nothing is charged at the end.
func TestBudgetUnderLoad(t *testing.T) {
	tr := newTracker()
	limit := on(1<<20, 1<<18)
	if _, err := tr.Register(Device(0), newTestProvider(limit[Device(0)])); err != nil {
		t.Fatal(err)
	}
	b := NewBudget(limit)
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for g := range 8 {
		wg.Go(func() {
			x := uint32(g*7919 + 1)
			next := func(n int) int { // xorshift: fast, its own for each goroutine
				x ^= x << 13
				x ^= x >> 17
				x ^= x << 5
				return int(x>>1) % n
			}
			for range 150 {
				a := on(int64(next(1<<19)), int64(next(1<<17)))
				r, err := b.Reserve(ctx, a)
				if err != nil {
					t.Errorf("lost wake-up or deadlock: %v", err)
					return
				}
				var inner sync.WaitGroup
				for h := range 2 { // two stages draw from one reservation
					space := []Space{Host, Device(0)}[(h+next(2))%2]
					size := next(1 << 17)
					inner.Go(func() {
						buf, err := Make[byte](scope(tr, "load", space, r), size, Scratch, Dirty)
						var over *OverdrawError
						if errors.As(err, &over) {
							return
						}
						if err != nil {
							t.Errorf("device or host memory ran out within the budget: %v", err)
							return
						}
						buf.Release()
					})
				}
				r.Shrink(on(a[Host]/2, a[Device(0)]/2))
				if next(2) == 0 {
					inner.Wait()
				}
				r.Close()
				inner.Wait()
			}
		})
	}
	wg.Wait()
	st := b.Stats()
	if !st.Charged.IsZero() || st.Waiting != 0 || st.Open != 0 || !st.Peak.Fits(limit) {
		t.Fatalf("at the end: %+v", st)
	}
	if live := tr.Live(Host) + tr.Live(Device(0)); live != 0 {
		t.Fatalf("%d bytes are live", live)
	}
	for _, s := range []Space{Host, Device(0)} {
		if tr.Peak(s) > limit[s] {
			t.Fatalf("%v: the peak %d is over the budget", s, tr.Peak(s))
		}
	}
}

// A draw and a shrink that cross: what is in use is charged, whichever wins.
func TestDrawCrossesShrink(t *testing.T) {
	b := NewBudget(HostBytes(1000))
	for _, shrink := range []int64{10, 60, 80} {
		r := must[*Reservation](t)(b.TryReserve(HostBytes(100)))
		used := r.used[Host].Add(60) // a draw, just before it looks at the limit again
		r.Shrink(HostBytes(shrink))
		want := int64(60)
		if ok := r.confirm(Host, used, 60); ok != (shrink >= 60) {
			t.Fatalf("shrunk to %d: a draw of 60 bytes is kept: %v", shrink, ok)
		} else if !ok {
			want = 0
		}
		if used, charged := r.Used()[Host], b.Stats().Charged[Host]; used != want || charged != max(shrink, want) {
			t.Fatalf("shrunk to %d: %d in use, %d charged", shrink, used, charged)
		}
		// The other order: the budget was read before the draw, with the limit
		// already lowered.
		r.used[Host].Add(-want)
		used = r.used[Host].Add(90)
		if r.confirm(Host, used, 90) || r.Used()[Host] != 0 {
			t.Fatal("a draw over the lowered limit is kept")
		}
		r.Close()
		if !b.Stats().Charged.IsZero() {
			t.Fatal("something stays charged")
		}
	}
}
