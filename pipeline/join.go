package pipeline

import (
	"sync"

	"github.com/snarkline/snarkline/alloc"
)

// joiner is where values wait for their partners. It has no goroutine: who
// brings a value takes the tuple on if it completes one, so an input is never
// kept waiting but for room behind the join.
type joiner struct {
	mu     sync.Mutex
	inputs int
	wait   map[Key]*pending
	closed uint8 // inputs that have ended, by bits
	dead   bool
	peak   int
	free   []*pending
	bytes  *meter
}

// pending is the values of a key that have come.
type pending struct {
	have uint8
	msgs [maxJoin]message
}

func newJoiner(inputs int, bytes *meter) *joiner {
	return &joiner{inputs: inputs, bytes: bytes, wait: make(map[Key]*pending)}
}

func (j *joiner) all() uint8 { return 1<<j.inputs - 1 }

// arrive brings a value to an input.
func (s *station) arrive(slot int, m message) {
	j, r, it := s.j, s.run, m.item
	bit := uint8(1) << slot
	j.mu.Lock()
	if j.dead || it.failed.Load() {
		j.mu.Unlock()
		r.drop(s, m)
		return
	}
	p := j.wait[it.key]
	if p == nil {
		p = j.fresh()
		j.wait[it.key] = p
		j.peak = max(j.peak, len(j.wait))
	}
	if p.have&bit != 0 {
		j.mu.Unlock()
		r.fail(s, it, &JoinError{Join: s.node.name, Key: it.key, Reason: Duplicate, Input: s.node.preds[slot].name})
		r.drop(s, m)
		return
	}
	p.have |= bit
	p.msgs[slot] = m
	if p.have != j.all() {
		j.bytes.add(&m.hold)
		missing := j.closed &^ p.have
		j.mu.Unlock()
		if missing != 0 {
			// The failure takes the values out of the join.
			s.incomplete(it, missing)
		}
		return
	}
	delete(j.wait, it.key)
	for i := range j.inputs {
		if i != slot {
			j.bytes.sub(&p.msgs[i].hold)
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
func (s *station) tuple(p *pending) message {
	vals := make([]any, s.j.inputs)
	refs := 0
	for i := range vals {
		vals[i] = p.msgs[i].val
		refs += p.msgs[i].hold.len()
	}
	m := message{item: p.msgs[0].item}
	if refs > 0 {
		m.hold.many = make([]alloc.Ref, 0, refs)
		for i := range vals {
			h := &p.msgs[i].hold
			for k := range h.len() {
				m.hold.many = append(m.hold.many, h.at(k))
			}
		}
	}
	m.val = s.node.out.build(vals)
	return m
}

func (j *joiner) fresh() *pending {
	if n := len(j.free); n > 0 {
		p := j.free[n-1]
		j.free = j.free[:n-1]
		return p
	}
	return new(pending)
}

func (j *joiner) recycle(p *pending) {
	*p = pending{}
	j.mu.Lock()
	if len(j.free) < 64 {
		j.free = append(j.free, p)
	}
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
	j.closed |= 1 << slot
	over := j.closed == j.all()
	var stuck []*item
	for _, p := range j.wait {
		if p.have&(1<<slot) == 0 {
			for i := range j.inputs {
				if p.have&(1<<i) != 0 {
					stuck = append(stuck, p.msgs[i].item)
					break
				}
			}
		}
	}
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
	for _, p := range j.wait {
		out = j.takeOut(p, out)
	}
	clear(j.wait)
	return out
}

// remove takes out what waits of a failed item.
func (j *joiner) remove(it *item) (out []message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p := j.wait[it.key]; p != nil {
		out = j.takeOut(p, nil)
		delete(j.wait, it.key)
	}
	return out
}

func (j *joiner) takeOut(p *pending, out []message) []message {
	for i := range p.msgs {
		if p.have&(1<<i) != 0 {
			j.bytes.sub(&p.msgs[i].hold)
			out = append(out, p.msgs[i])
		}
	}
	return out
}

// size is how many keys wait now, and how many did at most.
func (j *joiner) size() (now, peak int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.wait), j.peak
}
