package pipeline

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/snarkline/snarkline/alloc"
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
// What a go-streams sink or Collect is given lives until the item has left.
// EndParts ends a part earlier than was stated.
type Part struct {
	Name  string
	Bytes alloc.Amount
}

// maxIdeals bounds the sets of finished stages that are looked at one by one.
const maxIdeals = 5000

// plan is what admission knows of a component of the graph: the order of its
// stages, and every set of stages that can have finished at some moment. Such a
// set is closed under predecessors (an ideal of the order). At each of them all
// the stages that are ready may be running at once, since nothing controls who
// starts first; the peak over all ideals is therefore what an item can need.
type plan struct {
	stages    []*station
	consumers []uint64 // direct ones, joins replaced by what is behind them
	before    []uint64 // direct predecessors, the same way
	later     []uint64 // all descendants
	keep      uint64   // sinks that may keep what they are given

	coarse bool // too many ideals, or too many stages for a word of bits
	ideals []uint64
	ready  []uint64
	next   [][]int32 // ideals with one more stage finished
	index  map[uint64]int32

	mu    sync.Mutex
	known map[string]*shape // by equal needs
	key   []byte
}

// shape is the needs of an item, evaluated over the plan.
type shape struct {
	plan    *plan
	best    []alloc.Amount // by ideal: the peak from there on
	parts   []livePart
	scratch []alloc.Amount
	stated  []StageNeed       // what the stages said
	fewer   map[string]*shape // by what has ended early; under the plan's mu
}

type livePart struct {
	name  string
	maker int
	ends  uint64
	bytes alloc.Amount
}

func newPlan(stages []*station) *plan {
	p := &plan{stages: stages, known: make(map[string]*shape)}
	if len(stages) > 64 {
		p.coarse = true
		return p
	}
	n := len(stages)
	p.consumers, p.before, p.later = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	at := make(map[*node]int, n)
	for i, s := range stages {
		at[s.node] = i
		s.bit = 1 << i
		if s.node.kind == kindStream || s.node.kind == kindCollect {
			p.keep |= s.bit
		}
	}
	for i, s := range stages {
		var behind func(*node)
		behind = func(nd *node) {
			for _, l := range nd.succs {
				if l.to.kind == kindJoin {
					behind(l.to)
					continue
				}
				p.consumers[i] |= 1 << at[l.to]
			}
		}
		behind(s.node)
	}
	for i := range stages {
		for rest := p.consumers[i]; rest != 0; rest &= rest - 1 {
			p.before[bits.TrailingZeros64(rest)] |= 1 << i
		}
	}
	// Nodes are added behind their predecessors, so one pass from the back does.
	for i := n - 1; i >= 0; i-- {
		p.later[i] = p.consumers[i]
		for rest := p.consumers[i]; rest != 0; rest &= rest - 1 {
			p.later[i] |= p.later[bits.TrailingZeros64(rest)]
		}
	}
	p.enumerate()
	return p
}

// enumerate finds the ideals, smaller ones first.
func (p *plan) enumerate() {
	p.index = map[uint64]int32{0: 0}
	p.ideals = []uint64{0}
	for i := 0; i < len(p.ideals); i++ {
		d := p.ideals[i]
		var ready uint64
		for s := range p.stages {
			if d&(1<<s) == 0 && p.before[s]&^d == 0 {
				ready |= 1 << s
			}
		}
		p.ready = append(p.ready, ready)
		var next []int32
		for rest := ready &^ p.keep; rest != 0; rest &= rest - 1 {
			e := d | rest&-rest
			j, known := p.index[e]
			if !known {
				if len(p.ideals) == maxIdeals {
					p.coarse = true
					p.ideals, p.ready, p.next, p.index = nil, nil, nil, nil
					return
				}
				j = int32(len(p.ideals))
				p.index[e] = j
				p.ideals = append(p.ideals, e)
			}
			next = append(next, j)
		}
		p.next = append(p.next, next)
	}
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
	s := p.evaluate(needs)
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

func (p *plan) evaluate(needs []Need) *shape {
	s := &shape{plan: p, scratch: make([]alloc.Amount, len(needs))}
	enders := make(map[string]uint64)
	for i := range needs {
		s.scratch[i] = needs[i].Scratch
		if len(p.stages) <= 64 {
			for _, name := range needs[i].Ends {
				enders[name] |= 1 << i
			}
		}
	}
	for i := range needs {
		for _, part := range needs[i].Makes {
			l := livePart{name: part.Name, maker: i, bytes: part.Bytes}
			if len(p.stages) <= 64 {
				// Only what runs behind the maker can end the part.
				if l.ends = enders[part.Name] & p.later[i]; l.ends == 0 {
					l.ends = p.consumers[i]
				}
			}
			s.parts = append(s.parts, l)
		}
	}
	if !p.coarse {
		s.weigh()
	}
	return s
}

// weigh finds the peak from each ideal on.
func (s *shape) weigh() {
	p := s.plan
	s.best = make([]alloc.Amount, len(p.ideals))
	for i := len(p.ideals) - 1; i >= 0; i-- {
		done, ready := p.ideals[i], p.ready[i]
		var cost alloc.Amount
		for _, l := range s.parts {
			if (done|ready)&(1<<l.maker) != 0 && l.ends&^done != 0 {
				cost = cost.Add(l.bytes)
			}
		}
		for rest := ready; rest != 0; rest &= rest - 1 {
			cost = cost.Add(s.scratch[bits.TrailingZeros64(rest)])
		}
		for _, j := range p.next[i] {
			cost = cost.Max(s.best[j])
		}
		s.best[i] = cost
	}
}

// without is s when no stage behind the one of bit reads the named parts.
func (s *shape) without(bit uint64, names []string) *shape {
	p := s.plan
	if p.coarse || bit == 0 {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := fmt.Sprint(bit, names)
	if known := s.fewer[key]; known != nil {
		return known
	}
	out := &shape{plan: p, scratch: s.scratch, parts: slices.Clone(s.parts)}
	for i := range out.parts {
		if slices.Contains(names, out.parts[i].name) {
			out.parts[i].ends &^= p.later[bits.TrailingZeros64(bit)]
		}
	}
	out.weigh()
	if s.fewer == nil {
		s.fewer = make(map[string]*shape)
	}
	s.fewer[key] = out
	return out
}

// after is the most that the item can still need at one moment when the stages
// of done have finished.
func (s *shape) after(done uint64) alloc.Amount {
	if !s.plan.coarse {
		return s.best[s.plan.index[done]]
	}
	// All that has not ended, as if it lived at once.
	var sum alloc.Amount
	for _, l := range s.parts {
		if l.ends == 0 || l.ends&^done != 0 {
			sum = sum.Add(l.bytes)
		}
	}
	for i, a := range s.scratch {
		if i >= 64 || done&(1<<i) == 0 {
			sum = sum.Add(a)
		}
	}
	return sum
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
