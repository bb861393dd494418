package plan

import (
	"cmp"
	"slices"

	"github.com/snarkline/snarkline/alloc"
)

var noBytes alloc.Amount

// ledger is what the budget has been charged. As in alloc, what an item is charged
// is the larger of what it may still hold and of what it uses.
type ledger struct {
	on        bool
	freed     bool // somebody who waits to enter may fit now
	limit     alloc.Amount
	charged   alloc.Amount
	reserved  alloc.Amount // the most of it
	overdrawn alloc.Amount
}

func (l *ledger) charge(it *itemState) {
	for i := range it.charged {
		want := max(it.limit[i], it.used[i])
		if want == it.charged[i] {
			continue
		}
		l.freed = l.freed || want < it.charged[i]
		l.charged[i] += want - it.charged[i]
		l.reserved[i] = max(l.reserved[i], l.charged[i])
		it.charged[i] = want
	}
}

// settle is charge for an item whose reservation may have changed.
func (l *ledger) settle(it *itemState) {
	if l.on && !it.forgot {
		l.charge(it)
	}
}

// forget gives all that an item is charged back, whatever it uses.
func (l *ledger) forget(it *itemState) {
	it.forgot, l.freed = true, true
	l.charged = l.charged.Sub(it.charged)
	it.charged = noBytes
}

// peaks are the levels of memory and what was in them when they were highest.
type peaks struct {
	live, top, total alloc.Amount
	at               [alloc.MaxSpaces]float64
	open             [alloc.MaxSpaces]bool // the level is at its top, which is not described yet
	rows             [alloc.MaxSpaces][]row
	cells            []cell // by node and state; what describe works with
}

// row is a Share by index.
type row struct {
	node  int32
	state uint8
	cell
}

type cell struct {
	bytes int64
	items int32
	last  int32 // the item that was counted last, and one
}

var states = [...]State{Held, Queued, Pending, Other}

const (
	isHeld = iota
	isQueued
	isPending
	isOther
)

func (p *peaks) reset(nodes int) {
	p.cells = room(p.cells, nodes*len(states))
	p.live, p.top, p.total = noBytes, noBytes, noBytes
	for i := range p.rows {
		p.rows[i] = p.rows[i][:0]
		p.at[i], p.open[i] = 0, false
	}
}

// take is memory that becomes live, for a node and an item.
func (e *engine) take(item int32, node int, at alloc.Space, n int64) {
	if n == 0 {
		return
	}
	p, it, s := &e.peaks, &e.its[item], &e.nodes[node]
	at = e.spaceOf(item, at)
	p.live[at] += n
	p.total[at] += n
	s.nowMade[at] += n
	s.made[at] = max(s.made[at], s.nowMade[at])
	if p.live[at] > p.top[at] {
		p.top[at], p.open[at] = p.live[at], true
	}
	it.used[at] += n
	if e.memory.on && !it.forgot {
		if it.open {
			e.memory.overdrawn[at] = max(e.memory.overdrawn[at], it.used[at]-it.limit[at])
		}
		if it.used[at] > it.charged[at] {
			e.memory.charge(it)
		}
	}
	e.enough(at)
}

// enough ends the run if the machine has not the memory that is live.
func (e *engine) enough(at alloc.Space) {
	m := &e.p.machine
	n := e.peaks.live[at] + m.Base[at]
	if at <= alloc.Pinned && m.Memory[alloc.Pinned] == 0 {
		at = alloc.Host
		n = e.peaks.live[alloc.Host] + e.peaks.live[alloc.Pinned] + m.Base[alloc.Host] + m.Base[alloc.Pinned]
	}
	if m.Memory[at] == 0 || n <= m.Memory[at] || e.over {
		return
	}
	e.over = true
	e.killed = &Kill{Space: at, At: duration(e.now), Bytes: n, Limit: m.Memory[at]}
	e.killed.Shares = e.shares(e.describe(at, nil, at == alloc.Host && m.Memory[alloc.Pinned] == 0))
}

// give is memory that is free again.
func (e *engine) give(item int32, node int, at alloc.Space, n int64) {
	if n == 0 {
		return
	}
	p, it := &e.peaks, &e.its[item]
	at = e.spaceOf(item, at)
	if p.open[at] && p.live[at] == p.top[at] {
		e.topped(at)
	}
	p.live[at] -= n
	e.nodes[node].nowMade[at] -= n
	it.used[at] -= n
	if it.charged[at] > it.limit[at] {
		e.memory.settle(it)
	}
}

// topped describes the top of a level while it is there.
func (e *engine) topped(at alloc.Space) {
	e.peaks.rows[at] = e.describe(at, e.peaks.rows[at][:0], false)
	e.peaks.at[at] = e.now
	e.peaks.open[at] = false
}

func (e *engine) sized(item int32, n int64) int64 {
	return scaled(n, e.p.classes[e.its[item].class].bytes)
}

// bear makes a buffer live.
func (e *engine) bear(i int32, b int) {
	item := e.procs[i].item
	bp := &e.p.bufs[b]
	e.left[int(item)*len(e.p.bufs)+b] = int16(len(bp.readers) + len(bp.holders))
	e.log.born(e, i, b)
	e.take(item, bp.maker, bp.at, e.sized(item, bp.bytes))
}

// temp makes scratch live, or ends it.
func (e *engine) temp(i int32, s space, k int, begins bool) {
	pr := &e.procs[i]
	n := e.sized(pr.item, s.bytes)
	if begins {
		pr.temps |= 1 << k
		e.log.temp(e, i, k, true)
		e.take(pr.item, int(pr.node), s.at, n)
		return
	}
	e.give(pr.item, int(pr.node), s.at, n)
	e.log.temp(e, i, k, false)
	pr.temps &^= 1 << k
}

// endRead ends what a call reads of a buffer.
func (e *engine) endRead(i int32, k int) {
	pr := &e.procs[i]
	if pr.ends&(1<<k) != 0 {
		return
	}
	pr.ends |= 1 << k
	r := &e.p.nodes[pr.node].reads[k]
	e.log.read(e, i, r.buf)
	e.done1(pr.item, r.buf)
}

// done1 is when one of those that read or hold a buffer needs it no more.
func (e *engine) done1(item int32, b int) {
	l := &e.left[int(item)*len(e.p.bufs)+b]
	if *l <= 0 {
		return
	}
	if *l--; *l == 0 && !e.set.Rules.ReleaseLate {
		e.free1(item, b)
	}
}

// endReads ends all that a call reads, and what it made for nobody.
func (e *engine) endReads(i int32) {
	pr := &e.procs[i]
	n := &e.p.nodes[pr.node]
	if !n.keeps || e.its[pr.item].failed {
		for k := range n.reads {
			e.endRead(i, k)
		}
	}
	for _, b := range n.made {
		if len(e.p.bufs[b].readers)+len(e.p.bufs[b].holders) == 0 && e.left[int(pr.item)*len(e.p.bufs)+b] == 0 {
			e.free1(pr.item, b)
		}
	}
}

// free1 frees a buffer.
func (e *engine) free1(item int32, b int) {
	bp := &e.p.bufs[b]
	e.log.died(e, item, b)
	e.give(item, bp.maker, bp.at, e.sized(item, bp.bytes))
	e.left[int(item)*len(e.p.bufs)+b] = gone
}

// unmake frees what a call made that is to be repeated, or has failed.
func (e *engine) unmake(item int32, n *nodeProg) {
	for _, b := range n.made {
		if l := &e.left[int(item)*len(e.p.bufs)+b]; *l >= 0 {
			e.free1(item, b)
			*l = unborn
		}
	}
}

// scrap frees what is left of an item that leaves, but what is kept of it.
func (e *engine) scrap(item int32) {
	base := int(item) * len(e.p.bufs)
	for b := range e.p.bufs {
		if e.left[base+b] < 0 {
			continue
		}
		kept := false
		for _, r := range e.p.bufs[b].readers {
			kept = kept || e.p.nodes[r].keeps
		}
		if !kept || e.its[item].cut {
			e.free1(item, b)
		}
	}
}

// describe says what is live in a space, in host and pinned memory if both is set.
func (e *engine) describe(at alloc.Space, rows []row, both bool) []row {
	clear(e.peaks.cells)
	in := func(s alloc.Space) bool { return s == at || both && s <= alloc.Pinned }
	add := func(item int32, node int, state int, n int64) {
		c := &e.peaks.cells[node*len(states)+state]
		c.bytes += n
		if c.last != item+1 {
			c.items++
			c.last = item + 1
		}
	}
	nb := len(e.p.bufs)
	for item := range e.its {
		it := &e.its[item]
		if !it.in || it.finished && it.used == noBytes {
			continue
		}
		for b := range e.p.bufs {
			if bp := &e.p.bufs[b]; e.left[item*nb+b] >= 0 && in(e.spaceOf(int32(item), bp.at)) {
				node, state := e.where(item, bp)
				add(int32(item), node, state, e.sized(int32(item), bp.bytes))
			}
		}
	}
	for i := range e.procs {
		pr := &e.procs[i]
		for k, s := range e.p.nodes[pr.node].scratch {
			if pr.temps&(1<<k) == 0 || !in(e.spaceOf(pr.item, s.at)) {
				continue
			}
			if e.holds(int(pr.item), int(pr.node), in) {
				e.peaks.cells[int(pr.node)*len(states)+isHeld].last = pr.item + 1 // counted above
			}
			add(pr.item, int(pr.node), isHeld, e.sized(pr.item, s.bytes))
		}
	}
	for i := range e.peaks.cells {
		if c := e.peaks.cells[i]; c.bytes > 0 {
			rows = append(rows, row{int32(i / len(states)), uint8(i % len(states)), c})
		}
	}
	return rows
}

// holds reports whether a buffer of an item is held at a node, in the spaces that
// in names.
func (e *engine) holds(item, node int, in func(alloc.Space) bool) bool {
	for b := range e.p.bufs {
		bp := &e.p.bufs[b]
		if e.left[item*len(e.p.bufs)+b] < 0 || !in(e.spaceOf(int32(item), bp.at)) {
			continue
		}
		if at, state := e.where(item, bp); at == node && state == isHeld {
			return true
		}
	}
	return false
}

// where says why a buffer of an item is live.
func (e *engine) where(item int, b *bufProg) (node, state int) {
	st := e.status[item*len(e.nodes) : (item+1)*len(e.nodes)]
	switch st[b.maker] {
	case running, leaving:
		return b.maker, isHeld
	case early:
		return b.maker, isPending
	}
	node, state = b.maker, isOther
	for _, r := range b.readers {
		switch {
		case st[r] == running, st[r] == done && e.p.nodes[r].keeps:
			return r, isHeld
		case st[r] == inQueue && state > isQueued:
			node, state = r, isQueued
		case state > isPending:
			for _, j := range e.p.nodes[r].joins {
				if st[j] == inJoin {
					node, state = j, isPending
				}
			}
		}
	}
	for _, j := range b.holders {
		if state > isPending && st[j] == inJoin {
			node, state = j, isPending
		}
	}
	return node, state
}

// shares are the rows with names, the largest first.
func (e *engine) shares(rows []row) (out []Share) {
	for _, r := range rows {
		out = append(out, Share{e.p.t.Nodes[r.node].Name, states[r.state], r.bytes, int(r.items)})
	}
	slices.SortStableFunc(out, func(a, b Share) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}
