package pipeline

import (
	"context"
	"errors"
	"io"
	"iter"
)

// source adds a source node whose values open yields.
func addSource[T any](g *Graph, open func(*feeder) error, opts []NodeOption) *Port[T] {
	if g == nil {
		return &Port[T]{}
	}
	n := &node{kind: kindSource, out: typeOf[T](), open: open}
	g.attach(n, nil, opts)
	return &Port[T]{g, n}
}

// FromSlice yields the values of a slice. keyOf names each item; nil numbers
// them: Key{Part: 0}, Key{Part: 1} and so on. Options of sources: Name.
func FromSlice[T any](g *Graph, values []T, keyOf func(T) Key, opts ...NodeOption) *Port[T] {
	return addSource[T](g, func(f *feeder) error {
		for _, v := range values {
			if !feed(f, v, keyOf) {
				break
			}
		}
		return nil
	}, opts)
}

// FromSeq yields the values of an iterator. The iterator should not wait for
// long: when the run stops, it is left at its next value.
func FromSeq[T any](g *Graph, seq iter.Seq[T], keyOf func(T) Key, opts ...NodeOption) *Port[T] {
	return addSource[T](g, func(f *feeder) error {
		for v := range seq {
			if !feed(f, v, keyOf) {
				break
			}
		}
		return nil
	}, opts)
}

// FromChan yields what comes from a channel until it is closed. When the run
// stops early, what is left in the channel stays there.
func FromChan[T any](g *Graph, ch <-chan T, keyOf func(T) Key, opts ...NodeOption) *Port[T] {
	return addSource[T](g, func(f *feeder) error {
		for {
			select {
			case v, ok := <-ch:
				if !ok || !feed(f, v, keyOf) {
					return nil
				}
			case <-f.run.ctx.Done():
				return nil
			}
		}
	}, opts)
}

// FromFunc yields what next returns until that is io.EOF. Any other error ends
// the source and is returned by Run. next is called by one goroutine; its
// context ends with the run.
func FromFunc[T any](g *Graph, next func(ctx context.Context) (T, error), keyOf func(T) Key, opts ...NodeOption) *Port[T] {
	return addSource[T](g, func(f *feeder) error {
		for {
			v, err := next(f.run.ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if !feed(f, v, keyOf) {
				return nil
			}
		}
	}, opts)
}

// feeder is a source while the graph runs.
type feeder struct {
	st    *station
	run   *run
	count int
}

// feed names a value and brings it into the graph.
func feed[T any](f *feeder, v T, keyOf func(T) Key) bool {
	k := Key{Part: f.count}
	if keyOf != nil {
		k = keyOf(v)
	}
	f.count++
	return f.yield(k, v)
}

// read is the goroutine of a source.
func (s *station) read() {
	f := &feeder{st: s, run: s.run}
	returned := false
	defer func() {
		if !returned {
			f.run.stop(&StageError{Stage: s.node.name, Err: ErrGoexit})
		}
		s.endOne()
		s.run.wg.Done()
	}()
	var err error
	if perr := guard(func() { err = s.node.open(f) }); perr != nil {
		err = perr
	}
	returned = true
	// A source that sees the end of the context may be faster than the hook
	// that stops the run, and must not look like one that has ended.
	f.run.stopIfDone()
	if err == nil || f.run.stopped.Load() {
		return
	}
	err = &StageError{Stage: s.node.name, Err: err}
	if f.run.g.policy == StopAll {
		f.run.stop(err)
		return
	}
	// The items that came before it are answered first.
	f.run.mu.Lock()
	if f.run.lateErr == nil {
		f.run.lateErr = err
	}
	f.run.mu.Unlock()
}

// yield brings a value into the graph, waiting for admission and for room. It
// reports false if the run has stopped. The value's buffers are the engine's.
func (f *feeder) yield(key Key, v any) bool {
	r, s := f.run, f.st
	var h hold
	if err := guard(func() { h = holdOf(v) }); err != nil {
		f.reject(key, &StageError{Stage: s.node.name, Key: key, Err: err})
		return !r.stopped.Load()
	}
	if r.stopped.Load() {
		r.release(s, &item{key: key}, &h)
		return false
	}
	it, fresh, err := s.part.enter(s, key)
	if it == nil {
		// Its key has failed already: it was answered.
		r.release(s, &item{key: key}, &h)
		return true
	}
	m := message{it, v, h}
	if fresh && s.node.restarts > 0 {
		it.story = &story{source: s, job: v, hold: h}
		h.retain()
		s.alive.Add(1)
	}
	if err == nil && fresh {
		err = r.admit(s, it, v)
	}
	if err != nil {
		r.fail(s, it, err)
		r.drop(s, m)
		return !r.stopped.Load()
	}
	s.items.Add(1)
	s.emit(m)
	s.tellOf(Sent, it, 0, nil)
	return !r.stopped.Load()
}

// reject answers a value that cannot become an item.
func (f *feeder) reject(key Key, err error) {
	r := f.run
	it := &item{run: r, part: &component{run: r}, key: key, id: r.attempts.Add(1)}
	it.live.Store(1)
	r.fail(f.st, it, err)
	it.cut.Store(true)
	r.leave(it, 1)
}

// enter makes the item of a key, or finds it where another source has yielded
// the key before. It returns nil for a key that has failed. With an error the
// item is to fail; the caller holds one message of it in any case.
func (c *component) enter(s *station, key Key) (it *item, fresh bool, err error) {
	it = &item{run: c.run, part: c, key: key, id: c.run.attempts.Add(1), seen: s.turn}
	if c.items == nil {
		it.live.Store(1)
		it.seq = c.seq.Add(1) - 1
		return it, true, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.items[key]
	if old == nil {
		it.live.Store(1)
		it.seq = c.seq.Add(1) - 1
		c.items[key] = it
		return it, true, nil
	}
	if old.failed.Load() && old.fate.Load() != retracted {
		if old.seen |= s.turn; old.seen == c.all && old.live.Load() < 0 {
			delete(c.items, key)
		}
		return nil, false, nil
	}
	if old.fate.Load() == retracted {
		// The one in flight is between two attempts. It stays as it is.
		it.part = &component{run: c.run}
		it.live.Store(1)
		return it, false, &JoinError{Join: c.joins[0].node.name, Key: key, Reason: Duplicate, Input: s.node.name}
	}
	old.live.Add(1)
	if old.seen&s.turn != 0 {
		return old, false, &JoinError{Join: c.joins[0].node.name, Key: key, Reason: Duplicate, Input: s.node.name}
	}
	old.seen |= s.turn
	return old, false, nil
}
