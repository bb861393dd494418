package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Restart lets an item be made again from its source's value, up to n times,
// when a stage fails on it with an error that says FromStart() bool is true, or
// with one that says Temporary() bool is true when the stage is tried no more (see
// Retry). All that was made of the item is freed first, as if it had failed; then it is
// admitted anew, under the same key and in its old place in the order. The value
// is kept until the item has left for good, with a reference on each of its
// buffers, and must be good for another use. It is an option of sources.
//
// An item of which a sink has begun to take a value, or which an ordered stage
// has sent on, is not called back: it fails. Nor is one in a run that has been
// stopped. Listeners hear of each repetition (Restarted), the report lists them,
// and the error of an item that fails in the end is an *AttemptsError.
//
// Values that wait in an ordered stage for an item that is made again keep what
// they hold. If that leaves no room for the item, it fails with an *AdmitError.
//
// A source whose items can be restarted ends for the stages behind it when the
// last of its items has left. It must be the only source of what is joined
// behind it.
func Restart(n int) NodeOption {
	return nodeOption(func(nd *node) {
		switch {
		case n < 0:
			nd.odd = append(nd.odd, fmt.Sprintf("%d restarts are less than 0", n))
		case nd.kind != kindSource:
			nd.odd = append(nd.odd, "only the items of a source can be restarted")
		default:
			nd.restarts = n
		}
	})
}

// fromStart reports whether err says that the item can be made again.
func fromStart(err error) bool {
	var f interface{ FromStart() bool }
	return errors.As(err, &f) && f.FromStart()
}

// AttemptsError is the failure of an item that was made more than once.
type AttemptsError struct {
	Key  Key
	Errs []error // of each attempt, in order
}

// Error tells every attempt.
func (e *AttemptsError) Error() string {
	s := fmt.Sprintf("item %v failed %d times", e.Key, len(e.Errs))
	for i, err := range e.Errs {
		s += fmt.Sprintf("; attempt %d: %v", i+1, err)
	}
	return s
}

// Unwrap gives the errors, the last one first: it is what ended the item.
func (e *AttemptsError) Unwrap() []error {
	out := make([]error, len(e.Errs))
	for i, err := range e.Errs {
		out[len(out)-1-i] = err
	}
	return out
}

// The fate of an item that can be restarted is decided once.
const (
	open      int32 = iota
	delivered       // somebody outside has seen it: no restart any more
	retracted       // it is made again: nobody outside may see this attempt
)

// story is what an item that can be restarted keeps from attempt to attempt.
type story struct {
	source *station
	job    any
	hold   hold    // on the value's buffers, one reference each
	past   []error // of earlier attempts
}

// deliver says that somebody outside of the graph is about to see a value of
// the item. It reports false if the item is being made again.
func (it *item) deliver() bool {
	return it.story == nil || it.fate.CompareAndSwap(open, delivered) || it.fate.Load() == delivered
}

// again has the item made again because of err, if that is possible. It reports
// whether the failure is dealt with. Like fail, it leaves the caller what he
// holds of the item.
func (r *run) again(s *station, it *item, err error) bool {
	if it.story == nil {
		return false
	}
	if it.fate.Load() == retracted {
		return true
	}
	if len(it.story.past) >= it.story.source.node.restarts || !fromStart(err) && !temporary(err) || r.stopped.Load() || r.parent.Err() != nil {
		return false
	}
	if !it.fate.CompareAndSwap(open, retracted) {
		return it.fate.Load() == retracted
	}
	if it.failed.Swap(true) {
		return true // it has failed, and that was answered
	}
	heir := &item{run: r, part: it.part, key: it.key, id: r.attempts.Add(1), seq: it.seq, seen: it.seen}
	heir.story = &story{source: it.story.source, job: it.story.job, hold: it.story.hold}
	heir.story.past = append(append(heir.story.past, it.story.past...), err)
	heir.live.Store(1)
	it.heir = heir
	it.own().cancel()
	s.restarts.Add(1)
	r.noteRestart(s, it, err, len(heir.story.past))
	for _, t := range r.stations {
		if t.part == it.part {
			r.recall(t, it)
		}
	}
	return true
}

func (r *run) noteRestart(s *station, it *item, err error, attempt int) {
	r.restarted.Add(1)
	r.failMu.Lock()
	if len(r.restarts) < maxFailures {
		r.restarts = append(r.restarts, Failure{Stage: s.node.name, Key: it.key, Error: err.Error()})
	}
	r.failMu.Unlock()
	if r.heard {
		r.tell(Event{Kind: Restarted, At: r.now(), Stage: s.node.name, Key: it.key, Err: err, Attempt: attempt, Item: it.id})
	}
}

// recall is purge for an item that comes again: its turn in the order is kept.
func (r *run) recall(s *station, it *item) {
	switch {
	case s.q != nil:
		r.dropAll(s, s.q.remove(it))
	case s.j != nil:
		r.dropAll(s, s.j.remove(it))
	}
	if s.o != nil {
		r.dropAll(s, s.o.recall(it))
	}
}

// reenter brings an item that is made again into the graph.
func (r *run) reenter(it *item) {
	defer r.wg.Done()
	s := it.story.source
	m := message{it, it.story.job, it.story.hold}
	m.hold.retain()
	if err := r.admit(s, it, m.val); err != nil {
		r.fail(s, it, err)
		r.drop(s, m)
		return
	}
	s.emit(m)
	s.tellOf(Sent, it, 0, nil)
}

// told is err with those of the attempts before.
func (it *item) told(err error) error {
	if it.story == nil || len(it.story.past) == 0 {
		return err
	}
	return &AttemptsError{Key: it.key, Errs: append(append([]error(nil), it.story.past...), err)}
}

// PastOf is the errors that ended the earlier attempts at the item that the
// stage runs on, in order; empty for an item that is made for the first time,
// and outside of a stage.
func PastOf(ctx context.Context) []error {
	if c := callOf(ctx); c != nil && c.item.story != nil {
		return c.item.story.past
	}
	return nil
}

// ItemValue is the value that the item of the stage has under key, which must
// be comparable. The first call for an attempt at the item makes it: by then
// before is what the attempt before had, or nil. What make returns besides the
// value, if it is not nil, is called once when nothing of the attempt is in the
// graph any more, however it ended. It may be called in what states a stage's
// needs too. Outside of a graph there is no item: the value is nil then, and
// nothing is made.
func ItemValue(ctx context.Context, key any, make func(before any) (v any, end func())) any {
	c := callOf(ctx)
	if c == nil {
		return nil
	}
	vs := &c.item.values
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v, ok := vs.now[key]; ok {
		return v
	}
	v, end := make(vs.before[key])
	if vs.now == nil {
		vs.now = map[any]any{}
	}
	vs.now[key] = v
	if end != nil {
		vs.ends = append(vs.ends, end)
	}
	return v
}

// values are what ItemValue has made for an item.
type values struct {
	mu          sync.Mutex
	now, before map[any]any
	ends        []func()
}

// end calls what is to be called when the item has left. A panic is returned.
func (v *values) end() error {
	v.mu.Lock()
	ends := v.ends
	v.ends, v.before = nil, nil
	v.mu.Unlock()
	var all []error
	for _, end := range ends {
		all = append(all, guard(end))
	}
	return errors.Join(all...)
}
