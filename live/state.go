package live

import (
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// The sizes that bound what a State keeps.
const (
	MaxItems    = 4096 // items in flight whose places are known; others are in the report's counts only
	maxEvents   = 64
	maxFailures = 50
	maxNotes    = 50
)

// DefaultInterval is the time between two points of the history.
const DefaultInterval = 250 * time.Millisecond

// DefaultHistory is how many points are kept: three minutes of the default
// interval.
const DefaultHistory = 720

// Options say what a State is to know before the run. The zero value is good.
type Options struct {
	Total    int                       // items there will be; 0 or less: unknown
	Interval time.Duration             // between points of the history; 0: DefaultInterval
	History  int                       // points kept; 0: DefaultHistory
	Base     alloc.Amount              // bytes that were there before the run: keys, circuits
	NameOf   func(pipeline.Key) string // an item's name for the reader; nil: key.Job and key.Part. Any goroutine may call it
}

// State follows one run of one graph. Its methods may be called from any
// goroutine.
type State struct {
	opt Options

	mu      sync.Mutex
	total   int
	graph   *pipeline.Graph // nil until Watch
	began   time.Time       // of Watch
	ended   bool
	last    *pipeline.Report // of a run that has ended
	err     string
	nodes   []node
	byName  map[string]int
	items   map[pipeline.Key]*item
	left    int64 // items that have left without an error
	latency time.Duration
	events  ring[Event]
	fails   ring[Failure]
	notes   ring[Note]
	heard   uint64 // events of any kind
	spaces  []alloc.Space
	devices []Device
	doneOn  []int64 // items that have left each
	history ring[Point]
	recent  ring[mark]

	quit    chan struct{}
	sampler sync.WaitGroup
}

// node is what events tell of a stage, source, join or sink.
type node struct {
	name    string
	kind    string
	next    []int
	prev    []int
	feeds   bool // it yields values
	layer   int
	lane    float64
	links   []Link
	running int
	area    time.Duration // integral of running over time
	changed time.Duration // until when area reckons
}

// mark is what the figures of the last seconds are reckoned from.
type mark struct {
	at    time.Duration
	done  int64
	area  []time.Duration
	items []int64
}

// New makes a State that has not seen anything yet.
func New(o Options) *State {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.History <= 0 {
		o.History = DefaultHistory
	}
	return &State{
		opt: o, total: o.Total,
		byName: make(map[string]int), items: make(map[pipeline.Key]*item),
		events: newRing[Event](maxEvents), fails: newRing[Failure](maxFailures), notes: newRing[Note](maxNotes),
		history: newRing[Point](o.History), recent: newRing[mark](markCount),
		spaces: []alloc.Space{alloc.Host},
		quit:   make(chan struct{}),
	}
}

// SetTotal says how many items there will be, when that is learned late.
func (s *State) SetTotal(n int) {
	s.mu.Lock()
	s.total = n
	s.mu.Unlock()
}

// SetBase says what was there before the run, when that is learned late.
func (s *State) SetBase(base alloc.Amount) {
	s.mu.Lock()
	s.opt.Base = base
	s.mu.Unlock()
}

// Note adds a line for the reader.
func (s *State) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Duration(0)
	if s.graph != nil {
		at = time.Since(s.began)
	}
	s.notes.push(Note{At: at, Text: text})
}

// Watch takes the graph that is about to run, whose listener the State is, and
// samples its report until End. A State watches one graph, once.
func (s *State) Watch(g *pipeline.Graph) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph != nil || s.ended {
		return
	}
	s.graph, s.began = g, time.Now()
	s.learn(g.Topology())
	s.sampler.Add(1)
	go s.sample()
}

// OnStart is called by the pipeline.
func (s *State) OnStart(st pipeline.Start) {
	s.mu.Lock()
	s.began = st.At
	s.mu.Unlock()
}

// End says how the run ended, with what Run returned, and ends the sampling. The
// snapshot stays as it is then. Later calls do nothing.
func (s *State) End(report *pipeline.Report, err error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	close(s.quit)
	if err != nil {
		s.err = err.Error()
	}
	s.mu.Unlock()
	s.sampler.Wait()
	if report == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = report
	for _, text := range report.Notes {
		s.notes.push(Note{At: report.Wall, Text: text})
	}
	s.addPoint(report)
}

// sample takes a point of the history at each interval.
func (s *State) sample() {
	defer s.sampler.Done()
	tick := time.NewTicker(s.opt.Interval)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
		report := s.graph.Stats() // outside of the lock, which listeners take
		if report == nil {
			continue // it has not begun
		}
		s.mu.Lock()
		if !s.ended {
			s.addPoint(report)
		}
		s.mu.Unlock()
	}
}
