package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/trace"
)

// stateNames are the states in a reader's words.
var stateNames = [trace.NbStates]string{"held by a stage", "waiting in a queue", "pending in a join", "other"}
var stateInks = [trace.NbStates]ink{inkHeld, inkQueued, inkWaits, inkOther}

// memory is what a run had in one space over time.
type memory struct {
	Space            alloc.Space
	Owners           []string // the rows of ByStage: the nodes in their order, then what no node has
	Inks             []ink
	ByStage, ByState *steps
	Peak             peak
	Apart            int64 // the most at a time that belongs to no item, as keys do: no budget counts it
	Mapped           int64 // all that was mapped
	held             []int64
}

// memoryOf adds up the levels of a space, but for what belongs to no item: a key
// of 44 GiB would make everything else a thin line, and no budget holds it.
func memoryOf(t *trace.Trace, space alloc.Space, nodes []nodeFacts) *memory {
	m := &memory{Space: space, held: make([]int64, len(nodes))}
	for i := range nodes {
		m.Owners, m.Inks = append(m.Owners, nodes[i].Name), append(m.Inks, nodes[i].Ink)
	}
	points := t.Levels(space)
	besides := len(m.Owners)
	m.Owners, m.Inks = append(m.Owners, "kept besides"), append(m.Inks, inkOther)
	m.ByStage, m.ByState = newSteps(len(m.Owners), t.Wall), newSteps(trace.NbStates, t.Wall)
	stages, states := make([]float64, len(m.Owners)), make([]float64, trace.NbStates)
	best := -1
	for i, p := range points {
		clear(stages)
		clear(states)
		sum, beside := int64(0), int64(0)
		held := make(map[int]int64, 8)
		for _, s := range p.Shares {
			if apart(s) {
				beside += s.Bytes
				continue
			}
			row := s.Node
			if s.Node == trace.None {
				row = besides
			}
			stages[row] += float64(s.Bytes)
			states[s.State] += float64(s.Bytes)
			sum += s.Bytes
			if s.State == trace.Held && s.Node >= 0 {
				held[s.Node] += s.Bytes
			}
		}
		for n, b := range held {
			m.held[n] = max(m.held[n], b)
		}
		m.Apart = max(m.Apart, beside)
		m.ByStage.put(p.At, stages)
		m.ByState.put(p.At, states)
		if sum > m.Peak.Bytes {
			m.Peak.At, m.Peak.Bytes, best = p.At, sum, i
		}
	}
	if best >= 0 {
		m.Peak.Shares = slices.DeleteFunc(slices.Clone(points[best].Shares), apart)
		slices.SortStableFunc(m.Peak.Shares, func(a, b trace.Share) int { return cmp.Compare(b.Bytes, a.Bytes) })
	}
	for i := range t.Buffers {
		if b := &t.Buffers[i]; b.Space == space && b.Kind == alloc.MappedFile {
			m.Mapped += b.Bytes
		}
	}
	return m
}

// apart reports whether a share belongs to no item.
func apart(s trace.Share) bool { return s.Node == trace.None && s.Items == 0 }

// change is a row that rises or falls at a moment.
type change struct {
	at  time.Duration
	row int
	by  float64
}

func newSteps(n int, wall time.Duration) *steps {
	return &steps{End: wall.Seconds(), Rows: make([][]float64, n)}
}

// put adds a step.
func (s *steps) put(at time.Duration, values []float64) {
	if len(s.X) == 0 && at > 0 {
		s.X = append(s.X, 0)
		for k := range s.Rows {
			s.Rows[k] = append(s.Rows[k], 0)
		}
	}
	s.X = append(s.X, at.Seconds())
	for k := range s.Rows {
		s.Rows[k] = append(s.Rows[k], values[k])
	}
}

// sumUp makes steps of changes. Those of one moment come together.
func sumUp(changes []change, n int, wall time.Duration) *steps {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	s := newSteps(n, wall)
	now := make([]float64, n)
	for i := 0; i < len(changes); {
		at := changes[i].at
		for ; i < len(changes) && changes[i].at == at; i++ {
			now[changes[i].row] += changes[i].by
		}
		if at < wall || at <= 0 {
			s.put(max(0, at), now)
		}
	}
	if len(s.X) == 0 {
		s.put(0, now)
	}
	return s
}
