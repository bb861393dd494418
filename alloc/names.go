package alloc

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Stage is the interned name of who owns memory: a stage of a pipeline, or any
// other part of a program. The zero value is "unowned".
type Stage uint16

// Purpose is the interned name of what memory is for. The zero value is "other".
type Purpose uint8

// Unowned is the stage of memory that nobody claimed.
const Unowned Stage = 0

// The purposes that are known from the start.
const (
	Other      Purpose = iota
	Witness            // wires' values
	Evaluation         // a, b, c and h over a domain
	Point              // vectors of points
	Scratch            // gone when the call that made it returns
	Bucket             // accumulators of an MSM
	Matrix             // constraint matrices
	Key                // proving keys
	External           // memory that somebody else allocated; see Foreign
	nbPurposes
)

const (
	maxStages   = 4096
	maxPurposes = 256
	otherStage  = Stage(1) // names past maxStages
)

// interner maps names to small numbers. Reading a name locks nothing.
type interner struct {
	max   int
	spill int // the number for names that come when it is full
	ids   sync.Map
	mu    sync.Mutex
	names atomic.Pointer[[]string]
}

func newInterner(limit, spill int, names ...string) *interner {
	in := &interner{max: limit, spill: spill}
	for i, n := range names {
		in.ids.Store(n, i)
	}
	in.names.Store(&names)
	return in
}

func (in *interner) of(name string) int {
	if id, ok := in.ids.Load(name); ok {
		return id.(int)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if id, ok := in.ids.Load(name); ok {
		return id.(int)
	}
	old := *in.names.Load()
	id := len(old)
	if id == in.max {
		return in.spill
	}
	names := append(old[:id:id], name)
	in.names.Store(&names)
	in.ids.Store(name, id)
	return id
}

func (in *interner) name(id int) string {
	if names := *in.names.Load(); id < len(names) {
		return names[id]
	}
	return "unknown"
}

var (
	stageNames   = newInterner(maxStages, int(otherStage), "unowned", "other")
	purposeNames = newInterner(maxPurposes, int(Other),
		"other", "witness", "evaluation", "point", "scratch", "bucket", "matrix", "key", "foreign")
)

// StageOf interns a stage's name. The empty name is Unowned. A program may name
// up to 4094 stages; those after that share the stage "other", so names that
// grow without bound (a job's number) do not belong here.
func StageOf(name string) Stage {
	if name == "" {
		return Unowned
	}
	return Stage(stageNames.of(name))
}

// String is the name that StageOf was given.
func (s Stage) String() string { return stageNames.name(int(s)) }

// PurposeOf interns a purpose's name. The empty name is Other, and so is every
// name after the 256th.
func PurposeOf(name string) Purpose {
	if name == "" {
		return Other
	}
	return Purpose(purposeNames.of(name))
}

// String is the name that PurposeOf was given.
func (p Purpose) String() string { return purposeNames.name(int(p)) }

// Flags say how a buffer's contents are treated.
type Flags uint8

const (
	// Secret memory is wiped before it goes back to a pool or the system.
	Secret Flags = 1 << iota
	// Dirty memory may hold anything at first; without it, all is zero.
	Dirty
)

// Kind says whose the memory behind a count is.
type Kind uint8

const (
	// Memory was allocated by this package.
	Memory Kind = iota
	// ForeignMemory was allocated by somebody else, who told with Foreign.
	ForeignMemory
	// MappedFile is a view of a file: the system may drop its pages at any
	// time, so no total and no budget holds it.
	MappedFile
	nbKinds
)

// String is "memory", "foreign" or "mapped".
func (k Kind) String() string {
	switch k {
	case Memory:
		return "memory"
	case ForeignMemory:
		return "foreign"
	case MappedFile:
		return "mapped"
	}
	return "unknown"
}

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(b []byte) error {
	for i := Memory; i < nbKinds; i++ {
		if i.String() == string(b) {
			*k = i
			return nil
		}
	}
	return fmt.Errorf("unknown kind of memory %q", b)
}

// MarshalText makes a kind its name in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
