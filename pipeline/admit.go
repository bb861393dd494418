package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// admit lets an item enter: with a budget, once its peak fits.
func (r *run) admit(s *station, it *item, job any) error {
	since := r.now()
	if r.heard {
		e := Event{Kind: Arrived, At: since, Stage: s.node.name, Key: it.key, Item: it.id}
		if it.story != nil {
			e.Attempt = len(it.story.past)
		}
		r.tell(e)
	}
	if plan := it.part.plan; plan != nil {
		sh, err := plan.shapeOf(job, it)
		if err != nil {
			return err
		}
		if err := r.reserve(it, sh.After(0)); err != nil {
			return err
		}
		it.shape = sh
	}
	it.admitted.Store(true)
	raise(&r.inFlightPeak, r.inFlight.Add(1))
	if r.heard {
		now := r.now()
		r.tell(Event{Kind: Admitted, At: now, Stage: s.node.name, Key: it.key, Wait: now - since, Item: it.id,
			needs: func() []StageNeed { return r.needsOf(it, job) }})
	}
	return nil
}

// reserve takes the item's peak from the budget. Requests are granted in order
// of arrival, so no item waits for ever behind smaller ones; and since an item
// in flight holds all that it can need, those in flight can always finish.
func (r *run) reserve(it *item, need alloc.Amount) error {
	res, err := r.budget.TryReserve(need)
	if res == nil && err == nil {
		since := r.now()
		res, err = r.kept.wait(r, it, need)
		r.waits.Add(1)
		r.waitTime.Add(int64(r.now() - since))
	}
	if err != nil {
		var large *alloc.TooLargeError
		if errors.As(err, &large) {
			return &AdmitError{Key: it.key, Need: need, Limit: large.Limit}
		}
		return err
	}
	it.res = res
	return nil
}

// keeper counts the buffers that Collect keeps: they stay charged to the budget
// until the run has ended, so an item that does not fit beside them never will.
type keeper struct {
	mu   sync.Mutex
	refs map[alloc.Ref]struct{}
	held alloc.Amount
}

// keptCheck is how often an item that waits is looked at.
const keptCheck = 10 * time.Millisecond

// wait reserves, unless what is collected leaves no room for good, or what a
// sink has retained leaves none for longer than the graph's patience.
func (k *keeper) wait(r *run, it *item, need alloc.Amount) (*alloc.Reservation, error) {
	patience := r.g.patience
	if r.g.shared != nil {
		patience = 0
	}
	queued := it.story != nil && len(it.story.past) > 0 && len(it.part.orderers) > 0 && r.g.shared == nil
	if !r.collects && patience == 0 && !queued {
		return r.budget.Reserve(r.ctx, need)
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		tick := time.NewTicker(keptCheck)
		defer tick.Stop()
		st := stall{since: time.Now()}
		var turn turns
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				err := k.inVain(r, it, need)
				if err == nil && patience > 0 {
					err = st.look(r, it, need, patience)
				}
				if err == nil && queued {
					err = turn.look(r, it, need)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		}
	}()
	res, err := r.budget.Reserve(ctx, need)
	close(ended)
	watch.Wait()
	var never *AdmitError
	if err != nil && errors.As(context.Cause(ctx), &never) {
		return nil, never
	}
	return res, err
}

// inVain is an error if nothing that could still be given back would let the
// item in: no reservation is open, and what is charged belongs to collected
// values.
func (k *keeper) inVain(r *run, it *item, need alloc.Amount) error {
	b := r.budget.Stats()
	if b.Open > 0 {
		return nil
	}
	k.mu.Lock()
	held := k.held
	k.mu.Unlock()
	for i := range held {
		held[i] = min(held[i], b.Charged[i])
		if b.Limit[i] > 0 && need[i] > 0 && need[i]+held[i] > b.Limit[i] {
			return &AdmitError{Key: it.key, Need: need, Limit: b.Limit, Held: held}
		}
	}
	return nil
}

// stall is for how long nothing has moved in the budget with no item in flight.
type stall struct {
	since   time.Time
	charged alloc.Amount
}

// look is an error if what outlived its items has not changed for longer than
// patience. Who holds it is not known, and may yet let go: hence the patience.
func (st *stall) look(r *run, it *item, need alloc.Amount, patience time.Duration) error {
	b := r.budget.Stats()
	if b.Open > 0 || b.Charged != st.charged {
		st.since, st.charged = time.Now(), b.Charged
		return nil
	}
	if waited := time.Since(st.since); waited >= patience {
		return &AdmitError{Key: it.key, Need: need, Limit: b.Limit, Held: b.Charged, Waited: waited}
	}
	return nil
}

// turns is for how many looks nothing has moved but values that wait for their
// turn behind an item that is made again, which waits for what they hold. An
// item that comes for the first time was reserved for before those behind it.
type turns struct {
	looks int
	moved int64
}

// turnLooks is how many looks in a row show that nothing moves any more.
const turnLooks = 3

func (t *turns) look(r *run, it *item, need alloc.Amount) error {
	moved, still := r.still()
	if !still || moved != t.moved || it.part.early() == 0 {
		t.looks, t.moved = 0, moved
		return nil
	}
	if t.looks++; t.looks < turnLooks {
		return nil
	}
	b := r.budget.Stats()
	return &AdmitError{Key: it.key, Need: need, Limit: b.Limit, Held: b.Charged, Turn: true}
}

// early is how many values wait for their turn.
func (c *component) early() (n int) {
	for _, s := range c.orderers {
		s.o.mu.Lock()
		n += s.o.Len()
		s.o.mu.Unlock()
	}
	return n
}

// still reports whether no stage works and none has anything to work on, and a
// count that is another one if anything has moved meanwhile.
func (r *run) still() (moved int64, still bool) {
	still = true
	for _, s := range r.stations {
		moved += s.items.Load() + s.failed.Load() + s.restarts.Load()
		if s.running.Load() > 0 {
			still = false
		}
		if s.q != nil {
			s.q.mu.Lock()
			still = still && s.q.Len() == 0
			s.q.mu.Unlock()
		}
		if s.o != nil {
			s.o.mu.Lock()
			still = still && !s.o.sending
			s.o.mu.Unlock()
		}
	}
	return moved, still
}

// keep counts the buffers of a value that Collect has got.
func (k *keeper) keep(r *run, h *hold) {
	if h.len() == 0 || r.budget == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refs == nil {
		k.refs = make(map[alloc.Ref]struct{})
	}
	for i := range h.len() {
		ref := h.at(i)
		if _, known := k.refs[ref]; !known && ref.Space().Valid() {
			k.refs[ref] = struct{}{}
			k.held[ref.Space()] += ref.Bytes()
		}
	}
}

// settle hands over what was collected, or frees it if the run failed.
func (k *keeper) settle(r *run, failed bool) {
	for _, s := range r.stations {
		if c := s.node.collect; c != nil {
			c.settle(r, s, failed)
		}
	}
}
