package pipeline

import "time"

// EventKind says what happened.
type EventKind uint8

// The events. Those with a duration come when what they tell of has ended.
const (
	Admitted  EventKind = iota // the item enters the graph; Wait: how long it waited for the budget
	Left                       // nothing of the item is in the graph any more; Err if it failed
	Queued                     // a value was put into the queue of Stage, or arrived at the join Stage
	Begin                      // Stage begins to work on the item
	End                        // Stage has ended; Wait: how long it worked; Err if it failed
	Retried                    // Stage is to try again; Err: why, Attempt: 1 for the first repetition
	WaitedIn                   // a worker of Stage had nothing to do for Wait
	WaitedOut                  // a value of Stage waited for room for Wait
	Dropped                    // Stage ended its lease on a buffer early; Bytes
	Failed                     // the item has failed in Stage with Err
	Restarted                  // the item is made again from its source's value because of Err in Stage; Attempt: 1 for the first repetition. It is Admitted anew; Left comes once
)

var eventNames = [...]string{"admitted", "left", "queued", "begin", "end", "retried", "waited-in", "waited-out", "dropped", "failed", "restarted"}

// String is the kind in lower case: "waited-in".
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// MarshalText makes a kind its name in JSON.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Event is one thing that happened in a run.
type Event struct {
	Kind    EventKind
	At      time.Duration // since the run began
	Stage   string        // the node, where there is one
	Key     Key
	Wait    time.Duration
	Bytes   int64 // behind the references of the value that the event is about
	Attempt int
	Err     error
}

// Listener hears the events of a run. It is called by the goroutine in which
// they happen, by many at once, and must neither wait for the graph nor keep it
// waiting. Events of one item in one stage come in order.
type Listener interface{ OnEvent(Event) }

// ListenerFunc is a function as a Listener.
type ListenerFunc func(Event)

// OnEvent calls f.
func (f ListenerFunc) OnEvent(e Event) { f(e) }

// tell tells the listeners. Callers ask r.heard first, so that a run that
// nobody listens to pays nothing.
func (r *run) tell(e Event) {
	for _, l := range r.g.listeners {
		if err := guard(func() { l.OnEvent(e) }); err != nil {
			r.stop(&StageError{Stage: e.Stage, Key: e.Key, Err: err})
		}
	}
}
