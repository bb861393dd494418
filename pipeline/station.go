package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// station is a node while the graph runs.
type station struct {
	node  *node
	run   *run
	part  *component
	owner alloc.Stage
	scope *alloc.Scope // without a reservation
	bit   uint64       // in the plan; 0 where that has none
	turn  uint64       // a source's bit among the sources of its component
	outs  []outlink

	q *queue   // stages and sinks
	j *joiner  // joins
	o *orderer // ordered stages

	alive atomic.Int64 // sources: the reader, and items that can be restarted

	items, failed, retries atomic.Int64
	restarts               atomic.Int64
	busy, waitIn, waitOut  atomic.Int64 // nanoseconds
	running                atomic.Int64
	held, queued, pending  meter
}

type outlink struct {
	st   *station
	slot int
}

// emit sends a value to every consumer. It takes over the message.
func (s *station) emit(m message) {
	if len(s.outs) == 1 && (s.outs[0].st.node.uses == nil || s.run.g.unsafe.allBuffers) {
		s.letGo(m.item)
		s.deliver(s.outs[0], m)
		return
	}
	s.fanOut(m)
}

// fanOut gives each consumer references of its own, to what it uses.
func (s *station) fanOut(m message) {
	var room [6]hold
	holds := room[:0]
	var who *station
	err := guard(func() {
		for _, l := range s.outs {
			h := m.hold
			if uses := l.st.node.uses; uses != nil && h.len() > 0 && !s.run.g.unsafe.allBuffers {
				who = l.st
				h = h.only(uses(m.val))
			}
			holds = append(holds, h)
		}
		who = s
		for i := range holds {
			holds[i].retain()
		}
	})
	if err != nil {
		r := s.run
		e := &StageError{Stage: who.node.name, Key: m.item.key, Err: err}
		if who == s {
			// References were wrong already; nothing can be trusted any more.
			r.stop(e)
		} else {
			r.fail(who, m.item, e)
		}
		r.drop(s, m)
		return
	}
	m.item.live.Add(int32(len(holds) - 1))
	s.run.release(s, m.item, &m.hold)
	s.letGo(m.item)
	for i, l := range s.outs {
		s.deliver(l, message{m.item, m.val, holds[i]})
	}
}

// letGo says that a join holds nothing of an item any more but what is used behind
// it. Nothing behind it has begun.
func (s *station) letGo(it *item) {
	if s.j != nil {
		it.finish(s)
	}
}

// deliver brings a value to one consumer, waiting for room.
func (s *station) deliver(l outlink, m message) {
	r, t := s.run, l.st
	var ev Event
	if r.heard {
		ev = Event{Kind: Queued, Stage: t.node.name, Key: m.item.key, Bytes: m.hold.bytes(), Item: m.item.id, Slot: l.slot, hold: m.hold}
	}
	if t.j != nil {
		if r.heard {
			ev.At = r.now()
			r.tell(ev)
		}
		t.arrive(l.slot, m)
		return
	}
	done, gone := t.q.tryPush(m)
	if !done && !gone {
		// While it waits for room, the value is in the hands of its maker. The
		// references may be gone once it is in the queue.
		var during meterMark
		during.enter(&s.held, &m.hold)
		since := r.now()
		done = t.q.push(m)
		waited := r.now() - since
		during.leave(&s.held)
		s.waitOut.Add(int64(waited))
		if r.heard {
			r.tell(Event{Kind: WaitedOut, At: since + waited, Stage: s.node.name, Key: m.item.key, Wait: waited, Item: m.item.id})
		}
	}
	if !done {
		r.drop(t, m)
		return
	}
	if r.heard {
		ev.At = r.now()
		r.tell(ev)
	}
}

// meterMark remembers what was added to a meter.
type meterMark struct{ amount alloc.Amount }

func (k *meterMark) enter(m *meter, h *hold) {
	m.add(h)
	for i := range h.len() {
		if r := h.at(i); r.Space().Valid() {
			k.amount[r.Space()] += r.Bytes()
		}
	}
}

func (k *meterMark) leave(m *meter) {
	for i, n := range k.amount {
		if n != 0 {
			m.now[i].Add(-n)
		}
	}
}

// over is called when the last worker has ended.
func (s *station) over() {
	if s.o != nil {
		s.o.close()
		return
	}
	s.endOuts()
}

// endOne says that the reader of a source has ended, or that one of its items
// that could have been restarted has left.
func (s *station) endOne() {
	if s.alive.Add(-1) == 0 {
		s.endOuts()
	}
}

// endOuts tells the consumers that nothing more comes from here.
func (s *station) endOuts() {
	for _, l := range s.outs {
		if l.st.j != nil {
			l.st.inputEnded(l.slot)
		} else {
			l.st.q.close()
		}
	}
}

// setWorkers changes the number of workers; those that are too many end when
// they have finished what they do.
func (s *station) setWorkers(n int) {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.target = n
	if q.active > 0 && !q.dead {
		for q.active < n {
			q.active++
			// There is a worker, so nobody is done waiting for the group.
			s.run.wg.Add(1)
			go s.work()
		}
	}
	q.notEmpty.Broadcast()
}

func (s *station) addWait(c *atomic.Int64, kind EventKind, d time.Duration) {
	if d <= 0 {
		return
	}
	c.Add(int64(d))
	if s.run.heard {
		s.run.tell(Event{Kind: kind, At: s.run.now(), Stage: s.node.name, Wait: d})
	}
}
