package gpu

import (
	"slices"
	"time"
)

// candidate is a member as it is at the moment of a choice.
type candidate struct {
	i      int
	room   int64 // bytes; -1 unknown
	lacks  bool  // memory for the item
	finish time.Duration
}

// choose is the member for an item; none if it has to wait. Callers hold mu.
func (b *Balance) choose(a *Ask) (int, bool) {
	able := b.able(a)
	if len(able) == 0 {
		return b.least(), true // all are lost: it fails there
	}
	// A card with no item at all comes first.
	var idle []candidate
	for _, c := range able {
		if m := b.members[c.i]; m.items == 0 && m.rest == 0 && !c.lacks {
			idle = append(idle, c)
		}
	}
	switch {
	case len(idle) > 0:
		return first(idle).i, true
	case a.Now:
		return first(able).i, true
	}
	busy := false
	for _, c := range able {
		busy = busy || b.members[c.i].items > 0
	}
	if !busy { // nobody will give memory back that we know of: where there is most
		return slices.MaxFunc(able, func(x, y candidate) int { return int(min(max(x.room-y.room, -1), 1)) }).i, true
	}
	able = slices.DeleteFunc(able, func(c candidate) bool {
		return b.members[c.i].items == 0 || c.lacks || a.Fits != nil && !a.Fits(c.i)
	})
	if len(able) == 0 {
		return 0, false
	}
	c := first(able)
	if p, ok := b.behind(c, able); ok {
		switch m := b.members[c.i]; {
		case b.vacant(p.i):
			c = p
		case m.items >= (b.most(m)+2)/2: // enough to do: it can wait for p
			return 0, false
		}
	}
	return c.i, b.vacant(c.i)
}

// vacant reports whether member i has a place.
func (b *Balance) vacant(i int) bool { return b.members[i].items < b.most(b.members[i]) }

// balanceAhead is how many items more than its equals a card may have had before
// that says something: items end in bursts, and a half of a batch that is one item
// larger than the other is what the batch waits for.
const balanceAhead = 2

// behind is the candidate that is as fast as c, would be done almost as soon, and
// has had the fewest items since all were idle, if that is fewer than c has had.
func (b *Balance) behind(c candidate, able []candidate) (candidate, bool) {
	m, best := b.members[c.i], -1
	for k, d := range able {
		x := b.members[d.i]
		switch {
		case x.rest > 0 || !like(m, x) || x.turn >= m.turn || m.turn-x.turn > balanceAhead || d.finish-c.finish > balanceAhead*b.expected(m):
		case best < 0 || x.turn < b.members[able[best].i].turn:
			best = k
		}
	}
	if best < 0 {
		return c, false
	}
	return able[best], true
}

// like reports whether two members are as fast as each other, as far as can be
// told: cards of one size, and what was measured is not far apart.
func like(m, x *member) bool {
	if m.size() != x.size() {
		return false
	}
	if len(m.samples) == 0 || len(x.samples) == 0 {
		return true
	}
	return 4*max(m.each, x.each) <= 5*min(m.each, x.each)
}

// expected is the time that m takes for an item, measured or not yet.
func (b *Balance) expected(m *member) time.Duration {
	if len(m.samples) == 0 {
		return b.likely(m)
	}
	return m.each
}

// most is how many items m may have now.
func (b *Balance) most(m *member) int {
	if len(m.samples) == 0 {
		return (b.places + 1) / 2
	}
	return b.places
}

func (m *member) size() float64 {
	if m.Size > 0 {
		return m.Size
	}
	return 1
}

// first is the candidate that finishes first; among equals the one with most room.
func first(cs []candidate) candidate {
	return slices.MinFunc(cs, func(x, y candidate) int {
		switch {
		case x.finish != y.finish:
			return int(min(max(x.finish-y.finish, -1), 1))
		case x.room != y.room:
			return int(min(max(y.room-x.room, -1), 1))
		}
		return x.i - y.i
	})
}

// able are the members that may be asked: not lost and, if there are others, not
// one that has failed the item.
func (b *Balance) able(a *Ask) []candidate {
	var out []candidate
	fresh := false
	failed := func(i int) bool { return i < len(a.Failed) && a.Failed[i] }
	for i, m := range b.members {
		if m.lost() != nil {
			continue
		}
		c := candidate{i: i, room: -1, finish: b.finish(m)}
		if m.Room != nil {
			if n, err := m.Room(); err == nil {
				c.room = max(n-m.coming, 0)
				c.lacks = a.lacks(i, c.room, m.items == 0)
			} else {
				c.lacks = true // it may work again, after a Reset say
			}
		}
		out = append(out, c)
		fresh = fresh || !failed(i)
	}
	if fresh {
		out = slices.DeleteFunc(out, func(c candidate) bool { return failed(c.i) })
	}
	return out
}

// lacks reports whether room bytes are too few for the item. On a card that it
// would have for itself its operations can be cut smaller.
func (a *Ask) lacks(i int, room int64, alone bool) bool {
	if a.Need == nil {
		return false
	}
	need := a.Need(i)
	if alone {
		need /= 4
	}
	return room < need
}

func (m *member) lost() error {
	if m.Lost == nil {
		return nil
	}
	return m.Lost()
}

// least is the member with the fewest items.
func (b *Balance) least() int {
	best := 0
	for i, m := range b.members {
		if m.items < b.members[best].items {
			best = i
		}
	}
	return best
}

// finish is in how long m would be done with one more item.
func (b *Balance) finish(m *member) time.Duration {
	each := b.expected(m)
	gone := time.Duration(0)
	if m.items > 0 {
		gone = min(b.now().Sub(m.last), each)
	}
	return time.Duration(m.items+1)*each - gone
}

// likely is the time that m takes for an item, of which nothing is known yet.
func (b *Balance) likely(m *member) time.Duration {
	var work float64
	n := 0
	for _, x := range b.members {
		if len(x.samples) > 0 {
			work, n = work+float64(x.each)*x.size(), n+1
		}
	}
	if n == 0 {
		work, n = float64(time.Second), 1
	}
	return time.Duration(work / float64(n) / m.size())
}
