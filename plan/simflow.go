package plan

import (
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/internal/rules"
)

var errStuck = errors.New("the run is stuck: items are in flight, and nothing is at work")

// read has a source yield what comes next.
func (e *engine) read(i int32) {
	pr := &e.procs[i]
	s := &e.nodes[pr.node]
	if s.next == e.items {
		pr.state = resting
		return
	}
	if due := float64(s.next) * e.set.Every.Seconds(); due > e.now+moment {
		pr.state, pr.since = timed, due
		e.timers = append(e.timers, i)
		return
	}
	item := int32(e.p.rt.Of[pr.node]*e.items + s.next)
	s.next++
	pr.item, s.asked = item, e.now
	it := &e.its[item]
	if it.finished && it.failed {
		pr.state = resting
		e.ready.Put(&i)
		return
	}
	it.live++
	if it.in || it.live > 1 { // another source has brought it, or is about to
		e.yield(i)
		return
	}
	it.arrived = e.now
	if e.entry.Len() == 0 && e.admit(item) {
		e.yield(i)
		return
	}
	if e.over {
		return
	}
	if it.failed {
		e.leave(item, 1)
		e.ready.Put(&i)
		return
	}
	pr.state, pr.since = pushing, e.now
	e.entry.Put(&i)
}

// yield sends the item of a source on its way.
func (e *engine) yield(i int32) {
	pr := &e.procs[i]
	s := &e.nodes[pr.node]
	s.stage.Items++
	s.out += e.now - s.asked
	e.depart(i, pr.node)
	e.push(i)
}

// depart begins to bring a value of a node to its consumers.
func (e *engine) depart(i, node int32) {
	pr := &e.procs[i]
	pr.path = append(pr.path, frame{node, 0})
	e.its[pr.item].live += len(e.p.rt.Outs[node]) - 1
}

// push goes on with bringing values on, as far as there is room.
func (e *engine) push(i int32) {
	for {
		pr := &e.procs[i]
		if len(pr.path) == 0 {
			e.pushed(i)
			return
		}
		f := &pr.path[len(pr.path)-1]
		outs := e.p.rt.Outs[f.node]
		if int(f.out) == len(outs) {
			pr.path = pr.path[:len(pr.path)-1]
			continue
		}
		l := outs[f.out]
		f.out++
		item := pr.item
		it := &e.its[item]
		if it.failed {
			e.leave(item, 1)
			continue
		}
		t := &e.nodes[l.To]
		if e.p.rt.Nodes[l.To].Kind == rules.Join {
			e.count(l.To)
			v := message{item, e.now}
			tuple, what := t.j.Arrive(item, l.Slot, &v)
			if what != rules.Completes {
				e.log.waits(e, item, l.To, l.Slot, e.p.nodes[l.To].carries[l.Slot])
				e.status[int(item)*len(e.nodes)+l.To] = inJoin
				continue
			}
			e.log.waited(e, item, l.To)
			t.j.Recycle(tuple)
			t.stage.Items++
			e.status[int(item)*len(e.nodes)+l.To] = done
			e.joined(item, l.To)
			it.live -= len(e.p.t.Nodes[l.To].Preds) - 1
			e.depart(i, int32(l.To))
			continue
		}
		if t.q.Full() || t.blocked.Len() > 0 {
			pr.state, pr.since = pushing, e.now
			t.blocked.Put(&i)
			return
		}
		e.enqueue(l.To, item)
	}
}

func (e *engine) enqueue(node int, item int32) {
	e.count(node)
	t := &e.nodes[node]
	t.q.Put(&message{item, e.now})
	e.status[int(item)*len(e.nodes)+node] = inQueue
	if t.idle > 0 {
		n := int32(node)
		e.wakes.Put(&n)
	}
}

// unblock lets those in who wait for room in a queue, in order of their coming.
func (e *engine) unblock(node int32) {
	t := &e.nodes[node]
	for t.blocked.Len() > 0 && !t.q.Full() {
		var i int32
		t.blocked.Take(&i)
		pr := &e.procs[i]
		e.waited(i)
		pr.state = resting
		e.enqueue(int(node), pr.item)
		e.ready.Put(&i)
	}
}

// waited counts that a value has waited for room to leave.
func (e *engine) waited(i int32) {
	pr := &e.procs[i]
	if n := pr.node; e.p.rt.Nodes[n].Kind != rules.Source {
		e.nodes[n].out += e.now - pr.since
	}
}

// resume goes on with a proc whose wait is over.
func (e *engine) resume(i int32) {
	pr := &e.procs[i]
	switch {
	case pr.state == working:
		if !e.begin(i) {
			e.endStep(i)
			e.proceed(i)
		}
	case pr.state == repeating:
		pr.state = resting
		e.call(i)
	case pr.state == laneless:
		e.start(i)
	case len(pr.path) > 0:
		e.push(i)
	case e.p.rt.Nodes[pr.node].Kind == rules.Source:
		e.read(i)
	default:
		e.pushed(i)
	}
}

// pushed is when all consumers have got their value.
func (e *engine) pushed(i int32) {
	pr := &e.procs[i]
	s := &e.nodes[pr.node]
	switch {
	case e.p.rt.Nodes[pr.node].Kind == rules.Source:
		s.asked = e.now
		pr.state = resting
		e.ready.Put(&i)
	case i == s.emitter && e.p.t.Nodes[pr.node].Ordered:
		e.status[int(pr.item)*len(e.nodes)+int(pr.node)] = done
		s.sending = false
		e.pump(pr.node)
	default:
		if st := &e.status[int(pr.item)*len(e.nodes)+int(pr.node)]; *st == leaving {
			*st = done
		}
		e.log.out(e, pr)
		e.release(i)
	}
}

// release lets a worker go back to its queue.
func (e *engine) release(i int32) {
	pr := &e.procs[i]
	s := &e.nodes[pr.node]
	if pr.seat >= 0 {
		s.seats[pr.seat] = false
	}
	s.idle++
	node := pr.node
	pr.state = resting
	e.free = append(e.free, i)
	if s.q.Len() > 0 {
		e.wakes.Put(&node)
	}
}

// pump sends on what is due behind an ordered node, and lets workers go that need
// not wait for that.
func (e *engine) pump(node int32) {
	s := &e.nodes[node]
	if !s.sending && s.o.Due() {
		m := s.o.Take()
		s.o.Pass()
		s.sending = true
		em := &e.procs[s.emitter]
		em.item, em.path = m.item, em.path[:0]
		e.log.waited(e, m.item, int(node))
		e.status[int(m.item)*len(e.nodes)+int(node)] = leaving
		e.depart(s.emitter, node)
		e.ready.Put(&s.emitter)
	}
	for s.room.Len() > 0 && (!s.sending || !s.o.Due()) {
		var i int32
		s.room.Take(&i)
		e.waited(i)
		e.procs[i].state = resting
		e.ready.Put(&i)
	}
}

// wake has free workers take what is in the queue.
func (e *engine) wake(node int32) {
	s := &e.nodes[node]
	for s.idle > 0 && s.q.Len() > 0 {
		var m message
		e.count(int(node))
		s.q.Take(&m)
		e.unblock(node)
		if e.its[m.item].failed {
			e.leave(m.item, 1)
			continue
		}
		s.idle--
		i := e.fresh(node, m.item)
		pr := &e.procs[i]
		pr.queued = m.at
		e.status[int(m.item)*len(e.nodes)+int(node)] = running
		e.enter(i)
		if e.over {
			return
		}
	}
}

// admit lets an item in if the rules allow it now.
func (e *engine) admit(item int32) bool {
	it := &e.its[item]
	if e.set.Rules.Semaphore > 0 && e.permits == 0 {
		return false
	}
	if found, err := e.place(it); err != nil {
		e.fail(item, err)
		return false
	} else if !found {
		return false
	}
	if e.memory.on {
		it.limit, it.open = e.need(it), true
		e.memory.charge(it)
	}
	if e.set.Rules.Semaphore > 0 {
		e.permits--
		it.permit = true
	}
	it.in, it.admitted = true, e.now
	e.inFlight++
	e.inPlace[it.place]++
	e.inFlightPeak = max(e.inFlightPeak, e.inFlight)
	e.log.admitted(e, item)
	return true
}

// admitWaiting lets those in who wait to enter, in order, for as long as the first
// of them fits.
func (e *engine) admitWaiting() {
	for e.entry.Len() > 0 && !e.over {
		i := *e.entry.First()
		pr := &e.procs[i]
		if !e.admit(pr.item) {
			if !e.its[pr.item].failed || e.over {
				return
			}
			e.entry.Take(&i)
			e.leave(pr.item, 1)
			e.ready.Put(&i)
			continue
		}
		e.entry.Take(&i)
		pr.state = resting
		e.yield(i)
	}
}

// refuse fails the item of a source that nothing will ever make room for.
func (e *engine) refuse(i int32) {
	item := e.procs[i].item
	it := &e.its[item]
	e.fail(item, fmt.Errorf("item %d needs %v, which does not fit in the budget of %v beside the %v that is kept", it.seq,
		e.need(it), e.memory.limit, e.memory.charged))
	if !e.over {
		e.leave(item, 1)
		e.procs[i].state = resting
		e.ready.Put(&i)
	}
}

// leave counts messages of an item out.
func (e *engine) leave(item int32, n int) {
	it := &e.its[item]
	if n == 0 {
		return
	}
	if it.live -= n; it.live > 0 {
		return
	}
	it.finished, it.leftAt = true, e.now
	if !it.cut {
		e.answered++
	}
	if it.permit {
		it.permit = false
		e.permits++
		e.memory.freed = true
	}
	e.scrap(item)
	if it.in {
		e.inFlight--
		e.inPlace[it.place]--
		e.memory.freed = e.memory.freed || e.p.most[it.place] > 0
		it.limit, it.open = noBytes, false
		if e.memory.on {
			e.memory.settle(it)
		}
	}
}
