package live

import (
	"cmp"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Snapshot is a run at one moment. Durations are nanoseconds in JSON, sizes
// bytes.
type Snapshot struct {
	Graph string    `json:"graph"`
	Phase string    `json:"phase"` // "waiting" before the run, "running", "ended"
	Began time.Time `json:"began"`
	Error string    `json:"error,omitempty"`

	Wall     time.Duration `json:"wall_ns"`
	Total    int           `json:"total"` // items there will be; 0: unknown
	Done     int64         `json:"done"`
	Failed   int64         `json:"failed"`
	Stopped  int64         `json:"stopped"`
	Again    int64         `json:"restarted"`
	InFlight int64         `json:"in_flight"`
	PeakIn   int64         `json:"peak_in_flight"`
	Rate     float64       `json:"rate"`    // items a second in the last minute
	ETA      time.Duration `json:"eta_ns"`  // until the last item; below 0: unknown
	Latency  time.Duration `json:"mean_ns"` // of items that have left, from admission

	Spaces  []SpaceLevel           `json:"spaces"`
	Budget  *pipeline.BudgetReport `json:"budget,omitempty"`
	Stages  []Stage                `json:"stages"`
	Devices []DeviceLevel          `json:"devices"`

	Items    []Item    `json:"items"` // the oldest in flight, at most 40
	Failures []Failure `json:"failures"`
	Notes    []Note    `json:"notes"`
	Events   []Event   `json:"events"` // newest first, as failures and notes
	Heard    uint64    `json:"heard"`  // events of any kind so far
	Points   uint64    `json:"points"` // points of the history so far
}

// SpaceLevel is the memory of one space.
type SpaceLevel struct {
	Space    string `json:"space"`
	Live     int64  `json:"live"` // of the process
	Peak     int64  `json:"peak"`
	Base     int64  `json:"base"`     // of Live: there before the run
	Limit    int64  `json:"limit"`    // of the budget; 0: none
	Reserved int64  `json:"reserved"` // of the budget
	Held     int64  `json:"held"`     // by stages at work, or waiting for room
	Queued   int64  `json:"queued"`
	Pending  int64  `json:"pending"` // in joins
}

// Stage is one node of the graph.
type Stage struct {
	pipeline.StageReport
	Next  []Link  `json:"next"`  // what it feeds
	Layer int     `json:"layer"` // of a drawing: the longest way from a source
	Lane  float64 `json:"lane"`  // of the layer, from 0; wholes and halves
	Hue   int     `json:"hue"`   // its colour in Palette; −1: none

	Use  float64       `json:"use"`     // of its workers, in the last seconds: 0 to 1
	Rate float64       `json:"rate"`    // items a second, in the last seconds
	Mean time.Duration `json:"mean_ns"` // of a call
}

// Link is a way from one node to another.
type Link struct {
	To    int       `json:"to"`
	Lanes []float64 `json:"lanes"` // of the layers between the two
}

// The states of a place.
const (
	InQueue = "queued"
	Running = "running"
	Leaving = "leaving" // done, and waiting for room in the next queue
	InJoin  = "pending"
)

// Place is where some of an item is.
type Place struct {
	Node  int           `json:"node"`
	State string        `json:"state"`
	Since time.Duration `json:"since_ns"`
	Bytes int64         `json:"bytes"`
}

// Item is an item in flight.
type Item struct {
	Key      pipeline.Key  `json:"key"`
	Name     string        `json:"name"`
	Admitted time.Duration `json:"admitted_ns"`
	Attempt  int           `json:"attempt,omitempty"` // 1 for the first repetition
	Places   []Place       `json:"places"`
}

// Event is one of the last things that happened.
type Event struct {
	At      time.Duration `json:"at_ns"`
	Kind    string        `json:"kind"` // of a pipeline.EventKind
	Stage   string        `json:"stage,omitempty"`
	Key     pipeline.Key  `json:"key"`
	Name    string        `json:"name"`
	Wait    time.Duration `json:"wait_ns,omitempty"`
	Bytes   int64         `json:"bytes,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// Failure is an item that has failed.
type Failure struct {
	At    time.Duration `json:"at_ns"`
	Stage string        `json:"stage"`
	Key   pipeline.Key  `json:"key"`
	Name  string        `json:"name"`
	Error string        `json:"error"`
}

// Note is a line for the reader.
type Note struct {
	At   time.Duration `json:"at_ns"`
	Text string        `json:"text"`
}

// shownItems and shownEvents are how many a snapshot lists.
const (
	shownItems  = 40
	shownEvents = 24
)

// Snapshot is the run as it stands.
func (s *State) Snapshot() *Snapshot {
	report, phase := s.report()
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &Snapshot{
		Phase: phase, Began: s.began, Error: s.err, Total: max(s.total, 0), ETA: -1,
		Heard: s.heard, Points: s.history.n,
		Failures: s.fails.newest(maxFailures), Notes: s.notes.newest(maxNotes), Events: s.events.newest(shownEvents),
	}
	for i := range snap.Events {
		snap.Events[i].Name = s.nameOf(snap.Events[i].Key)
	}
	if report == nil {
		report = &pipeline.Report{} // only what was there before
	}
	snap.Graph, snap.Wall, snap.Budget = report.Graph, report.Wall, report.Budget
	snap.Done, snap.Failed, snap.Stopped, snap.Again = report.Items, report.Failed, report.Stopped, report.Restarted
	snap.InFlight, snap.PeakIn = report.InFlight, report.PeakInFlight
	if s.left > 0 {
		snap.Latency = s.latency / time.Duration(s.left)
	}
	s.spacesOf(snap, report)
	s.devicesOf(snap, report)
	s.stagesOf(snap, report)
	s.itemsOf(snap)
	s.speed(snap)
	return snap
}

// report is the newest report, nil before the run.
func (s *State) report() (r *pipeline.Report, phase string) {
	s.mu.Lock()
	g, last, ended := s.graph, s.last, s.ended
	s.mu.Unlock()
	if last == nil && g != nil {
		last = g.Stats()
	}
	switch {
	case ended:
		return last, "ended"
	case last == nil:
		return nil, "waiting"
	}
	return last, "running"
}

func (s *State) spacesOf(snap *Snapshot, r *pipeline.Report) {
	s.spacesIn(r)
	for _, sp := range s.spaces {
		l := SpaceLevel{Space: sp.String(), Live: r.Live[sp], Peak: r.Peak[sp], Base: s.opt.Base[sp]}
		if r.Stages == nil { // there is no run yet
			l.Live, l.Peak = alloc.Default().Live(sp), alloc.Default().Peak(sp)
		}
		if r.Budget != nil {
			l.Limit, l.Reserved = r.Budget.Limit[sp], r.Budget.Reserved[sp]
		}
		for i := range r.Stages {
			l.Held += r.Stages[i].Held.Now[sp]
			l.Queued += r.Stages[i].Queued.Now[sp]
			l.Pending += r.Stages[i].Pending.Now[sp]
		}
		snap.Spaces = append(snap.Spaces, l)
	}
}

// spacesIn notes the spaces that are used. They are listed in the order in
// which they were first seen, so that points of the history stay true.
func (s *State) spacesIn(r *pipeline.Report) {
	for sp := range r.Live {
		used := r.Live[sp] != 0 || r.Peak[sp] != 0 || r.Budget != nil && r.Budget.Limit[sp] != 0
		if used && !slices.Contains(s.spaces, alloc.Space(sp)) {
			s.spaces = append(s.spaces, alloc.Space(sp))
		}
	}
}

func (s *State) stagesOf(snap *Snapshot, r *pipeline.Report) {
	hues := 0
	old := s.oldest(snap.Wall)
	for _, sr := range r.Stages {
		n := s.nodeOf(sr.Name)
		nd := &s.nodes[n]
		st := Stage{StageReport: sr, Next: append([]Link{}, nd.links...), Layer: nd.layer, Lane: nd.lane, Hue: -1}
		if calls := sr.Items + sr.Failed; calls > 0 {
			st.Mean = sr.Busy / time.Duration(calls)
		}
		if sr.Kind == "stage" {
			st.Hue = hues % len(Palette)
			hues++
		}
		if over := snap.Wall - old.at; over > 0 && snap.Phase != "waiting" {
			area, items := time.Duration(0), int64(0)
			if n < len(old.area) {
				area, items = old.area[n], old.items[n]
			}
			if snap.Phase == "running" {
				nd.reckon(snap.Wall)
			}
			if sr.Workers > 0 {
				st.Use = min(max(float64(nd.area-area)/float64(over)/float64(sr.Workers), 0), 1)
			}
			st.Rate = float64(sr.Items-items) / over.Seconds()
		}
		snap.Stages = append(snap.Stages, st)
	}
}

func (s *State) itemsOf(snap *Snapshot) {
	oldest := make([]*item, 0, len(s.items))
	for _, it := range s.items {
		oldest = append(oldest, it)
	}
	slices.SortFunc(oldest, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.admitted, b.admitted), cmp.Compare(a.key.Job, b.key.Job), cmp.Compare(a.key.Part, b.key.Part))
	})
	snap.Items = []Item{}
	for _, it := range oldest[:min(len(oldest), shownItems)] {
		snap.Items = append(snap.Items, Item{Key: it.key, Name: s.nameOf(it.key), Admitted: it.admitted, Attempt: it.attempt,
			Places: append([]Place{}, it.places...)})
	}
}
