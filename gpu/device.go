// Package gpu says what a device is, without saying whose: memory in its two
// pools, streams, events, kernels, sticky errors. On it stand what every
// device needs in the same way: the counted registration of host memory, the
// pre-staging planner, a worker for each stream, and the choice of a device. It
// knows nothing of curves or proofs.
package gpu

import (
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
)

// Ptr is an address in a device's memory; 0 is none.
type Ptr uintptr

// Info is what does not change about a device.
type Info struct {
	Index        int    // among the devices of the driver: the n of "cuda:n"
	Name         string // "NVIDIA H200"
	UUID         string // "GPU-…"; identifies the card to other programs
	PCI          string // bus address, "0000:3b:00.0"
	Major, Minor int    // compute capability
	SMs          int
	Shared       int   // bytes of shared memory that a block may have, opted in
	L2           int   // bytes
	Total        int64 // bytes of memory
	Driver       int   // version of the driver's interface, 13000 for 13.0
}

// Device is one card. Its methods and those of what it makes may be called by
// any goroutine; work of one Stream is issued by one goroutine at a time. Every
// status is checked: an error says the call, its arguments and the driver's own
// name for it, and is a *Error in its chain.
//
// A sticky error (an illegal address, say) ends the device's context: every
// later call fails until Reset. All memory, streams, events and kernels made
// before a Reset are gone with it, but for memory of AllocPinned; freeing them
// then is no error and does nothing, and each is to be freed once all the same.
//
// Where the driver allows no context after a sticky error, the device is lost to
// the process: Reset, and everything after it, answers with a *LostError.
type Device interface {
	Info() Info
	Space() alloc.Space // where its buffers are counted

	// Memory asks the driver: bytes free and in all. Free does not count what
	// the stream-ordered pool keeps to itself: Trim first.
	Memory() (free, total int64, err error)
	// Alloc takes memory that any stream may use at once; Free waits for the
	// device's work and gives it back. At least 256-byte aligned.
	Alloc(n int64) (Ptr, error)
	Free(p Ptr) error
	// Trim gives back what the stream-ordered pool keeps beyond keep bytes.
	Trim(keep int64) error
	// Pooled is what the stream-ordered pool keeps: in use, and in all.
	Pooled() (used, reserved int64, err error)

	// AllocPinned takes page-locked host memory, in whole pages. It outlives a
	// Reset: results that were copied there can be read after it.
	AllocPinned(n int64) (unsafe.Pointer, error)
	FreePinned(p unsafe.Pointer) error
	// Register page-locks host memory of somebody else (never of Go's heap).
	// It does not count: Registry does.
	Register(p unsafe.Pointer, n int64) error
	Unregister(p unsafe.Pointer) error

	// NewStream makes a queue of work; a high one goes first when both could.
	NewStream(high bool) (Stream, error)
	// NewEvent makes an event; a timed one can tell how long something took.
	NewEvent(timed bool) (Event, error)
	// Load compiles (or takes from the driver's cache) a module.
	Load(name string, image []byte) (Module, error)

	// Bind makes the device's context current on the calling thread. Methods
	// do that by themselves where it is missing; a Worker does it once.
	Bind() error
	// Sticky is the error that ended the context, or nil. A device that is lost
	// says so here: see Lost.
	Sticky() error
	// Reset makes the context anew after a sticky error, and does nothing
	// without one. Generation counts them, one that lost the device too.
	// Card.Reset is the one to call.
	Reset() error
	Generation() uint64
	// Close gives everything back. The device is of no use then.
	Close() error
}

// Stream is a queue of work on a device, done in order. The methods return
// when the work is queued; what it reads and writes must live until it is
// done, as an Event tells.
type Stream interface {
	// AllocAsync takes memory from the stream-ordered pool, usable by work
	// queued after it; FreeAsync gives it back after work queued before it.
	AllocAsync(n int64) (Ptr, error)
	FreeAsync(p Ptr) error

	CopyIn(dst Ptr, src unsafe.Pointer, n int64) error  // host to device
	CopyOut(dst unsafe.Pointer, src Ptr, n int64) error // device to host
	Copy(dst, src Ptr, n int64) error                   // device to device
	Fill(dst Ptr, v byte, n int64) error

	// Launch queues a kernel. It allocates nothing, and takes a copy of args.
	Launch(f Function, l Launch, args *Args) error

	Record(e Event) error
	Wait(e Event) error // later work waits for e; the host does not
	Sync() error        // the host waits for all work queued so far
	Close() error
}

// Launch is the shape of a launch. Zero extents mean 1.
type Launch struct {
	Grid   [3]uint32
	Block  [3]uint32
	Shared uint32 // bytes of dynamic shared memory
}

// Linear is a launch of at least n threads in blocks of block.
func Linear(n int64, block uint32) Launch {
	return Launch{Grid: [3]uint32{uint32(max((n+int64(block)-1)/int64(block), 1))}, Block: [3]uint32{block}}
}

// Event is a point in a stream.
type Event interface {
	Done() (bool, error)                       // whether it was reached
	Sync() error                               // the host waits until it is
	Since(earlier Event) (ms float64, e error) // both timed
	Close() error
}

// Module is a loaded image of kernels.
type Module interface {
	// Function finds a kernel and lets it have the shared memory that the
	// device can give.
	Function(name string) (Function, error)
	Close() error
}

// Function is a kernel. It is comparable, and valid until its module closes.
type Function interface {
	Name() string
	Registers() int // a thread
	Local() int     // bytes of local memory a thread: spills
}
