package pipeline

import (
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// Report tells what a run did and where its time and memory went. Durations are
// nanoseconds in JSON, amounts are bytes by space.
type Report struct {
	Graph string        `json:"graph"`
	Wall  time.Duration `json:"wall_ns"`
	Error string        `json:"error,omitempty"`

	// Items are those that every sink has taken, also if the run was stopped while
	// the last of them was at it. Failed are those that failed by themselves: under
	// StopAll the first one alone. Stopped are those that were in flight when the run
	// was stopped, and came to no end of their own.
	Items   int64 `json:"items"`
	Failed  int64 `json:"failed"`
	Stopped int64 `json:"stopped"`
	// Restarted is how often an item was made again from its source's value.
	Restarted int64 `json:"restarted,omitempty"`

	InFlight     int64 `json:"in_flight"`
	PeakInFlight int64 `json:"peak_in_flight"`

	// Budget is nil without one.
	Budget *BudgetReport `json:"budget,omitempty"`

	// Live and Peak are those of the process: everything that alloc counts,
	// since its peaks were last reset.
	Live alloc.Amount `json:"live"`
	Peak alloc.Amount `json:"peak"`

	Stages   []StageReport `json:"stages"`
	Failures []Failure     `json:"failures,omitempty"` // the first 100
	Restarts []Failure     `json:"restarts,omitempty"` // why items were made again; the first 100

	// Notes are what else is to be said of the run, by whoever ran the graph.
	Notes []string `json:"notes,omitempty"`
}

// BudgetReport tells how a budget was used.
type BudgetReport struct {
	Limit    alloc.Amount  `json:"limit"`
	Reserved alloc.Amount  `json:"reserved"`
	Peak     alloc.Amount  `json:"peak"` // of what was reserved
	Waits    int64         `json:"waits"`
	WaitTime time.Duration `json:"wait_ns"`
}

// Failure is an item that failed.
type Failure struct {
	Stage string `json:"stage"`
	Key   Key    `json:"key"`
	Error string `json:"error"`
}

// Level is an amount of memory now and at its peak, space by space.
type Level struct {
	Now  alloc.Amount `json:"now"`
	Peak alloc.Amount `json:"peak"`
}

// StageReport is about one node. A buffer that several nodes have references on
// counts in each of them; Made counts every buffer once, and is alloc's count
// for the node's name, with the peak since alloc's peaks were last reset.
type StageReport struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"` // source, stage, join or sink
	Workers  int    `json:"workers,omitempty"`
	Capacity int    `json:"capacity,omitempty"` // −1: unbounded

	Items   int64 `json:"items"`
	Failed  int64 `json:"failed"`
	Retries int64 `json:"retries"`
	Running int64 `json:"running"`
	// Restarts is how often an item was made again because of an error of this stage.
	Restarts int64 `json:"restarts,omitempty"`

	Busy    time.Duration `json:"busy_ns"`     // of all workers together
	WaitIn  time.Duration `json:"wait_in_ns"`  // workers without anything to do
	WaitOut time.Duration `json:"wait_out_ns"` // values without room to go to

	Queue     int `json:"queue"` // values that wait, keys at a join
	QueuePeak int `json:"queue_peak"`

	Held    Level `json:"held"`    // inputs being worked on, outputs waiting for room
	Queued  Level `json:"queued"`  // waiting in the stage's queue
	Pending Level `json:"pending"` // waiting in a join for partners, or for their turn
	Made    Level `json:"made"`    // allocated in the stage's name, wherever it is now
}

// Stats is the report as it stands while the graph runs, or after it has; nil
// before.
func (g *Graph) Stats() *Report {
	g.mu.Lock()
	r := g.run
	g.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.report()
}

func (r *run) report() *Report {
	t := alloc.Default()
	rep := &Report{
		Graph: r.g.name, Wall: r.now(),
		Items: r.answered.Load(), Failed: r.failed.Load(), Stopped: r.cut.Load(),
		Restarted: r.restarted.Load(),
		InFlight:  r.inFlight.Load(), PeakInFlight: r.inFlightPeak.Load(),
	}
	if r.ended.Load() {
		rep.Wall = time.Duration(r.wall.Load())
	}
	for i := range rep.Live {
		rep.Live[i], rep.Peak[i] = t.Live(alloc.Space(i)), t.Peak(alloc.Space(i))
	}
	if r.budget != nil {
		b := r.budget.Stats()
		rep.Budget = &BudgetReport{Limit: b.Limit, Reserved: b.Charged, Peak: b.Peak,
			Waits: r.waits.Load(), WaitTime: time.Duration(r.waitTime.Load())}
	}
	for _, s := range r.stations {
		rep.Stages = append(rep.Stages, s.report(t))
	}
	r.failMu.Lock()
	rep.Failures = append(rep.Failures, r.failures...)
	rep.Restarts = append(rep.Restarts, r.restarts...)
	r.failMu.Unlock()
	return rep
}

func (s *station) report(t *alloc.Tracker) StageReport {
	sr := StageReport{
		Name: s.node.name, Kind: s.node.kind.String(),
		Items: s.items.Load(), Failed: s.failed.Load(), Retries: s.retries.Load(), Running: s.running.Load(),
		Restarts: s.restarts.Load(),
		Busy:     time.Duration(s.busy.Load()), WaitIn: time.Duration(s.waitIn.Load()), WaitOut: time.Duration(s.waitOut.Load()),
		Held: s.held.level(), Queued: s.queued.level(), Pending: s.pending.level(),
		Made: Level{t.StageLive(s.owner), t.StagePeak(s.owner)},
	}
	switch {
	case s.q != nil:
		s.q.mu.Lock()
		sr.Queue, sr.QueuePeak = s.q.Len(), s.q.Peak
		sr.Workers, sr.Capacity = s.q.target, s.q.Capacity
		s.q.mu.Unlock()
	case s.j != nil:
		sr.Queue, sr.QueuePeak = s.j.size()
	}
	return sr
}

// Stage is the report of a node by its name; nil if there is none.
func (r *Report) Stage(name string) *StageReport {
	for i := range r.Stages {
		if r.Stages[i].Name == name {
			return &r.Stages[i]
		}
	}
	return nil
}
