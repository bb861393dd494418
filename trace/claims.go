package trace

import (
	"slices"
	"time"
)

// claim is a time in which a buffer is what a node has in a state.
type claim struct {
	from, until time.Duration
	node        int
	state       State
	item        int
}

// before reports whether a claim is the one that counts where both hold.
func (c *claim) before(o *claim) bool {
	if c.state != o.state {
		return c.state < o.state
	}
	if c.node != o.node {
		return c.node < o.node
	}
	return c.from < o.from
}

// claims are those of each buffer, in no order.
func (t *Trace) claims() [][]claim {
	out := make([][]claim, len(t.Buffers))
	add := func(b int, c claim) {
		if b >= 0 && b < len(out) && c.until > c.from {
			out[b] = append(out[b], c)
		}
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		for _, r := range c.Reads {
			add(r.Buffer, claim{c.Queued, c.Begin, c.Node, Queued, c.Item})
			add(r.Buffer, claim{c.Begin, r.Until, c.Node, Held, c.Item})
		}
		for _, b := range c.Makes {
			add(b, claim{c.Begin, max(c.End, c.Out), c.Node, Held, c.Item})
		}
	}
	for i := range t.Visits {
		v := &t.Visits[i]
		state := Pending
		if v.Slot == None && !t.ordered(v.Node) {
			state = Queued
		}
		for _, b := range v.Buffers {
			add(b, claim{v.From, v.Until, v.Node, state, v.Item})
		}
	}
	for b := range t.Buffers {
		// What a call allocates is its own while it runs, whether or not that is
		// in its output.
		if i := t.Buffers[b].Call; i >= 0 && i < len(t.Calls) {
			c := &t.Calls[i]
			add(b, claim{c.Begin, c.End, c.Node, Held, c.Item})
		}
	}
	return out
}

func (t *Trace) ordered(node int) bool {
	return node >= 0 && node < len(t.Graph.Nodes) && t.Graph.Nodes[node].Ordered
}

// span is a part of a buffer's life in which it is in one place.
type span struct {
	from, until time.Duration
	node        int // None: nobody in the graph has it
	state       State
	item        int
}

// spans cut the life of buffer b, from birth to end, into what it was in turn.
func (t *Trace) spans(b int, claims []claim, end time.Duration) []span {
	born, died := t.Buffers[b].Born, t.life(b, end)
	if died <= born {
		return nil
	}
	cuts := []time.Duration{born, died}
	for _, c := range claims {
		for _, at := range [...]time.Duration{c.from, c.until} {
			if at > born && at < died {
				cuts = append(cuts, at)
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var out []span
	for i := range len(cuts) - 1 {
		s := span{cuts[i], cuts[i+1], None, Other, t.Buffers[b].Item}
		var best *claim
		for k := range claims {
			c := &claims[k]
			if c.from <= s.from && c.until >= s.until && (best == nil || c.before(best)) {
				best = c
			}
		}
		if best != nil {
			s.node, s.state, s.item = best.node, best.state, best.item
		}
		if n := len(out); n > 0 && out[n-1].node == s.node && out[n-1].state == s.state && out[n-1].item == s.item {
			out[n-1].until = s.until
			continue
		}
		out = append(out, s)
	}
	return out
}

// life is until when buffer b is there, at most until end.
func (t *Trace) life(b int, end time.Duration) time.Duration {
	if d := t.Buffers[b].Died; d > 0 && d < end {
		return d
	}
	return end
}
