package trace

import (
	"github.com/snarkline/snarkline/alloc"
)

// ledger keeps the buffers while a recording is read. What was there when it
// began is known by sums; when one of those goes, it becomes a buffer of its own.
type ledger struct {
	buffers map[uint64]int
	there   map[account]int64
	handed  map[handover][]int // buffers without a number that were handed over, and live
}

type account struct {
	space          alloc.Space
	kind           alloc.Kind
	stage, purpose string
}

type handover struct {
	account
	bytes int64
}

func newLedger() ledger {
	return ledger{buffers: make(map[uint64]int), there: make(map[account]int64), handed: make(map[handover][]int)}
}

// known are the indices of buffers by their numbers, without those that nobody
// has heard of.
func (l *ledger) known(ids []uint64) (out []int) {
	for _, id := range ids {
		if i, ok := l.buffers[id]; ok {
			out = append(out, i)
		}
	}
	return out
}

func (m *change) account() account { return account{m.space, m.kind, m.stage, m.purpose} }

func (m *change) buffer() Buffer {
	return Buffer{Space: m.space, Stage: m.stage, Purpose: m.purpose, Kind: m.kind, Bytes: m.bytes, Item: None, Call: None}
}

func (b *builder) change(m *change) {
	i, known := b.buffers[m.id]
	known = known && m.id != 0
	switch m.what {
	case alloc.Present:
		b.there[m.account()] += m.bytes
	case alloc.Born:
		buf := m.buffer()
		buf.Born = max(m.at, 1)
		if k, ok := b.calls[m.tag]; ok && m.tag != 0 {
			buf.Call, buf.Item = k, b.t.Calls[k].Item
		}
		if m.id != 0 {
			b.buffers[m.id] = len(b.t.Buffers)
		}
		b.t.Buffers = append(b.t.Buffers, buf)
	case alloc.Died:
		if known {
			b.t.Buffers[i].Died = max(m.at, 1)
			return
		}
		b.lose(m)
	case alloc.Handed:
		if !known {
			i = b.take(m)
		}
		b.t.Buffers[i].Hands = append(b.t.Buffers[i].Hands, Hand{m.at, m.stage})
	}
}

// lose ends one that was there when the recording began.
func (b *builder) lose(m *change) {
	key := handover{m.account(), m.bytes}
	if list := b.handed[key]; len(list) > 0 {
		b.t.Buffers[list[len(list)-1]].Died = max(m.at, 1)
		b.handed[key] = list[:len(list)-1]
		return
	}
	b.there[key.account] -= m.bytes
	buf := m.buffer()
	buf.Died = max(m.at, 1)
	b.t.Buffers = append(b.t.Buffers, buf)
}

// take makes one that was there a buffer of its own, which goes to another stage.
func (b *builder) take(m *change) int {
	from := m.account()
	from.stage = m.from
	old := handover{from, m.bytes}
	now := handover{m.account(), m.bytes}
	if list := b.handed[old]; len(list) > 0 {
		i := list[len(list)-1]
		b.handed[old] = list[:len(list)-1]
		b.handed[now] = append(b.handed[now], i)
		return i
	}
	b.there[from] -= m.bytes
	buf := m.buffer()
	buf.Stage = m.from
	i := len(b.t.Buffers)
	b.t.Buffers = append(b.t.Buffers, buf)
	b.handed[now] = append(b.handed[now], i)
	return i
}

// rest makes buffers of what was there all the time.
func (b *builder) rest() {
	for a, n := range b.there {
		if n > 0 {
			b.t.Buffers = append(b.t.Buffers, Buffer{Space: a.space, Stage: a.stage, Purpose: a.purpose, Kind: a.kind, Bytes: n, Item: None, Call: None})
		}
	}
}
