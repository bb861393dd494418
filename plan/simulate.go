package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
	"github.com/snarkline/snarkline/pipeline"
)

// Settings are those of a graph, and how many items run through it.
type Settings struct {
	// Settings override the workers, capacities and budgets of the graph. A budget
	// of 0 bytes lifts the one of the graph.
	pipeline.Settings
	Items int           // that each source yields; 0 is taken as 16
	Every time.Duration // from one item of a source to the next; 0: as fast as the graph takes them
	Seed  uint64        // of what is drawn: the same seed, the same run
	Rules Rules         // protections taken away
}

// Rules take away what the engine does against running out of memory, one by one,
// to show what each is for. The zero value is the engine as it is.
type Rules struct {
	// ReleaseLate keeps what an item has made until it leaves the graph.
	ReleaseLate bool
	// AllBuffers ignores Uses: every direct consumer of a node holds all that the
	// node makes, to the end of its call.
	AllBuffers bool
	// NoAdmission lets every item in, whatever the budget.
	NoAdmission bool
	// AdmitUntil is the stage with whose end an item gives its reservation back,
	// though its memory lives on; empty: when nothing needs it any more.
	AdmitUntil string
	// Semaphore, if it is not 0, is how many items may be between their entry and the
	// end of the stage Until at once; an empty Until is the end of the item. It comes
	// beside the budget.
	Semaphore int
	Until     string
}

// Option is an option of a simulation.
type Option func(*options)

type options struct {
	record bool
	ctx    context.Context // nil: a run goes on to its end
}

// Record has the prediction carry a trace.
func Record() Option { return func(o *options) { o.record = true } }

// Until ends a run with the cause of ctx when that ends: a run of a million items
// takes ten seconds.
func Until(ctx context.Context) Option { return func(o *options) { o.ctx = ctx } }

// Simulate runs the graph g in virtual time. What is wrong with the graph, the
// costs or the settings is an error; a run that fails is a Prediction that says
// so. The graph is only read.
func Simulate(g *pipeline.Graph, c *Costs, set Settings, opts ...Option) (*Prediction, error) {
	s, err := NewSimulator(g.Topology(), c, opts...)
	if err != nil {
		return nil, err
	}
	return s.Run(set)
}

// Simulator runs one graph with one set of costs as often as one likes, with
// different settings. It reuses its memory from run to run, and is for one
// goroutine at a time.
type Simulator struct {
	t     pipeline.Topology // as the graph is set
	costs *Costs
	o     options
	progs [2]*program // with Uses, and for the rule AllBuffers; nil until used
	e     engine
}

// NewSimulator makes a simulator of a graph as data, which (*pipeline.Graph).Topology
// and a trace have. It keeps t and c, which must not change.
func NewSimulator(t pipeline.Topology, c *Costs, opts ...Option) (*Simulator, error) {
	s := &Simulator{t: t, costs: c}
	for _, o := range opts {
		o(&s.o)
	}
	_, err := s.program(false)
	return s, err
}

func (s *Simulator) program(all bool) (*program, error) {
	k := 0
	if all {
		k = 1
	}
	if s.progs[k] == nil {
		t := s.t
		t.Nodes = slices.Clone(t.Nodes)
		p, err := compile(t, s.costs, all)
		if err != nil {
			return nil, err
		}
		s.progs[k] = p
	}
	return s.progs[k], nil
}

// MaxItems bounds the items of a simulated run.
const MaxItems = 1_000_000

// Run simulates one run.
func (s *Simulator) Run(set Settings) (*Prediction, error) {
	p, err := s.program(set.Rules.AllBuffers)
	if err != nil {
		return nil, err
	}
	if set.Items == 0 {
		set.Items = 16
	}
	limit, err := s.apply(p, &set)
	if err != nil {
		return nil, fmt.Errorf("simulate graph %s: %w", s.t.Name, err)
	}
	e := &s.e
	e.reset(p, &set, set.Items, limit)
	e.log = nil
	if s.o.record {
		e.log = newRecorder()
	}
	e.run(s.o.ctx)
	if s.o.ctx != nil && s.o.ctx.Err() != nil {
		return nil, context.Cause(s.o.ctx)
	}
	pr := e.result()
	if e.log != nil {
		pr.Trace = e.log.trace(e, pr)
		e.log = nil
	}
	return pr, nil
}

// apply sets the workers and capacities of the program, and is the budget.
func (s *Simulator) apply(p *program, set *Settings) (limit alloc.Amount, err error) {
	if set.Items < 0 || set.Items > MaxItems {
		return limit, fmt.Errorf("%d items: want 0 to %d", set.Items, MaxItems)
	}
	if set.Every < 0 || set.Rules.Semaphore < 0 {
		return limit, fmt.Errorf("one item every %v, a semaphore of %d: want nothing below 0", set.Every, set.Rules.Semaphore)
	}
	for _, name := range []string{set.Rules.AdmitUntil, set.Rules.Until} {
		if name != "" && s.t.Index(name) < 0 {
			return limit, fmt.Errorf("a rule is about stage %q, which the graph has not", name)
		}
	}
	copy(p.t.Nodes, s.t.Nodes)
	for name, st := range set.Stages {
		i := s.t.Index(name)
		switch {
		case i < 0:
			return limit, fmt.Errorf("a setting is for stage %q, which the graph has not", name)
		case !p.rt.Nodes[i].Kind.HasQueue():
			return limit, fmt.Errorf("a setting is for %s %q, which has neither workers nor a queue", s.t.Nodes[i].Kind, name)
		case st.Workers < 0 || st.Capacity < 0 && st.Capacity != pipeline.Unbounded:
			return limit, fmt.Errorf("stage %s: %d workers and a capacity of %d", name, st.Workers, st.Capacity)
		}
		if k := p.rt.Nodes[i].Kind; st.Workers > 0 && (k == rules.Stream || k == rules.Collect) {
			return limit, fmt.Errorf("a setting is for the workers of sink %q, which has none", name)
		}
		if st.Workers > 0 {
			p.t.Nodes[i].Workers = st.Workers
		}
		if st.Capacity != 0 {
			p.t.Nodes[i].Capacity = int(st.Capacity)
		}
	}
	p.share(set)
	limit = s.t.Budget
	for name, n := range set.Budget {
		sp, err := alloc.ParseSpace(name)
		if err != nil {
			return limit, fmt.Errorf("budget: %w", err)
		}
		if n < 0 {
			return limit, fmt.Errorf("budget: %v of %s memory", n, name)
		}
		limit[sp] = int64(n)
	}
	return limit, nil
}
