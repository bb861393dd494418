package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Simulated is a Runner that predicts. Besides workers, capacities and budgets
// it takes the choices
//
//	cores    how many cores the machine has
//	memory   how much host memory, in bytes
//	items    how many items run
//	devices  how many devices there are, like the first
//	links    how many links they share, from one for each
//	link     what a link carries in a second, in bytes
//	device-memory  what each device offers, in bytes: to keys and to items
//
// and those that When has given costs for. It makes as many runs at once as Go
// uses processors.
type Simulated struct {
	graph pipeline.Topology
	set   Settings
	costs *Costs
	when  map[string]map[string]*Costs // by choice and value

	mu    sync.Mutex
	idle  map[string][]*Simulator // by the choices they are for
	print string
}

// NewSimulated makes a runner of a graph as data, with what it costs, and with
// how many items run, from which seed, by which rules. What the points set wins
// over set.Settings, which wins over the graph.
func NewSimulated(graph pipeline.Topology, c *Costs, set Settings) (*Simulated, error) {
	s := &Simulated{graph: graph, set: set, costs: c, idle: make(map[string][]*Simulator)}
	if _, err := NewSimulator(graph, c); err != nil {
		return nil, err
	}
	return s, nil
}

// When has the costs c stand in for the others at points that choose value for
// the axis, such as "device" "cpu". It is called before the first run.
func (s *Simulated) When(axis, value string, c *Costs) error {
	if _, err := NewSimulator(s.graph, c); err != nil {
		return fmt.Errorf("costs for %s=%s: %w", axis, value, err)
	}
	if s.when == nil {
		s.when = make(map[string]map[string]*Costs)
	}
	if s.when[axis] == nil {
		s.when[axis] = make(map[string]*Costs)
	}
	s.when[axis][value] = c
	return nil
}

// Vary is the same runner on another machine.
func (s *Simulated) Vary(change func(*Machine)) (*Simulated, error) {
	other := func(c *Costs) *Costs {
		d := *c
		change(&d.Machine)
		return &d
	}
	v, err := NewSimulated(s.graph, other(s.costs), s.set)
	if err != nil {
		return nil, err
	}
	for axis, values := range s.when {
		for value, c := range values {
			if err := v.When(axis, value, other(c)); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (s *Simulated) machine() Machine { return s.costs.Machine }

// Simulates is true.
func (s *Simulated) Simulates() bool { return true }

// Parallel is the number of processors.
func (s *Simulated) Parallel() int { return runtime.GOMAXPROCS(0) }

// Meaning is the graph, the costs, and the items and rules of a run.
func (s *Simulated) Meaning() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.print == "" {
		// Nothing in these types has no JSON; maps are written in order.
		text, _ := json.Marshal([]any{s.graph, s.costs, s.when, s.set})
		sum := sha256.Sum256(text)
		s.print = hex.EncodeToString(sum[:8])
	}
	return map[string]string{"model": s.print}
}

// Check finds choices that the runner does not know.
func (s *Simulated) Check(space Space) error {
	for _, a := range space.Axes {
		if a.kind() != choiceAxis {
			continue
		}
		for _, v := range a.Values {
			if _, _, err := s.choose(map[string]string{a.Name: v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Knows finds choices of a point that the runner does not know.
func (s *Simulated) Knows(p Point) error {
	_, _, err := s.choose(p.Choices)
	return err
}

// choose is what the choices of a point make of the costs and the settings.
func (s *Simulated) choose(choices map[string]string) (*Costs, Settings, error) {
	c, set := s.costs, s.set
	for _, axis := range slices.Sorted(maps.Keys(s.when)) {
		if v, ok := choices[axis]; ok {
			other, ok := s.when[axis][v]
			if !ok {
				return nil, set, fmt.Errorf("a simulation knows no %s %q, only %s", axis, v, strings.Join(slices.Sorted(maps.Keys(s.when[axis])), ", "))
			}
			c = other
		}
	}
	d := *c
	for _, axis := range slices.Sorted(maps.Keys(choices)) {
		v := choices[axis]
		var err error
		switch axis {
		case "cores":
			if d.Machine.Cores, err = strconv.ParseFloat(v, 64); err == nil && d.Machine.Cores <= 0 {
				err = fmt.Errorf("%q: want more than 0", v)
			}
		case "memory":
			d.Machine.Memory[alloc.Host], err = alloc.ParseBytes(v)
		case "items":
			if set.Items, err = strconv.Atoi(v); err == nil && set.Items < 1 {
				err = fmt.Errorf("%q: want 1 at least", v)
			}
		default:
			if s.when[axis] == nil && !slices.Contains(cardChoices, axis) {
				known := append([]string{"cores", "items", "memory"}, append(slices.Sorted(slices.Values(cardChoices)), slices.Sorted(maps.Keys(s.when))...)...)
				err = fmt.Errorf("a simulation has no such choice (it has %s)", strings.Join(known, ", "))
			}
		}
		if err != nil {
			return nil, set, fmt.Errorf("%s: %w", axis, err)
		}
	}
	if err := s.chooseCards(&d, &set, choices); err != nil {
		return nil, set, err
	}
	return &d, set, nil
}

// Run predicts the run of a point.
func (s *Simulated) Run(ctx context.Context, p Point) (*Outcome, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	pred, err := s.predict(ctx, p)
	if err != nil {
		return nil, err
	}
	return pred.Outcome(), nil
}

// Predict is Run with all that the simulation says.
func (s *Simulated) Predict(p Point, opts ...Option) (*Prediction, error) {
	return s.predict(context.Background(), p, opts...)
}

// predict is Predict until ctx ends.
func (s *Simulated) predict(ctx context.Context, p Point, opts ...Option) (*Prediction, error) {
	c, set, err := s.choose(p.Choices)
	if err != nil {
		return nil, err
	}
	set.Settings = set.Merge(p.Settings)
	if len(opts) > 0 {
		sim, err := NewSimulator(s.graph, c, opts...)
		if err != nil {
			return nil, err
		}
		return sim.Run(set)
	}
	var key strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p.Choices)) {
		if k != "items" {
			fmt.Fprintf(&key, "%s=%s ", k, p.Choices[k])
		}
	}
	sim, err := s.take(key.String(), c)
	if err != nil {
		return nil, err
	}
	sim.o.ctx = ctx
	pred, err := sim.Run(set)
	sim.o.ctx = nil
	if err != nil {
		return nil, err // the simulator may be in any state
	}
	s.mu.Lock()
	s.idle[key.String()] = append(s.idle[key.String()], sim)
	s.mu.Unlock()
	return pred, nil
}

func (s *Simulated) take(key string, c *Costs) (*Simulator, error) {
	s.mu.Lock()
	if list := s.idle[key]; len(list) > 0 {
		sim := list[len(list)-1]
		s.idle[key] = list[:len(list)-1]
		s.mu.Unlock()
		return sim, nil
	}
	s.mu.Unlock()
	return NewSimulator(s.graph, c)
}

// neverFits is what a simulation says of an item that is too large for its budget.
const neverFits = "can never fit in the budget"

// Outcome is the prediction as a row of a sweep has it.
func (p *Prediction) Outcome() *Outcome {
	o := &Outcome{Items: p.Items, Wall: p.Wall, Throughput: p.Throughput, Latency: p.Latency.Mean,
		Door: p.Entry.Mean * time.Duration(p.Items), Peak: p.Peak}
	for _, s := range p.Stages {
		if s.Kind != "stage" {
			continue
		}
		o.Stages = append(o.Stages, StageOutcome{Name: s.Name, Workers: s.Workers, Capacity: s.Capacity,
			Busy: min(s.Use, 1), WaitOut: s.WaitOut, Made: s.Made, Full: s.Capacity > 0 && s.QueuePeak >= s.Capacity})
	}
	for _, u := range p.Use {
		o.Use = append(o.Use, UseOutcome{Name: u.Name, Kind: u.Kind, Busy: u.Fraction})
	}
	switch {
	case p.Killed != nil:
		o.Failure = &Failure{Kind: Killed, At: p.Killed.At, Text: p.Killed.String()}
	case p.Err != "":
		o.Failure = &Failure{Kind: Broken, Text: p.Err, At: p.Wall}
		if strings.Contains(p.Err, neverFits) {
			o.Failure.Kind = TooLarge
		}
	case p.Items == 0 && p.Failed > 0: // under fail-key a run goes on without them
		o.Failure = &Failure{Kind: Broken, Text: fmt.Sprintf("all %d items failed", p.Failed), At: p.Wall}
	}
	return o
}

// String says where the run needed more than there is.
func (k *Kill) String() string {
	text := fmt.Sprintf("%v of %v memory needed, there is %v", bytesText(k.Bytes), k.Space, bytesText(k.Limit))
	if len(k.Shares) > 0 {
		sh := k.Shares[0]
		text += fmt.Sprintf("; %s of %d items is %s at %s", bytesText(sh.Bytes), sh.Items, sh.State, sh.Stage)
	}
	return text
}

func bytesText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
