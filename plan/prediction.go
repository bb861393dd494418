package plan

import (
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/trace"
)

// Prediction is what a simulated run came to. Times are since the run began.
type Prediction struct {
	Wall       time.Duration `json:"wall_ns"` // until the last item left, or until the run ended otherwise
	Items      int           `json:"items"`   // that every sink has taken
	Failed     int           `json:"failed,omitempty"`
	Throughput float64       `json:"throughput"` // Items a second
	Latency    Latency       `json:"latency"`    // from being admitted to having left
	Entry      Latency       `json:"entry"`      // from asking to being admitted

	PeakInFlight int `json:"peak_in_flight"`
	// Peak is the most that was live at one moment, space by space, without Base.
	Peak alloc.Amount `json:"peak"`
	// Peaks say when that was, and what it was made of, for spaces with any.
	Peaks []Peak `json:"peaks,omitempty"`
	// Reserved is the most that the budget was charged; zero without a budget.
	Reserved alloc.Amount `json:"reserved"`
	// Overdrawn is the most by which an item used more than was reserved for it:
	// the real engine fails such an item. Zero where the costs' needs are right.
	Overdrawn alloc.Amount `json:"overdrawn"`
	// Allocated is the sum of all buffers, as if none had been freed.
	Allocated alloc.Amount `json:"allocated"`

	Killed *Kill  `json:"killed,omitempty"` // the memory was not enough
	Err    string `json:"error,omitempty"`  // why the run ended before its items had left, other than by a kill

	Stages []StagePrediction `json:"stages"` // all nodes, in the order of the graph
	Use    []Use             `json:"use"`    // cores, then links, then devices

	// Trace is the run as if it had been recorded; nil without the option Record.
	Trace *trace.Trace `json:"-"`
}

// Latency is how long something took, over all items.
type Latency struct {
	Mean time.Duration `json:"mean_ns"`
	P50  time.Duration `json:"p50_ns"`
	P95  time.Duration `json:"p95_ns"`
	Max  time.Duration `json:"max_ns"`
}

// Peak is the moment at which most was live in a space: the last before it fell,
// the first time that it was so high.
type Peak struct {
	Space  alloc.Space   `json:"space"`
	At     time.Duration `json:"at_ns"`
	Bytes  int64         `json:"bytes"`
	Shares []Share       `json:"shares"` // largest first
}

// Share is what is live in one state at one node.
type Share struct {
	Stage string `json:"stage"`
	State State  `json:"state"`
	Bytes int64  `json:"bytes"`
	Items int    `json:"items"` // that it belongs to
}

// State says why a buffer is live.
type State string

// The states, in the order in which a buffer that is in several counts.
const (
	Held    State = "held"    // a call at Stage makes or reads it, or its value waits for room to leave Stage
	Queued  State = "queued"  // it waits in the queue of Stage
	Pending State = "pending" // it waits in the join Stage, or for its turn behind the ordered Stage
	Other   State = "other"   // it waits for a reader that its item has not come to, or for its item to leave; Stage made it
)

// Kill is the end of a run that needed more memory than there is.
type Kill struct {
	Space  alloc.Space   `json:"space"`
	At     time.Duration `json:"at_ns"`
	Bytes  int64         `json:"bytes"` // that would have been live, with Base
	Limit  int64         `json:"limit"`
	Shares []Share       `json:"shares"` // of what was live, without Base; largest first
}

// StagePrediction is what happened at one node.
type StagePrediction struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Workers  int    `json:"workers,omitempty"`
	Capacity int    `json:"capacity,omitempty"` // −1: unbounded

	Items   int `json:"items"`
	Calls   int `json:"calls"` // with repetitions
	Retries int `json:"retries,omitempty"`

	Busy       time.Duration `json:"busy_ns"`        // of all workers together, in calls
	WaitDevice time.Duration `json:"wait_device_ns"` // of Busy: for a device's turn
	WaitIn     time.Duration `json:"wait_in_ns"`     // workers without anything to do, while the run lasted
	WaitOut    time.Duration `json:"wait_out_ns"`    // values without room to go to; at a source, also items that were not admitted
	Use        float64       `json:"use"`            // Busy by workers × Wall

	Queue     float64      `json:"queue"` // mean length over the run; keys at a join
	QueuePeak int          `json:"queue_peak"`
	Made      alloc.Amount `json:"made"` // the most of its buffers and scratch that was live at one moment
}

// Use is how much of something was used over the run: of the cores, a link or a
// device.
type Use struct {
	Name string `json:"name"` // "cores", or the link's or the device's
	Kind string `json:"kind"` // "cores", "link" or "device"
	// Fraction is from 0 to 1: of the cores that there are (of the most that were
	// asked for where the machine sets no limit), or of the time.
	Fraction float64 `json:"fraction"`
}

// Stage is the prediction for a node by its name; nil if there is none.
func (p *Prediction) Stage(name string) *StagePrediction {
	for i := range p.Stages {
		if p.Stages[i].Name == name {
			return &p.Stages[i]
		}
	}
	return nil
}
