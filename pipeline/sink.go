package pipeline

import (
	"context"
	"fmt"
	"sync"
)

// ToFunc calls fn with every value of p. fn borrows the value: its buffers are
// released when fn returns, so it retains what it keeps. With a budget, what it
// retains stays charged until it releases it: an fn that keeps buffers until the
// run has ended leaves no room for later items, which fail with an *AdmitError
// after the graph's Patience. An error of fn fails the item. Options: Workers (1), Capacity (1), Retry, Name ("sink"), OnFail.
func ToFunc[T any](p *Port[T], fn func(ctx context.Context, key Key, value T) error, opts ...NodeOption) {
	g := p.Graph()
	if g == nil {
		return
	}
	if fn == nil {
		g.fault(fmt.Errorf("nil function as the sink of %s", p.Name()))
		return
	}
	n := &node{kind: kindSink, in: typeOf[T]()}
	n.call = func(ctx context.Context, in any) (any, error) {
		return nil, fn(ctx, KeyOf(ctx), as[T](in))
	}
	g.attach(n, []*node{p.node()}, opts)
}

// Result is a value that Collect has got.
type Result[T any] struct {
	Key   Key
	Value T
}

// Collected is what Collect gathers.
type Collected[T any] struct{ c *collector }

// Collect gathers the values of p. They are the caller's, with one reference on
// each of their buffers, once Run has returned without an error; if it returns
// one, they are released and the list is empty. With a budget, collected
// buffers stay charged: an item that does not fit beside them fails with an
// *AdmitError. Options: Capacity, Name.
func Collect[T any](p *Port[T], opts ...NodeOption) *Collected[T] {
	c := &collector{}
	if g := p.Graph(); g != nil {
		g.attach(&node{kind: kindCollect, in: typeOf[T](), collect: c}, []*node{p.node()}, opts)
	}
	return &Collected[T]{c}
}

// Results are the keys and values in the order in which they came: that of the
// source if the stage before is Ordered. It is empty until Run has returned.
func (c *Collected[T]) Results() []Result[T] {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	if !c.c.done {
		return nil
	}
	out := make([]Result[T], len(c.c.got))
	for i, m := range c.c.got {
		out[i] = Result[T]{m.key, as[T](m.val)}
	}
	return out
}

// Values are the values of Results.
func (c *Collected[T]) Values() []T {
	rs := c.Results()
	if rs == nil {
		return nil
	}
	out := make([]T, len(rs))
	for i := range rs {
		out[i] = rs[i].Value
	}
	return out
}

type collector struct {
	mu   sync.Mutex
	got  []kept
	done bool
}

type kept struct {
	key  Key
	val  any
	hold hold
}

// gather is the goroutine of a Collect.
func (s *station) gather() {
	defer s.run.wg.Done()
	r, c := s.run, s.node.collect
	for {
		m, waited, v := s.q.pop(r)
		s.addWait(&s.waitIn, WaitedIn, waited)
		if v != take {
			return
		}
		if m.item.gone() || !m.item.deliver() {
			r.drop(s, m)
			continue
		}
		s.held.add(&m.hold)
		r.kept.keep(r, &m.hold)
		c.mu.Lock()
		c.got = append(c.got, kept{m.item.key, m.val, m.hold})
		c.mu.Unlock()
		s.items.Add(1)
		s.tellOf(Taken, m.item, 0, &m.hold)
		r.leave(m.item, 1)
	}
}

func (c *collector) settle(r *run, s *station, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.got {
		s.held.sub(&c.got[i].hold)
		if failed {
			r.release(s, &item{key: c.got[i].key}, &c.got[i].hold)
		}
	}
	if failed {
		c.got = nil
	}
	c.done = true
}
