package plan

import (
	"errors"
	"time"

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

type options struct{ record bool }

// Record has the prediction carry a trace.
func Record() Option { return func(o *options) { o.record = true } }

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
	t pipeline.Topology
	o options
}

// NewSimulator makes a simulator of a graph as data, which (*pipeline.Graph).Topology
// and a trace have. It keeps c, which must not change.
func NewSimulator(t pipeline.Topology, c *Costs, opts ...Option) (*Simulator, error) {
	return nil, errors.New("not built yet")
}

// Run simulates one run.
func (s *Simulator) Run(set Settings) (*Prediction, error) {
	return nil, errors.New("not built yet")
}
