package pipeline

import "sync"

// orderer holds the values of an ordered stage that are early, and sends them
// on in the order in which their items entered. Workers do not wait for their
// turn, since the item before may be waiting for a worker; they wait only while
// values whose turn it is find no room behind the stage.
type orderer struct {
	st      *station
	mu      sync.Mutex
	turn    sync.Cond // the emitter waits for the next value
	room    sync.Cond // workers wait for the emitter
	next    uint64
	early   map[uint64]message
	passed  map[uint64]struct{} // items that will not come, before their turn
	sending bool
	closed  bool // nothing more comes
	dead    bool
}

func newOrderer(s *station) *orderer {
	o := &orderer{st: s, early: make(map[uint64]message), passed: make(map[uint64]struct{})}
	o.turn.L, o.room.L = &o.mu, &o.mu
	return o
}

// put takes a value over.
func (o *orderer) put(m message) {
	o.mu.Lock()
	if o.dead || m.item.failed.Load() {
		o.mu.Unlock()
		o.st.run.drop(o.st, m)
		return
	}
	o.st.pending.add(&m.hold)
	o.early[m.item.seq] = m
	if m.item.seq == o.next {
		o.turn.Signal()
	}
	for o.sending && o.due() && !o.dead {
		o.room.Wait()
	}
	o.mu.Unlock()
}

// due reports whether the next value is here. Callers hold mu.
func (o *orderer) due() bool {
	_, ok := o.early[o.next]
	return ok
}

// advance goes past items that will not come. Callers hold mu.
func (o *orderer) advance() {
	for {
		if _, ok := o.passed[o.next]; !ok {
			return
		}
		delete(o.passed, o.next)
		o.next++
	}
}

// skip says that an item will not come, and gives back its value if it had come
// early.
func (o *orderer) skip(seq uint64) (out []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq < o.next || o.dead {
		return nil
	}
	if m, ok := o.early[seq]; ok {
		delete(o.early, seq)
		o.st.pending.sub(&m.hold)
		out = append(out, m)
	}
	o.passed[seq] = struct{}{}
	o.advance()
	o.turn.Signal()
	return out
}

// recall takes out the value of an item that is made again: it keeps its turn.
func (o *orderer) recall(it *item) (out []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.early[it.seq]; ok && m.item == it {
		delete(o.early, it.seq)
		o.st.pending.sub(&m.hold)
		out = append(out, m)
		o.room.Broadcast()
	}
	return out
}

// close says that nothing more comes.
func (o *orderer) close() {
	o.mu.Lock()
	o.closed = true
	o.turn.Signal()
	o.mu.Unlock()
}

// kill ends the orderer and gives back what it held.
func (o *orderer) kill() (out []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
	for _, m := range o.early {
		o.st.pending.sub(&m.hold)
		out = append(out, m)
	}
	clear(o.early)
	o.turn.Signal()
	o.room.Broadcast()
	return out
}

// run sends values on until nothing more comes.
func (o *orderer) run() {
	defer o.st.run.wg.Done()
	for {
		m, ok := o.take()
		if !ok {
			break
		}
		o.st.tellOf(InTurn, m.item, 0, nil)
		o.st.emit(m)
	}
	o.st.endOuts()
}

func (o *orderer) take() (m message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending = false
	for {
		switch {
		case o.due():
			m = o.early[o.next]
			delete(o.early, o.next)
			o.st.pending.sub(&m.hold)
			if !m.item.deliver() {
				o.room.Broadcast()
				o.mu.Unlock()
				o.st.run.drop(o.st, m)
				o.mu.Lock()
				continue
			}
			o.next++
			o.advance()
			o.sending = true
			o.room.Broadcast()
			return m, true
		case o.dead:
			return m, false
		case o.closed && len(o.early) == 0:
			return m, false
		case o.closed:
			// What is before the first of them will not come here.
			first := ^uint64(0)
			for seq := range o.early {
				first = min(first, seq)
			}
			o.next = first
			clear(o.passed)
		default:
			o.room.Broadcast()
			o.turn.Wait()
		}
	}
}
