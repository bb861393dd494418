package pipeline

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
)

// item is one value of a source and all that came of it, until the last of its
// messages has left the graph.
type item struct {
	run    *run
	part   *component
	key    Key
	id     uint64       // of the attempt, for listeners
	seq    uint64       // order of entry into its component
	live   atomic.Int32 // messages there are
	failed atomic.Bool
	noted  atomic.Bool                  // counted as failed; under StopAll the first one alone
	cut    atomic.Bool                  // a message of it ended before a sink was done with it
	inner  atomic.Pointer[innerContext] // made when somebody asks for Done

	seen     uint64 // sources that have yielded the key; under the component's mu
	admitted atomic.Bool

	story  *story // of an item that can be restarted; nil otherwise
	fate   atomic.Int32
	heir   *item // the next attempt, of an item that is made again
	values values

	mu    sync.Mutex
	done  uint64 // stages and joins that have finished, by their bits
	early []earlyEnd
	shape *shape // what it needs; nil without admission
	res   *alloc.Reservation
}

type innerContext struct {
	context.Context
	cancel context.CancelFunc
}

// gone reports whether nobody wants the item's results any more.
func (it *item) gone() bool { return it.failed.Load() || it.run.stopped.Load() }

// base is the context of the item: the run's, until somebody needs to be told
// of the end of this item alone.
func (it *item) base() context.Context {
	if c := it.inner.Load(); c != nil {
		return c
	}
	return it.run.ctx
}

// own is a context that ends with the item.
func (it *item) own() *innerContext {
	if c := it.inner.Load(); c != nil {
		return c
	}
	ctx, cancel := context.WithCancel(it.run.ctx)
	c := &innerContext{ctx, cancel}
	if !it.inner.CompareAndSwap(nil, c) {
		cancel()
		return it.inner.Load()
	}
	if it.failed.Load() {
		cancel()
	}
	return c
}

// finish notes that a stage, or a join, is done with the item and gives back what
// the rest of the path does not need.
func (it *item) finish(n *station) {
	if it.res == nil {
		return
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.run.g.unsafe.releaseEarly && n.j == nil {
		it.res.Close()
		return
	}
	if n.bit == 0 {
		return
	}
	it.done |= n.bit
	for _, e := range it.early {
		if e.bit == n.bit {
			it.shape = it.shape.without(e.bit, e.names)
		}
	}
	it.res.Shrink(it.shape.After(it.done))
}

// earlyEnd is what a stage says of parts before it has finished.
type earlyEnd struct {
	bit   uint64
	names []string
}

// endParts ends parts earlier than stated, once the stage has finished.
func (it *item) endParts(n *station, names []string) {
	if it.res == nil || n.bit == 0 {
		return
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.done&n.bit == 0 {
		it.early = append(it.early, earlyEnd{n.bit, names})
		return
	}
	it.shape = it.shape.without(n.bit, names)
	it.res.Shrink(it.shape.After(it.done))
}

// message is a value on its way, with the references that it owns.
type message struct {
	item *item
	val  any
	hold hold
}
