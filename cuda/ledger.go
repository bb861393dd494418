package cuda

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// use is what device memory is granted for.
type use int

const (
	standing use = iota // what jobs keep from stage to stage
	working             // what one operation takes until it returns
	keyed               // points of keys that stay on the device
	tabled              // tables of the transforms
	nbUses
)

// ledger decides who may take device memory, before it is taken: two that ask
// at once cannot both be told of the same free bytes.
//
// Nobody waits for memory while an operation of his holds some. What stands
// from stage to stage is granted at once or not at all, and always leaves room
// for one operation; operations wait, first come first served, for operations
// alone. So whoever holds memory can go on, and no set of jobs can deadlock.
type ledger struct {
	card   *Card
	margin int64 // kept back for the driver and for others
	naive  bool  // tests only: grants whatever is asked

	mu      sync.Mutex
	granted [nbUses]int64
	floor   int64 // room for one operation: the largest that is known of
	wish    int64 // room for what jobs keep, which keys leave
	queue   []*asker

	patience time.Duration
	changed  chan struct{} // closed when something was given back
}

type asker struct{ least, most int64 }

// defaultPatience is how long an operation waits, while no other runs, for
// memory that jobs hold which do nothing at the moment.
const defaultPatience = 10 * time.Second

// pollEvery is how often a waiting operation asks the driver again: memory that
// another process gives back tells nobody.
const pollEvery = 50 * time.Millisecond

func newLedger(c *Card, margin int64) *ledger {
	return &ledger{card: c, margin: margin, patience: defaultPatience, changed: make(chan struct{})}
}

// capacity is what engines could use of the card in all, whatever they have
// already: what is free, what both pools keep without a user, and what is
// taken, less the margin.
func (l *ledger) capacity() (int64, error) {
	taken := l.card.taken.Load() // before, so that what is freed meanwhile counts once at most
	free, _, err := l.card.Memory()
	if err != nil {
		return 0, err
	}
	used, reserved, err := l.card.Pooled()
	if err != nil {
		return 0, err
	}
	idle := max(reserved-used, 0) + alloc.Default().Pooled(l.card.space)
	return free + idle + taken - l.margin, nil
}

// capacityNow is capacity for those who do not hold the lock.
func (l *ledger) capacityNow() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.capacity()
}

func (l *ledger) sum() (n int64) {
	for _, g := range l.granted {
		n += g
	}
	return n
}

// room is what is left of the capacity if reserve bytes stay there for
// operations (or what they have, if that is more).
func (l *ledger) room(reserve int64) (int64, error) {
	c, err := l.capacity()
	if err != nil {
		return 0, err
	}
	return c - l.sum() - max(reserve-l.granted[working], 0), nil
}

// expect makes the ledger keep one bytes for one operation, and keys leave wish
// bytes to jobs.
func (l *ledger) expect(one, wish int64) {
	l.mu.Lock()
	l.floor = max(l.floor, one)
	l.wish = max(l.wish, wish)
	l.mu.Unlock()
}

// left is what u may still be granted.
func (l *ledger) left(u use) (int64, error) {
	n, err := l.room(l.floor)
	switch {
	case err != nil:
	case u == keyed || u == tabled:
		n -= max(l.wish-l.granted[standing], 0)
	case u == standing && l.starving(n):
		n = 0
	}
	return n, err
}

// leftFor is left for those who do not hold the lock.
func (l *ledger) leftFor(u use) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left(u)
}

// try grants n bytes at once, or none.
func (l *ledger) try(u use, n int64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.naive {
		left, err := l.left(u)
		if err != nil || n > left {
			return false, err
		}
	}
	l.granted[u] += n
	return true, nil
}

// place grants the best tier of r that fits, from tier first on. The last one
// always does. r.Later is left free beside it, but not kept: for tables that are
// still to be made.
func (l *ledger) place(r gpu.Request, first int) (gpu.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, err := l.left(standing)
	if err != nil {
		return gpu.Decision{}, err
	}
	r.Tiers = r.Tiers[first:]
	d := r.Fit(left+l.margin, l.margin)
	if l.naive {
		d.Tier = 0
	}
	d.Margin = l.margin
	l.granted[standing] += d.Chosen().Bytes
	return d, nil
}

// move changes what n granted bytes are for, if the rules allow.
func (l *ledger) move(from, to use, n int64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted[from] -= n
	left, err := l.left(to)
	if err != nil || n > left {
		l.granted[from] += n
		return false, err
	}
	l.granted[to] += n
	return true, nil
}

// turn is move that always succeeds: the memory stays taken in any case.
func (l *ledger) turn(from, to use, n int64) {
	l.mu.Lock()
	l.granted[from] -= n
	l.granted[to] += n
	l.mu.Unlock()
}

func (l *ledger) setMargin(n int64) {
	l.mu.Lock()
	l.margin = n
	l.mu.Unlock()
}

// give returns n bytes.
func (l *ledger) give(u use, n int64) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	l.granted[u] -= n
	l.wake()
	l.mu.Unlock()
}

func (l *ledger) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// acquire waits for memory for one operation: most bytes, or, when nothing that
// runs could give back more, as many as there are from least on. Room for as much
// is kept for the next operation, but for what stays on the card after this one.
func (l *ledger) acquire(ctx context.Context, least, most, stays int64) (int64, error) {
	if most <= 0 {
		return 0, nil
	}
	a := &asker{least: least, most: most}
	l.mu.Lock()
	l.floor = max(l.floor, least-stays)
	l.queue = append(l.queue, a)
	defer l.leave(a)
	defer l.mu.Unlock()
	var until time.Time
	for {
		n, left, err := l.serve(a)
		if err != nil || n > 0 {
			return n, err
		}
		if l.queue[0] == a && l.granted[working] == 0 {
			// Nothing runs, so nothing will end: keys and tables go first.
			l.mu.Unlock()
			freed := l.card.makeRoom(ctx, a.least-left)
			l.mu.Lock()
			switch {
			case freed:
				continue
			case until.IsZero():
				until = time.Now().Add(l.patience)
			}
			if l.granted[standing] == 0 || time.Now().After(until) {
				return 0, &roomError{asked: a.least, left: left}
			}
		}
		changed := l.changed
		l.mu.Unlock()
		err = waitFor(ctx, changed, pollEvery)
		l.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
}

// serve grants a what it may have now: if it is its turn, or if the one whose
// turn it is waits for more than operations can give back, so that only what
// others do can help it.
func (l *ledger) serve(a *asker) (n, left int64, err error) {
	if l.naive {
		l.granted[working] += a.most
		return a.most, a.most, nil
	}
	if left, err = l.room(0); err != nil {
		return 0, 0, err
	}
	first := l.queue[0]
	if first != a && first.least <= left+l.granted[working] {
		return 0, left, nil
	}
	switch {
	case left >= a.most:
		n = a.most
	case left >= a.least && l.granted[working] == 0:
		n = left
	}
	l.granted[working] += n
	return n, left, nil
}

// starving reports whether an operation waits for what stands to go. Nothing
// more may stand then.
func (l *ledger) starving(left int64) bool {
	return len(l.queue) > 0 && l.queue[0].least > left+max(l.granted[working], l.floor)
}

func (l *ledger) leave(a *asker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.queue {
		if x == a {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			break
		}
	}
	l.wake()
}

// waitFor waits until c is closed, at most d.
func waitFor(ctx context.Context, c <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// roomError says that the ledger had no room.
type roomError struct{ asked, left int64 }

func (e *roomError) Error() string {
	return fmt.Sprintf("%v: %d bytes asked, %d left", gpu.ErrNoMemory, e.asked, max(e.left, 0))
}

func (e *roomError) Unwrap() error { return gpu.ErrNoMemory }
