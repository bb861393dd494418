package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// recorder writes down a simulated run as the trace of a real one would be. All
// its methods do nothing where it is nil. While the run lasts, items are the
// engine's numbers, and calls are in order of their beginning.
type recorder struct {
	calls   []trace.Call
	visits  []trace.Visit
	buffers []trace.Buffer
	notes   []trace.Note
	samples []trace.Sample
	order   []int32 // items by admission
	errs    map[int32]string
	at      map[spot]int // what is open: buffers, visits
}

// spot is a buffer of an item (node −1, or the scratch of a proc with node −2), or
// the place of a value in a join or behind an ordered node.
type spot struct{ item, node, slot int }

func newRecorder() *recorder {
	return &recorder{errs: make(map[int32]string), at: make(map[spot]int)}
}

func (r *recorder) seat(s *nodeState) int32 {
	if r == nil {
		return -1
	}
	k := slices.Index(s.seats, false)
	if k < 0 {
		k = len(s.seats)
		s.seats = append(s.seats, false)
	}
	s.seats[k] = true
	return int32(k)
}

func (r *recorder) admitted(e *engine, item int32) {
	if r != nil {
		r.order = append(r.order, item)
	}
}

func (r *recorder) begin(e *engine, pr *proc) {
	if r == nil || pr.attempt > 1 {
		return
	}
	pr.entry = int32(len(r.calls))
	r.calls = append(r.calls, trace.Call{
		Item: int(pr.item), Node: int(pr.node), Worker: int(pr.seat), Device: trace.None,
		Queued: duration(pr.queued), Begin: duration(e.now), End: trace.Never, Out: trace.Never,
	})
	for _, rd := range e.p.nodes[pr.node].reads {
		if k, ok := r.at[spot{int(pr.item), -1, rd.buf}]; ok {
			c := &r.calls[pr.entry]
			c.Reads = append(c.Reads, trace.Ref{Buffer: k, Until: trace.Never})
		}
	}
}

func (r *recorder) device(e *engine, pr *proc) {
	if r != nil {
		r.calls[pr.entry].Device = int(pr.device)
	}
}

// stood is a call that has waited for a device.
func (r *recorder) stood(pr *proc, seconds float64) {
	if r != nil {
		r.calls[pr.entry].Waited += duration(seconds)
	}
}

func (r *recorder) retried(e *engine, pr *proc) {
	if r == nil {
		return
	}
	r.calls[pr.entry].Attempt = pr.attempt
	r.notes = append(r.notes, trace.Note{At: duration(e.now), Kind: trace.Retried, Item: int(pr.item), Node: int(pr.node), N: pr.attempt, Text: "the model says so"})
}

func (r *recorder) end(e *engine, i int32, fails bool) {
	if r == nil {
		return
	}
	pr := &e.procs[i]
	c := &r.calls[pr.entry]
	c.End, c.Out = duration(e.now), duration(e.now)
	if fails {
		c.Err = "the model says so"
	}
	for _, b := range e.p.nodes[pr.node].made {
		if k, ok := r.at[spot{int(pr.item), -1, b}]; ok && !fails {
			c.Makes = append(c.Makes, k)
		}
	}
	r.samples = append(r.samples, trace.Sample{At: c.End, CPU: duration(e.coreUse)})
}

func (r *recorder) out(e *engine, pr *proc) {
	if r != nil && pr.entry >= 0 {
		r.calls[pr.entry].Out = duration(e.now)
	}
}

func (r *recorder) fail(e *engine, item int32, err error) {
	if r != nil {
		r.errs[item] = err.Error()
		r.notes = append(r.notes, trace.Note{At: duration(e.now), Kind: trace.Failed, Item: int(item), Node: trace.None, Text: err.Error()})
	}
}

func (r *recorder) add(e *engine, at spot, b trace.Buffer) {
	r.at[at] = len(r.buffers)
	b.Born, b.Kind = duration(e.now), alloc.Memory
	r.buffers = append(r.buffers, b)
}

func (r *recorder) close(e *engine, at spot) {
	if k, ok := r.at[at]; ok {
		r.buffers[k].Died = max(duration(e.now), 1)
		delete(r.at, at)
	}
}

func (r *recorder) born(e *engine, i int32, b int) {
	if r == nil {
		return
	}
	pr, bp := &e.procs[i], &e.p.bufs[b]
	r.add(e, spot{int(pr.item), -1, b}, trace.Buffer{Space: e.spaceOf(pr.item, bp.at), Stage: e.p.t.Nodes[bp.maker].Name, Purpose: bp.name,
		Bytes: e.sized(pr.item, bp.bytes), Item: int(pr.item), Call: int(pr.entry)})
}

func (r *recorder) died(e *engine, item int32, b int) {
	if r != nil {
		r.close(e, spot{int(item), -1, b})
	}
}

func (r *recorder) temp(e *engine, i int32, k int, begins bool) {
	if r == nil {
		return
	}
	pr := &e.procs[i]
	s := e.p.nodes[pr.node].scratch[k]
	if !begins {
		r.close(e, spot{int(i), -2, k})
		return
	}
	r.add(e, spot{int(i), -2, k}, trace.Buffer{Space: e.spaceOf(pr.item, s.at), Stage: e.p.t.Nodes[pr.node].Name, Purpose: "scratch",
		Bytes: e.sized(pr.item, s.bytes), Item: int(pr.item), Call: int(pr.entry)})
}

func (r *recorder) read(e *engine, i int32, b int) {
	if r == nil {
		return
	}
	pr := &e.procs[i]
	k, ok := r.at[spot{int(pr.item), -1, b}]
	if !ok {
		return
	}
	for n := range r.calls[pr.entry].Reads {
		if ref := &r.calls[pr.entry].Reads[n]; ref.Buffer == k {
			ref.Until = duration(e.now)
		}
	}
}

// waits is a value that has come to a join, or early.
func (r *recorder) waits(e *engine, item int32, node, slot int, bufs []int) {
	if r == nil {
		return
	}
	v := trace.Visit{Item: int(item), Node: node, Slot: slot, From: duration(e.now), Until: trace.Never}
	for _, b := range bufs {
		if k, ok := r.at[spot{int(item), -1, b}]; ok {
			v.Buffers = append(v.Buffers, k)
		}
	}
	r.at[spot{int(item), node, slot}] = len(r.visits)
	r.visits = append(r.visits, v)
}

// waited ends what waits of an item at a node.
func (r *recorder) waited(e *engine, item int32, node int) {
	if r == nil {
		return
	}
	for slot := trace.None; slot < rules.MaxJoin; slot++ {
		at := spot{int(item), node, slot}
		if k, ok := r.at[at]; ok {
			r.visits[k].Until = duration(e.now)
			delete(r.at, at)
		}
	}
}

// trace is the whole recording.
func (r *recorder) trace(e *engine, p *Prediction) *trace.Trace {
	now := duration(e.now)
	t := &trace.Trace{Version: trace.Version, Graph: e.p.t, Wall: now, Err: p.Err, Notes: r.notes, Samples: r.samples, Visits: r.visits, Buffers: r.buffers}
	t.Graph.Nodes = slices.Clone(e.p.t.Nodes)
	t.Graph.Budget = e.memory.limit
	m := &e.p.machine
	t.Meta = trace.Meta{Program: "simulated", Cores: int(m.Cores), Memory: m.Memory[alloc.Host], Settings: e.set.Settings, Budget: e.memory.limit}
	for _, d := range m.Devices {
		t.Meta.Devices = append(t.Meta.Devices, trace.Device{Name: d.Name, Space: d.Space, Memory: m.Memory[d.Space], Link: d.Link})
	}
	for _, l := range m.Links {
		t.Meta.Links = append(t.Meta.Links, trace.Link(l))
	}
	if p.Killed != nil {
		t.Err = "killed: out of " + p.Killed.Space.String() + " memory"
	}
	item := r.items(e, t)
	// What is still queued waits as what never came to a call.
	for n := range e.nodes {
		if e.p.nodes[n].work {
			e.nodes[n].q.Filter(func(m *message) bool {
				t.Visits = append(t.Visits, trace.Visit{Item: int(m.item), Node: n, Slot: trace.None, From: duration(m.at), Until: now})
				return false
			})
		}
	}
	for i := range t.Visits {
		v := &t.Visits[i]
		v.Item = item[v.Item]
		if v.Until == trace.Never {
			v.Until = now
		}
	}
	t.Visits = slices.DeleteFunc(t.Visits, func(v trace.Visit) bool { return v.From == v.Until })
	for i := range t.Notes {
		t.Notes[i].Item = item[t.Notes[i].Item]
	}
	call := r.sorted(t, item, now)
	for i := range t.Buffers {
		b := &t.Buffers[i]
		b.Item, b.Call = item[b.Item], call[b.Call]
	}
	return t
}

// items makes the trace's items, and is their places by the engine's numbers.
func (r *recorder) items(e *engine, t *trace.Trace) []int {
	at := make([]int, len(e.its))
	needs := make(map[[2]int32][]trace.NodeNeed)
	add := func(i int32) {
		it := &e.its[i]
		k := [2]int32{it.part, it.class}
		if _, ok := needs[k]; !ok && e.memory.on {
			needs[k] = e.p.stated(int(it.part), int(it.class))
		}
		at[i] = len(t.Items)
		x := trace.Item{Key: pipeline.Key{Part: int(it.seq)}, Source: e.p.rt.Parts[it.part].Sources[0], Arrived: duration(it.arrived), Admitted: trace.Never, Left: trace.Never, Needs: needs[k], Err: r.errs[i]}
		if it.in {
			x.Admitted = duration(it.admitted)
		}
		if it.finished {
			x.Left = duration(it.leftAt)
		}
		t.Items = append(t.Items, x)
	}
	for _, i := range r.order {
		add(i)
	}
	for i := range e.its {
		if it := &e.its[i]; !it.in {
			at[i] = trace.None
			if it.live > 0 || it.finished { // it has asked
				add(int32(i))
			}
		}
	}
	return at
}

// stated is what the nodes of a component say that an item of a class needs.
func (p *program) stated(part, class int) (out []trace.NodeNeed) {
	for i, nd := range p.plans[part].Work {
		n := scaleNeed(p.needs[part][i], p.classes[class].bytes)
		need := pipeline.Need{Scratch: n.Scratch, Ends: n.Ends}
		for _, m := range n.Makes {
			need.Makes = append(need.Makes, pipeline.Part(m))
		}
		out = append(out, trace.NodeNeed{Stage: p.t.Nodes[nd].Name, Need: need})
	}
	return out
}

// sorted puts the calls in order of their ends, and is their new places by the old.
func (r *recorder) sorted(t *trace.Trace, item []int, now time.Duration) []int {
	order := make([]int, len(r.calls))
	for i := range r.calls {
		order[i] = i
		c := &r.calls[i]
		if c.End == trace.Never {
			c.End, c.Out, c.Err = now, now, trace.Unended
		}
		for k := range c.Reads {
			if c.Reads[k].Until == trace.Never {
				c.Reads[k].Until = c.End
			}
		}
		c.Item = item[c.Item]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.calls[a].End, r.calls[b].End) })
	place := make([]int, len(order))
	for i, k := range order {
		place[k] = i
		t.Calls = append(t.Calls, r.calls[k])
	}
	return place
}
