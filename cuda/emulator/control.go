package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Card is a card to emulate. Fields that are 0 have the values in brackets.
type Card struct {
	Name    string `json:"name,omitempty"`    // ["Snarkline emulated GPU"]
	Total   int64  `json:"total,omitempty"`   // bytes of memory [1 GiB]
	Others  int64  `json:"others,omitempty"`  // bytes that other programs have
	Context int64  `json:"context,omitempty"` // bytes that a context takes
	SMs     int    `json:"sms,omitempty"`     // [4]
	Major   int    `json:"major,omitempty"`   // compute capability [9]
	Minor   int    `json:"minor,omitempty"`
	Shared  int64  `json:"shared,omitempty"` // bytes of shared memory a block may have [227 KiB]
	L2      int64  `json:"l2,omitempty"`     // bytes [50 MiB]
	Launch  int64  `json:"launch,omitempty"` // microseconds that each launch takes beyond its work, without a processor: a card that is slower
}

// Mode is when streams do their work.
type Mode string

const (
	Async Mode = "async" // on their own threads, as soon as they can
	Late  Mode = "late"  // when somebody waits for it or asks, or after 20 ms
	Eager Mode = "eager" // before the call returns, on its thread
)

// Config is what the emulated machine is. The zero value has one card.
type Config struct {
	Cards      []Card `json:"cards,omitempty"`
	None       bool   `json:"none,omitempty"`        // no card at all
	Threads    int    `json:"threads,omitempty"`     // that run blocks [one a processor]
	Driver     int    `json:"driver,omitempty"`      // its version [13000]
	DriverText string `json:"driver_text,omitempty"` // as NVML says it ["580.95.05"]
	Share      string `json:"share,omitempty"`       // a file: processes that name it share their cards' memory
	Mode       Mode   `json:"mode,omitempty"`        // [Async]
	Order      uint32 `json:"order,omitempty"`       // how a block's threads start: 0 from the first, 1 from the last, more: drawn
	Granule    int64  `json:"granule,omitempty"`     // allocations are counted in multiples of it [512]
	Pinned     int64  `json:"pinned,omitempty"`      // most bytes of pinned and registered host memory [no limit]
	Zeroed     bool   `json:"-"`                     // new device memory holds zeros, not 0xa5
	NoRevival  bool   `json:"no_revival,omitempty"`  // after a sticky error a card has no context any more: making one answers the same status, until Configure
	Release    bool   `json:"release,omitempty"`     // the pool gives back what passes its threshold when the host waits; else it keeps all until it is trimmed
}

// CardStats is what is alive on a card, and what it did since Configure.
type CardStats struct {
	Used          int64 `json:"used"` // of its memory, by all
	Peak          int64 `json:"peak"` // by this process
	Classic       int64 `json:"classic"`
	ClassicBlocks int   `json:"classic_blocks"`
	PoolUsed      int64 `json:"pool_used"`
	PoolReserved  int64 `json:"pool_reserved"`
	PoolBlocks    int   `json:"pool_blocks"`
	Pinned        int64 `json:"pinned"`
	PinnedBlocks  int   `json:"pinned_blocks"`
	Registered    int64 `json:"registered"`
	Registrations int   `json:"registrations"`
	Streams       int   `json:"streams"`
	Events        int   `json:"events"`
	Modules       int   `json:"modules"`
	Context       int   `json:"context"` // references to it
	BytesIn       int64 `json:"bytes_in"`
	BytesOut      int64 `json:"bytes_out"`
	BusyNs        int64 `json:"busy_ns"` // in kernels
}

// Live says whether anything is left that a program has to give back, but for
// the context itself.
func (s CardStats) Live() bool {
	return s.ClassicBlocks+s.PoolBlocks+s.PinnedBlocks+s.Registrations+s.Streams+s.Events+s.Modules > 0
}

// Counters are what the library counts.
type Counters struct {
	Cards      []CardStats      `json:"cards"`
	PinnedPeak int64            `json:"pinned_peak"`
	Calls      int64            `json:"calls"`     // that can fail
	Pageable   int64            `json:"pageable"`  // copies of host memory that was not pinned
	Early      int64            `json:"early"`     // times that host memory went before its copy was done
	Corrupted  int64            `json:"corrupted"` // bits that Corrupt has changed
	Faults     int              `json:"faults"`    // faults and corruptions that have not come yet
	ByCall     map[string]int64 `json:"by_call"`   // by name without version
	Kernels    map[string]int64 `json:"kernels"`   // launches by name
}

// Lib is a library that is open. A process may have several, each with a state
// of its own.
type Lib struct {
	Path string
	n    *native
}

// Open opens a library that Build made. Opening it again gives the same state.
func Open(path string) (*Lib, error) {
	n, err := open(path)
	if err != nil {
		return nil, err
	}
	return &Lib{path, n}, nil
}

// Configure makes everything anew: what programs hold of the library is gone,
// as if the process had just begun. No call may be under way.
func (l *Lib) Configure(c Config) error {
	text, err := json.Marshal(struct {
		Config
		Poison bool `json:"poison"`
	}{c, !c.Zeroed})
	if err != nil {
		return err
	}
	bad := make([]byte, 512)
	if l.n.configure(string(text), &bad[0], uintptr(len(bad))) != 0 {
		return fmt.Errorf("configure the emulator: %s", bad[:bytes.IndexByte(bad, 0)])
	}
	return nil
}

// Fault makes the n-th call of that name from now (n ≥ 1) fail with code, and
// end the context if sticky. "" is any call that can fail; a name may have its
// version or not. Calls that end something have done so when they fail.
// "copy", "kernel" and "kernel:NAME" are what streams do: these fail when they
// come to run, and end the context.
func (l *Lib) Fault(call string, n int, code int, sticky bool) {
	s := int32(0)
	if sticky {
		s = 1
	}
	l.n.fault(call, uint64(n), int32(code), s)
}

// Corrupt flips a bit in what the n-th launch from now of a kernel writes. The
// name may lack its curve; "" is any kernel.
func (l *Lib) Corrupt(kernel string, n int) { l.n.corrupt(kernel, uint64(n)) }

// Clear forgets faults and corruptions that have not come yet: how many.
func (l *Lib) Clear() int { return int(l.n.clear()) }

// Calls is the number of calls since Configure that could fail.
func (l *Lib) Calls() int { return int(l.n.calls()) }

// Stats is what is alive and what was done.
func (l *Lib) Stats() (Counters, error) {
	var c Counters
	err := json.Unmarshal(text(l.n.stats), &c)
	return c, err
}

// Kernels are the names of the kernels in the library, sorted.
func (l *Lib) Kernels() []string { return strings.Fields(string(text(l.n.kernels))) }

// text asks again until there is room.
func text(f func(*byte, uintptr) uintptr) []byte {
	for room := 16 << 10; ; room *= 2 {
		b := make([]byte, room)
		if n := int(f(&b[0], uintptr(room))); n < room {
			return b[:n]
		}
	}
}

var std struct {
	sync.Mutex
	lib   *Lib
	built Built
}

// Default is the library with every kernel, built and opened when it is first
// asked for.
func Default(ctx context.Context) (*Lib, error) {
	std.Lock()
	defer std.Unlock()
	if std.lib != nil {
		return std.lib, nil
	}
	b, err := Build(ctx, Options{})
	if err != nil {
		return nil, err
	}
	std.built = b
	std.lib, err = Open(b.Path)
	return std.lib, err
}

// building says what building the default library took, once.
func building() string {
	std.Lock()
	defer std.Unlock()
	b := std.built
	std.built = Built{}
	if len(b.Files) == 0 {
		return ""
	}
	return fmt.Sprintf("the emulator was built in %v, %d files, the slowest %s in %v",
		b.Took.Round(time.Millisecond), len(b.Files), b.Files[0].File, b.Files[0].Took.Round(time.Millisecond))
}

func opened() *Lib {
	std.Lock()
	defer std.Unlock()
	return std.lib
}

var errNotOpen = errors.New("the emulator is not open: call Default or Need first")

// Configure is Configure of the default library, which it opens.
func Configure(c Config) error {
	l, err := Default(context.Background())
	if err != nil {
		return err
	}
	return l.Configure(c)
}

// Fault is Fault of the default library; nothing if that is not open.
func Fault(call string, n int, code int, sticky bool) {
	if l := opened(); l != nil {
		l.Fault(call, n, code, sticky)
	}
}

// Corrupt is Corrupt of the default library; nothing if that is not open.
func Corrupt(kernel string, n int) {
	if l := opened(); l != nil {
		l.Corrupt(kernel, n)
	}
}

// Clear is Clear of the default library.
func Clear() int {
	if l := opened(); l != nil {
		return l.Clear()
	}
	return 0
}

// Calls is Calls of the default library.
func Calls() int {
	if l := opened(); l != nil {
		return l.Calls()
	}
	return 0
}

// Stats is Stats of the default library.
func Stats() (Counters, error) {
	if l := opened(); l != nil {
		return l.Stats()
	}
	return Counters{}, errNotOpen
}
