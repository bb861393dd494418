package alloc

import (
	"context"
	"fmt"
	"sync"
)

// Budget bounds what reservations may hold at once, in every space. Requests
// are admitted strictly in order of arrival: a small one behind a large one
// waits, whatever spaces they ask for, so none is passed over for ever.
//
// Whoever holds a reservation never waits for memory, so every holder can
// finish and give back: as long as each item of work has one reservation, no
// set of them can deadlock.
type Budget struct {
	mu      sync.Mutex
	limit   Amount
	charged Amount // by open reservations, and by buffers that outlive theirs
	peak    Amount
	head    *waiter // the oldest
	tail    *waiter
	waiting int
	open    int
}

// waiter is a request in the queue.
type waiter struct {
	asked   Amount
	granted *Reservation
	ready   chan struct{} // closed once granted, or failed because the limit fell
	err     error
	next    *waiter
}

// NewBudget makes a budget. A limit of 0 in a space is no limit there.
func NewBudget(limit Amount) *Budget { return &Budget{limit: limit} }

// Reserve waits until a is free in every space at once and takes it. A request
// that can never fit is a *TooLargeError at once. When ctx is done first, its
// cause is returned.
func (b *Budget) Reserve(ctx context.Context, a Amount) (*Reservation, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("reserve %v: %w", a, err)
	}
	if err := checkAmount(a); err != nil {
		return nil, err
	}
	b.mu.Lock()
	if !a.Fits(b.limit) {
		limit := b.limit
		b.mu.Unlock()
		return nil, &TooLargeError{Asked: a, Limit: limit}
	}
	if b.head == nil && b.fits(a) {
		r := b.grant(a)
		b.mu.Unlock()
		return r, nil
	}
	w := &waiter{asked: a, ready: make(chan struct{})}
	if b.tail == nil {
		b.head = w
	} else {
		b.tail.next = w
	}
	b.tail = w
	b.waiting++
	b.mu.Unlock()

	select {
	case <-w.ready:
		return w.granted, w.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready:
		// Granted in the meantime; the caller can use it or close it.
		return w.granted, w.err
	default:
	}
	b.remove(w)
	// It may have been all that those behind it waited for.
	b.admit()
	return nil, fmt.Errorf("reserve %v: %w", a, context.Cause(ctx))
}

// TryReserve takes a if that needs no waiting: nobody is before it and it fits.
// It returns nil and no error if it would have to wait.
func (b *Budget) TryReserve(a Amount) (*Reservation, error) {
	if err := checkAmount(a); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !a.Fits(b.limit) {
		return nil, &TooLargeError{Asked: a, Limit: b.limit}
	}
	if b.head != nil || !b.fits(a) {
		return nil, nil
	}
	return b.grant(a), nil
}

func checkAmount(a Amount) error {
	for s, n := range a {
		if n < 0 || n > 1<<60 {
			return fmt.Errorf("reserve memory: %d bytes of %v memory are out of range", n, Space(s))
		}
	}
	return nil
}

// fits reports whether a is free. Callers hold mu.
func (b *Budget) fits(a Amount) bool {
	return a.FitsBeside(b.charged, b.limit)
}

// grant charges a. Callers hold mu.
func (b *Budget) grant(a Amount) *Reservation {
	b.charged = b.charged.Add(a)
	b.peak = b.peak.Max(b.charged)
	b.open++
	r := &Reservation{budget: b, charged: a}
	for i := range a {
		r.limit[i].Store(a[i])
	}
	return r
}

// admit grants from the front of the queue for as long as the front fits.
// Callers hold mu.
func (b *Budget) admit() {
	for w := b.head; w != nil && b.fits(w.asked); w = b.head {
		b.remove(w)
		w.granted = b.grant(w.asked)
		close(w.ready)
	}
}

// remove takes w out of the queue. Callers hold mu.
func (b *Budget) remove(w *waiter) {
	var before *waiter
	for x := b.head; x != w; x = x.next {
		before = x
	}
	if before == nil {
		b.head = w.next
	} else {
		before.next = w.next
	}
	if b.tail == w {
		b.tail = before
	}
	b.waiting--
}

// Limit is the limit by space; 0 is none.
func (b *Budget) Limit() Amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// SetLimit changes the limit. What is charged stays; requests in the queue that
// can never fit any more get a *TooLargeError.
func (b *Budget) SetLimit(limit Amount) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
	for w := b.head; w != nil; w = w.next {
		if !w.asked.Fits(limit) {
			b.remove(w)
			w.err = &TooLargeError{Asked: w.asked, Limit: limit}
			close(w.ready)
		}
	}
	b.admit()
}

// BudgetStats is the state of a budget at one moment.
type BudgetStats struct {
	Limit   Amount `json:"limit"`
	Charged Amount `json:"charged"` // held by reservations and by what outlived them
	Peak    Amount `json:"peak"`    // of Charged
	Waiting int    `json:"waiting"` // requests in the queue
	Open    int    `json:"open"`    // reservations that are not closed
}

// Stats is the state of the budget now.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{Limit: b.limit, Charged: b.charged, Peak: b.peak, Waiting: b.waiting, Open: b.open}
}
