package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// Share is what is live of one stage in one state at a moment.
type Share struct {
	Stage string // the node's name; of what no value in the graph refers to, who allocated it
	Node  int    // None for the latter
	State State
	Bytes int64
	Items int // that it belongs to; 0 if to none
}

// Point is what is live in a space from At on, until the next point.
type Point struct {
	At     time.Duration
	Bytes  int64   // of all shares
	Shares []Share // without empty ones, in the order of the graph, those of no node last
}

// step is bytes that come or go at a moment.
type step struct {
	at    time.Duration
	key   shareKey
	bytes int64
	item  int
}

type shareKey struct {
	node  int
	stage string
	state State
}

// Levels is what was live in a space over the run, by stage and state: a point
// for each moment at which something changed. A buffer counts once, for the
// weightiest of what it was there for (see State), and for the first such node.
// Mapped files do not count, as in alloc's totals.
func (t *Trace) Levels(space alloc.Space) []Point {
	var out []Point
	t.sweep(space, func(at time.Duration, total int64, l *level) {
		out = append(out, Point{at, total, l.shares()})
	})
	return out
}

// Peak is when most was live in a space during the run, how much that was, and
// what it was there for, largest first. The peak is alloc's: the most that was
// counted at one moment.
func (t *Trace) Peak(space alloc.Space) (at time.Duration, bytes int64, shares []Share) {
	t.sweep(space, func(now time.Duration, total int64, l *level) {
		if total > bytes {
			at, bytes, shares = now, total, l.shares()
		}
	})
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return at, bytes, shares
}

// level is what is live at a moment of a sweep.
type level struct {
	trace *Trace
	parts map[shareKey]*part
}

type part struct {
	bytes int64
	items map[int]int // how many spans each has here
}

func (l *level) add(s step) {
	p := l.parts[s.key]
	if p == nil {
		p = &part{items: make(map[int]int)}
		l.parts[s.key] = p
	}
	p.bytes += s.bytes
	if s.item == None {
		return
	}
	n := 1
	if s.bytes < 0 {
		n = -1
	}
	if p.items[s.item] += n; p.items[s.item] == 0 {
		delete(p.items, s.item)
	}
}

func (l *level) shares() []Share {
	var out []Share
	for k, p := range l.parts {
		if p.bytes != 0 {
			out = append(out, Share{Stage: k.stage, Node: k.node, State: k.state, Bytes: p.bytes, Items: len(p.items)})
		}
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(uint(a.Node), uint(b.Node)), cmp.Compare(a.State, b.State), cmp.Compare(a.Stage, b.Stage))
	})
	return out
}

// sweep calls f for each moment of the run at which the level of a space changes,
// after the change.
func (t *Trace) sweep(space alloc.Space, f func(at time.Duration, total int64, l *level)) {
	steps := t.steps(space)
	l := &level{trace: t, parts: make(map[shareKey]*part)}
	var total int64
	for i := 0; i < len(steps); {
		at := steps[i].at
		if at >= t.Wall && at > 0 {
			break // what is live in the end does not go then
		}
		for ; i < len(steps) && steps[i].at == at; i++ {
			l.add(steps[i])
			total += steps[i].bytes
		}
		f(at, total, l)
	}
}

// steps are the changes of a space, in order.
func (t *Trace) steps(space alloc.Space) []step {
	claims := t.claims()
	var out []step
	for b := range t.Buffers {
		buf := &t.Buffers[b]
		if buf.Space != space || buf.Kind == alloc.MappedFile || buf.Bytes == 0 {
			continue
		}
		for _, s := range t.spans(b, claims[b], t.Wall) {
			k := shareKey{s.node, "", s.state}
			if s.node >= 0 && s.node < len(t.Graph.Nodes) {
				k.stage = t.Graph.Nodes[s.node].Name
			} else {
				k.node, k.stage = None, buf.owner(s.from)
			}
			out = append(out, step{s.from, k, buf.Bytes, s.item}, step{s.until, k, -buf.Bytes, s.item})
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return out
}

// owner is for whom a buffer is counted at a moment.
func (b *Buffer) owner(at time.Duration) string {
	stage := b.Stage
	for _, h := range b.Hands {
		if h.At <= at {
			stage = h.Stage
		}
	}
	return stage
}

// CountTracked is what alloc's tracker says of a space: what was live when the
// run ended, and the most that was live at one moment of it.
func (t *Trace) CountTracked(space alloc.Space) (live, peak int64) {
	type change struct {
		at time.Duration
		n  int64
	}
	var all []change
	for b := range t.Buffers {
		buf := &t.Buffers[b]
		if buf.Space != space || buf.Kind == alloc.MappedFile || buf.Born > t.Wall {
			continue
		}
		all = append(all, change{buf.Born, buf.Bytes})
		if buf.Died > 0 && buf.Died <= t.Wall {
			all = append(all, change{buf.Died, -buf.Bytes})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	for _, c := range all {
		live += c.n
		peak = max(peak, live)
	}
	return live, peak
}

// Spaces are the spaces in which the run had memory, in order.
func (t *Trace) Spaces() []alloc.Space {
	var seen [alloc.MaxSpaces + 1]bool
	for i := range t.Buffers {
		if b := &t.Buffers[i]; b.Kind != alloc.MappedFile && b.Bytes > 0 && b.Space.Valid() {
			seen[b.Space] = true
		}
	}
	var out []alloc.Space
	for s := alloc.Host; s.Valid(); s++ {
		if seen[s] {
			out = append(out, s)
		}
	}
	return out
}
