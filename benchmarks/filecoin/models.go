package main

import (
	_ "embed" // of the model files
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/stages"
)

//go:embed engine.toml
var engineGraph string

//go:embed engine-costs.toml
var engineCosts string

//go:embed porep-32gib.toml
var standardCosts string

// perProof is the partitions of a 32 GiB PoRep.
const perProof = 10

// tickets is a space that is not on the machine: a byte of it is a partition of a
// proof that is being made, where a run bounds how many proofs are.
var tickets = alloc.Device(7)

// engine is a graph with its costs.
type engine struct {
	graph pipeline.Topology
	costs *plan.Costs
}

// publishedEngine is the published engine in its last phase.
func publishedEngine() (engine, error) { return load("engine-costs.toml", engineCosts, engineGraph) }

// standardEngine is Snarkline's standard pipeline on the published machine.
func standardEngine() (engine, error) {
	return load("porep-32gib.toml", standardCosts, stages.StandardTOML)
}

func load(name, costs, graph string) (e engine, err error) {
	if e.costs, err = plan.ReadModel(strings.NewReader(costs)); err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	if e.graph, err = plan.TopologyOf(graph); err != nil {
		return e, fmt.Errorf("the graph of %s: %w", name, err)
	}
	return e, nil
}

// with is the same engine with other costs of some nodes.
func (e engine) with(nodes map[string]plan.Node) engine {
	c := *e.costs
	c.Nodes = maps.Clone(c.Nodes)
	maps.Copy(c.Nodes, nodes)
	return engine{e.graph, &c}
}

// on is the same engine on another machine.
func (e engine) on(change func(*plan.Machine)) engine {
	c := *e.costs
	c.Machine.Links, c.Machine.Devices = slices.Clone(c.Machine.Links), slices.Clone(c.Machine.Devices)
	change(&c.Machine)
	return engine{e.graph, &c}
}

// scaled is the same engine with the seconds of one node multiplied.
func (e engine) scaled(node string, factor float64) engine {
	n := e.costs.Nodes[node]
	n.Steps = slices.Clone(n.Steps)
	for i := range n.Steps {
		n.Steps[i].Seconds *= factor
	}
	return e.with(map[string]plan.Node{node: n})
}

// run is a run of the published engine.
type run struct {
	pw, gw   int // partition workers; workers of the card
	capacity int // of the channel before the card; 0: as many as partition workers
	proofs   int
	jobs     int // proofs that are made at once; 0: all
	// early is the published fault F7: the permit of a partition worker comes back
	// when the synthesis ends, and not when the channel has taken what it made.
	early bool
	// late is F8: all that a partition has made stays until it is done.
	late   bool
	budget int64 // of host memory, for admission; 0: none
}

// predict simulates it.
func (e engine) predict(r run) (*plan.Prediction, error) {
	set := plan.Settings{Items: r.proofs * perProof, Rules: plan.Rules{ReleaseLate: r.late}}
	capacity := r.capacity
	if capacity == 0 {
		capacity = r.pw
	}
	workers := r.pw
	if r.early {
		// The task of a finished partition waits with what it made, and no permit.
		workers = set.Items
		set.Rules.Semaphore, set.Rules.Until = r.pw, "synthesize"
	}
	set.Stages = map[string]pipeline.StageSetting{
		"synthesize": {Workers: workers},
		"prove":      {Workers: r.gw, Capacity: pipeline.Count(capacity)},
	}
	set.Budget = map[string]pipeline.Size{}
	if r.budget > 0 {
		set.Budget[alloc.Host.String()] = pipeline.Size(r.budget)
	}
	if r.jobs > 0 && r.jobs < r.proofs {
		n := e.costs.Nodes["synthesize"]
		n.Makes = append(slices.Clone(n.Makes), plan.Buffer{Name: "ticket", Space: tickets, Bytes: 1, Readers: []plan.Reader{{Node: "finish"}}})
		e = e.with(map[string]plan.Node{"synthesize": n})
		set.Budget[tickets.String()] = pipeline.Size(r.jobs * perProof)
	}
	s, err := plan.NewSimulator(e.graph, e.costs)
	if err != nil {
		return nil, err
	}
	p, err := s.Run(set)
	if err != nil {
		return nil, err
	}
	if p.Err != "" {
		return nil, fmt.Errorf("simulate %+v: %s", r, p.Err)
	}
	return p, nil
}

// gib is bytes in GiB.
func gib(n int64) float64 { return float64(n) / float64(alloc.GiB) }

// rss is the peak of resident host memory in GiB: pinned memory is host memory.
func (e engine) rss(p *plan.Prediction) float64 {
	base := e.costs.Machine.Base
	if p.Killed != nil && p.Killed.Space == alloc.Host {
		return gib(p.Killed.Bytes)
	}
	return gib(p.Peak[alloc.Host] + base[alloc.Host] + base[alloc.Pinned])
}

// perProofOf is the time of a run by its proofs, in seconds.
func perProofOf(p *plan.Prediction) float64 {
	return p.Wall.Seconds() / float64(p.Items) * perProof
}

// callOf is how long a call of a stage takes, in seconds, waiting for a device
// included.
func callOf(p *plan.Prediction, stage string) float64 {
	s := p.Stage(stage)
	return s.Busy.Seconds() / float64(s.Calls)
}

// spread is the same engine with the seconds of one node drawn for each item.
func (e engine) spread(node string, sigma float64) engine {
	n := e.costs.Nodes[node]
	n.Steps = slices.Clone(n.Steps)
	for i := range n.Steps {
		n.Steps[i].Spread = sigma
	}
	return e.with(map[string]plan.Node{node: n})
}
