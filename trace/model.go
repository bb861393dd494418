package trace

import (
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Version is the version of the model and of the file that Recorder writes.
const Version = 1

// None is the index of what there is not: the item of a buffer that belongs to
// none, for example.
const None = -1

// Never is the time of what did not happen.
const Never time.Duration = -1

// Trace is what is known of one run of a graph. All times are since the run
// began. What one part says of another is an index: of an item in Items, of a
// node in Graph.Nodes, of a buffer in Buffers; None is none.
type Trace struct {
	Version int
	Meta    Meta
	Graph   pipeline.Topology // as it was when the run began
	Items   []Item            // in order of admission; those that never were come last
	Calls   []Call            // in order of End
	Visits  []Visit           // values that wait other than in the queue of a call
	Buffers []Buffer          // everything that alloc counted, in order of birth; what was live when the run began is born at 0
	Notes   []Note            // in order of At
	Samples []Sample          // in order of At
	Wall    time.Duration     // of the run; of what was recorded if Cut
	Cut     bool              // the recording ends before the run did
	Err     string            // what the run ended with; empty if nothing went wrong
}

// Meta says what ran where.
type Meta struct {
	Program  string            // "snarkline prove", say
	Started  string            // RFC 3339
	Cores    int               // that the program may use
	Memory   int64             // of the machine, in bytes; 0: not known
	Settings pipeline.Settings // workers, capacities and budgets when the run began
	Budget   alloc.Amount      // by space; 0: none
	Labels   map[string]string // "curve", "domain" and so on
	Devices  []Device
	Links    []Link
}

// Device is a device that stages run on.
type Device struct {
	Name   string
	Space  alloc.Space
	Memory int64  // bytes
	Link   string // the name of one of Links
	Up     int64  // bytes that went to it while the run lasted; 0: not known
	Down   int64  // and back
}

// Link is what carries bytes between host and devices.
type Link struct {
	Name           string
	BytesPerSecond float64 // 0: not known
}

// Item is one attempt at an item of the graph.
type Item struct {
	Key      pipeline.Key
	Source   int           // the node where it arrived; None if that is not known
	Arrived  time.Duration // it asked to be admitted
	Admitted time.Duration // Never if it was not
	Left     time.Duration // Never if it did not
	Needs    []NodeNeed    // what its stages stated; equal items share one slice. Without a budget not every item's stages are asked
	Attempt  int           // 0, or which repetition of the item it is
	Err      string
}

// NodeNeed is what one stage stated of an item.
type NodeNeed = pipeline.StageNeed

// Call is one item in one stage or sink. That of a sink without a body of its
// own (Collect, go-streams) begins and ends when the value is taken.
type Call struct {
	Item, Node int
	Worker     int           // the lowest that was free, from 0
	Queued     time.Duration // it came into the queue
	Begin, End time.Duration // it ran
	Out        time.Duration // the last consumer took the output, so that the worker was free again; End if there was none
	Waited     time.Duration // of the time that it ran: it waited for its turn at something, see pipeline.Waited
	Attempt    int           // how often it was repeated
	Device     int           // in Meta.Devices
	Err        string        // Unended if the recording ends before it
	Reads      []Ref         // the buffers of its input
	Makes      []int         // the buffers of its output
}

// Unended is the Err of a call that had not ended when the recording did. Its
// End and Out are the end of the recording.
const Unended = "not ended"

// Ref is a buffer of a call's input and until when the call kept it.
type Ref struct {
	Buffer int
	Until  time.Duration
}

// Visit is a value that waits: for its partners in a join, for its turn behind
// an ordered stage (Slot is None), or in a queue that it left without a call,
// because its item had failed (Slot is None).
type Visit struct {
	Item, Node, Slot int
	From, Until      time.Duration
	Buffers          []int
}

// Buffer is a buffer, a charge or a mapping.
type Buffer struct {
	Space   alloc.Space
	Stage   string // who allocated it
	Purpose string
	Kind    alloc.Kind
	Bytes   int64
	Item    int           // of the call that allocated it
	Call    int           // that call
	Born    time.Duration // 0: it was there before
	Died    time.Duration // 0: it outlived the recording
	Hands   []Hand        // when its accounting went to other stages
}

// Hand is a buffer that is counted for another stage from now on.
type Hand struct {
	At    time.Duration
	Stage string
}

// NoteKind says what a note is about.
type NoteKind uint8

// The notes.
const (
	Workers   NoteKind = iota // Node has N workers from now on
	Capacity                  // the queue of Node has room for N values from now on
	Retried                   // Node tries Item once more because of Text
	Restarted                 // Item is made again because of Text in Node
	Failed                    // Item fails in Node because of Text
	Discarded                 // what waited of Item in Node was thrown away
	Lost                      // N events could not be recorded
)

var noteNames = [...]string{"workers", "capacity", "retried", "restarted", "failed", "discarded", "lost"}

// String is the kind in lower case.
func (k NoteKind) String() string {
	if int(k) < len(noteNames) {
		return noteNames[k]
	}
	return "unknown"
}

// Note is something worth knowing of a moment.
type Note struct {
	At         time.Duration
	Kind       NoteKind
	Item, Node int
	N          int
	Text       string
}

// Sample is what the process had used at one moment.
type Sample struct {
	At  time.Duration
	CPU time.Duration // of all threads, user and system, since the run began
	RSS int64         // bytes that are resident; 0: not looked at
}
