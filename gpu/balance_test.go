package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/gpu"
)

// clock is a time that stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

// named are members without memory of their own.
func named(n int) (out []gpu.Member) {
	for i := range n {
		out = append(out, gpu.Member{Name: fmt.Sprint(i)})
	}
	return out
}

// work does an item at its place in d.
func (c *clock) work(p *gpu.Place, d time.Duration) {
	end := p.Work()
	c.pass(d)
	end()
	p.Leave(true)
}

func take(t *testing.T, b *gpu.Balance, a gpu.Ask) *gpu.Place {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p, err := b.Take(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waits reports whether an item finds no place now.
func waits(t *testing.T, b *gpu.Balance, a gpu.Ask) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	p, err := b.Take(ctx, a)
	if err == nil {
		p.Leave(false)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	return err != nil
}

func balanced(t *testing.T, b *gpu.Balance) {
	t.Helper()
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestBalanceBySpeed: items go to the card that will be done first. With one four
// times as fast as the other, a batch is divided so.
func TestBalanceBySpeed(t *testing.T) {
	var c clock
	b := gpu.NewBalance(gpu.BalanceOptions{Places: 3, Now: c.Now}, named(2)...)
	took := []time.Duration{time.Second, 4 * time.Second}
	for range 3 { // each is measured
		x, y := take(t, b, gpu.Ask{}), take(t, b, gpu.Ask{})
		if x.Member() == y.Member() {
			t.Fatal("one card has two items, the other none")
		}
		c.work(x, took[x.Member()])
		c.work(y, took[y.Member()])
	}
	for i, s := range b.Stats() {
		if s.Each != took[i] || s.Finished != 3 || s.Busy != 3*took[i] {
			t.Errorf("%+v", s)
		}
	}
	var at []int
	var all []*gpu.Place
	for range 4 {
		p := take(t, b, gpu.Ask{})
		at, all = append(at, p.Member()), append(all, p)
	}
	// One on each that is idle, the fast one first; then the fast one would be
	// done with a second and a third in 2 and 3 s, the slow one in 8.
	if !slices.Equal(at, []int{0, 1, 0, 0}) {
		t.Errorf("items are on %v", at)
	}
	// A fourth of the fast card is done before a second one of the slow card: it
	// waits, though the slow card has places.
	if !waits(t, b, gpu.Ask{}) {
		t.Error("an item goes to the slow card, behind another, and would be done sooner on the fast one")
	}
	for _, p := range all {
		p.Leave(true)
		p.Leave(true)
	}
	balanced(t, b)
}

// TestBalanceBySize: of which nothing is measured yet goes by its size.
func TestBalanceBySize(t *testing.T) {
	var c clock
	ms := named(2)
	ms[0].Size, ms[1].Size = 30, 100
	b := gpu.NewBalance(gpu.BalanceOptions{Places: 6, Now: c.Now}, ms...)
	var at []int
	for range 4 {
		p := take(t, b, gpu.Ask{})
		at = append(at, p.Member())
		defer p.Leave(false)
	}
	if !slices.Equal(at, []int{1, 0, 1, 1}) {
		t.Errorf("items are on %v", at)
	}
}

// TestBalanceEqual: cards of one speed have as many items each, and no more than
// there are places.
func TestBalanceEqual(t *testing.T) {
	var c clock
	b := gpu.NewBalance(gpu.BalanceOptions{Places: 2, Now: c.Now}, named(3)...)
	var all []*gpu.Place
	for range 3 { // of which nothing is known
		all = append(all, take(t, b, gpu.Ask{}))
	}
	if !waits(t, b, gpu.Ask{}) {
		t.Error("a card of which nothing is known has all its places taken at once")
	}
	for _, p := range all {
		c.work(p, time.Second)
	}
	all = nil
	for range b.Places() {
		all = append(all, take(t, b, gpu.Ask{}))
	}
	for _, s := range b.Stats() {
		if s.Items != 2 {
			t.Errorf("%+v", s)
		}
	}
	if !waits(t, b, gpu.Ask{}) {
		t.Error("a seventh item finds a place of six")
	}
	if p := take(t, b, gpu.Ask{Now: true}); p.Member() < 0 {
		t.Error("nowhere")
	} else {
		p.Leave(false)
	}
	// Who waits gets the place that is free.
	got := make(chan int)
	go func() {
		p, err := b.Take(context.Background(), gpu.Ask{})
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		p.Leave(false)
		got <- p.Member()
	}()
	all[4].Leave(true)
	if i := <-got; i != all[4].Member() {
		t.Errorf("a place on %d was free, the item is on %d", all[4].Member(), i)
	}
	for _, p := range all {
		p.Leave(false)
	}
	balanced(t, b)
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
}

// TestBalanceByMemory: a card without memory for another item gets none, be it
// that others have taken it or that items which are on their way will; a card of
// one's own gets one in any case, if it is not all too full.
func TestBalanceByMemory(t *testing.T) {
	room := []int64{100, 40, 2}
	var ms []gpu.Member
	for i := range room {
		ms = append(ms, gpu.Member{Name: fmt.Sprint(i), Room: func() (int64, error) {
			if room[i] < 0 {
				return 0, errors.ErrUnsupported
			}
			return room[i], nil
		}})
	}
	b := gpu.NewBalance(gpu.BalanceOptions{Places: 9}, ms...)
	ask := gpu.Ask{Need: func(int) int64 { return 30 }}
	var at []int
	var all []*gpu.Place
	for range 4 {
		p := take(t, b, ask)
		at, all = append(at, p.Member()), append(all, p)
	}
	if !slices.Equal(at, []int{0, 1, 0, 0}) {
		t.Errorf("items of 30 on cards of 100, 40 and 2 are on %v", at)
	}
	if !waits(t, b, ask) {
		t.Error("an item is placed without memory for it")
	}
	// What an item takes when it comes there, the device has less of by itself.
	all[0].Work()()
	room[0] -= 30
	if !waits(t, b, ask) {
		t.Error("an item is placed without memory for it")
	}
	room[0] += 30 // somebody else gave memory back
	p := take(t, b, ask)
	if p.Member() != 0 {
		t.Errorf("on %d", p.Member())
	}
	p.Leave(false)
	for _, p := range all {
		p.Leave(false)
	}
	room[0], room[1] = -1, 1 // a card that does not answer, and two that are full
	p = take(t, b, ask)
	if p.Member() != 2 {
		t.Errorf("on %d, where least is free", p.Member())
	}
	p.Leave(false)
	if b.Peek(gpu.Ask{Fits: func(int) bool { return false }}) < 0 {
		t.Error("nowhere")
	}
	balanced(t, b)
}

// TestBalanceFits: a further condition holds for cards that have items.
func TestBalanceFits(t *testing.T) {
	b := gpu.NewBalance(gpu.BalanceOptions{Places: 9}, named(2)...)
	full := -1
	ask := gpu.Ask{Fits: func(i int) bool { return i != full }}
	x, y := take(t, b, ask), take(t, b, ask)
	full = 0
	for range 3 {
		if p := take(t, b, ask); p.Member() != 1 {
			t.Errorf("on %d, where it does not fit", p.Member())
		} else {
			defer p.Leave(false)
		}
	}
	x.Leave(false)
	y.Leave(false)
}

// TestBalanceFailed: another card than those that have failed the item; none that
// is lost; and a card that fails everything is not the first to be asked for long.
func TestBalanceFailed(t *testing.T) {
	var lost [2]error
	ms := named(2)
	for i := range ms {
		ms[i].Lost = func() error { return lost[i] }
	}
	b := gpu.NewBalance(gpu.BalanceOptions{Places: 2}, ms...)
	for range 4 {
		p := take(t, b, gpu.Ask{Failed: []bool{true}})
		if p.Member() != 1 {
			t.Errorf("on %d, which has failed it", p.Member())
		}
		p.Leave(false)
	}
	p := take(t, b, gpu.Ask{Failed: []bool{true, true}})
	p.Leave(false)
	placed := [2]int{}
	for range 64 {
		p := take(t, b, gpu.Ask{})
		placed[p.Member()]++
		if p.Member() == 0 {
			p.Fail()
		}
		p.Leave(p.Member() == 1)
	}
	if placed[0] < 2 || placed[0] > 8 {
		t.Errorf("a card that fails every item had %d of 64", placed[0])
	}
	lost[1] = gpu.ErrLost
	for range 3 {
		p := take(t, b, gpu.Ask{Failed: []bool{true, false}})
		if p.Member() != 0 {
			t.Error("an item is on a card that is lost")
		}
		p.Leave(true)
	}
	if s := b.Stats(); s[1].Lost == "" || s[0].Lost != "" {
		t.Errorf("%+v", s)
	}
	lost[0] = gpu.ErrLost
	p = take(t, b, gpu.Ask{}) // fails there
	p.Leave(false)
	balanced(t, b)
	if _, err := gpu.NewBalance(gpu.BalanceOptions{}).Take(context.Background(), gpu.Ask{}); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("no cards: %v", err)
	}
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errors.ErrUnsupported)
	if _, err := b.Take(ended, gpu.Ask{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// TestBalanceNeverIdle: whatever the speeds, and whoever is lost when, no card is
// without an item while one waits, and every item is placed once.
func TestBalanceNeverIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "cards")
		speed := rapid.SliceOfN(rapid.IntRange(1, 20), n, n).Draw(t, "time of an item")
		var c clock
		var mu sync.Mutex // of what follows; events come from two goroutines
		lost, has := make([]error, n), make([]int, n)
		waiting, placed, must, bad := 0, 0, false, ""
		asked := make(chan struct{}, 1) // the item that asks is placed, or waits
		watch := func(e gpu.BalanceEvent) {
			mu.Lock()
			defer mu.Unlock()
			if must && e.Kind != gpu.Placed {
				bad = fmt.Sprintf("an item waits beside a card without one: %v", has)
			}
			switch e.Kind {
			case gpu.Waiting:
				waiting++
				asked <- struct{}{}
			case gpu.Placed:
				if waiting == 0 {
					asked <- struct{}{}
				}
				waiting = max(waiting-1, 0)
				placed++
				has[e.Member]++
			case gpu.Left:
				has[e.Member]--
			}
			must = false
			for i := range has {
				must = must || waiting > 0 && has[i] == 0 && lost[i] == nil
			}
		}
		ms := named(n)
		for i := range ms {
			ms[i].Lost = func() error { mu.Lock(); defer mu.Unlock(); return lost[i] }
		}
		// The balance's own lock is held when it asks who is lost, and mu is not held
		// by anybody who calls it.
		b := gpu.NewBalance(gpu.BalanceOptions{Places: rapid.IntRange(1, 4).Draw(t, "places"), Now: c.Now, Watch: watch}, ms...)
		type running struct {
			p    *gpu.Place
			end  func()
			done time.Time
		}
		var all []running
		last := make([]time.Time, n) // of a card, whose items go one after another
		items := rapid.IntRange(1, 40).Draw(t, "items")
		got := make(chan *gpu.Place, 1)
		asking := false
		begun := 0
		begin := func(p *gpu.Place) {
			asking = false
			i := p.Member()
			if last[i].Before(c.Now()) {
				last[i] = c.Now()
			}
			last[i] = last[i].Add(time.Duration(speed[i]) * time.Second)
			all = append(all, running{p, p.Work(), last[i]})
		}
		for begun < items || asking || len(all) > 0 {
			if begun < items && !asking {
				begun++
				asking = true
				go func() {
					p, err := b.Take(context.Background(), gpu.Ask{})
					if err != nil {
						panic(err)
					}
					got <- p
				}()
				<-asked
			}
			mu.Lock()
			there := asking && waiting == 0
			mu.Unlock()
			if there || len(all) == 0 {
				begin(<-got)
				continue
			}
			k := 0
			for j := range all {
				if all[j].done.Before(all[k].done) {
					k = j
				}
			}
			c.pass(max(all[k].done.Sub(c.Now()), 0))
			x := all[k]
			all = slices.Delete(all, k, k+1)
			x.end()
			if rapid.IntRange(0, 30).Draw(t, "lose") == 0 {
				mu.Lock()
				lost[x.p.Member()] = gpu.ErrLost
				mu.Unlock()
			}
			x.p.Leave(true)
		}
		if bad != "" || placed != items {
			t.Fatalf("%s; %d of %d items were placed", bad, placed, items)
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
