package plan

import (
	"fmt"
	"math"

	"github.com/snarkline/snarkline/trace"
)

// call begins a call, or its repetition.
func (e *engine) call(i int32) {
	pr := &e.procs[i]
	n := &e.p.nodes[pr.node]
	e.nodes[pr.node].stage.Calls++
	pr.attempt++
	pr.step, pr.mark, pr.ends = 0, 0, 0
	e.log.begin(e, pr)
	e.marks(i, n.first)
	if !e.over {
		e.proceed(i)
	}
}

// proceed takes the next step of a call, or ends it.
func (e *engine) proceed(i int32) {
	for !e.over {
		pr := &e.procs[i]
		n := &e.p.nodes[pr.node]
		if pr.step == len(n.steps) {
			e.finish(i)
			return
		}
		st := &n.steps[pr.step]
		if st.group >= 0 && pr.device < 0 && !e.acquire(i, st) {
			pr.state, pr.since = wanting, e.now
			e.waitDev[e.groupOf(pr, st)].Put(&i)
			return
		}
		if e.begin(i) {
			return
		}
		e.endStep(i)
	}
}

// begin starts a step whose device, if any, the call has. It reports false for a
// step that takes no time.
func (e *engine) begin(i int32) bool {
	pr := &e.procs[i]
	st := &e.p.nodes[pr.node].steps[pr.step]
	it := &e.its[pr.item]
	cl := &e.p.classes[it.class]
	pr.ofS, pr.ofB = st.seconds*cl.time, math.Round(st.bytes*cl.time)
	if st.spread > 0 {
		pr.ofS *= lognormal(dice(e.set.Seed, int(it.seq), int(pr.node), pr.attempt<<8+pr.step+1), st.spread)
	}
	pr.secs, pr.bytes, pr.mark = pr.ofS, pr.ofB, 0
	if pr.secs == 0 && pr.bytes == 0 {
		e.marks(i, st.marks)
		return false
	}
	e.pass(i)
	pr.state = working
	e.active = append(e.active, i)
	return true
}

// pass does what is due in the step by what is left of it.
func (e *engine) pass(i int32) {
	pr := &e.procs[i]
	marks := e.p.nodes[pr.node].steps[pr.step].marks
	for pr.mark < len(marks) && !e.over {
		m := &marks[pr.mark]
		if !pr.at(m.at) {
			return
		}
		pr.mark++
		e.do(i, m)
	}
}

// endStep is when a step is done: what is left of its marks is due, and its device
// is free, unless the next step keeps it.
func (e *engine) endStep(i int32) {
	pr := &e.procs[i]
	st := &e.p.nodes[pr.node].steps[pr.step]
	if pr.mark < len(st.marks) && (pr.ofS > 0 || pr.ofB > 0) {
		e.marks(i, st.marks[pr.mark:])
	}
	if pr.device >= 0 && !st.keeps {
		e.giveBack(i, st)
	}
	pr.step++
	pr.mark = 0
}

func (e *engine) marks(i int32, marks []mark) {
	for k := range marks {
		if e.over {
			return
		}
		e.do(i, &marks[k])
	}
}

// do is what a mark says.
func (e *engine) do(i int32, m *mark) {
	pr := &e.procs[i]
	n := &e.p.nodes[pr.node]
	switch m.do {
	case bear:
		e.bear(i, m.arg)
	case bearTemp:
		s := n.scratch[m.arg]
		e.temp(i, s, m.arg, true)
	case killTemp:
		s := n.scratch[m.arg]
		e.temp(i, s, m.arg, false)
	case endRead:
		// While a repetition may follow, the input stays.
		if pr.attempt > n.retries {
			e.endRead(i, m.arg)
		}
	}
}

// finish is the end of a call.
func (e *engine) finish(i int32) {
	pr := &e.procs[i]
	n := &e.p.nodes[pr.node]
	s := &e.nodes[pr.node]
	it := &e.its[pr.item]
	fails := n.fails > 0 && unit(dice(e.set.Seed^1, int(it.seq), int(pr.node), pr.attempt)) < n.fails
	if fails {
		for k := range n.last {
			if n.last[k].do == killTemp {
				e.do(i, &n.last[k])
			}
		}
		e.unmake(pr.item, n)
		if pr.attempt <= n.retries && !it.failed {
			s.stage.Retries++
			e.log.retried(e, pr)
			e.again(i)
			return
		}
	} else {
		e.marks(i, n.last)
		if e.over {
			return
		}
	}
	e.leaveLane(i)
	s.busy += e.now - pr.begin
	e.log.end(e, i, fails)
	e.endReads(i)
	item := pr.item
	st := &e.status[int(item)*len(e.nodes)+int(pr.node)]
	*st = done
	if fails {
		e.fail(item, fmt.Errorf("stage %s fails on item %d, %d times", e.p.t.Nodes[pr.node].Name, it.seq, pr.attempt))
		if !e.over {
			e.leave(item, 1)
			e.release(i)
		}
		return
	}
	s.stage.Items++
	e.passed(item, pr.node)
	switch {
	case len(e.p.rt.Outs[pr.node]) == 0:
		e.release(i)
		e.leave(item, 1)
	case e.p.t.Nodes[pr.node].Ordered && it.failed:
		e.release(i)
		e.leave(item, 1)
	case e.p.t.Nodes[pr.node].Ordered:
		*st = early
		v := message{item, e.now}
		e.log.waits(e, item, int(pr.node), trace.None, n.made)
		s.o.Put(it.seq, &v)
		e.pump(pr.node)
		if s.sending && s.o.Due() {
			e.procs[i].state, e.procs[i].since = pushing, e.now
			s.room.Put(&i)
			return
		}
		e.release(i)
	default:
		*st = leaving
		e.depart(i, pr.node)
		e.push(i)
	}
}

// again begins the repetition of a call, after what the graph waits before it.
func (e *engine) again(i int32) {
	pr := &e.procs[i]
	if first := e.p.t.Nodes[pr.node].Backoff; first > 0 {
		pr.state = repeating
		e.timers = append(e.timers, i)
		pr.since = e.now + (first << min(pr.attempt-1, 20)).Seconds()
		return
	}
	e.call(i)
}

// passed is what the end of a stage does to the item's claims.
func (e *engine) passed(item, node int32) {
	it := &e.its[item]
	if it.permit && int(node) == e.until {
		it.permit = false
		e.permits++
		e.memory.freed = true
	}
	if !it.open {
		return
	}
	if int(node) == e.closes {
		it.limit, it.open = noBytes, false
		e.memory.forget(it)
		return
	}
	e.lower(it, node)
}

// joined is when a join has its tuple and lets go of what it held.
func (e *engine) joined(item int32, node int) {
	for _, b := range e.p.nodes[node].holds {
		e.done1(item, b)
	}
	if it := &e.its[item]; it.open {
		e.lower(it, int32(node))
	}
}

// lower gives back what an item does not need once a node has finished.
func (e *engine) lower(it *itemState, node int32) {
	it.done |= e.p.nodes[node].bit
	it.limit = e.need(it)
	e.memory.settle(it)
}

// acquire takes a device for a step, or reports that it has to wait for its turn.
func (e *engine) acquire(i int32, st *stepProg) bool {
	if e.waitDev[e.groupOf(&e.procs[i], st)].Len() > 0 {
		return false
	}
	return e.seize(i, st)
}

func (e *engine) seize(i int32, st *stepProg) bool {
	best := -1
	for _, d := range e.p.groups[e.groupOf(&e.procs[i], st)] {
		s := &e.devices[d]
		if s.exclusive || st.exclusive && s.users > 0 {
			continue
		}
		if best < 0 || s.users < e.devices[best].users {
			best = d
		}
	}
	if best < 0 {
		return false
	}
	s := &e.devices[best]
	s.users++
	s.exclusive = st.exclusive
	e.procs[i].device = int32(best)
	e.log.device(e, &e.procs[i])
	return true
}

// giveBack lets a device go, and those on who wait for it, in order.
func (e *engine) giveBack(i int32, st *stepProg) {
	pr := &e.procs[i]
	d := &e.devices[pr.device]
	d.users--
	d.exclusive = false
	pr.device = -1
	q := &e.waitDev[e.groupOf(pr, st)]
	for q.Len() > 0 {
		w := *q.First()
		wp := &e.procs[w]
		if !e.seize(w, &e.p.nodes[wp.node].steps[wp.step]) {
			return
		}
		q.Take(&w)
		e.nodes[wp.node].wait += e.now - wp.since
		e.log.stood(wp, e.now-wp.since)
		wp.state = working
		e.ready.Put(&w)
	}
}
