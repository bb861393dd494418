package trace

import "fmt"

// State says what a buffer is there for at a moment.
type State uint8

// The states, the weightier first: a buffer that one stage reads while it waits
// for another is held.
const (
	Held    State = iota // a call reads or makes it, or it waits for room behind the stage that made it
	Queued               // it waits in the queue of a stage
	Pending              // it waits in a join for partners, or behind an ordered stage for its turn
	Other                // no value in the graph refers to it: keys, tables, what was collected
)

// NbStates is the number of states.
const NbStates = 4

var stateNames = [NbStates]string{"held", "queued", "pending", "other"}

// String is the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// MarshalText makes a state its name in JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *State) UnmarshalText(b []byte) error {
	for i, name := range stateNames {
		if name == string(b) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("unknown state of a buffer %q", b)
}
