package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// call is one item in one stage: the context that the stage gets and the lease
// on its input. A single object answers for both, so that a stage costs one
// allocation.
type call struct {
	st     *station
	item   *item
	id     uint64 // for listeners; 0 without any
	begun  time.Duration
	device atomic.Int32 // an alloc.Space
	mu     sync.Mutex
	hold   hold
	final  bool // no try follows: early release is allowed
	scope  *alloc.Scope

	waited atomic.Int64 // ns that the stage says it has waited
}

type callKey struct{}

// Deadline is that of the context of Run.
func (c *call) Deadline() (time.Time, bool) { return c.st.run.ctx.Deadline() }

// Done is closed when the run stops, and when the item fails or has left.
func (c *call) Done() <-chan struct{} { return c.item.own().Done() }

// Err is why the item ended.
func (c *call) Err() error {
	if err := c.item.base().Err(); err != nil {
		return err
	}
	if c.item.failed.Load() {
		return context.Canceled
	}
	return nil
}

// Value answers for the item and for the scope that alloc looks for.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	if key == c.st.run.scopeKey {
		return c.allocScope()
	}
	return c.item.base().Value(key)
}

func (c *call) allocScope() *alloc.Scope {
	res := c.item.res
	if c.st.run.g.unsafe.releaseEarly {
		res = nil
	}
	if res == nil && c.id == 0 {
		return c.st.scope
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scope == nil {
		c.scope = alloc.NewScope(c.st.owner, alloc.Host, res)
		if c.id != 0 {
			c.scope = c.scope.Tagged(c.id)
		}
	}
	return c.scope
}

// end ends what is left of the lease.
func (c *call) end() {
	c.mu.Lock()
	h := c.hold
	c.hold = hold{}
	c.mu.Unlock()
	if h.len() == 0 {
		return
	}
	c.st.held.sub(&h)
	c.st.run.release(c.st, c.item, &h)
}

// early is end while the stage still runs.
func (c *call) early() {
	if r := c.st.run; r.heard {
		c.mu.Lock()
		h := c.hold
		c.mu.Unlock()
		if n := h.bytes(); n > 0 {
			r.tell(Event{Kind: Dropped, At: r.now(), Stage: c.st.node.name, Key: c.item.key, Bytes: n, Item: c.item.id, Call: c.id, hold: h})
		}
	}
	c.end()
}

// drop ends the lease on one buffer.
func (c *call) drop(ref alloc.Ref) bool {
	c.mu.Lock()
	if !c.final || !c.hold.take(ref) {
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()
	c.st.held.subRef(ref)
	if r := c.st.run; r.heard {
		r.tell(Event{Kind: Dropped, At: r.now(), Stage: c.st.node.name, Key: c.item.key, Bytes: ref.Bytes(), Item: c.item.id, Call: c.id, hold: hold{one: ref}})
	}
	h := hold{one: ref}
	c.st.run.release(c.st, c.item, &h)
	return true
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// KeyOf is the key of the item that the stage runs on; the zero key outside of
// a stage.
func KeyOf(ctx context.Context) Key {
	if c := callOf(ctx); c != nil {
		return c.item.key
	}
	return Key{}
}

// StageOf is the name of the stage that runs; empty outside of one.
func StageOf(ctx context.Context) string {
	if c := callOf(ctx); c != nil {
		return c.st.node.name
	}
	return ""
}

// Done ends the lease on the stage's input before the stage returns: none of
// its buffers may be used afterwards, and those that nobody else reads are
// free. It does nothing outside of a stage, a second time, or while a retry may
// follow.
func Done(ctx context.Context) {
	if c := callOf(ctx); c != nil {
		c.mu.Lock()
		final := c.final
		c.mu.Unlock()
		if final {
			c.early()
		}
	}
}

// Drop is Done for one buffer of the input. It reports whether the stage had a
// reference on it that has now ended; there is none if the buffer is not the
// input's or not in the stage's Uses, if it was dropped before, and none ends
// while a retry may follow.
func Drop(ctx context.Context, ref alloc.Ref) bool {
	c := callOf(ctx)
	return c != nil && c.drop(ref)
}

// EndParts is for a stage whose input is read for longer than it runs, by a copy
// that goes on in the background, say. Such a stage and the last that the copy
// can outlive both name the parts in their Ends. What EndParts gives is called
// when the stage and those behind it read the named parts no more: by any
// goroutine, at any time, also after the item has left. The reservation then
// shrinks as if the stages behind had not named them, when the stage has
// returned at the earliest.
func EndParts(ctx context.Context) func(parts ...string) {
	c := callOf(ctx)
	if c == nil {
		return func(...string) {}
	}
	st, it := c.st, c.item
	return func(parts ...string) { it.endParts(st, parts) }
}

// Waited says that d of the time that the stage has had its item was spent waiting
// for its turn at something: it counts as time that the stage waited for input,
// and not as busy. It does nothing outside of a stage.
func Waited(ctx context.Context, d time.Duration) {
	if c := callOf(ctx); c != nil && d > 0 {
		c.waited.Add(int64(d))
	}
}

// OnDevice says that the stage works on the device whose memory space is: listeners
// hear of it with the end of the call. It does nothing outside of a stage.
func OnDevice(ctx context.Context, space alloc.Space) {
	if c := callOf(ctx); c != nil {
		c.device.Store(int32(space))
	}
}

// BudgetOf is the budget of the run that the item is in; nil where there is none,
// and outside of a graph. It may be asked for in what states a stage's needs too.
func BudgetOf(ctx context.Context) *alloc.Budget {
	if c := callOf(ctx); c != nil {
		return c.item.run.budget
	}
	return nil
}
