package live

import (
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// markCount is how many points the figures of the last minute may reach back;
// recently is how far those of the last seconds do.
const (
	markCount = 240
	recently  = 5 * time.Second
	lately    = time.Minute
)

// Point is one moment of the history.
type Point struct {
	At       time.Duration `json:"at_ns"`
	Done     int64         `json:"done"`
	Failed   int64         `json:"failed"`
	InFlight int64         `json:"in_flight"`
	Spaces   []PointSpace  `json:"spaces"` // in the order of Snapshot.Spaces, whose last ones may not have been there yet
}

// PointSpace is the memory of one space at one moment, in bytes.
type PointSpace struct {
	Live     int64   `json:"live"` // of the process
	Reserved int64   `json:"reserved"`
	Made     []int64 `json:"made"` // of Live: allocated by each node of Snapshot.Stages
}

// History are the points from number since on, oldest first, and the number of
// the first of them. The numbers of points begin at 0 and Snapshot.Points is the
// next one.
func (s *State) History(since uint64) (points []Point, first uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.since(since), max(since, s.history.first())
}

// addPoint takes down what the report says. Callers hold the lock.
func (s *State) addPoint(r *pipeline.Report) {
	s.spacesIn(r)
	p := Point{At: r.Wall, Done: r.Items, Failed: r.Failed, InFlight: r.InFlight, Spaces: make([]PointSpace, len(s.spaces))}
	m := mark{at: r.Wall, done: r.Items, area: make([]time.Duration, len(s.nodes)), items: make([]int64, len(s.nodes))}
	for i, sp := range s.spaces {
		at := PointSpace{Live: r.Live[sp], Made: make([]int64, len(r.Stages))}
		if r.Budget != nil {
			at.Reserved = r.Budget.Reserved[sp]
		}
		for j := range r.Stages {
			at.Made[j] = r.Stages[j].Made.Now[sp]
		}
		p.Spaces[i] = at
	}
	for _, sr := range r.Stages {
		if n, ok := s.byName[sr.Name]; ok && n < len(m.area) {
			s.nodes[n].reckon(r.Wall)
			m.area[n], m.items[n] = s.nodes[n].area, sr.Items
		}
	}
	s.history.push(p)
	s.recent.push(m)
}

// oldest is the mark that the figures of the last seconds at wall begin with.
func (s *State) oldest(wall time.Duration) (m mark) {
	for i := s.recent.first(); i < s.recent.n; i++ {
		if at := s.recent.get(i); wall-at.at <= recently {
			return m
		}
		m = *s.recent.get(i)
	}
	return m
}

// speed reckons the rate of the last minute and when the last item will leave.
func (s *State) speed(snap *Snapshot) {
	since, done := time.Duration(0), int64(0)
	for i := s.recent.first(); i < s.recent.n && snap.Phase == "running"; i++ {
		if m := s.recent.get(i); snap.Wall-m.at >= lately || i == s.recent.first() && i > 0 {
			since, done = m.at, m.done
		}
	}
	if over := snap.Wall - since; over > 0 {
		snap.Rate = float64(snap.Done-done) / over.Seconds()
	}
	switch rest := int64(snap.Total) - snap.Done - snap.Failed; {
	case snap.Phase == "ended":
		snap.ETA = 0
	case snap.Total > 0 && rest <= 0:
		snap.ETA = 0
	case snap.Total > 0 && snap.Rate > 0:
		snap.ETA = time.Duration(float64(rest) / snap.Rate * float64(time.Second))
	}
}

// Now is the bytes in use in a space that are the run's.
func (l SpaceLevel) Now() int64 { return max(l.Live-l.Base, 0) }

// BaseNow is what is counted in every space now: for Options.Base.
func BaseNow() (a alloc.Amount) {
	for i := range a {
		a[i] = alloc.Default().Live(alloc.Space(i))
	}
	return a
}
