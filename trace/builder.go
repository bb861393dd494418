package trace

import (
	"time"

	"github.com/snarkline/snarkline/pipeline"
)

// builder makes a Trace of what was recorded. Events may come a little out of
// order: a stage can begin before whoever brought the value has said so.
type builder struct {
	t       *Trace
	started bool
	ended   bool
	until   time.Duration // the latest time there is
	strings []string
	needs   [][]NodeNeed

	items map[uint64]int
	calls map[uint64]int
	began map[place]int // calls whose value has not been told as queued
	queue map[place]wait
	turns map[place]wait         // behind an ordered stage
	joins map[place][]int        // visits that have not ended
	sizes map[int]pipeline.Event // workers and capacity of nodes, once they were changed
	ledger
}

// place is an item at a node.
type place struct{ item, node int }

// wait is a value that waits.
type wait struct {
	from time.Duration
	refs []int
}

// open is the Until of what has not ended.
const open = Never

func newBuilder() *builder {
	return &builder{
		t:     &Trace{Version: Version},
		items: make(map[uint64]int), calls: make(map[uint64]int), began: make(map[place]int),
		queue: make(map[place]wait), turns: make(map[place]wait), joins: make(map[place][]int),
		sizes: make(map[int]pipeline.Event), ledger: newLedger(),
	}
}

// item is the index of an attempt at an item.
func (b *builder) item(e *event) int {
	if e.item == 0 {
		return None
	}
	i, ok := b.items[e.item]
	if !ok {
		i = len(b.t.Items)
		b.items[e.item] = i
		b.t.Items = append(b.t.Items, Item{Key: e.key, Source: None, Arrived: e.at, Admitted: Never, Left: Never})
	}
	return i
}

func (b *builder) event(e *event) {
	i := b.item(e)
	at := place{i, e.node}
	switch e.kind {
	case pipeline.Resized:
		b.resized(e)
		return
	case pipeline.Retried, pipeline.Dropped, pipeline.WaitedIn, pipeline.End, pipeline.Sent:
		if k, ok := b.calls[e.call]; ok && e.call != 0 {
			b.ofCall(e, at, &b.t.Calls[k])
		}
		return
	}
	if i == None {
		return
	}
	it := &b.t.Items[i]
	switch e.kind {
	case pipeline.Arrived:
		it.Key, it.Source, it.Arrived, it.Attempt = e.key, e.node, e.at, e.attempt
	case pipeline.Admitted:
		it.Admitted, it.Needs = e.at, e.needs
	case pipeline.Left, pipeline.Gone:
		it.Left = e.at
		if it.Err == "" {
			it.Err = e.err
		}
	case pipeline.Failed, pipeline.Restarted:
		it.Err = e.err
		kind := Failed
		if e.kind == pipeline.Restarted {
			kind = Restarted
		}
		b.note(e, i, kind, e.attempt)
	}
	if e.node == None {
		return
	}
	switch e.kind {
	case pipeline.Queued:
		b.queued(e, at)
	case pipeline.Begin:
		b.begin(e, at)
	case pipeline.Taken:
		k := b.begin(e, at)
		c := &b.t.Calls[k]
		c.End, c.Out = e.at, e.at // what it read is its own until it lets go
	case pipeline.Met:
		b.leaveJoin(e, at)
	case pipeline.InTurn:
		b.leave(b.turns, e, at)
	case pipeline.Discarded:
		if b.leaveJoin(e, at) || b.leave(b.turns, e, at) || b.leave(b.queue, e, at) {
			b.note(e, i, Discarded, 0)
		}
	}
}

func (b *builder) note(e *event, item int, k NoteKind, n int) {
	b.t.Notes = append(b.t.Notes, Note{At: e.at, Kind: k, Item: item, Node: e.node, N: n, Text: e.err})
}

// resized notes which of a node's numbers have changed.
func (b *builder) resized(e *event) {
	if e.node == None {
		return
	}
	now, ok := b.sizes[e.node]
	if !ok {
		n := b.t.Graph.Nodes[e.node]
		now.Workers, now.Capacity = n.Workers, n.Capacity
	}
	if e.workers != now.Workers {
		b.note(e, None, Workers, e.workers)
	}
	if e.capacity != now.Capacity {
		b.note(e, None, Capacity, e.capacity)
	}
	now.Workers, now.Capacity = e.workers, e.capacity
	b.sizes[e.node] = now
}

func (b *builder) queued(e *event, at place) {
	if b.t.Graph.Nodes[e.node].Kind == pipeline.KindJoin {
		b.joins[at] = append(b.joins[at], len(b.t.Visits))
		b.t.Visits = append(b.t.Visits, Visit{Item: at.item, Node: at.node, Slot: e.slot, From: e.at, Until: open, Buffers: b.known(e.refs)})
		return
	}
	if k, ok := b.began[at]; ok {
		delete(b.began, at)
		c := &b.t.Calls[k]
		c.Queued = min(e.at, c.Begin)
		return
	}
	b.queue[at] = wait{e.at, b.known(e.refs)}
}

// begin makes a call, and returns its index for now.
func (b *builder) begin(e *event, at place) int {
	k := len(b.t.Calls)
	c := Call{Item: at.item, Node: at.node, Queued: e.at, Begin: e.at, End: open, Out: open, Device: None}
	if w, ok := b.queue[at]; ok {
		delete(b.queue, at)
		c.Queued = min(w.from, e.at)
	} else {
		b.began[at] = k
	}
	if e.slot > 0 && e.slot <= len(b.t.Meta.Devices) {
		c.Device = e.slot - 1
	}
	for _, buf := range b.known(e.refs) {
		c.Reads = append(c.Reads, Ref{buf, open})
	}
	b.t.Calls = append(b.t.Calls, c)
	if e.call != 0 {
		b.calls[e.call] = k
	}
	return k
}

// ofCall is what happens in a call.
func (b *builder) ofCall(e *event, at place, c *Call) {
	switch e.kind {
	case pipeline.Retried:
		c.Attempt = max(c.Attempt, e.attempt)
		b.note(e, at.item, Retried, e.attempt)
	case pipeline.Dropped:
		for _, buf := range b.known(e.refs) {
			for i := range c.Reads {
				if r := &c.Reads[i]; r.Buffer == buf && r.Until == open {
					r.Until = e.at
					break
				}
			}
		}
	case pipeline.WaitedIn:
		c.Waited = e.wait
	case pipeline.End:
		if e.slot > 0 && e.slot <= len(b.t.Meta.Devices) {
			c.Device = e.slot - 1
		}
		c.End, c.Err, c.Makes = max(e.at, c.Begin), e.err, b.known(e.refs)
		for i := range c.Reads {
			if r := &c.Reads[i]; r.Until == open {
				r.Until = c.End
			}
		}
		if e.err == "" && b.t.ordered(c.Node) {
			b.turns[place{c.Item, c.Node}] = wait{c.End, c.Makes}
		}
	case pipeline.Sent:
		c.Out = e.at
	}
}

// leaveJoin ends the visits of an item to a join.
func (b *builder) leaveJoin(e *event, at place) bool {
	visits := b.joins[at]
	for _, v := range visits {
		b.t.Visits[v].Until = max(e.at, b.t.Visits[v].From)
	}
	delete(b.joins, at)
	return len(visits) > 0
}

// leave ends a wait, which becomes a visit.
func (b *builder) leave(from map[place]wait, e *event, at place) bool {
	w, ok := from[at]
	if ok {
		delete(from, at)
		b.visit(w, at, e.at)
	}
	return ok
}

func (b *builder) visit(w wait, at place, until time.Duration) {
	b.t.Visits = append(b.t.Visits, Visit{Item: at.item, Node: at.node, Slot: None, From: w.from, Until: max(until, w.from), Buffers: w.refs})
}
