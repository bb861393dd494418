package rules

// Kind is what a node does.
type Kind uint8

// The kinds.
const (
	Source  Kind = iota
	Stage        // works on a value and yields another
	Join         // pairs values by key
	Sink         // works on a value and yields nothing
	Stream       // gives values away
	Collect      // keeps values
)

// String is what reports call the kind; the last three are all sinks.
func (k Kind) String() string {
	switch k {
	case Source:
		return "source"
	case Stage:
		return "stage"
	case Join:
		return "join"
	}
	return "sink"
}

// HasQueue reports whether values wait for nodes of the kind in a queue.
func (k Kind) HasQueue() bool { return k != Source && k != Join }

// MaxJoin is the number of inputs that a join can have.
const MaxJoin = 5

// Node is a place of a graph. Preds are its predecessors by slot; they stand
// before it. Uses is set where the node says what it reads of its input: it then
// holds nothing else of it.
type Node struct {
	Kind    Kind
	Ordered bool
	Uses    bool
	Preds   []int
}

// Link is one consumer of a node, at one of its inputs.
type Link struct{ To, Slot int }

// Topology is a graph and what hangs together in it.
type Topology struct {
	Nodes []Node
	Outs  [][]Link // in the order in which they are served
	Parts []Component
	Of    []int // the component of each node
}

// Component is a part of a graph that hangs together: its items have an order,
// and keys that must not meet where there are joins. All are indices, rising.
type Component struct {
	Sources, Joins, Ordered []int
	Work                    []int // stages and sinks
}

// NewTopology finds the consumers and the components.
func NewTopology(nodes []Node) *Topology {
	t := &Topology{Nodes: nodes, Outs: make([][]Link, len(nodes)), Of: make([]int, len(nodes))}
	root := make([]int, len(nodes))
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	for i, n := range nodes {
		root[i] = i
		for slot, p := range n.Preds {
			t.Outs[p] = append(t.Outs[p], Link{i, slot})
			a, b := find(i), find(p)
			root[max(a, b)] = min(a, b)
		}
	}
	for i, n := range nodes {
		r := find(i)
		if r == i {
			t.Of[i] = len(t.Parts)
			t.Parts = append(t.Parts, Component{})
		} else {
			t.Of[i] = t.Of[r]
		}
		c := &t.Parts[t.Of[i]]
		switch n.Kind {
		case Source:
			c.Sources = append(c.Sources, i)
		case Join:
			c.Joins = append(c.Joins, i)
		default:
			c.Work = append(c.Work, i)
		}
		if n.Ordered {
			c.Ordered = append(c.Ordered, i)
		}
	}
	return t
}

// Behind calls yield with each node that takes the values of n, joins replaced by
// what is behind them; a node that does so twice comes twice.
func (t *Topology) Behind(n int, yield func(int)) {
	for _, l := range t.Outs[n] {
		if t.Nodes[l.To].Kind == Join {
			t.Behind(l.To, yield)
		} else {
			yield(l.To)
		}
	}
}

// through calls yield with each join that the values of n wait in, be it in the
// tuple of a join before it; one that they come to twice comes twice.
func (t *Topology) through(n int, yield func(join int)) {
	for _, l := range t.Outs[n] {
		if t.Nodes[l.To].Kind == Join {
			yield(l.To)
			t.through(l.To, yield)
		}
	}
}

// holds reports whether a node behind a join may use less than the join holds.
func (t *Topology) holds(join int) (some bool) {
	t.Behind(join, func(n int) { some = some || t.Nodes[n].Uses })
	return some
}
