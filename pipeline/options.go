package pipeline

import (
	"fmt"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// Option is an option of New.
type Option interface{ applyGraph(*Graph) }

// NodeOption is an option of Via, the joins, the sources and the sinks.
type NodeOption interface{ applyNode(*node) }

type graphOption func(*Graph)

func (o graphOption) applyGraph(g *Graph) { o(g) }

type nodeOption func(*node)

func (o nodeOption) applyNode(n *node) { o(n) }

// Policy says what the failure of an item does.
type Policy uint8

const (
	// StopAll ends the run with the first error.
	StopAll Policy = iota
	// FailKey lets the other items go on.
	FailKey
)

// String is "stop-all" or "fail-key".
func (p Policy) String() string {
	if p == FailKey {
		return "fail-key"
	}
	return "stop-all"
}

// Unbounded as a capacity lets a queue grow without end.
const Unbounded = rules.Unbounded

// Budget limits what the items in flight may hold in a space at any moment, in
// bytes; 0 is no limit. See the package's documentation on memory.
func Budget(space alloc.Space, bytes int64) Option {
	return graphOption(func(g *Graph) {
		if !space.Valid() || bytes < 0 {
			g.faultLocked(fmt.Errorf("budget of %d bytes in %v: out of range", bytes, space))
			return
		}
		g.limit[space] = bytes
	})
}

// WithBudget makes the graph reserve from a budget that others use too, in
// place of one of its own.
func WithBudget(b *alloc.Budget) Option {
	return graphOption(func(g *Graph) { g.shared = b })
}

// DefaultPatience is the Patience of a graph that is not given another.
const DefaultPatience = time.Minute

// Patience is how long an item waits to enter while all before it have left and
// what was theirs stays charged to the budget, because a sink has retained it,
// and none of it is given back. After that it fails with an *AdmitError. 0 is for
// ever: for sinks that hold the whole budget for longer and release it in the
// end. A budget of WithBudget is always waited for, as others may hold it.
func Patience(d time.Duration) Option {
	return graphOption(func(g *Graph) {
		if d < 0 {
			g.faultLocked(fmt.Errorf("a patience of %v is negative", d))
			return
		}
		g.patience = d
	})
}

// OnError sets the policy; StopAll is the default.
func OnError(p Policy) Option { return graphOption(func(g *Graph) { g.policy = p }) }

// Listen adds listeners, which hear every Event of the run.
func Listen(l ...Listener) Option {
	return graphOption(func(g *Graph) { g.listeners = append(g.listeners, l...) })
}

// FailOption is an option of a graph and of a node alike.
type FailOption func(Key, error)

func (o FailOption) applyGraph(g *Graph) { g.onFail = append(g.onFail, o) }
func (o FailOption) applyNode(n *node)   { n.g.onFail = append(n.g.onFail, o) }

// OnFail is told of each item that fails, once, with the error that failed it.
// Calls come one at a time from any goroutine; they must not wait for the graph.
// Under StopAll it is not called: Run returns the error. It may be given to New
// or to a sink, with the same effect.
func OnFail(fn func(Key, error)) FailOption { return fn }

// Name gives a node its name in the graph, in events, reports and drawings.
func Name(name string) NodeOption {
	return nodeOption(func(n *node) { n.name, n.named = name, true })
}

// Workers is how many goroutines run the stage; 1 if it is not given.
func Workers(count int) NodeOption {
	return nodeOption(func(n *node) {
		switch {
		case count < 1:
			n.odd = append(n.odd, fmt.Sprintf("%d workers are less than 1", count))
		case n.kind != kindStage && n.kind != kindSink:
			n.odd = append(n.odd, "it has no workers to set")
		default:
			n.workers = count
		}
	})
}

// Capacity is how many values may wait in the queue that the stage or sink
// reads from; 1 if it is not given. 0 is taken as 1; Unbounded is allowed.
func Capacity(count int) NodeOption {
	return nodeOption(func(n *node) {
		switch {
		case count < 0 && count != Unbounded:
			n.odd = append(n.odd, fmt.Sprintf("a capacity of %d is negative", count))
		case !n.hasQueue():
			n.odd = append(n.odd, "it has no queue whose capacity could be set")
		case count == 0:
			n.capacity = 1
		default:
			n.capacity = count
		}
	})
}

// Ordered makes the stage yield its values in the order in which their items
// entered the graph, however many workers it has. Values that are early wait
// in the stage.
func Ordered() NodeOption {
	return nodeOption(func(n *node) {
		if n.kind != kindStage {
			n.odd = append(n.odd, "only stages can be ordered")
			return
		}
		n.ordered = true
	})
}

// Retry runs the stage up to n more times on an item when it returns an error
// that says Temporary() bool is true. The input stays alive for the next try:
// Done and Drop have no effect but in the last one. A backoff, if given, is
// waited before the first repetition and doubles from one to the next.
func Retry(n int, backoff ...time.Duration) NodeOption {
	return nodeOption(func(nd *node) {
		switch {
		case n < 0:
			nd.odd = append(nd.odd, fmt.Sprintf("%d retries are less than 0", n))
		case nd.kind != kindStage && nd.kind != kindSink:
			nd.odd = append(nd.odd, "only stages and function sinks can be retried")
		default:
			nd.retries = n
			if len(backoff) > 0 {
				nd.backoff = backoff[0]
			}
		}
	})
}
