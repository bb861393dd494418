package pipeline

import (
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// Topology is a graph as data: what a recording keeps of it, and what a
// simulation runs. It can be written as JSON and as TOML. A node's place in
// Nodes is its index: Preds and whatever else refers to nodes uses that, and a
// node stands behind its predecessors.
type Topology struct {
	Name   string       `json:"name" toml:"name"`
	Policy string       `json:"on_error" toml:"on-error"` // "stop-all" or "fail-key"
	Budget alloc.Amount `json:"budget" toml:"-"`          // by space; 0: no limit there
	Shared bool         `json:"shared_budget,omitempty" toml:"shared-budget,omitempty"`
	Nodes  []Node       `json:"nodes" toml:"node"`
}

// The kinds of nodes in a Topology. Reports and drawings call the last three
// "sink".
const (
	KindSource  = "source"
	KindStage   = "stage"
	KindJoin    = "join"
	KindSink    = "sink"    // ToFunc
	KindStream  = "stream"  // To
	KindCollect = "collect" // Collect
)

// Node is one node of a Topology.
type Node struct {
	Name     string        `json:"name" toml:"name"`
	Kind     string        `json:"kind" toml:"kind"`
	Preds    []int         `json:"preds,omitempty" toml:"preds,omitempty"` // by input slot
	Workers  int           `json:"workers,omitempty" toml:"workers,omitzero"`
	Capacity int           `json:"capacity,omitempty" toml:"capacity,omitzero"` // −1: unbounded; 0: it has no queue
	Ordered  bool          `json:"ordered,omitempty" toml:"ordered,omitempty"`
	Retries  int           `json:"retries,omitempty" toml:"retries,omitzero"`
	Backoff  time.Duration `json:"backoff_ns,omitempty" toml:"backoff,omitzero"`
	Restarts int           `json:"restarts,omitempty" toml:"restarts,omitzero"` // of a source's items
	Uses     bool          `json:"uses,omitempty" toml:"uses,omitempty"`        // it says which buffers of its input it reads
}

// Index is the place of the node of that name; −1 if there is none.
func (t *Topology) Index(name string) int {
	return slices.IndexFunc(t.Nodes, func(n Node) bool { return n.Name == name })
}

// Succs are the consumers of each node, each as often as it takes its values, in
// the order in which they are served.
func (t *Topology) Succs() [][]int {
	out := make([][]int, len(t.Nodes))
	for i, n := range t.Nodes {
		for _, p := range n.Preds {
			out[p] = append(out[p], i)
		}
	}
	return out
}

// Topology is the graph as it is set now.
func (g *Graph) Topology() Topology {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.topologyLocked()
}

func (g *Graph) topologyLocked() Topology {
	t := Topology{Name: g.name, Policy: g.policy.String(), Budget: g.limits(), Shared: g.shared != nil}
	if g.shared != nil {
		t.Budget = g.shared.Limit()
	}
	kinds := [...]string{KindSource, KindStage, KindJoin, KindSink, KindStream, KindCollect}
	for _, n := range g.nodes {
		nd := Node{
			Name: n.name, Kind: kinds[n.kind], Ordered: n.ordered,
			Retries: n.retries, Backoff: n.backoff, Restarts: n.restarts, Uses: n.uses != nil,
		}
		if n.hasQueue() {
			nd.Workers, nd.Capacity = n.workers, n.capacity
		}
		for _, p := range n.preds {
			nd.Preds = append(nd.Preds, p.id)
		}
		t.Nodes = append(t.Nodes, nd)
	}
	return t
}
