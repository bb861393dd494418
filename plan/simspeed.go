package plan

import "math"

// deviceState is one device.
type deviceState struct {
	users     int // steps that have it
	exclusive bool
	atWork    float64 // of users, those whose seconds are not over, in this turn
	use       float64 // seconds with any
}

// hair is the fraction of a step that is left when it counts as done.
const hair = 1e-12

// speeds gives each step at work its speed, and is the time until the first of
// them comes to a mark or an end, or a timer is due; infinite if there is none.
func (e *engine) speeds() (dt float64) {
	m := &e.p.machine
	var asked float64
	clear(e.users)
	for i := range e.devices {
		e.devices[i].atWork = 0
	}
	for _, i := range e.active {
		pr := &e.procs[i]
		st := &e.p.nodes[pr.node].steps[pr.step]
		if pr.secs > 0 {
			asked += st.cores
			if pr.device >= 0 {
				e.devices[pr.device].atWork++
			}
		}
		if pr.bytes > 0 {
			e.users[e.linkOf(pr, st)]++
		}
	}
	share := 1.0
	if m.Cores > 0 && asked > m.Cores {
		share = m.Cores / asked
	}
	e.asked = asked * share
	e.coreMost = max(e.coreMost, e.asked)
	dt = math.Inf(1)
	for _, i := range e.active {
		pr := &e.procs[i]
		st := &e.p.nodes[pr.node].steps[pr.step]
		if pr.secs > 0 {
			pr.rs = 1
			if st.cores > 0 {
				pr.rs = share
			}
			if d := pr.device; d >= 0 {
				w := or1(m.Devices[d].Width)
				pr.rs = min(pr.rs, w/max(e.devices[d].atWork, w)) * or1(m.Devices[d].Speed)
			}
			dt = min(dt, pr.secs/pr.rs)
		}
		if pr.bytes > 0 {
			l := e.linkOf(pr, st)
			pr.rb = m.Links[l].BytesPerSecond / e.users[l]
			dt = min(dt, pr.bytes/pr.rb)
		}
		if pr.mark < len(st.marks) {
			dt = min(dt, pr.toMark(st.marks[pr.mark].at))
		}
	}
	for _, i := range e.timers {
		dt = min(dt, max(e.procs[i].since-e.now, 0))
	}
	return dt
}

// toMark is how long it is at this speed until the fraction at is done.
func (pr *proc) toMark(at float64) (t float64) {
	if left := pr.secs - pr.ofS*(1-at); left > pr.ofS*hair {
		t = left / pr.rs
	}
	if left := pr.bytes - pr.ofB*(1-at); left > pr.ofB*hair {
		t = max(t, left/pr.rb)
	}
	return t
}

// at reports whether the fraction at is done.
func (pr *proc) at(at float64) bool {
	return pr.secs <= pr.ofS*(1-at+hair) && pr.bytes <= pr.ofB*(1-at+hair)
}

// advance lets all that is at work go on for a time, and does what comes of it.
func (e *engine) advance(dt float64) {
	e.now += dt
	e.coreUse += e.asked * dt
	for l, n := range e.users {
		if n > 0 {
			e.linkUse[l] += dt
		}
	}
	for i := range e.devices {
		if d := &e.devices[i]; d.atWork > 0 {
			d.use += dt
		}
	}
	e.ended = e.ended[:0]
	kept := e.active[:0]
	for _, i := range e.active {
		pr := &e.procs[i]
		if pr.secs > 0 {
			if pr.secs -= pr.rs * dt; pr.secs <= pr.ofS*hair {
				pr.secs = 0
			}
		}
		if pr.bytes > 0 {
			if pr.bytes -= pr.rb * dt; pr.bytes <= pr.ofB*hair {
				pr.bytes = 0
			}
		}
		marks := e.p.nodes[pr.node].steps[pr.step].marks
		over := pr.secs == 0 && pr.bytes == 0
		if over || pr.mark < len(marks) && pr.at(marks[pr.mark].at) {
			e.ended = append(e.ended, i)
		}
		if !over {
			kept = append(kept, i)
		}
	}
	e.active = kept
	for _, i := range e.ended {
		if e.over {
			return
		}
		pr := &e.procs[i]
		if pr.secs > 0 || pr.bytes > 0 {
			e.pass(i)
			continue
		}
		e.endStep(i)
		if !e.over {
			e.proceed(i)
		}
	}
	e.due()
}

// due lets those go on whose time has come.
func (e *engine) due() {
	kept := e.timers[:0]
	for _, i := range e.timers {
		if e.procs[i].since > e.now+moment {
			kept = append(kept, i)
			continue
		}
		e.ready.Put(&i)
	}
	e.timers = kept
}

// moment is what two times may differ by and be the same, in seconds.
const moment = 1e-9
