package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// Graph is a dataflow graph: built by the functions that make and take ports,
// run once. Building is for one goroutine; the methods may be called by any.
type Graph struct {
	name string

	mu        sync.Mutex
	nodes     []*node
	names     map[string]*node
	errs      []error
	policy    Policy
	limit     alloc.Amount
	shared    *alloc.Budget
	patience  time.Duration // 0: for ever
	listeners []Listener
	onFail    []func(Key, error)
	settings  Settings
	run       *run // nil until Run
	unsafe    unsafeHooks
}

// unsafeHooks take a protection away, so that tests can show what it is for.
type unsafeHooks struct {
	releaseEarly bool // the reservation ends with the item's first stage, and memory is not drawn from it
	allBuffers   bool // Uses is ignored
	endAtStart   bool // a stage's input is released when the stage starts
}

// New makes an empty graph. Options: Budget, WithBudget, Patience, OnError,
// OnFail, Listen, WithSettings.
func New(name string, opts ...Option) *Graph {
	g := &Graph{name: name, names: make(map[string]*node), patience: DefaultPatience}
	for _, o := range opts {
		if o != nil {
			o.applyGraph(g)
		}
	}
	return g
}

// Name is the name that New was given.
func (g *Graph) Name() string { return g.name }

type kind = rules.Kind

const (
	kindSource  = rules.Source
	kindStage   = rules.Stage // Via
	kindJoin    = rules.Join  // JoinN
	kindSink    = rules.Sink  // ToFunc
	kindStream  = rules.Stream
	kindCollect = rules.Collect
)

// node is one place of a graph, without its types.
type node struct {
	g     *Graph
	id    int
	name  string
	named bool // by an option
	kind  kind
	in    typeInfo // what the one input takes; unset for sources and joins
	out   typeInfo // what is yielded; unset for sinks
	preds []*node
	succs []link

	workers, capacity int
	ordered           bool
	retries           int
	restarts          int // of a source's items
	backoff           time.Duration
	odd               []string // options that make no sense here

	call    func(ctx context.Context, in any) (any, error) // stages, function sinks
	uses    func(in any) []alloc.Ref
	needs   func(job any) Need
	needsIn func(ctx context.Context, job any) Need // in place of needs
	open    func(*feeder) error                     // sources
	inlet   inlet                                   // go-streams sinks
	collect *collector

	use    string // name in the registry, if it came from one
	params any    // and its parameters
}

// link is one consumer of a node, at one of its inputs.
type link struct {
	to   *node
	slot int
}

func (n *node) hasQueue() bool { return n.kind.HasQueue() }

// fault records an error of building.
func (g *Graph) fault(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faultLocked(err)
}

func (g *Graph) faultLocked(err error) { g.errs = append(g.errs, err) }

// attach adds a node behind preds. A nil pred is a port that an earlier fault
// left without a node.
func (g *Graph) attach(n *node, preds []*node, opts []NodeOption) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n.g, n.workers, n.capacity = g, 1, 1
	for _, o := range opts {
		if o != nil {
			o.applyNode(n)
		}
	}
	g.place(n)
	if g.run != nil {
		g.faultLocked(fmt.Errorf("%v %s is added after the graph was run", n.kind, n.name))
	}
	for _, what := range n.odd {
		g.faultLocked(fmt.Errorf("%v %s: %s", n.kind, n.name, what))
	}
	for slot, p := range preds {
		if p == nil {
			if len(g.errs) == 0 {
				g.faultLocked(fmt.Errorf("%v %s takes a nil port", n.kind, n.name))
			}
			continue
		}
		n.preds = append(n.preds, p)
		p.succs = append(p.succs, link{n, slot})
	}
}

// place gives the node a name that is its own and the settings made for it.
func (g *Graph) place(n *node) {
	if n.name == "" {
		n.name = g.freeName(n.kind.String())
	} else if _, taken := g.names[n.name]; taken {
		// Only names that the user gave must be unique by his own care.
		if n.kind == kindStage || n.named {
			g.faultLocked(fmt.Errorf("two nodes have the name %q; Name gives one of them another", n.name))
		}
		n.name = g.freeName(n.name)
	}
	g.names[n.name] = n
	n.id = len(g.nodes)
	g.nodes = append(g.nodes, n)
	g.settings.applyTo(n)
}

func (g *Graph) freeName(base string) string {
	name := base
	for i := 2; g.names[name] != nil; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

// Err is what is wrong with the graph so far: a *GraphError, or nil. Ports that
// nothing reads count, so it is meant for a graph that is complete.
func (g *Graph) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.check()
}

func (g *Graph) check() error {
	errs := slices.Clone(g.errs)
	if !slices.ContainsFunc(g.nodes, func(n *node) bool { return n.kind == kindSource }) {
		errs = append(errs, errors.New("it has no source"))
	}
	for _, n := range g.nodes {
		if n.out.t != nil && len(n.succs) == 0 {
			errs = append(errs, fmt.Errorf("nothing reads what %v %s yields", n.kind, n.name))
		}
		if n.kind == kindJoin && n.out.t == nil {
			errs = append(errs, fmt.Errorf("nothing reads what join %s yields", n.name))
		}
	}
	errs = append(errs, g.settings.unused(g.names)...)
	for _, n := range g.nodes {
		if n.kind != kindJoin {
			continue
		}
		if s := g.sourcesOf(n); len(s) > 1 {
			for _, source := range s {
				if source.restarts > 0 {
					errs = append(errs, fmt.Errorf("join %s has inputs from %d sources (%s), and the items of %s can be restarted: they must descend from one", n.name, len(s), nodeNames(s), source.name))
				}
			}
			if g.budgeted() {
				errs = append(errs, fmt.Errorf("join %s has inputs from %d sources (%s): with a budget an item enters as a whole, so they must descend from one", n.name, len(s), nodeNames(s)))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &GraphError{Graph: g.name, Errs: errs}
}

func (g *Graph) budgeted() bool { return g.shared != nil || !g.limits().IsZero() }

// limits are the budgets of the options, with those of the settings in place.
func (g *Graph) limits() alloc.Amount {
	limit := g.limit
	for k, v := range g.settings.Budget {
		if space, err := alloc.ParseSpace(k); err == nil {
			limit[space] = int64(v)
		}
	}
	return limit
}

// sourcesOf are the sources that n descends from.
func (g *Graph) sourcesOf(n *node) []*node {
	var out []*node
	seen := make(map[*node]bool)
	var visit func(*node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.kind == kindSource {
			out = append(out, n)
		}
		for _, p := range n.preds {
			visit(p)
		}
	}
	visit(n)
	return out
}

// SetWorkers sets how many goroutines run a stage or a function sink, before or
// while the graph runs. Fewer take effect as workers finish what they do.
func (g *Graph) SetWorkers(stage string, n int) error {
	if n < 1 {
		return fmt.Errorf("set workers of %s: %d is less than 1", stage, n)
	}
	var tell func()
	defer func() { callIf(tell) }()
	g.mu.Lock()
	defer g.mu.Unlock()
	nd := g.names[stage]
	if nd == nil || nd.kind != kindStage && nd.kind != kindSink {
		return fmt.Errorf("set workers: graph %s has no stage %q", g.name, stage)
	}
	nd.workers = n
	if g.run != nil {
		g.run.stations[nd.id].setWorkers(n)
		tell = g.run.resized(nd)
	}
	return nil
}

// SetCapacity sets how many values wait in the queue of a stage or sink at
// most, before or while the graph runs. n is at least 1, or Unbounded.
func (g *Graph) SetCapacity(stage string, n int) error {
	if n < 1 && n != Unbounded {
		return fmt.Errorf("set capacity of %s: %d is less than 1 and not Unbounded", stage, n)
	}
	var tell func()
	defer func() { callIf(tell) }()
	g.mu.Lock()
	defer g.mu.Unlock()
	nd := g.names[stage]
	if nd == nil || !nd.hasQueue() {
		return fmt.Errorf("set capacity: graph %s has no stage or sink %q", g.name, stage)
	}
	nd.capacity = n
	if g.run != nil {
		g.run.stations[nd.id].q.setCapacity(n)
		tell = g.run.resized(nd)
	}
	return nil
}

// Workers is how many goroutines a stage has, 0 if there is no such stage.
func (g *Graph) Workers(stage string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.names[stage]; n != nil && n.hasQueue() {
		return n.workers
	}
	return 0
}

// Capacity is how many values may wait for a stage, 0 if there is no such stage.
func (g *Graph) Capacity(stage string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.names[stage]; n != nil && n.hasQueue() {
		return n.capacity
	}
	return 0
}

// Stages are the names of the stages, in the order in which they were added.
func (g *Graph) Stages() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for _, n := range g.nodes {
		if n.kind == kindStage {
			names = append(names, n.name)
		}
	}
	return names
}
