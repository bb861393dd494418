package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/snarkline/snarkline/pipeline"
)

// Length is how many values wait from At on, until the next one.
type Length struct {
	At time.Duration
	N  int
}

// QueueLengths is how many values waited at a node over the run: in the queue of
// a stage or sink, in a join (by items that miss a partner). It is empty for
// sources, and for a node that there is not.
func (t *Trace) QueueLengths(node int) []Length {
	if node < 0 || node >= len(t.Graph.Nodes) {
		return nil
	}
	join := t.Graph.Nodes[node].Kind == pipeline.KindJoin
	type change struct {
		at time.Duration
		n  int
	}
	var all []change
	stay := func(from, until time.Duration) {
		if until > from {
			all = append(all, change{from, 1}, change{until, -1})
		}
	}
	type stays struct{ from, until time.Duration }
	waits := make(map[int]stays) // in a join, by item: from the first value on
	for i := range t.Visits {
		v := &t.Visits[i]
		switch {
		case v.Node != node:
		case join:
			w, ok := waits[v.Item]
			if !ok {
				w.from = v.From
			}
			waits[v.Item] = stays{min(w.from, v.From), max(w.until, v.Until)}
		case !t.Graph.Nodes[node].Ordered:
			stay(v.From, v.Until)
		}
	}
	for _, w := range waits {
		stay(w.from, w.until)
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Node == node && !join {
			stay(c.Queued, c.Begin)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	var out []Length
	n := 0
	for i := 0; i < len(all); {
		at := all[i].at
		before := n
		for ; i < len(all) && all[i].at == at; i++ {
			n += all[i].n
		}
		if n != before {
			out = append(out, Length{at, n})
		}
	}
	return out
}
