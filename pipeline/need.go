package pipeline

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// Need states what one item makes a stage allocate, which its Needs method
// tells from the source's value before the item enters. From the statements of
// all stages and the graph the engine knows the item's peak. A stage that a
// graph with a budget runs and that states nothing can allocate nothing.
type Need struct {
	Scratch alloc.Amount // gone when the stage returns
	Makes   []Part       // what its output carries
	Ends    []string     // names of parts made before it that nothing reads once it and the others that end them have finished
}

// Part is a buffer, or several that live together, that a stage makes. It lives
// from the stage's start until every stage that names it in Ends has finished;
// if none does, until all the direct consumers of its maker have (those behind
// a join in place of the join). A part that is passed on through a stage that
// does not make it therefore has to be named in Ends by its true last readers.
// A join holds all that waits in it, until it has its tuple; that is counted where
// the stages behind it have Uses. Those that have none read all of their input.
// What a go-streams sink or Collect is given lives until the item has left.
// EndParts ends a part earlier than was stated.
type Part struct {
	Name  string
	Bytes alloc.Amount
}

// plan is what admission knows of a component of the graph, and the needs that it
// has evaluated.
type plan struct {
	*rules.Plan
	stages []*station

	mu    sync.Mutex
	known map[string]*shape // by equal needs
	key   []byte
}

// shape is the needs of an item, evaluated over the plan.
type shape struct {
	*rules.Shape
	stated []StageNeed // what they were made of
}

// without is the shape when no stage behind the one of bit reads the named parts.
func (s *shape) without(bit uint64, names []string) *shape {
	return &shape{s.Without(bit, names), s.stated}
}

func newPlan(rp *rules.Plan, stages []*station) *plan {
	for i, s := range stages {
		s.bit = rp.Bit(i)
	}
	return &plan{Plan: rp, stages: stages, known: make(map[string]*shape)}
}

// shapeOf is what the item of a source's value needs.
func (p *plan) shapeOf(job any, it *item) (*shape, error) {
	needs := make([]Need, len(p.stages))
	for i, s := range p.stages {
		need, err := s.ask(job, it)
		if err != nil {
			return nil, &StageError{Stage: s.node.name, Key: it.key, Err: fmt.Errorf("state needs: %w", err)}
		}
		needs[i] = need
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = p.key[:0]
	for i := range needs {
		p.key = needs[i].appendTo(p.key)
	}
	if s := p.known[string(p.key)]; s != nil {
		return s, nil
	}
	if len(p.known) >= 64 {
		clear(p.known)
	}
	s := &shape{Shape: p.Evaluate(ruled(needs))}
	for i := range needs {
		if st := p.stages[i]; st.states() {
			s.stated = append(s.stated, StageNeed{st.node.name, needs[i]})
		}
	}
	p.known[string(p.key)] = s
	return s, nil
}

// states reports whether the stage says what it needs.
func (s *station) states() bool { return s.node.needs != nil || s.node.needsIn != nil }

// ask is what the stage says that it needs for the item of job.
func (s *station) ask(job any, it *item) (need Need, err error) {
	if !s.states() {
		return need, nil
	}
	if err := guard(func() {
		if s.node.needsIn != nil {
			need = s.node.needsIn(&call{st: s, item: it}, job)
		} else {
			need = s.node.needs(job)
		}
	}); err != nil {
		return need, err
	}
	return need, need.check()
}

// needsOf is what the stages state of an item, for listeners. What cannot be
// asked is left out.
func (r *run) needsOf(it *item, job any) (out []StageNeed) {
	if it.shape != nil {
		return it.shape.stated
	}
	for _, s := range r.stations {
		if s.part != it.part || !s.states() {
			continue
		}
		if need, err := s.ask(job, it); err == nil {
			out = append(out, StageNeed{s.node.name, need})
		}
	}
	return out
}

func (n *Need) check() error {
	bad := func(a alloc.Amount) bool { return a != a.Max(alloc.Amount{}) }
	if bad(n.Scratch) {
		return fmt.Errorf("scratch of %v is negative", n.Scratch)
	}
	for _, p := range n.Makes {
		if bad(p.Bytes) {
			return fmt.Errorf("part %s of %v is negative", p.Name, p.Bytes)
		}
	}
	return nil
}

// appendTo writes the need so that equal ones are equal bytes.
func (n *Need) appendTo(b []byte) []byte {
	amount := func(a *alloc.Amount) {
		for i, v := range a {
			if v != 0 {
				b = append(b, byte(i+1))
				b = binary.AppendVarint(b, v)
			}
		}
		b = append(b, 0)
	}
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	amount(&n.Scratch)
	b = binary.AppendUvarint(b, uint64(len(n.Makes)))
	for i := range n.Makes {
		text(n.Makes[i].Name)
		amount(&n.Makes[i].Bytes)
	}
	b = binary.AppendUvarint(b, uint64(len(n.Ends)))
	for _, s := range n.Ends {
		text(s)
	}
	return b
}

// ruled is the needs in the words of the rules.
func ruled(needs []Need) []rules.Need {
	out := make([]rules.Need, len(needs))
	for i, n := range needs {
		out[i] = rules.Need{Scratch: n.Scratch, Ends: n.Ends}
		for _, p := range n.Makes {
			out[i].Makes = append(out[i].Makes, rules.Part(p))
		}
	}
	return out
}

// guard calls fn and returns a panic of it as an error.
func guard(fn func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	fn()
	return nil
}
