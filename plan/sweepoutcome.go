package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Runner makes one run with the settings of a point and says what it came to.
// A run that fails because of its settings, such as one that does not fit the
// memory, is an Outcome with a Failure. An error means that no run could be made
// at all, and ends a sweep.
//
// A Runner may also have any of
//
//	Meaning() map[string]string // what two runs must share to be compared: circuit, machine, model
//	Parallel() int              // how many runs may be made at once; 1 without it
//	Check(Space) error          // whether it can make the points of a space
type Runner interface {
	Run(ctx context.Context, p Point) (*Outcome, error)
	// Simulates reports whether outcomes are predictions.
	Simulates() bool
}

// RunnerFunc is a function that makes real runs, as a Runner.
type RunnerFunc func(ctx context.Context, p Point) (*Outcome, error)

// Run calls f.
func (f RunnerFunc) Run(ctx context.Context, p Point) (*Outcome, error) { return f(ctx, p) }

// Simulates is false.
func (f RunnerFunc) Simulates() bool { return false }

// Outcome is what one run came to, predicted or measured. Durations are
// nanoseconds in JSON, amounts are bytes by space.
type Outcome struct {
	Items      int           `json:"items"`
	Wall       time.Duration `json:"wall_ns"`
	Throughput float64       `json:"items_per_second"`
	Latency    time.Duration `json:"latency_ns,omitempty"` // of an item from entering to leaving, mean; 0 unknown
	Door       time.Duration `json:"door_ns,omitempty"`    // that items waited for the budget, together
	Peak       alloc.Amount  `json:"peak"`                 // tracked bytes beyond what was there before the run
	Resident   int64         `json:"resident_bytes,omitempty"`

	Stages []StageOutcome `json:"stages,omitempty"`
	Use    []UseOutcome   `json:"use,omitempty"`

	Repeats int      `json:"repeats,omitempty"` // of how many runs this is the middle one; 0 is 1
	Failure *Failure `json:"failure,omitempty"`
}

// StageOutcome is what a run was like for one stage.
type StageOutcome struct {
	Name     string        `json:"name"`
	Workers  int           `json:"workers"`
	Capacity int           `json:"capacity"` // −1: unbounded
	Busy     float64       `json:"busy"`     // share of the run that its workers worked, 0 to 1
	WaitOut  time.Duration `json:"wait_out_ns,omitempty"`
	Full     bool          `json:"full,omitempty"` // its queue was full at some moment
	Made     alloc.Amount  `json:"made"`           // the most that lived of what it made
}

// UseOutcome is how much a resource of the machine was used: cores, a link, a
// device.
type UseOutcome struct {
	Name string  `json:"name"`
	Kind string  `json:"kind"` // "cores", "link" or "device"
	Busy float64 `json:"busy"` // share of it over the run, 0 to 1
}

// FailureKind says how a run failed.
type FailureKind string

// The kinds of failures that a setting can cause.
const (
	TooLarge FailureKind = "too-large" // an item needs more than the budget
	Killed   FailureKind = "killed"    // more memory than the machine has
	Broken   FailureKind = "failed"    // any other error of the run
)

// Failure is why a run gave no throughput.
type Failure struct {
	Kind FailureKind   `json:"kind"`
	Text string        `json:"text"`
	At   time.Duration `json:"at_ns,omitempty"` // since the run began, where it is known
}

// String is the text with its kind.
func (f *Failure) String() string { return string(f.Kind) + ": " + f.Text }

// FailureError is a Failure as an error: that of a tuning that finds nothing.
type FailureError struct{ Failure *Failure }

// Error is the failure's text with its kind.
func (e *FailureError) Error() string { return e.Failure.String() }

// OK reports whether the run came to its end. A nil Outcome did not.
func (o *Outcome) OK() bool { return o != nil && o.Failure == nil }

// Stage is a stage by its name; nil if there is none.
func (o *Outcome) Stage(name string) *StageOutcome {
	for i := range o.Stages {
		if o.Stages[i].Name == name {
			return &o.Stages[i]
		}
	}
	return nil
}

// FailureOf is err as a Failure, if it is one that settings can cause: an item
// that never fits its budget, memory that ran out, a stage that failed.
func FailureOf(err error) (*Failure, bool) {
	var (
		tooLarge *alloc.TooLargeError
		admit    *pipeline.AdmitError
		overdraw *alloc.OverdrawError
		noMemory *alloc.NoMemoryError
		stage    *pipeline.StageError
		failure  *FailureError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, false
	case errors.As(err, &failure):
		return failure.Failure, true
	case errors.As(err, &tooLarge), errors.As(err, &admit):
		return &Failure{Kind: TooLarge, Text: err.Error()}, true
	case errors.As(err, &noMemory):
		return &Failure{Kind: Killed, Text: err.Error()}, true
	case errors.As(err, &overdraw), errors.As(err, &stage):
		return &Failure{Kind: Broken, Text: err.Error()}, true
	}
	return nil, false
}

// OutcomeOf is the outcome of a real run from its report. base is what was
// tracked in each space before the run. workers and capacities are those of the
// report, which the end of the run had.
func OutcomeOf(r *pipeline.Report, base alloc.Amount) *Outcome {
	o := &Outcome{Items: int(r.Items), Wall: r.Wall, Peak: r.Peak.Sub(base).Max(alloc.Amount{})}
	if s := r.Wall.Seconds(); s > 0 {
		o.Throughput = float64(r.Items) / s
	}
	if r.Budget != nil {
		o.Door = r.Budget.WaitTime
	}
	for _, st := range r.Stages {
		if st.Kind != "stage" {
			continue
		}
		so := StageOutcome{Name: st.Name, Workers: st.Workers, Capacity: st.Capacity, WaitOut: st.WaitOut, Made: st.Made.Peak,
			Full: st.Capacity > 0 && st.QueuePeak >= st.Capacity}
		if all := r.Wall.Seconds() * float64(max(st.Workers, 1)); all > 0 {
			so.Busy = min(st.Busy.Seconds()/all, 1)
		}
		o.Stages = append(o.Stages, so)
	}
	return o
}

// InProcess runs graphs in this process, for programs that sweep their own
// pipelines: build makes the graph of a point anew, with the point's settings
// (pipeline.WithSettings) and choices, its sources and sinks bound. Only one run
// is made at a time, and its peaks are those of the whole process. A run that
// the system kills takes the sweep with it: the results file then holds what was
// measured before.
func InProcess(build func(ctx context.Context, p Point) (*pipeline.Graph, error)) Runner {
	return RunnerFunc(func(ctx context.Context, p Point) (*Outcome, error) {
		g, err := build(ctx, p)
		if err != nil {
			if f, ok := FailureOf(err); ok {
				return &Outcome{Failure: f}, nil
			}
			return nil, fmt.Errorf("build the graph of %s: %w", p.Key(), err)
		}
		t := alloc.Default()
		t.ResetPeaks()
		var base alloc.Amount
		for i := range base {
			base[i] = t.Live(alloc.Space(i))
		}
		r, err := g.Run(ctx)
		o := &Outcome{}
		if r != nil {
			o = OutcomeOf(r, base)
		}
		if err == nil {
			return o, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var ok bool
		if o.Failure, ok = FailureOf(err); !ok {
			return nil, err
		}
		return o, nil
	})
}

// middle is the outcome with the median wall time of several, with the largest
// peak of all. A failed one counts before any other: a setting that fails now
// and then is no setting.
func middle(list []*Outcome) *Outcome {
	for _, o := range list {
		if !o.OK() {
			return o
		}
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b *Outcome) int { return int(a.Wall - b.Wall) })
	o := *sorted[(len(sorted)-1)/2]
	if len(list) > 1 {
		o.Repeats = len(list)
	}
	for _, other := range list {
		o.Peak = o.Peak.Max(other.Peak)
		o.Resident = max(o.Resident, other.Resident)
	}
	return &o
}
