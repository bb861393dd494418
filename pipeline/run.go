package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// run is one run of a graph.
type run struct {
	g        *Graph
	parent   context.Context // what Run was given
	ctx      context.Context // ends with the run
	cancel   context.CancelCauseFunc
	base     time.Time
	stations []*station
	parts    []*component
	budget   *alloc.Budget // nil: no admission
	heard    bool          // there are listeners
	collects bool          // there is a Collect
	scopeKey any           // what alloc.ScopeOf asks a context for
	wg       sync.WaitGroup

	stopped atomic.Bool
	mu      sync.Mutex
	err     error // why it stopped
	lateErr error // of a source, under FailKey
	ended   atomic.Bool
	wall    atomic.Int64

	failMu   sync.Mutex // one call of OnFail at a time
	failures []Failure
	restarts []Failure

	inFlight, inFlightPeak atomic.Int64
	answered, failed, cut  atomic.Int64
	attempts               atomic.Uint64 // at items, to number them
	restarted              atomic.Int64
	waits, waitTime        atomic.Int64
	kept                   keeper
}

// component is a part of the graph that hangs together: its items have an order
// and, where there are joins, keys that must not meet.
type component struct {
	run      *run
	sources  []*station
	orderers []*station
	joins    []*station
	plan     *plan
	seq      atomic.Uint64
	all      uint64 // the sources' bits

	mu    sync.Mutex
	items map[Key]*item // in flight; nil if nothing pairs by key
}

// now is the time since the run began.
func (r *run) now() time.Duration { return time.Since(r.base) }

// Run runs the graph until its sources have ended and every item has left, and
// returns the report. A graph runs once. Under StopAll the first error ends it
// and is returned; when ctx ends first, its cause is. Under FailKey only the
// error of a source is returned, after the items that it gave have been
// answered. The report is complete in any case but a *GraphError, where it is
// nil.
func (g *Graph) Run(ctx context.Context) (*Report, error) {
	r, err := g.begin(ctx)
	if err != nil {
		return nil, err
	}
	told := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(told)
		r.stop(context.Cause(ctx))
	})
	r.wg.Wait()
	if !unhook() {
		<-told
	}
	r.wall.Store(int64(r.now()))
	r.ended.Store(true)
	r.cancel(context.Canceled)
	r.mu.Lock()
	err = r.err
	if err == nil {
		err = r.lateErr
	}
	r.mu.Unlock()
	r.kept.settle(r, err != nil)
	rep := r.report()
	if err != nil {
		rep.Error = err.Error()
	}
	return rep, err
}

// begin makes the run and starts everything.
func (g *Graph) begin(ctx context.Context) (*run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.run != nil {
		return nil, &GraphError{Graph: g.name, Errs: []error{fmt.Errorf("it was run already; a graph runs once")}}
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	r := &run{g: g, parent: ctx, base: time.Now(), heard: len(g.listeners) > 0}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if g.budgeted() {
		if r.budget = g.shared; r.budget == nil {
			r.budget = alloc.NewBudget(g.limits())
		}
	}
	r.scopeKey = scopeKeyOfAlloc()
	r.build()
	g.run = r
	for _, l := range g.listeners {
		if s, ok := l.(Starter); ok {
			s.OnStart(Start{Graph: g.topologyLocked(), At: r.base, Settings: g.settingsLocked()})
		}
	}
	r.start()
	return r, nil
}

// build makes the stations and what they hang together by.
func (r *run) build() {
	for _, n := range r.g.nodes {
		s := &station{node: n, run: r, owner: alloc.StageOf(n.name)}
		s.scope = alloc.NewScope(s.owner, alloc.Host, nil)
		if n.kind == kindSource {
			s.alive.Store(1)
		}
		switch {
		case n.kind == kindJoin:
			s.j = newJoiner(len(n.preds), &s.pending)
		case n.hasQueue():
			s.q = newQueue(n.capacity, &s.queued)
			s.q.active, s.q.target = n.workers, n.workers
		}
		r.collects = r.collects || n.kind == kindCollect
		if n.ordered {
			s.o = newOrderer(s)
		}
		r.stations = append(r.stations, s)
	}
	t := r.g.ruled()
	for i, s := range r.stations {
		for _, l := range t.Outs[i] {
			s.outs = append(s.outs, outlink{r.stations[l.To], l.Slot})
		}
	}
	for i := range t.Parts {
		r.parts = append(r.parts, r.component(t, &t.Parts[i]))
	}
}

// ruled is the graph in the words of the rules.
func (g *Graph) ruled() *rules.Topology {
	nodes := make([]rules.Node, len(g.nodes))
	for i, n := range g.nodes {
		nodes[i] = rules.Node{Kind: n.kind, Ordered: n.ordered, Uses: n.uses != nil}
		for _, p := range n.preds {
			nodes[i].Preds = append(nodes[i].Preds, p.id)
		}
	}
	return rules.NewTopology(nodes)
}

// component makes a component, and the stations know that they are in it.
func (r *run) component(t *rules.Topology, rc *rules.Component) *component {
	c := &component{run: r}
	pick := func(nodes []int) (out []*station) {
		for _, i := range nodes {
			r.stations[i].part = c
			out = append(out, r.stations[i])
		}
		return out
	}
	c.sources, c.joins, c.orderers = pick(rc.Sources), pick(rc.Joins), pick(rc.Ordered)
	work := pick(rc.Work)
	for i, s := range c.sources {
		s.turn = 1 << (i % 64)
		c.all |= s.turn
	}
	if len(c.joins) > 0 {
		c.items = make(map[Key]*item)
	}
	if r.budget != nil {
		c.plan = newPlan(rules.NewPlan(t, rc), work)
		for k, i := range c.plan.Joins {
			r.stations[i].bit = c.plan.Bit(len(work) + k)
		}
	}
	return c
}

// start starts every goroutine.
func (r *run) start() {
	for _, s := range r.stations {
		switch {
		case s.node.kind == kindSource:
			r.wg.Add(1)
			go s.read()
		case s.node.kind == kindStream:
			r.wg.Add(1)
			go s.pour()
		case s.node.kind == kindCollect:
			r.wg.Add(1)
			go s.gather()
		case s.q != nil:
			r.wg.Add(s.node.workers)
			for range s.node.workers {
				go s.work()
			}
		}
		if s.o != nil {
			r.wg.Add(1)
			go s.o.run()
		}
	}
}

// stop ends the run: nothing more is worked on, and everything that waits is
// freed.
func (r *run) stop(err error) bool {
	r.mu.Lock()
	if r.stopped.Load() {
		r.mu.Unlock()
		return false
	}
	// What fails because the caller gave up is not the reason.
	if cause := context.Cause(r.parent); cause != nil {
		err = cause
	}
	r.err = err
	r.stopped.Store(true)
	r.mu.Unlock()
	r.cancel(err)
	for _, s := range r.stations {
		r.purge(s, nil)
	}
	return true
}

// stopIfDone stops the run if its context has ended.
func (r *run) stopIfDone() {
	if cause := context.Cause(r.ctx); cause != nil {
		r.stop(cause)
	}
}

// fail fails an item, or everything, by the policy. The caller keeps what it
// holds of the item and drops it itself. It reports whether that was news.
func (r *run) fail(s *station, it *item, err error) bool {
	err = it.told(err)
	if r.parent.Err() != nil {
		r.stop(err)
		return false
	}
	if it.fate.Load() == retracted {
		return false
	}
	if r.g.policy == StopAll {
		if !r.stop(err) {
			return false
		}
		r.noteFailure(s, it, err)
		return true
	}
	if r.stopped.Load() || it.failed.Swap(true) {
		return false
	}
	it.own().cancel()
	r.noteFailure(s, it, err)
	for _, t := range r.stations {
		if t.part == it.part {
			r.purge(t, it)
		}
	}
	r.failMu.Lock()
	defer r.failMu.Unlock()
	for _, f := range r.g.onFail {
		if e := guard(func() { f(it.key, err) }); e != nil {
			r.stop(&StageError{Stage: "OnFail", Key: it.key, Err: e})
		}
	}
	return true
}

// maxFailures is how many failures a report lists.
const maxFailures = 100

func (r *run) noteFailure(s *station, it *item, err error) {
	it.noted.Store(true)
	r.failed.Add(1)
	s.failed.Add(1)
	r.failMu.Lock()
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, Failure{Stage: s.node.name, Key: it.key, Error: err.Error()})
	}
	r.failMu.Unlock()
	if r.heard {
		r.tell(Event{Kind: Failed, At: r.now(), Stage: s.node.name, Key: it.key, Err: err, Item: it.id})
	}
}

// purge takes what waits of one item, or of all if it is nil, out of a station.
func (r *run) purge(s *station, it *item) {
	var out []message
	switch {
	case s.q != nil && it == nil:
		out = s.q.kill()
	case s.q != nil:
		out = s.q.remove(it)
	case s.j != nil && it == nil:
		out = s.j.kill()
	case s.j != nil:
		out = s.j.remove(it)
	}
	r.dropAll(s, out)
	if s.o == nil {
		return
	}
	if it == nil {
		out = s.o.kill()
	} else {
		out = s.o.skip(it.seq)
	}
	r.dropAll(s, out)
}

func (r *run) dropAll(s *station, msgs []message) {
	for _, m := range msgs {
		r.drop(s, m)
	}
}

// drop ends a message that nobody reads.
func (r *run) drop(s *station, m message) {
	m.item.cut.Store(true)
	s.tellOf(Discarded, m.item, 0, &m.hold)
	r.release(s, m.item, &m.hold)
	r.leave(m.item, 1)
}

// release ends references. One that had been ended before stops the run: the
// books are wrong from there on.
func (r *run) release(s *station, it *item, h *hold) {
	if err := h.release(); err != nil {
		r.stop(&StageError{Stage: s.node.name, Key: it.key, Err: fmt.Errorf("release the buffers of a value: %w", err)})
	}
}

// leave counts n messages of the item out.
func (r *run) leave(it *item, n int) {
	if n == 0 || it.live.Add(int32(-n)) > 0 {
		return
	}
	c := it.part
	heir := it.heir
	if r.stopped.Load() {
		heir = nil
	}
	if c.items != nil {
		c.mu.Lock()
		if it.live.Load() != 0 || c.items[it.key] != it {
			// Another source has given it new life, or somebody was faster.
			c.mu.Unlock()
			return
		}
		switch {
		case heir != nil:
			c.items[it.key] = heir
		case it.failed.Load() && it.seen != c.all:
			// A source may still yield the key; it must not start afresh.
			it.live.Store(-1 << 30)
		default:
			delete(c.items, it.key)
		}
		c.mu.Unlock()
	}
	if it.res != nil {
		it.res.Close()
	}
	if err := it.values.end(); err != nil {
		r.stop(fmt.Errorf("end the values of item %v: %w", it.key, err))
	}
	if heir != nil {
		r.pass(it, heir)
		return
	}
	if len(c.sources) > 1 {
		// It need not have come by every ordered stage.
		for _, s := range c.orderers {
			r.dropAll(s, s.o.skip(it.seq))
		}
	}
	if in := it.inner.Load(); in != nil {
		in.cancel()
	}
	failed := it.failed.Load() && it.heir == nil
	switch {
	case failed || it.noted.Load():
	case !it.cut.Load():
		// Whether the run has stopped meanwhile or not.
		r.answered.Add(1)
	case it.admitted.Load():
		r.cut.Add(1)
	}
	if it.admitted.Load() {
		r.inFlight.Add(-1)
	}
	if r.heard {
		e := Event{Kind: Left, At: r.now(), Key: it.key, Item: it.id}
		if failed {
			e.Err = errFailed
		}
		r.tell(e)
	}
	if it.story != nil {
		r.release(it.story.source, it, &it.story.hold)
		it.story.source.endOne()
	}
}

// pass makes the next attempt at an item that has left.
func (r *run) pass(it, heir *item) {
	if in := it.inner.Load(); in != nil {
		in.cancel()
	}
	if it.admitted.Load() {
		r.inFlight.Add(-1)
	}
	if r.heard {
		r.tell(Event{Kind: Gone, At: r.now(), Key: it.key, Item: it.id})
	}
	it.values.mu.Lock()
	heir.values.before = it.values.now
	it.values.mu.Unlock()
	// Workers wait behind the source, so nobody is done waiting for the group.
	r.wg.Add(1)
	go r.reenter(heir)
}

// probe is a context that remembers what it is asked for.
type probe struct {
	context.Context
	key   any
	scope *alloc.Scope
}

func (p *probe) Value(key any) any {
	if p.scope != nil && key == p.key {
		return p.scope
	}
	p.key = key
	return nil
}

// scopeKeyOfAlloc finds out under which key alloc looks for the scope, so that
// the context of a stage can answer itself, without a chain of values.
func scopeKeyOfAlloc() any {
	p := &probe{Context: context.Background()}
	alloc.ScopeOf(p)
	return p.key
}
