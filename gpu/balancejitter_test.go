package gpu_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snarkline/snarkline/gpu"
)

// hall is cards in a time of its own that work as those of a batch do: an item's
// input is made by the host, its sums by its card, one item after the other, and
// one sum more beside that, which may be late. All times vary.
type hall struct {
	clock
	b      *gpu.Balance
	each   []time.Duration // of a card
	jitter float64         // times are up to so much longer or shorter
	late   float64         // share of items whose last sum is late, by up to an item's time
	r      *rand.Rand
}

func (h *hall) vary(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 + h.jitter*(2*h.r.Float64()-1)))
}

// batch is how many of so many items each card makes.
func (h *hall) batch(t *testing.T, items int) []int {
	t.Helper()
	type on struct {
		p    *gpu.Place
		came time.Time // at its card
		end  func()
		done time.Time
	}
	counts := make([]int, len(h.each))
	free := make([]time.Time, len(h.each)) // of the card
	var at []*on
	got := make(chan *gpu.Place)
	placed := 0
	ask := func() {
		go func() {
			p, err := h.b.Take(context.Background(), gpu.Ask{})
			if err != nil {
				panic(err)
			}
			got <- p
		}()
	}
	ask()
	for placed < items || len(at) > 0 {
		if placed < items {
			// An item that finds no place now waits for the next event: what is
			// placed at once comes within a moment of real time.
			select {
			case p := <-got:
				i := p.Member()
				counts[i]++
				if placed++; placed < items {
					ask()
				}
				came := h.Now().Add(h.vary(h.each[i] / 2))
				begin := came
				if free[i].After(begin) {
					begin = free[i]
				}
				free[i] = begin.Add(h.vary(h.each[i]))
				x := &on{p: p, came: came, done: free[i]}
				if h.r.Float64() < h.late {
					x.done = x.done.Add(time.Duration(h.r.Float64() * float64(h.each[i])))
				}
				at = append(at, x)
				continue
			case <-time.After(3 * time.Millisecond):
			}
		}
		x := slices.MinFunc(at, func(x, y *on) int {
			return int(min(max(h.next(x.end, x.came, x.done).Sub(h.next(y.end, y.came, y.done)), -1), 1))
		})
		h.pass(max(h.next(x.end, x.came, x.done).Sub(h.Now()), 0))
		if x.end == nil {
			x.end = x.p.Work()
			continue
		}
		x.end()
		x.p.Leave(true)
		at = slices.DeleteFunc(at, func(y *on) bool { return x == y })
	}
	return counts
}

// next is when something happens to an item.
func (h *hall) next(end func(), came, done time.Time) time.Time {
	if end == nil {
		return came
	}
	return done
}

// TestBalanceOfEqualCards: of a batch, two equal cards get a half each, whatever the
// times of single items do: one more on one of them is what a batch of 16 waits for.
func TestBalanceOfEqualCards(t *testing.T) {
	for _, h := range []*hall{{jitter: 0.05}, {jitter: 0.15}, {jitter: 0.15, late: 0.3}} {
		t.Run(fmt.Sprintf("jitter %v, late %v", h.jitter, h.late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which real time costs nothing
				uneven, measured := 0, 0
				for seed := range uint64(40) {
					h.r = rand.New(rand.NewPCG(seed, 7))
					h.each = []time.Duration{time.Second, time.Second}
					h.b = gpu.NewBalance(gpu.BalanceOptions{Now: h.Now}, named(2)...)
					for batch := range 4 {
						n := h.batch(t, 16)
						if n[0] < 7 || n[0] > 9 {
							t.Errorf("seed %d, batch %d: %v; %+v", seed, batch, n, h.b.Stats())
						}
						if batch > 0 { // the first one measures: a card gets fewer at once until then
							measured++
							if n[0] != 8 {
								uneven++
								t.Logf("seed %d, batch %d: %v; %+v", seed, batch, n, h.b.Stats())
							}
						}
					}
					balanced(t, h.b)
				}
				if uneven > 0 && (h.late == 0 || 100*uneven > measured) {
					t.Errorf("%d batches of %d were not divided evenly", uneven, measured)
				}
			})
		})
	}
}

// TestBalanceOfAlmostEqualCards: one that is a little slower than another of its kind
// holds a batch up by little: three of its items, with one that is on its way before the
// first sum and one that is late after the last.
func TestBalanceOfAlmostEqualCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			for _, slower := range []time.Duration{1100, 1200, 1300, 1600} {
				h := &hall{jitter: 0.1, late: 0.2, r: rand.New(rand.NewPCG(seed, 9))}
				h.each = []time.Duration{time.Second, slower * time.Millisecond}
				h.b = gpu.NewBalance(gpu.BalanceOptions{Now: h.Now}, named(2)...)
				h.batch(t, 16)
				const items = 48
				begun := h.Now()
				n := h.batch(t, items)
				ideal := items / (1 + 1/(slower*time.Millisecond).Seconds())
				if took := h.Now().Sub(begun).Seconds(); took > ideal+3*(slower*time.Millisecond).Seconds() {
					t.Errorf("seed %d, %d ms: %v took %.1f s, at best %.1f s", seed, slower, n, took, ideal)
				}
			}
		}
	})
}
