package plan

import (
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// FromTrace takes the costs of a graph's nodes from one recording of a run: what
// a call takes by itself, though others ran beside it, the cores that it keeps
// busy, what is done in turns, the memory that it makes, and what the stages stated
// of their needs. [FitTrace] says how, and what is worth knowing of the result.
func FromTrace(t *trace.Trace) (*Costs, error) {
	f, err := FitTrace(t)
	if err != nil {
		return nil, err
	}
	return &f.Costs, nil
}

// Fit is what a recording says of costs.
type Fit struct {
	Costs Costs
	// Notes are what somebody who relies on the costs should know: calls that were
	// left out, what could not be told from this recording.
	Notes []string
	// Residual is by how much the processor time of the run differs from what its
	// calls account for with the cores that were fitted, as a fraction: the mean of the
	// absolute differences over the run. 0 without samples.
	Residual float64
}

// FitTrace is FromTrace with an account of what was done.
//
// Calls that have failed, were repeated or had not ended do not count; nor does
// the first of a node where it took more than half as long again as is usual,
// because it paid for pages and tables that all others find.
//
// What is done in turns is known by scratch memory: where parts of calls that have
// it never overlap, though the calls do, and begin when another such part ends, they
// exclude each other. They become steps on a device of the name "turn", and what
// calls waited for it does not count as their work.
//
// The cores of each step are those for which the processor time of the run, which
// the recording has at many moments, is that of the steps that were at work: least
// squares, no step below 0 or above the cores that there are, all together never
// above. The work of a step is the time that it took, at the speed that it had
// beside the others that were at work, by the rule of the simulator.
//
// Buffers come and go at fractions of their calls' work, which are means over the
// calls. Items of which some take much more memory than others become classes.
//
// Cards of the recording are the pool "cards": what calls on them cost is told by the
// card's own time, and the calls of one card slow each other down as much as explains
// best how long they took.
//
// A recording of which no item came to its end is an error.
func FitTrace(t *trace.Trace) (*Fit, error) {
	f := &fit{t: t}
	f.machine()
	f.cards()
	if err := f.gather(); err != nil {
		return nil, fmt.Errorf("costs from a recording: %w", err)
	}
	f.lives()
	f.turns()
	f.pieces()
	f.fitCores()
	f.cardWorks()
	f.classes()
	f.warmUp()
	for i := range f.nodes {
		f.measure(&f.nodes[i])
	}
	f.out.Costs.Nodes = make(map[string]Node)
	for i, n := range t.Graph.Nodes {
		if n.Kind != pipeline.KindSource && n.Kind != pipeline.KindJoin {
			f.out.Costs.Nodes[n.Name] = f.node(&f.nodes[i])
		}
	}
	f.cardNodes()
	f.needs()
	return &f.out, nil
}

// fit is a recording on its way to costs.
type fit struct {
	t     *trace.Trace
	out   Fit
	nodes []fitNode
	calls []fitCall // as in the trace
	class []int     // of items
	sizes []Class   // of classes; Time and Bytes are against the first
	cums  []cum     // by device, the first for none; the last for steps without cores
	cores float64
	spare bool // there is a device for what is done in turns

	pool   []int         // cards, of the recording's devices
	spaces []alloc.Space // of the devices, as recorded
	width  float64       // calls that a card does at once as fast as one
}

// fitNode is what is known of one node.
type fitNode struct {
	name  string
	calls []int // in order of their beginning
	slots map[string]*slot
	order []*slot // by their usual beginning
	makes []*made
	// What is between sections are the even steps, the sections the odd ones.
	sections [][]*slot
	steps    []fitStep
	lengths  []float64 // of steps, in seconds; 0: left out
	spreads  []float64
}

// fitStep is a part of a node's calls.
type fitStep struct {
	section bool // one that is done in turns
	cores   float64
	id      int // among all steps
}

// fitCall is one call.
type fitCall struct {
	good  bool
	parts []piece   // by step
	work  []float64 // by step, in seconds by itself
}

// piece is when a step of a call was at work, in seconds since the run began.
type piece struct{ from, to float64 }

func (f *fit) notef(format string, args ...any) {
	f.out.Notes = append(f.out.Notes, fmt.Sprintf(format, args...))
}
