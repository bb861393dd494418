package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// DefaultPlaces is how many items a card of a Balance has at once, from the
// moment that one is placed there until nothing of it needs the card any more:
// one for each thing that a proof waits for on its way (its input, its vectors'
// way to the card, transforms, sums), so that the card has work meanwhile.
const DefaultPlaces = 6

// balancePoll is how often an item that waits looks again: memory that others
// give back, and a card that is lost, tell nobody.
const balancePoll = 20 * time.Millisecond

// Member is a card as a Balance sees it.
type Member struct {
	Name string
	// Room is how many bytes of its memory another item could have now; nil
	// where that is not known. It is called with a lock held and must not wait.
	Room func() (int64, error)
	// Lost is why the card cannot be used any more; nil, or a nil error, while it
	// can be.
	Lost func() error
	// Size is how fast the card is likely to be beside the others, in any unit,
	// until it has been measured; 0 is 1.
	Size float64
}

// MemberOf is a device as a member.
func MemberOf(d Device) Member {
	return Member{
		Name: name(d),
		Room: func() (int64, error) { return Available(d) },
		Lost: func() error { return Lost(d) },
		Size: float64(d.Info().SMs),
	}
}

// Available is how many bytes of d's memory can be taken: what the driver has,
// and what the two pools of this process keep without a user.
func Available(d Device) (int64, error) {
	free, _, err := d.Memory()
	if err != nil {
		return 0, err
	}
	used, reserved, err := d.Pooled()
	if err != nil {
		return 0, err
	}
	return free + max(reserved-used, 0) + alloc.Default().Pooled(d.Space()), nil
}

// BalanceOptions are what a Balance can be told. The zero value will do.
type BalanceOptions struct {
	Places int              // items that a card has at once; 0 is DefaultPlaces
	Now    func() time.Time // the clock; nil is time.Now

	// Watch, if not nil, is told of everything that changes who has what, in
	// order. It is called with a lock held and must not call the Balance.
	Watch func(BalanceEvent)
}

// BalanceEvent is one change.
type BalanceEvent struct {
	Kind   BalanceKind
	Member int // of Placed and Left; -1 otherwise
}

// BalanceKind is what has changed.
type BalanceKind uint8

// The kinds.
const (
	Waiting BalanceKind = iota // an item waits for a place
	Placed                     // an item got one; it has been Waiting before, or was placed at once
	Left                       // an item needs its card no more
	GaveUp                     // an item that waited waits no more
)

// Balance places items on cards of unequal speed and memory. An item goes to a
// card that has none, the fastest first, and otherwise to the card that will be
// done with it first, by the measured time that the card takes for one and by
// what it has still to do; it waits where that card has all its places taken.
// So a card gets what it can finish, no card is without an item while one
// waits, and a slow card holds no item up that a fast one would finish sooner,
// behind another; the last item of all it may. Cards that are as fast as each other
// get as many items each. A card of which nothing is measured yet gets half of its
// places at first. A card that lacks memory for another item, because others use it say, is left
// to finish those that it has.
type Balance struct {
	places int
	now    func() time.Time
	watch  func(BalanceEvent)

	mu      sync.Mutex
	members []*member
	queue   []*asking
}

type member struct {
	Member
	items   int
	coming  int64 // bytes that items will take which are not at the card yet
	working int   // calls of Place.Work that have not ended
	since   time.Time
	busy    time.Duration // while working > 0, up to since
	last    time.Time     // an item was done, or the first one came
	lastAt  time.Duration // busy then
	each    time.Duration // busy time of an item; 0 while unknown
	samples []time.Duration
	turn    int // items that it has had since all were idle

	placed, finished, given int64
	most                    int

	fails int // in a row
	rest  int // placements elsewhere until it is asked first again
}

// Ask is what is to be placed.
type Ask struct {
	// Failed are the members that had it and failed: another one is taken if
	// there is one. It may be shorter than the members.
	Failed []bool
	// Need is how many bytes of a member's memory it takes; nil is not known.
	Need func(member int) int64
	// Fits is a further condition on a member that has items; nil is none. It is
	// called with a lock held.
	Fits func(member int) bool
	// Now places it at once, whatever places are taken: for one that others may
	// wait for.
	Now bool
}

type asking struct {
	Ask
	done chan struct{} // closed once place is there
	p    *Place
}

// NewBalance makes a balance over members.
func NewBalance(o BalanceOptions, members ...Member) *Balance {
	if o.Places <= 0 {
		o.Places = DefaultPlaces
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Balance{places: o.Places, now: o.Now, watch: o.Watch}
	for _, m := range members {
		b.members = append(b.members, &member{Member: m})
	}
	return b
}

// Places is how many items all members have at once.
func (b *Balance) Places() int { return b.places * len(b.members) }

// Take places an item, waiting for a place in order of arrival. Where every
// member is lost it is placed all the same: what is done there fails.
func (b *Balance) Take(ctx context.Context, a Ask) (*Place, error) {
	if len(b.members) == 0 {
		return nil, fmt.Errorf("place an item on a card: %w", ErrNoDevice)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("place an item on a card: %w", err)
	}
	q := &asking{Ask: a, done: make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, q)
	b.sweep()
	if q.p != nil {
		b.mu.Unlock()
		return q.p, nil
	}
	b.tell(Waiting, -1)
	b.mu.Unlock()
	tick := time.NewTicker(balancePoll)
	defer tick.Stop()
	for {
		select {
		case <-q.done:
			return q.p, nil
		case <-tick.C:
			b.mu.Lock()
			b.sweep()
			b.mu.Unlock()
		case <-ctx.Done():
			b.mu.Lock()
			defer b.mu.Unlock()
			if q.p != nil {
				return q.p, nil
			}
			b.queue = slices.DeleteFunc(b.queue, func(x *asking) bool { return x == q })
			b.tell(GaveUp, -1)
			return nil, fmt.Errorf("wait for a card: %w", context.Cause(ctx))
		}
	}
}

// Peek is the member that an item would be placed on now, or one of those that it
// would wait for. It is not placed.
func (b *Balance) Peek(a Ask) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.Now = true
	i, _ := b.choose(&a)
	return i
}

// sweep places who waits, as far as there are places. Callers hold mu.
func (b *Balance) sweep() {
	for k := 0; k < len(b.queue); {
		q := b.queue[k]
		i, ok := b.choose(&q.Ask)
		if !ok {
			k++
			continue
		}
		b.queue = slices.Delete(b.queue, k, k+1)
		q.p = b.put(i, &q.Ask)
		close(q.done)
	}
}

func (b *Balance) put(i int, a *Ask) *Place {
	m := b.members[i]
	if !slices.ContainsFunc(b.members, func(x *member) bool { return x.items > 0 }) {
		for _, x := range b.members {
			x.turn = 0
		}
	}
	m.turn++
	if m.items == 0 {
		m.last, m.lastAt = b.now(), m.busyAt(b.now())
	}
	for _, x := range b.members {
		x.rest = max(x.rest-1, 0)
	}
	m.items++
	m.placed++
	m.most = max(m.most, m.items)
	p := &Place{b: b, i: i}
	if a.Need != nil {
		p.coming = max(a.Need(i), 0)
		m.coming += p.coming
	}
	b.tell(Placed, i)
	return p
}

func (b *Balance) tell(k BalanceKind, i int) {
	if b.watch != nil {
		b.watch(BalanceEvent{k, i})
	}
}

func (m *member) busyAt(now time.Time) time.Duration {
	if m.working > 0 {
		return m.busy + now.Sub(m.since)
	}
	return m.busy
}

// balanceSamples is how many items the time of one is the mean of.
const balanceSamples = 8

// sample notes that an item was done, with the busy time since the one before:
// side by side items take less than one by one. The largest of several does not
// count. It has in it what is made once, kernels that are compiled and tables.
func (m *member) sample(now time.Time) {
	at := m.busyAt(now)
	m.samples = append(m.samples, at-m.lastAt)
	m.last, m.lastAt = now, at
	if len(m.samples) > balanceSamples {
		m.samples = slices.Delete(m.samples, 0, 1)
	}
	var sum time.Duration
	for _, d := range m.samples {
		sum += d
	}
	n := len(m.samples)
	if n > 2 {
		sum, n = sum-slices.Max(m.samples), n-1
	}
	m.each = sum / time.Duration(n)
}

// Place is a member for one item, until Leave. Its methods may be called by any
// goroutine.
type Place struct {
	b       *Balance
	i       int
	coming  int64
	left    bool
	arrived bool
}

// Member is the index of the member.
func (p *Place) Member() int { return p.i }

// Work says that something of the item is worked on at the card, until end is
// called. The first call says that it has come there.
func (p *Place) Work() (end func()) {
	b, m := p.b, p.b.members[p.i]
	b.mu.Lock()
	defer b.mu.Unlock()
	p.arrive()
	if m.working++; m.working == 1 {
		m.since = b.now()
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if m.working--; m.working == 0 {
			m.busy += b.now().Sub(m.since)
		}
	}
}

func (p *Place) arrive() {
	if !p.arrived {
		p.arrived = true
		p.b.members[p.i].coming -= p.coming
	}
}

// Fail says that the item failed for a reason that may be the card's. A card that
// fails one item after another is not the first to be asked any more, or it would
// soon have failed them all: it gets one in two, in four, in eight …, until it has
// finished one.
func (p *Place) Fail() {
	b, m := p.b, p.b.members[p.i]
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.fails < 6 {
		m.fails++
	}
	m.rest = 1 << m.fails
}

// Leave gives the place to another item. done says that the card has done all
// that there was to do. A second Leave does nothing.
func (p *Place) Leave(done bool) {
	b, m := p.b, p.b.members[p.i]
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	p.arrive()
	m.items--
	if done {
		m.finished++
		m.fails, m.rest = 0, 0
		m.sample(b.now())
	} else {
		m.given++
	}
	b.tell(Left, p.i)
	b.sweep()
}

// BalanceStats is what a member of a Balance did.
type BalanceStats struct {
	Name     string        `json:"name"`
	Items    int           `json:"items"`    // that it has now
	Most     int           `json:"most"`     // that it had at once
	Finished int64         `json:"finished"` // items
	Given    int64         `json:"given"`    // items that left it unfinished: they failed, or it did
	Busy     time.Duration `json:"busy"`     // while something of an item was worked on there
	Each     time.Duration `json:"each"`     // measured, for an item; 0 while unknown
	Lost     string        `json:"lost,omitempty"`
}

// Stats is what each member did until now.
func (b *Balance) Stats() []BalanceStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []BalanceStats
	for _, m := range b.members {
		s := BalanceStats{Name: m.Name, Items: m.items, Most: m.most, Finished: m.finished, Given: m.given, Busy: m.busyAt(b.now()), Each: m.each}
		if err := m.lost(); err != nil {
			s.Lost = err.Error()
		}
		out = append(out, s)
	}
	return out
}

// Check is an error if the books do not add up: for tests.
func (b *Balance) Check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, m := range b.members {
		if m.items != 0 || m.working != 0 || m.coming != 0 || m.placed != m.finished+m.given {
			errs = append(errs, fmt.Errorf("%s: %d items, %d at work, %d bytes to come; %d placed, %d finished, %d given back",
				m.Name, m.items, m.working, m.coming, m.placed, m.finished, m.given))
		}
	}
	if len(b.queue) > 0 {
		errs = append(errs, fmt.Errorf("%d items wait", len(b.queue)))
	}
	return errors.Join(errs...)
}
