package pipeline

import (
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// joiner is where values wait for their partners. It has no goroutine: who
// brings a value takes the tuple on if it completes one, so an input is never
// kept waiting but for room behind the join.
type joiner struct {
	mu sync.Mutex
	rules.Table[Key, message]
	inputs int
	dead   bool
	bytes  *meter
}

func newJoiner(inputs int, bytes *meter) *joiner {
	return &joiner{inputs: inputs, bytes: bytes, Table: rules.NewTable[Key, message](inputs)}
}

// arrive brings a value to an input.
func (s *station) arrive(slot int, m message) {
	j, r, it := s.j, s.run, m.item
	j.mu.Lock()
	if j.dead || it.failed.Load() {
		j.mu.Unlock()
		r.drop(s, m)
		return
	}
	p, what := j.Arrive(it.key, slot, &m)
	switch what {
	case rules.Twice:
		j.mu.Unlock()
		r.fail(s, it, &JoinError{Join: s.node.name, Key: it.key, Reason: Duplicate, Input: s.node.preds[slot].name})
		r.drop(s, m)
		return
	case rules.Waits, rules.Stranded:
		j.bytes.add(&m.hold)
		missing := j.Missing(p)
		j.mu.Unlock()
		if what == rules.Stranded {
			// The failure takes the values out of the join.
			s.incomplete(it, missing)
		}
		return
	}
	for i := range j.inputs {
		if i != slot {
			j.bytes.sub(&p.Vals[i].hold)
		}
	}
	j.mu.Unlock()
	s.tellOf(Met, it, 0, nil)
	t := s.tuple(p)
	j.recycle(p)
	r.leave(it, j.inputs-1)
	s.items.Add(1)
	s.emit(t)
}

// tuple makes the join's value.
func (s *station) tuple(p *rules.Tuple[message]) message {
	vals := make([]any, s.j.inputs)
	refs := 0
	for i := range vals {
		vals[i] = p.Vals[i].val
		refs += p.Vals[i].hold.len()
	}
	m := message{item: p.Vals[0].item}
	if refs > 0 {
		m.hold.many = make([]alloc.Ref, 0, refs)
		for i := range vals {
			h := &p.Vals[i].hold
			for k := range h.len() {
				m.hold.many = append(m.hold.many, h.at(k))
			}
		}
	}
	m.val = s.node.out.build(vals)
	return m
}

func (j *joiner) recycle(p *rules.Tuple[message]) {
	j.mu.Lock()
	j.Recycle(p)
	j.mu.Unlock()
}

// incomplete fails an item for which inputs have ended without a value.
func (s *station) incomplete(it *item, missing uint8) {
	slot := 0
	for missing&(1<<slot) == 0 {
		slot++
	}
	s.run.fail(s, it, &JoinError{Join: s.node.name, Key: it.key, Reason: Incomplete, Input: s.node.preds[slot].name})
}

// inputEnded says that an input yields nothing more. What waits for it can no
// longer complete.
func (s *station) inputEnded(slot int) {
	j := s.j
	j.mu.Lock()
	var stuck []*item
	over := j.End(slot, func(m *message) { stuck = append(stuck, m.item) })
	j.mu.Unlock()
	for _, it := range stuck {
		s.incomplete(it, 1<<slot)
	}
	if over {
		s.endOuts()
	}
}

// kill ends the join and gives back what waited in it.
func (j *joiner) kill() (out []message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dead = true
	j.Empty(func(m *message) { out = j.takeOut(m, out) })
	return out
}

// remove takes out what waits of a failed item.
func (j *joiner) remove(it *item) (out []message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Remove(it.key, func(m *message) { out = j.takeOut(m, out) })
	return out
}

func (j *joiner) takeOut(m *message, out []message) []message {
	j.bytes.sub(&m.hold)
	return append(out, *m)
}

// size is how many keys wait now, and how many did at most.
func (j *joiner) size() (now, peak int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.Len(), j.Peak
}
