package gpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
)

const (
	maxArgs     = 32
	maxArgBytes = 1024
)

var (
	argsStage     = alloc.StageOf("gpu")
	errArgsClosed = errors.New("arguments of a launch that were closed")
)

// Args are the arguments of a launch, in the layout that drivers take: an
// address for each, into one block. It is reused from launch to launch, by one
// goroutine at a time, and allocates nothing after it was made. Make it with
// NewArgs and Close it: its memory is off Go's heap, counted as scratch of the
// stage "gpu", so that the addresses in it are good for any driver to follow.
type Args struct {
	mem  *argBlock
	buf  *alloc.Buffer[argBlock]
	n    int
	used uintptr
	bad  error // why these arguments cannot be launched with
	dead error // why none can
	size [maxArgs]uint16
}

type argBlock struct {
	ptrs [maxArgs]uintptr
	data [maxArgBytes]byte
}

// NewArgs makes an empty block of arguments. Where there is no memory for it,
// Params says so.
func NewArgs() *Args {
	a := new(Args)
	buf, err := alloc.Make[argBlock](alloc.NewScope(argsStage, alloc.Host, nil), 1, alloc.Scratch, 0)
	if err != nil {
		a.dead = fmt.Errorf("arguments of a launch: %w", err)
		a.bad = a.dead
		return a
	}
	a.buf, a.mem = buf, &buf.Slice()[0]
	return a
}

// Close gives the memory back. A second Close does nothing.
func (a *Args) Close() {
	if a.buf == nil {
		return
	}
	a.buf.Release()
	a.buf, a.mem, a.dead, a.bad = nil, nil, errArgsClosed, errArgsClosed
}

// Reset forgets the arguments.
func (a *Args) Reset() *Args { a.n, a.used, a.bad = 0, 0, a.dead; return a }

// Ptr adds an address.
func (a *Args) Ptr(p Ptr) *Args { return push(a, uint64(p)) }

// U32 adds a word of 32 bits.
func (a *Args) U32(v uint32) *Args { return push(a, v) }

// U64 adds a word of 64 bits.
func (a *Args) U64(v uint64) *Args { return push(a, v) }

// Words adds a struct of 32-bit words.
func (a *Args) Words(w []uint32) *Args {
	if at := a.room(uintptr(len(w))*4, 8); at != nil {
		copy(unsafe.Slice((*uint32)(at), len(w)), w)
	}
	return a
}

func push[T uint32 | uint64](a *Args, v T) *Args {
	if at := a.room(unsafe.Sizeof(v), unsafe.Alignof(v)); at != nil {
		*(*T)(at) = v
	}
	return a
}

func (a *Args) room(size, align uintptr) unsafe.Pointer {
	if a.bad != nil {
		return nil
	}
	at := (a.used + align - 1) &^ (align - 1)
	if a.n == maxArgs || size > maxArgBytes || at+size > maxArgBytes {
		a.bad = fmt.Errorf("a launch with more than %d arguments or %d bytes", maxArgs, maxArgBytes)
		return nil
	}
	// An argument of no bytes may stand at the very end of the block.
	p := unsafe.Add(unsafe.Pointer(a.mem), unsafe.Offsetof(a.mem.data)+at)
	a.mem.ptrs[a.n], a.size[a.n] = uintptr(p), uint16(size)
	a.n, a.used = a.n+1, at+size
	return p
}

// Len is the number of arguments.
func (a *Args) Len() int { return a.n }

// Arg is argument i, 0 ≤ i < Len, as bytes in memory that the next Reset
// reuses. Devices that are not a driver read arguments by it.
func (a *Args) Arg(i int) []byte {
	at := a.mem.ptrs[i] - uintptr(unsafe.Pointer(&a.mem.data))
	return a.mem.data[at : at+uintptr(a.size[i])]
}

// Params is the array of addresses, as cuLaunchKernel takes it, or the error
// of an argument that did not fit.
func (a *Args) Params() (unsafe.Pointer, error) {
	if a.bad != nil {
		return nil, a.bad
	}
	return unsafe.Pointer(&a.mem.ptrs), nil
}
