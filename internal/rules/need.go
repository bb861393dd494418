package rules

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/snarkline/snarkline/alloc"
)

// Need is what one item makes a stage allocate; pipeline.Need tells what it means.
type Need struct {
	Scratch alloc.Amount
	Makes   []Part
	Ends    []string
}

// Part is a buffer, or several that live together.
type Part struct {
	Name  string
	Bytes alloc.Amount
}

// maxIdeals bounds the sets of finished stages that are looked at one by one.
const maxIdeals = 5000

// Plan is what admission knows of a component of the graph: the order of its
// stages, and every set of stages that can have finished at some moment. Such a
// set is closed under predecessors (an ideal of the order). At each of them all
// the stages that are ready may be running at once, since nothing controls who
// starts first; the peak over all ideals is therefore what an item can need.
//
// A value that waits in a join holds all that came with it, also what the stages
// behind the join do not use. A join with such stages behind it is therefore in the
// sets too: it has finished when it has let go of what they do not use, which is
// before any of them begins.
//
// Sets are words of bits: bit i is the node Work[i], bit len(Work)+k is Joins[k].
type Plan struct {
	Work   []int    // stages and sinks, rising
	Joins  []int    // joins that can hold what nothing behind them uses, rising
	Before []uint64 // direct predecessors, by bit; other joins replaced by what is before them
	Coarse bool     // too many ideals, or too many nodes for a word of bits

	consumers []uint64 // direct ones, by stage, joins replaced by what is behind them
	later     []uint64 // all descendants that are stages or sinks, by stage
	holders   []uint64 // of Joins, those that wait for values of the stage
	keep      uint64   // sinks that may keep what they are given

	ideals []uint64
	ready  []uint64
	next   [][]int32 // ideals with one more stage finished
	index  map[uint64]int32

	mu sync.Mutex // of the shapes' fewer
}

// Shape is the needs of an item, evaluated over the plan.
type Shape struct {
	Parts   []LivePart
	Scratch []alloc.Amount // by stage
	plan    *Plan
	best    []alloc.Amount    // by ideal: the peak from there on
	fewer   map[string]*Shape // by what has ended early; under the plan's mu
}

// LivePart is a part with who makes it and the set of those that end it, joins
// that hold it among them.
type LivePart struct {
	Name  string
	Maker int
	Ends  uint64
	Bytes alloc.Amount
}

// NewPlan makes the plan of a component.
func NewPlan(t *Topology, c *Component) *Plan {
	n := len(c.Work)
	p := &Plan{Work: c.Work}
	for _, nd := range c.Joins {
		if t.holds(nd) {
			p.Joins = append(p.Joins, nd)
		}
	}
	if p.size() > 64 {
		p.Coarse = true
		return p
	}
	p.consumers, p.later, p.holders = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	p.Before = make([]uint64, p.size())
	at := make(map[int]int, p.size())
	for i, nd := range c.Work {
		at[nd] = i
		if k := t.Nodes[nd].Kind; k == Stream || k == Collect {
			p.keep |= 1 << i
		}
	}
	for k, nd := range p.Joins {
		at[nd] = n + k
	}
	for i, nd := range c.Work {
		t.Behind(nd, func(to int) { p.consumers[i] |= 1 << at[to] })
		t.through(nd, func(join int) {
			if k, ok := at[join]; ok {
				p.holders[i] |= 1 << k
			}
		})
	}
	for nd, i := range at {
		p.precede(t, nd, 1<<i, at)
	}
	// Nodes stand behind their predecessors, so one pass from the back does.
	for i := n - 1; i >= 0; i-- {
		p.later[i] = p.consumers[i]
		for rest := p.consumers[i]; rest != 0; rest &= rest - 1 {
			p.later[i] |= p.later[bits.TrailingZeros64(rest)]
		}
	}
	p.enumerate()
	return p
}

// size is how many nodes the sets are of.
func (p *Plan) size() int { return len(p.Work) + len(p.Joins) }

// precede puts the node of bit before those that take the values of nd; joins that
// are not in the sets are replaced by what is behind them.
func (p *Plan) precede(t *Topology, nd int, bit uint64, at map[int]int) {
	for _, l := range t.Outs[nd] {
		if k, ok := at[l.To]; ok {
			p.Before[k] |= bit
		} else {
			p.precede(t, l.To, bit, at)
		}
	}
}

// enumerate finds the ideals, smaller ones first.
func (p *Plan) enumerate() {
	p.index = map[uint64]int32{0: 0}
	p.ideals = []uint64{0}
	for i := 0; i < len(p.ideals); i++ {
		d := p.ideals[i]
		var ready uint64
		for s := range p.Before {
			if d&(1<<s) == 0 && p.Before[s]&^d == 0 {
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
					p.Coarse = true
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

// Bit is the set of the i-th of Work, or of Joins behind it, alone; empty if there
// are too many for a word.
func (p *Plan) Bit(i int) uint64 {
	if p.size() > 64 {
		return 0
	}
	return 1 << i
}

// Holders are the Joins in which a part can wait that the i-th of Work makes and
// those of ends read. A part with a reader that does not take it from its maker is
// passed on by a stage between them, maybe by any.
func (p *Plan) Holders(i int, ends uint64) uint64 {
	if len(p.Joins) == 0 || p.size() > 64 {
		return 0
	}
	out := p.holders[i]
	if far := ends &^ p.consumers[i]; far != 0 {
		for rest := p.later[i]; rest != 0; rest &= rest - 1 {
			if s := bits.TrailingZeros64(rest); p.later[s]&far != 0 {
				out |= p.holders[s]
			}
		}
	}
	return out
}

// Evaluate finds the shape of an item by the needs of each stage.
func (p *Plan) Evaluate(needs []Need) *Shape {
	s := &Shape{plan: p, Scratch: make([]alloc.Amount, len(needs))}
	enders := make(map[string]uint64)
	for i := range needs {
		s.Scratch[i] = needs[i].Scratch
		for _, name := range needs[i].Ends {
			enders[name] |= p.Bit(i)
		}
	}
	for i := range needs {
		for _, part := range needs[i].Makes {
			l := LivePart{Name: part.Name, Maker: i, Bytes: part.Bytes}
			if p.size() <= 64 {
				// Only what runs behind the maker can end the part.
				if l.Ends = enders[part.Name] & p.later[i]; l.Ends == 0 {
					l.Ends = p.consumers[i]
				}
				l.Ends |= p.Holders(i, l.Ends)
			}
			s.Parts = append(s.Parts, l)
		}
	}
	if !p.Coarse {
		s.weigh()
	}
	return s
}

// weigh finds the peak from each ideal on.
func (s *Shape) weigh() {
	p := s.plan
	s.best = make([]alloc.Amount, len(p.ideals))
	for i := len(p.ideals) - 1; i >= 0; i-- {
		done, ready := p.ideals[i], p.ready[i]
		var cost alloc.Amount
		for _, l := range s.Parts {
			if (done|ready)&(1<<l.Maker) != 0 && l.Ends&^done != 0 {
				cost = cost.Add(l.Bytes)
			}
		}
		for rest := ready & (1<<len(p.Work) - 1); rest != 0; rest &= rest - 1 {
			cost = cost.Add(s.Scratch[bits.TrailingZeros64(rest)])
		}
		for _, j := range p.next[i] {
			cost = cost.Max(s.best[j])
		}
		s.best[i] = cost
	}
}

// Without is s when no stage behind the one of bit reads the named parts. Joins go
// on holding them.
func (s *Shape) Without(bit uint64, names []string) *Shape {
	p := s.plan
	if p.Coarse || bit == 0 {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := fmt.Sprint(bit, names)
	if known := s.fewer[key]; known != nil {
		return known
	}
	out := &Shape{plan: p, Scratch: s.Scratch, Parts: slices.Clone(s.Parts)}
	for i := range out.Parts {
		if slices.Contains(names, out.Parts[i].Name) {
			out.Parts[i].Ends &^= p.later[bits.TrailingZeros64(bit)]
		}
	}
	out.weigh()
	if s.fewer == nil {
		s.fewer = make(map[string]*Shape)
	}
	s.fewer[key] = out
	return out
}

// After is the most that the item can still need at one moment when the nodes of
// done have finished.
func (s *Shape) After(done uint64) alloc.Amount {
	if !s.plan.Coarse {
		return s.best[s.plan.index[done]]
	}
	// All that has not ended, as if it lived at once.
	var sum alloc.Amount
	for _, l := range s.Parts {
		if l.Ends == 0 || l.Ends&^done != 0 {
			sum = sum.Add(l.Bytes)
		}
	}
	for i, a := range s.Scratch {
		if i >= 64 || done&(1<<i) == 0 {
			sum = sum.Add(a)
		}
	}
	return sum
}
