package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
	"github.com/snarkline/snarkline/pipeline"
)

// program is a graph and its costs in the form that the engine runs: names are
// indices, fractions of calls are places within steps.
type program struct {
	t       pipeline.Topology
	rt      *rules.Topology
	nodes   []nodeProg
	bufs    []bufProg
	plans   []*rules.Plan    // by component
	needs   [][]rules.Need   // by component, in the order of its plan
	shapes  [][]*rules.Shape // by component and class
	classes []classProg
	machine Machine
	links   []Link
	groups  [][]int // devices of one name; those of a pool have one each, one behind the other
	pooled
	all bool // compiled for the rule AllBuffers
}

type nodeProg struct {
	work    bool
	keeps   bool // Collect
	bit     uint64
	retries int
	steps   []stepProg
	first   []mark // when the call begins
	last    []mark // when it ends
	scratch []space
	made    []int  // of bufs
	reads   []read // of bufs
	lanes   int
	carries [][]int
	joins   []int // direct predecessors that are joins
	holds   []int // of bufs: what a join holds until it has its tuple
	fails   float64
}

type space struct {
	at    alloc.Space
	bytes int64
}

type read struct {
	buf   int
	until float64
	extra bool // by the rule AllBuffers alone
}

type stepProg struct {
	seconds, spread, cores float64
	group                  int // of devices; −1: none
	pool                   int // how many groups from that on are a pool's; 0: it is none
	exclusive              bool
	keeps                  bool  // its device, for the next step
	link                   int   // −1: none
	links                  []int // of a pool's devices, where they differ
	bytes                  float64
	marks                  []mark
}

// mark is something that happens in the middle of a step, when the fraction at of
// both its seconds and its bytes is done.
type mark struct {
	at  float64
	do  action
	arg int
}

type action uint8

const (
	bear     action = iota // a buffer
	bearTemp               // a scratch
	killTemp
	endRead // of reads
)

type bufProg struct {
	space
	name    string
	maker   int
	readers []int // nodes
	holders []int // joins that hold it, whoever reads it
}

type classProg struct {
	name        string
	upTo        float64 // cumulated weight, of 1
	time, bytes float64
}

// compile checks the costs against the graph. All that is wrong is told at once.
func compile(t pipeline.Topology, c *Costs, all bool) (*program, error) {
	p := &program{t: t, machine: c.Machine, all: all}
	if err := p.topology(); err != nil {
		return nil, fmt.Errorf("simulate graph %s: %w", t.Name, err)
	}
	p.hardware()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		if t.Index(name) < 0 {
			errs = append(errs, fmt.Errorf("costs of node %q, which the graph has not", name))
		}
	}
	p.nodes = make([]nodeProg, len(t.Nodes))
	for i := range t.Nodes {
		p.nodes[i] = nodeProg{work: p.rt.Nodes[i].Kind.HasQueue(), keeps: p.rt.Nodes[i].Kind == rules.Collect, retries: t.Nodes[i].Retries}
		for _, pr := range t.Nodes[i].Preds {
			if p.rt.Nodes[pr].Kind == rules.Join {
				p.nodes[i].joins = append(p.nodes[i].joins, pr)
			}
		}
	}
	// All nodes are there: what one makes is noted at those that read it.
	for i := range t.Nodes {
		cost, ok := c.Nodes[t.Nodes[i].Name]
		if err := p.node(i, &cost); ok && err != nil {
			errs = append(errs, fmt.Errorf("costs of node %s: %w", t.Nodes[i].Name, err))
		}
	}
	errs = append(errs, c.Machine.check()...)
	errs = append(errs, p.classesOf(c.Items)...)
	if len(errs) > 0 {
		return nil, fmt.Errorf("simulate graph %s: %w", t.Name, errors.Join(errs...))
	}
	p.endReads(c)
	for k := range p.rt.Parts {
		p.plans = append(p.plans, rules.NewPlan(p.rt, &p.rt.Parts[k]))
	}
	p.hold()
	p.carry()
	p.admission(c)
	for i := range p.nodes {
		if n := &p.nodes[i]; len(n.reads) > 64 || len(n.scratch) > 64 {
			return nil, fmt.Errorf("simulate graph %s: node %s has more than 64 buffers of a kind", t.Name, t.Nodes[i].Name)
		}
	}
	return p, nil
}

func (p *program) topology() error {
	kinds := map[string]rules.Kind{
		pipeline.KindSource: rules.Source, pipeline.KindStage: rules.Stage, pipeline.KindJoin: rules.Join,
		pipeline.KindSink: rules.Sink, pipeline.KindStream: rules.Stream, pipeline.KindCollect: rules.Collect,
	}
	nodes := make([]rules.Node, len(p.t.Nodes))
	for i, n := range p.t.Nodes {
		kind, ok := kinds[n.Kind]
		switch {
		case !ok:
			return fmt.Errorf("node %s is of the unknown kind %q", n.Name, n.Kind)
		case kind == rules.Source && len(n.Preds) != 0,
			kind == rules.Join && (len(n.Preds) < 2 || len(n.Preds) > rules.MaxJoin),
			kind != rules.Source && kind != rules.Join && len(n.Preds) != 1:
			return fmt.Errorf("%s %s has %d inputs", n.Kind, n.Name, len(n.Preds))
		case kind.HasQueue() && (n.Workers < 1 || n.Capacity < 1 && n.Capacity != pipeline.Unbounded):
			return fmt.Errorf("%s %s has %d workers and a capacity of %d", n.Kind, n.Name, n.Workers, n.Capacity)
		}
		for _, pr := range n.Preds {
			if pr < 0 || pr >= i {
				return fmt.Errorf("%s %s has predecessor %d, which is not before it", n.Kind, n.Name, pr)
			}
		}
		nodes[i] = rules.Node{Kind: kind, Ordered: n.Ordered, Uses: n.Uses, Preds: n.Preds}
	}
	p.rt = rules.NewTopology(nodes)
	for i, n := range p.t.Nodes {
		if len(p.rt.Outs[i]) == 0 && (nodes[i].Kind == rules.Source || nodes[i].Kind == rules.Join || nodes[i].Kind == rules.Stage) {
			return fmt.Errorf("nothing reads what %s %s yields", n.Kind, n.Name)
		}
	}
	if len(p.t.Nodes) == 0 {
		return errors.New("it has no nodes")
	}
	return nil
}

// hardware gives devices of one name one index.
func (p *program) hardware() {
	p.links = p.machine.Links
	at := make(map[string]int)
	for i, d := range p.machine.Devices {
		if d.Pool != "" {
			continue
		}
		g, ok := at[d.Name]
		if !ok {
			g = len(p.groups)
			at[d.Name] = g
			p.groups = append(p.groups, nil)
		}
		p.groups[g] = append(p.groups[g], i)
	}
	p.pools()
}

func (p *program) group(name string) int {
	return slices.IndexFunc(p.groups, func(g []int) bool { return p.machine.Devices[g[0]].Name == name })
}

func (p *program) link(name string) int {
	return slices.IndexFunc(p.links, func(l Link) bool { return l.Name == name })
}

func (p *program) classesOf(items []Class) (errs []error) {
	if len(items) == 0 {
		items = []Class{{}}
	}
	sum := 0.0
	for _, c := range items {
		bad := func(f float64) bool { return f < 0 || math.IsNaN(f) || math.IsInf(f, 0) }
		if bad(c.Weight) || bad(c.Time) || bad(c.Bytes) {
			errs = append(errs, fmt.Errorf("items of class %s: a weight or a factor is negative or not finite", c.Name))
		}
		sum += or1(c.Weight)
		p.classes = append(p.classes, classProg{c.Name, sum, or1(c.Time), or1(c.Bytes)})
	}
	for i := range p.classes {
		p.classes[i].upTo /= sum
	}
	return errs
}

func or1(f float64) float64 {
	if f == 0 {
		return 1
	}
	return f
}

// node compiles what a node costs, but for what it reads.
func (p *program) node(i int, c *Node) error {
	n := &p.nodes[i]
	if err := c.check(); err != nil {
		return err
	}
	if !n.work && (len(c.Steps) > 0 || len(c.Makes) > 0 || len(c.Scratch) > 0 || c.Fails != 0) {
		return fmt.Errorf("a %s has no calls that could cost something", p.t.Nodes[i].Kind)
	}
	n.fails, n.lanes = c.Fails, c.Lanes
	var total float64
	var length []float64
	for k, st := range c.Steps {
		s := stepProg{seconds: st.Seconds, spread: st.Spread, cores: st.Cores, group: -1, link: -1, exclusive: st.Exclusive, bytes: float64(st.LinkBytes)}
		link := st.Link
		if st.Device != "" {
			if s.group, s.pool = p.poolOf(st.Device); s.pool == 0 {
				s.group = p.group(st.Device)
			}
			if s.group < 0 {
				return fmt.Errorf("step %d runs on device %q, which the machine has not", k+1, st.Device)
			}
			if link == "" {
				link = p.machine.Devices[p.groups[s.group][0]].Link
			}
		}
		if st.LinkBytes > 0 {
			if s.link = p.link(link); s.link < 0 {
				return fmt.Errorf("step %d sends over link %q, which the machine has not", k+1, link)
			}
			if st.Link == "" {
				var err error
				if s.links, err = p.linksOf(s.group, s.pool); err != nil {
					return fmt.Errorf("step %d: %w", k+1, err)
				}
			}
		}
		l := st.Seconds
		if s.link >= 0 && p.links[s.link].BytesPerSecond > 0 {
			l = max(l, s.bytes/p.links[s.link].BytesPerSecond)
		}
		length = append(length, l)
		total += l
		if k > 0 && s.exclusive && s.group >= 0 {
			before := &n.steps[k-1]
			before.keeps = before.exclusive && before.group == s.group
		}
		n.steps = append(n.steps, s)
	}
	for _, b := range c.Scratch {
		n.mark(length, total, b.From, mark{do: bearTemp, arg: len(n.scratch)})
		n.mark(length, total, or1(b.Until), mark{do: killTemp, arg: len(n.scratch)})
		n.scratch = append(n.scratch, space{b.Space, b.Bytes})
	}
	for _, b := range c.Makes {
		id := len(p.bufs)
		p.bufs = append(p.bufs, bufProg{space: space{b.Space, b.Bytes}, name: b.Name, maker: i})
		n.made = append(n.made, id)
		n.mark(length, total, b.From, mark{do: bear, arg: id})
		if err := p.readersOf(id, b.Readers); err != nil {
			return fmt.Errorf("buffer %s: %w", b.Name, err)
		}
	}
	return nil
}

// mark puts a mark where a fraction of the call is: a beginning at the end of one
// step belongs to the next, an end to the one before.
func (n *nodeProg) mark(length []float64, total, at float64, m mark) {
	begin := m.do.begins()
	to := &n.last
	switch left := at * total; {
	case begin && at <= 0:
		to = &n.first
	case at < 1 && total > 0:
		const hair = 1e-5 // of a step: fractions in a file have few digits
		for i, l := range length {
			if l == 0 || left > l*(1+hair) || begin && left > l*(1-hair) {
				left = max(left-l, 0)
				continue
			}
			m.at = left / l
			to = &n.steps[i].marks
			break
		}
	}
	*to = append(*to, m)
	// What ends at a moment makes room for what begins then, but at the end of the
	// call, where the output is there before the input goes.
	slices.SortStableFunc(*to, func(a, b mark) int {
		if c := cmp.Compare(a.at, b.at); c != 0 || a.do.begins() == b.do.begins() {
			return c
		}
		if a.do.begins() == (to == &n.last) {
			return -1
		}
		return 1
	})
}

func (a action) begins() bool { return a == bear || a == bearTemp }
