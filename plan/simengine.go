package plan

import (
	"context"
	"math"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// engine is one run in virtual time. It is an event loop over what is at work: in
// each turn, all steps go on at the speed that the machine gives them, up to the
// first that comes to a mark or to an end; then everything that this makes possible
// happens at that one moment. Its slices keep their room from run to run.
type engine struct {
	p     *program
	set   *Settings
	items int // that each source yields
	now   float64

	nodes   []nodeState
	procs   []proc
	free    []int32
	active  []int32 // procs in the middle of a step, in order of its beginning
	ended   []int32 // of active, in this turn
	ready   rules.Queue[int32]
	wakes   rules.Queue[int32] // nodes whose queue has something for a worker that is free
	its     []itemState
	left    []int16 // by item and buffer: readers and joins to come; unborn, or gone
	status  []phase // by item and node
	devices []deviceState
	waitDev []rules.Queue[int32] // by group of devices
	users   []float64            // of links, in this turn
	entry   rules.Queue[int32]   // sources whose next item waits to be admitted
	permits int
	lanes   lanes
	inPlace []int // items in flight, by the device of a pool that they have

	memory ledger
	peaks  peaks
	log    *recorder

	timers []int32 // procs whose state is timed or repeating

	asked             float64 // cores at work, in this turn
	coreUse, coreMost float64
	linkUse           []float64

	inFlight, inFlightPeak int
	answered, failed       int
	until                  int // node with whose end a permit comes back; −1: with the item
	closes                 int // node with whose end the reservation does; −1
	policyStop             bool
	over                   bool
	err                    error
	killed                 *Kill
}

// phase is what an item's value is doing at a node.
type phase uint8

const (
	away phase = iota
	inQueue
	inJoin
	running
	leaving // its call has ended, and waits for room
	early   // waits for its turn
	done
)

type nodeState struct {
	built         bool
	workers, idle int
	q             rules.Queue[message]
	blocked       rules.Queue[int32] // procs that wait for room in q, the first first
	j             rules.Table[int32, message]
	o             rules.Order[message]
	sending       bool               // the emitter of an ordered node is at it
	emitter       int32              // its proc
	room          rules.Queue[int32] // workers that wait for the emitter
	seats         []bool             // workers by number, where it is recorded

	stage           StagePrediction
	busy, wait, out float64
	area, changed   float64 // of the queue's length over time
	made, nowMade   alloc.Amount
	next            int     // of a source: the number of its next item
	asked           float64 // since when that waits
}

type message struct {
	item int32
	at   float64 // since when it is there
}

// frame is a value on its way to the consumers of a node.
type frame struct {
	node int32
	out  int32 // the next to be served
}

// proc is a worker with an item, a source, or the emitter of an ordered node.
type proc struct {
	node, item  int32
	state       procState
	attempt     int
	step, mark  int
	secs, bytes float64 // that are left of the step
	ofS, ofB    float64 // all of them
	rs, rb      float64 // how fast they go
	device      int32
	seat        int32
	entry       int32  // in the recording
	ends, temps uint64 // reads that have ended, scratch that is live
	queued      float64
	begin       float64
	since       float64 // it waits
	path        []frame
}

type procState uint8

const (
	resting   procState = iota
	working             // in active
	wanting             // a device
	pushing             // waits for room, or for its emitter
	timed               // a source between two items
	repeating           // a call between two attempts
	laneless            // a call before it, without a lane
)

type itemState struct {
	class, part       int32
	place             int32 // which devices of pools it has
	seq               uint64
	live              int // messages
	arrived, admitted float64
	leftAt            float64
	done              uint64
	failed, in, open  bool
	permit            bool
	forgot            bool // the budget does not know of it any more
	finished          bool // has left
	cut               bool
	limit, used       alloc.Amount
	charged           alloc.Amount
}

const (
	unborn int16 = -1
	gone   int16 = -2
)

// reset makes the engine ready for a run.
func (e *engine) reset(p *program, set *Settings, items int, limit alloc.Amount) {
	n, parts := len(p.t.Nodes), len(p.rt.Parts)
	e.p, e.set, e.items, e.now = p, set, items, 0
	e.nodes = room(e.nodes, n)
	for i := range e.nodes {
		s, nd := &e.nodes[i], &p.t.Nodes[i]
		s.q.Reset(nd.Capacity)
		s.blocked.Reset(rules.Unbounded)
		s.room.Reset(rules.Unbounded)
		if !s.built {
			s.built = true
			s.j = rules.NewTable[int32, message](len(nd.Preds))
			s.o = rules.NewOrder[message]()
		}
		s.j.Reset()
		s.o.Reset()
		s.workers, s.idle = nd.Workers, nd.Workers
		if l := p.laned[i]; l > 0 { // who waits for a lane does not count
			s.workers = l * p.places
		}
		s.sending, s.emitter, s.next = false, 0, 0
		s.stage = StagePrediction{Name: nd.Name, Kind: p.rt.Nodes[i].Kind.String(), Workers: s.workers, Capacity: nd.Capacity}
		s.busy, s.wait, s.out, s.area, s.changed = 0, 0, 0, 0, 0
		s.made, s.nowMade = noBytes, noBytes
		s.seats = s.seats[:0]
	}
	e.procs, e.free, e.active, e.ended = e.procs[:0], e.free[:0], e.active[:0], e.ended[:0]
	e.timers = e.timers[:0]
	e.ready.Reset(rules.Unbounded)
	e.wakes.Reset(rules.Unbounded)
	e.entry.Reset(rules.Unbounded)
	e.its = room(e.its, items*parts)
	clear(e.its)
	e.left = room(e.left, len(e.its)*len(p.bufs))
	for i := range e.left {
		e.left[i] = unborn
	}
	e.status = room(e.status, len(e.its)*n)
	clear(e.status)
	e.devices = room(e.devices, len(p.machine.Devices))
	clear(e.devices)
	e.waitDev = room(e.waitDev, len(p.groups))
	for i := range e.waitDev {
		e.waitDev[i].Reset(rules.Unbounded)
	}
	e.inPlace = room(e.inPlace, p.places)
	clear(e.inPlace)
	e.lanes.reset(n * p.places)
	e.users, e.linkUse = room(e.users, len(p.links)), room(e.linkUse, len(p.links))
	clear(e.linkUse)
	e.coreUse, e.coreMost = 0, 0
	e.inFlight, e.inFlightPeak, e.answered, e.failed = 0, 0, 0, 0
	e.over, e.err, e.killed = false, nil, nil
	e.policyStop = p.t.Policy != "fail-key"
	e.until, e.closes = p.t.Index(set.Rules.Until), p.t.Index(set.Rules.AdmitUntil)
	e.permits = set.Rules.Semaphore
	e.memory = ledger{limit: limit, on: !limit.IsZero() && !set.Rules.NoAdmission}
	e.peaks.reset(n)
	for i := range e.its {
		it := &e.its[i]
		it.part, it.seq = int32(i/max(items, 1)), uint64(i%max(items, 1))
		it.class = int32(e.classOf(int(it.seq)))
	}
}

// room is s with n elements, in the same memory where that is enough. Their values
// are what they were.
func room[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}

func (e *engine) classOf(seq int) int {
	if len(e.p.classes) == 1 {
		return 0
	}
	u := unit(dice(e.set.Seed, seq, -1, 0))
	for i := range e.p.classes {
		if u < e.p.classes[i].upTo {
			return i
		}
	}
	return len(e.p.classes) - 1
}

// fresh is a proc at rest.
func (e *engine) fresh(node, item int32) int32 {
	var i int32
	if n := len(e.free); n > 0 {
		i = e.free[n-1]
		e.free = e.free[:n-1]
	} else {
		i = int32(len(e.procs))
		e.procs = room(e.procs, len(e.procs)+1)
	}
	path := e.procs[i].path[:0]
	e.procs[i] = proc{node: node, item: item, device: -1, seat: -1, entry: -1, path: path}
	return i
}

// run is the whole run.
// patience is how many steps are made before a context is asked whether it has ended.
const patience = 1 << 12

// run makes all steps, or as many as there are before ctx ends; nil never does.
func (e *engine) run(ctx context.Context) {
	for i := range e.nodes {
		if e.p.t.Nodes[i].Ordered {
			e.nodes[i].emitter = e.fresh(int32(i), -1)
		}
	}
	for i := range e.nodes {
		if e.p.rt.Nodes[i].Kind == rules.Source {
			e.read(e.fresh(int32(i), -1))
		}
	}
	for n := 1; ; n++ {
		if n%patience == 0 && ctx != nil && ctx.Err() != nil {
			return
		}
		e.settle()
		if e.over {
			return
		}
		dt := e.speeds()
		if math.IsInf(dt, 1) {
			if e.stuck() {
				return
			}
			continue
		}
		e.advance(dt)
	}
}

// settle does all that can be done at this moment.
func (e *engine) settle() {
	for !e.over {
		switch {
		case e.memory.freed:
			e.memory.freed = false
			e.admitWaiting()
		case e.ready.Len() > 0:
			var i int32
			e.ready.Take(&i)
			e.resume(i)
		case e.wakes.Len() > 0:
			var i int32
			e.wakes.Take(&i)
			e.wake(i)
		default:
			return
		}
	}
}

// stuck is when nothing is at work and nothing can be done. It reports whether the
// run is over.
func (e *engine) stuck() bool {
	if e.entry.Len() > 0 {
		// All that is in flight has left, and what it has left behind is in the way.
		var i int32
		e.entry.Take(&i)
		e.refuse(i)
		return e.over
	}
	for i := range e.its {
		if it := &e.its[i]; it.in && !it.finished {
			e.err = errStuck
			break
		}
	}
	e.over = true
	return true
}

// fail fails an item by the policy of the graph.
func (e *engine) fail(item int32, err error) {
	it := &e.its[item]
	if it.failed {
		return
	}
	it.failed, it.cut = true, true
	e.failed++
	e.log.fail(e, item, err)
	if e.policyStop {
		e.err, e.over = err, true
		return
	}
	base := int(item) * len(e.nodes)
	for n := range e.nodes {
		if e.p.rt.Of[n] != int(it.part) {
			continue
		}
		s := &e.nodes[n]
		drop := 0
		s.blocked.Filter(func(i *int32) bool {
			if e.procs[*i].item != item {
				return false
			}
			e.procs[*i].state = resting
			drop++
			e.ready.Put(i)
			return true
		})
		switch {
		case e.p.rt.Nodes[n].Kind == rules.Join:
			e.count(n)
			s.j.Remove(item, func(*message) { drop++ })
		case s.q.Len() > 0:
			e.count(n)
			s.q.Filter(func(m *message) bool {
				if m.item == item {
					drop++
					return true
				}
				return false
			})
			e.unblock(int32(n))
		}
		if e.p.t.Nodes[n].Ordered {
			if _, ok := s.o.At(it.seq); ok {
				drop++
			}
			s.o.Skip(it.seq)
			e.pump(int32(n))
		}
		if e.status[base+n] == inQueue || e.status[base+n] == inJoin || e.status[base+n] == early {
			e.status[base+n] = done
			e.log.waited(e, item, n)
		}
		e.leave(item, drop)
	}
}

// count adds up how long a node's queue was since it last changed. It is called
// before each change.
func (e *engine) count(n int) {
	s := &e.nodes[n]
	s.area += float64(s.q.Len()+s.j.Len()) * (e.now - s.changed)
	s.changed = e.now
}
