package pipeline

import (
	"context"
	"errors"
	"sync"

	"github.com/snarkline/snarkline/alloc"
)

// admit lets an item enter: with a budget, once its peak fits.
func (r *run) admit(s *station, it *item, job any) error {
	since := r.now()
	if plan := it.part.plan; plan != nil {
		sh, err := plan.shapeOf(job, it.key)
		if err != nil {
			return err
		}
		if err := r.reserve(it, sh.after(0)); err != nil {
			return err
		}
		it.shape = sh
	}
	it.admitted.Store(true)
	raise(&r.inFlightPeak, r.inFlight.Add(1))
	if r.heard {
		now := r.now()
		r.tell(Event{Kind: Admitted, At: now, Stage: s.node.name, Key: it.key, Wait: now - since})
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
	mu      sync.Mutex
	refs    map[alloc.Ref]int
	held    alloc.Amount
	waiting map[*keptWait]struct{}
}

type keptWait struct {
	need   alloc.Amount
	cancel context.CancelCauseFunc
	key    Key
}

// wait reserves, unless what is collected leaves no room for good.
func (k *keeper) wait(r *run, it *item, need alloc.Amount) (*alloc.Reservation, error) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	w := &keptWait{need, cancel, it.key}
	k.mu.Lock()
	if k.waiting == nil {
		k.waiting = make(map[*keptWait]struct{})
	}
	k.waiting[w] = struct{}{}
	k.check(r)
	k.mu.Unlock()
	res, err := r.budget.Reserve(ctx, need)
	k.mu.Lock()
	delete(k.waiting, w)
	k.mu.Unlock()
	if err != nil {
		var never *AdmitError
		if errors.As(context.Cause(ctx), &never) {
			return nil, never
		}
	}
	return res, err
}

// check ends the waits that are in vain. Callers hold mu.
func (k *keeper) check(r *run) {
	if k.held.IsZero() || len(k.waiting) == 0 {
		return
	}
	limit := r.budget.Limit()
	for w := range k.waiting {
		if need := w.need.Add(k.held); !onlyWhere(need, w.need).Fits(limit) {
			w.cancel(&AdmitError{Key: w.key, Need: w.need, Limit: limit, Held: k.held})
		}
	}
}

// onlyWhere is a in the spaces in which where is not zero.
func onlyWhere(a, where alloc.Amount) alloc.Amount {
	for i := range a {
		if where[i] == 0 {
			a[i] = 0
		}
	}
	return a
}

// keep counts the buffers of a value that Collect has got.
func (k *keeper) keep(r *run, h *hold) {
	if h.len() == 0 || r.budget == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refs == nil {
		k.refs = make(map[alloc.Ref]int)
	}
	for i := range h.len() {
		ref := h.at(i)
		if k.refs[ref]++; k.refs[ref] == 1 && ref.Space().Valid() {
			k.held[ref.Space()] += ref.Bytes()
		}
	}
	k.check(r)
}

// settle frees what was collected if the run failed.
func (k *keeper) settle(r *run, failed bool) {
	for _, s := range r.stations {
		if c := s.node.collect; c != nil {
			c.settle(r, s, failed)
		}
	}
}
