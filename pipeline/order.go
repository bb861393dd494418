package pipeline

import (
	"sync"

	"github.com/snarkline/snarkline/internal/rules"
)

// orderer holds the values of an ordered stage that are early, and sends them
// on in the order in which their items entered. Workers do not wait for their
// turn, since the item before may be waiting for a worker; they wait only while
// values whose turn it is find no room behind the stage.
type orderer struct {
	st   *station
	mu   sync.Mutex
	turn sync.Cond // the emitter waits for the next value
	room sync.Cond // workers wait for the emitter
	rules.Order[message]
	sending bool
	closed  bool // nothing more comes
	dead    bool
}

func newOrderer(s *station) *orderer {
	o := &orderer{st: s, Order: rules.NewOrder[message]()}
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
	if o.Put(m.item.seq, &m) {
		o.turn.Signal()
	}
	for o.sending && o.Due() && !o.dead {
		o.room.Wait()
	}
	o.mu.Unlock()
}

// skip says that an item will not come, and gives back its value if it had come
// early.
func (o *orderer) skip(seq uint64) (out []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead || o.Past(seq) {
		return nil
	}
	if m, ok := o.At(seq); ok {
		o.st.pending.sub(&m.hold)
		out = append(out, m)
	}
	o.Skip(seq)
	o.turn.Signal()
	return out
}

// recall takes out the value of an item that is made again: it keeps its turn.
func (o *orderer) recall(it *item) (out []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.At(it.seq); ok && m.item == it {
		o.Remove(it.seq)
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
	o.Empty(func(m *message) {
		o.st.pending.sub(&m.hold)
		out = append(out, *m)
	})
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
		case o.Due():
			m = o.Take()
			o.st.pending.sub(&m.hold)
			if !m.item.deliver() {
				o.room.Broadcast()
				o.mu.Unlock()
				o.st.run.drop(o.st, m)
				o.mu.Lock()
				continue
			}
			o.Pass()
			o.sending = true
			o.room.Broadcast()
			return m, true
		case o.dead:
			return m, false
		case o.closed && o.Len() == 0:
			return m, false
		case o.closed:
			// What is before the first of them will not come here.
			o.Jump()
		default:
			o.room.Broadcast()
			o.turn.Wait()
		}
	}
}
