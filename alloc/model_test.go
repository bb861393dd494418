package alloc

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is what a budget and a tracker should do, written the simple way.
type model struct {
	limit   Amount
	open    []*modelRes // admitted, closed ones with live buffers too
	queue   []*modelReq // in order of arrival
	charged Amount
}

type modelRes struct {
	real   *Reservation
	limit  Amount
	closed bool
	bufs   []*Buffer[byte]
	spaces []Space
}

type modelReq struct {
	asked  Amount
	cancel context.CancelFunc
	answer chan *Reservation
}

func (r *modelRes) used() (a Amount) {
	for i, b := range r.bufs {
		a[r.spaces[i]] += b.Bytes()
	}
	return a
}

// recount is the sum of what each reservation may hold or does hold.
func (m *model) recount() {
	m.charged = Amount{}
	for _, r := range m.open {
		m.charged = m.charged.Add(r.limit.Max(r.used()))
	}
}

func (m *model) fits(a Amount) bool {
	for i := range a {
		if a[i] > 0 && m.limit[i] > 0 && m.charged[i]+a[i] > m.limit[i] {
			return false
		}
	}
	return true
}

// settle admits from the front, and waits for the real answer of exactly those.
func (m *model) settle(t *rapid.T) {
	m.recount()
	for len(m.queue) > 0 && m.fits(m.queue[0].asked) {
		q := m.queue[0]
		m.queue = m.queue[1:]
		select {
		case r := <-q.answer:
			if r == nil {
				t.Fatal("a request that fits is refused")
			}
			m.open = append(m.open, &modelRes{real: r, limit: q.asked})
		case <-time.After(5 * time.Second):
			t.Fatalf("lost wake-up: %v fits and waits", q.asked)
		}
		m.recount()
	}
}

var modelSpaces = []Space{Host, Pinned, Device(0)}

func drawAmount(t *rapid.T, most int64) (a Amount) {
	for _, s := range modelSpaces {
		a[s] = rapid.Int64Range(0, most).Draw(t, s.String())
	}
	return a
}

// Random sequences of reserve, cancel, make, release, shrink and close against
// the model: what is live equals it, the limit holds, requests are admitted in
// order of arrival as soon as they fit, and no wake-up is lost.
func TestBudgetAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTracker()
		for _, s := range modelSpaces[1:] {
			if _, err := tr.Register(s, newTestProvider(1<<30)); err != nil {
				t.Fatal(err)
			}
		}
		m := &model{limit: on(1000, 500)}
		b := NewBudget(m.limit)
		pick := func() *modelRes { return rapid.SampledFrom(m.open).Draw(t, "reservation") }
		check := func() {
			m.settle(t)
			st := b.Stats()
			if st.Charged != m.charged || st.Waiting != len(m.queue) {
				t.Fatalf("charged %v, %d waiting; want %v, %d", st.Charged, st.Waiting, m.charged, len(m.queue))
			}
			if !st.Charged.Fits(m.limit) {
				t.Fatalf("%v is over the limit", st.Charged)
			}
			var live Amount
			for _, r := range m.open {
				if got := r.real.Used(); got != r.used() {
					t.Fatalf("a reservation has %v in use, want %v", got, r.used())
				}
				live = live.Add(r.used())
			}
			for _, s := range modelSpaces {
				if tr.Live(s) != live[s] {
					t.Fatalf("%v: %d bytes live, want %d", s, tr.Live(s), live[s])
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"reserve": func(t *rapid.T) {
				a := drawAmount(t, 600)
				if !a.Fits(m.limit) {
					var e *TooLargeError
					if _, err := b.Reserve(context.Background(), a); !errors.As(err, &e) {
						t.Fatalf("too large: %v", err)
					}
					return
				}
				m.recount()
				wait := len(m.queue) > 0 || !m.fits(a)
				ctx, cancel := context.WithCancel(context.Background())
				q := &modelReq{asked: a, cancel: cancel, answer: make(chan *Reservation, 1)}
				go func() {
					r, _ := b.Reserve(ctx, a)
					q.answer <- r
				}()
				m.queue = append(m.queue, q)
				for end := time.Now().Add(5 * time.Second); wait && b.Stats().Waiting < len(m.queue); {
					if time.Now().After(end) {
						t.Fatal("a request that must wait does not")
					}
					time.Sleep(10 * time.Microsecond)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(m.queue) == 0 {
					t.Skip("nothing waits")
				}
				i := rapid.IntRange(0, len(m.queue)-1).Draw(t, "which")
				q := m.queue[i]
				m.queue = append(m.queue[:i:i], m.queue[i+1:]...)
				q.cancel()
				if r := <-q.answer; r != nil {
					t.Fatal("a request that does not fit is granted")
				}
			},
			"make": func(t *rapid.T) {
				if len(m.open) == 0 {
					t.Skip("no reservation is open")
				}
				r := pick()
				s := rapid.SampledFrom(modelSpaces).Draw(t, "space")
				n := rapid.Int64Range(1, 300).Draw(t, "n")
				buf, err := Make[byte](scope(tr, fmt.Sprintf("model%d", n%3), s, r.real), int(n), Scratch, 0)
				var over *OverdrawError
				left := r.limit[s] - r.used()[s]
				switch {
				case n <= left && err != nil:
					t.Fatalf("%d of %d left: %v", n, left, err)
				case n > left && !errors.As(err, &over):
					t.Fatalf("%d of %d left, but: %v", n, left, err)
				case n > left && (over.Left != max(left, 0) || over.Closed != r.closed):
					t.Fatalf("%d of %d left, but the error says %+v", n, left, over)
				case err == nil:
					r.bufs, r.spaces = append(r.bufs, buf), append(r.spaces, s)
				}
			},
			"release": func(t *rapid.T) {
				if len(m.open) == 0 {
					t.Skip("no reservation is open")
				}
				r := pick()
				if len(r.bufs) == 0 {
					t.Skip("it has no buffer")
				}
				i := rapid.IntRange(0, len(r.bufs)-1).Draw(t, "which")
				buf := r.bufs[i]
				r.bufs = append(r.bufs[:i:i], r.bufs[i+1:]...)
				r.spaces = append(r.spaces[:i:i], r.spaces[i+1:]...)
				buf.Release()
			},
			"shrink": func(t *rapid.T) {
				if len(m.open) == 0 {
					t.Skip("no reservation is open")
				}
				r := pick()
				to := drawAmount(t, 400)
				for i := range to {
					r.limit[i] = min(r.limit[i], to[i])
				}
				r.real.Shrink(to)
				if r.real.Limit() != r.limit {
					t.Fatalf("limit %v, want %v", r.real.Limit(), r.limit)
				}
			},
			"close": func(t *rapid.T) {
				if len(m.open) == 0 {
					t.Skip("no reservation is open")
				}
				r := pick()
				r.real.Close()
				r.closed, r.limit = true, Amount{}
			},
		})
		// The end: everything is given back and everyone gets in.
		for len(m.open) > 0 || len(m.queue) > 0 {
			for _, r := range m.open {
				r.real.Close()
				for _, buf := range r.bufs {
					buf.Release()
				}
			}
			m.open = nil
			check()
		}
	})
}
