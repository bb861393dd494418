package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// StageError says which stage failed on which item, and why.
type StageError struct {
	Stage string
	Key   Key
	Err   error  // a *PanicError if the stage panicked
	Stack []byte // of the panic; nil otherwise
}

// Error names the stage and the item.
func (e *StageError) Error() string {
	return fmt.Sprintf("stage %s, item %v: %v", e.Stage, e.Key, e.Err)
}

// Unwrap is what the stage returned.
func (e *StageError) Unwrap() error { return e.Err }

// PanicError is a panic as an error.
type PanicError struct{ Value any }

// Error is what was thrown.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the value that was thrown, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is the error of a stage that ended its goroutine (runtime.Goexit,
// or FailNow of a test) instead of returning.
var ErrGoexit = errors.New("the stage ended its goroutine instead of returning")

// errFailed is what the event Left says of an item that failed.
var errFailed = errors.New("the item failed")

// TypeError says that a value's type is not what a place takes. Between two
// stages it is found when a graph is built from a description; at a go-streams
// edge, when the value arrives.
type TypeError struct {
	From string // the stage or source that yields the value
	To   string // the stage or edge that takes it
	Got  string // the type that came
	Want string // the type that is taken
}

// Error names both places and both types.
func (e *TypeError) Error() string {
	return fmt.Sprintf("%s yields %s, but %s takes %s", e.From, e.Got, e.To, e.Want)
}

// JoinReason says what is wrong with a key at a join.
type JoinReason string

// The reasons of a JoinError.
const (
	// Duplicate: an input had a value of the key already.
	Duplicate JoinReason = "duplicate"
	// Incomplete: an input ended without a value of the key.
	Incomplete JoinReason = "incomplete"
)

// JoinError says that a key cannot be joined.
type JoinError struct {
	Join   string
	Key    Key
	Reason JoinReason
	Input  string // the node whose value came twice or not at all
}

// Error names the join, the item and the input.
func (e *JoinError) Error() string {
	if e.Reason == Duplicate {
		return fmt.Sprintf("join %s, item %v: a second value from %s while the first is in flight", e.Join, e.Key, e.Input)
	}
	return fmt.Sprintf("join %s, item %v: %s ended without a value for it", e.Join, e.Key, e.Input)
}

// AdmitError says that an item can never enter the graph under its budget, or
// has waited in vain for longer than the graph's Patience.
type AdmitError struct {
	Key   Key
	Need  alloc.Amount // the item's peak
	Limit alloc.Amount // the budget
	Held  alloc.Amount // what results that have left the graph keep of the budget
	// Waited is for how long a sink has held on to Held without giving any of it
	// back. It is 0 where the item can never enter: Held is then Collect's.
	Waited time.Duration
	// Turn says that the item was to be made again, and that Held is kept by
	// values that wait in an ordered stage for it to come first.
	Turn bool
}

// Error says what the item needs and what the budget is.
func (e *AdmitError) Error() string {
	if e.Turn {
		return fmt.Sprintf("item %v needs %v to be made again, which does not fit in the budget of %v: values that wait for it in an ordered stage keep %v",
			e.Key, e.Need, e.Limit, e.Held)
	}
	if e.Waited > 0 {
		return fmt.Sprintf("item %v needs %v, which does not fit in the budget of %v: buffers that a sink has retained keep %v, and none was given back for %v (see Patience)",
			e.Key, e.Need, e.Limit, e.Held, e.Waited.Round(time.Millisecond))
	}
	s := fmt.Sprintf("item %v needs %v, which can never fit in the budget of %v", e.Key, e.Need, e.Limit)
	if !e.Held.IsZero() {
		s += fmt.Sprintf(", of which collected results keep %v", e.Held)
	}
	return s
}

// GraphError lists everything that is wrong with how a graph was built.
type GraphError struct {
	Graph string
	Errs  []error
}

// Error is all of Errs in one line.
func (e *GraphError) Error() string {
	msgs := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		msgs[i] = err.Error()
	}
	return fmt.Sprintf("graph %s cannot run: %s", e.Graph, strings.Join(msgs, "; "))
}

// Unwrap is the single errors.
func (e *GraphError) Unwrap() []error { return e.Errs }

// temporary reports whether err says that trying again may help.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}
