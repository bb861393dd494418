package pipeline

import (
	"time"

	"github.com/snarkline/snarkline/alloc"
)

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
	WaitedIn                   // a worker of Stage had nothing to do for Wait; with a Call, that waited for its turn for Wait, see Waited, and comes before its End
	WaitedOut                  // a value of Stage waited for room for Wait
	Dropped                    // Stage ended its lease on a buffer early; Bytes
	Failed                     // the item has failed in Stage with Err
	Restarted                  // the item is made again from its source's value because of Err in Stage; Attempt: 1 for the first repetition. It is Admitted anew; Left comes once
	Arrived                    // the item asks to be admitted at the source Stage
	Sent                       // every consumer has taken the value of Stage; of a call, its worker is free
	Met                        // the values of the item at the join Stage are complete and go on as one
	InTurn                     // Stage, which is ordered, sends the value on that waited there for its turn
	Taken                      // Stage, a sink that calls nothing, has taken the value
	Discarded                  // a value that waited in Stage, or came from it or to it, is thrown away
	Resized                    // Workers or Capacity of Stage have changed
	Gone                       // an attempt that is made again has left; the next one follows
)

var eventNames = [...]string{"admitted", "left", "queued", "begin", "end", "retried", "waited-in", "waited-out", "dropped", "failed", "restarted",
	"arrived", "sent", "met", "in-turn", "taken", "discarded", "resized", "gone"}

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

	Item     uint64      // the attempt at the item that the event is about, from 1; 0 if there is none
	Call     uint64      // the call of Stage: in Begin, Retried, Dropped, WaitedIn of a call, End and Sent. It is the tag of the memory that the call makes, see alloc.Change
	Slot     int         // Queued: the input of a join
	Device   alloc.Space // End: the memory of the device that the call was made on, see OnDevice; Host if it did not say
	Workers  int         // Resized
	Capacity int         // Resized

	hold  hold
	needs func() []StageNeed
}

// NbRefs is the number of buffers that the event is about: those of the value, in
// Queued and Begin those that Stage has a reference on, in Dropped those whose
// lease has ended. Refs and their number are for the time of OnEvent.
func (e *Event) NbRefs() int { return e.hold.len() }

// Ref is the buffer i of NbRefs. Its memory may be gone already: it tells which
// buffer it was (alloc.IDOf), and its size. The listener has no reference on it.
func (e *Event) Ref(i int) alloc.Ref { return e.hold.at(i) }

// Needs is what the stages state of the item, in Admitted; nil in other events.
// Equal items of a graph with a budget yield the same slice, which must not be
// changed. Without a budget the stages are asked anew.
func (e *Event) Needs() []StageNeed {
	if e.needs == nil {
		return nil
	}
	return e.needs()
}

// StageNeed is what a stage states of an item.
type StageNeed struct {
	Stage string
	Need  Need
}

// Start is what there is to know when a run begins.
type Start struct {
	Graph    Topology
	At       time.Time // what the times of events are counted from
	Settings Settings
}

// Starter is a Listener that is told of the run before its first event. OnStart
// must not call the graph's methods.
type Starter interface{ OnStart(Start) }

// Listener hears the events of a run. It is called by the goroutine in which
// they happen, by many at once, and must neither wait for the graph nor keep it
// waiting. Events of one item in one stage come in order.
type Listener interface{ OnEvent(Event) }

// ListenerFunc is a function as a Listener.
type ListenerFunc func(Event)

// OnEvent calls f.
func (f ListenerFunc) OnEvent(e Event) { f(e) }

// resized gives what tells of a node's new numbers, once nothing is locked.
func (r *run) resized(n *node) func() {
	if !r.heard {
		return nil
	}
	e := Event{Kind: Resized, At: r.now(), Stage: n.name, Workers: n.workers, Capacity: n.capacity}
	return func() { r.tell(e) }
}

func callIf(f func()) {
	if f != nil {
		f()
	}
}

// tellOf tells of an item in a node, if anybody listens.
func (s *station) tellOf(k EventKind, it *item, call uint64, h *hold) {
	r := s.run
	if !r.heard {
		return
	}
	e := Event{Kind: k, At: r.now(), Stage: s.node.name, Key: it.key, Item: it.id, Call: call}
	if h != nil {
		e.hold = *h
		e.Bytes = h.bytes()
	}
	r.tell(e)
}

// tell tells the listeners. Callers ask r.heard first, so that a run that
// nobody listens to pays nothing.
func (r *run) tell(e Event) {
	for _, l := range r.g.listeners {
		if err := guard(func() { l.OnEvent(e) }); err != nil {
			r.stop(&StageError{Stage: e.Stage, Key: e.Key, Err: err})
		}
	}
}
