package gpu

import (
	"fmt"
	"unsafe"
)

const (
	maxArgs     = 32
	maxArgBytes = 1024
)

// Args are the arguments of a launch, in the layout that drivers take: an
// address for each, into one block. It is reused from launch to launch, by one
// goroutine at a time, and allocates nothing after it was made. Make it with
// NewArgs and Close it: its memory is off Go's heap.
type Args struct {
	mem  *argBlock
	n    int
	used uintptr
	bad  error
}

type argBlock struct {
	ptrs [maxArgs]uintptr
	data [maxArgBytes]byte
}

// Reset forgets the arguments.
func (a *Args) Reset() *Args { a.n, a.used, a.bad = 0, 0, nil; return a }

// Ptr adds an address.
func (a *Args) Ptr(p Ptr) *Args { return push(a, uint64(p)) }

// U32 adds a word of 32 bits.
func (a *Args) U32(v uint32) *Args { return push(a, v) }

// U64 adds a word of 64 bits.
func (a *Args) U64(v uint64) *Args { return push(a, v) }

// Words adds a struct of 32-bit words.
func (a *Args) Words(w []uint32) *Args {
	at := a.room(uintptr(len(w))*4, 8)
	if at != nil {
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
	at := (a.used + align - 1) &^ (align - 1)
	if a.n == maxArgs || at+size > maxArgBytes {
		a.bad = fmt.Errorf("a launch with more than %d arguments or %d bytes", maxArgs, maxArgBytes)
		return nil
	}
	p := unsafe.Pointer(&a.mem.data[at])
	a.mem.ptrs[a.n] = uintptr(p)
	a.n, a.used = a.n+1, at+size
	return p
}

// Params is the array of addresses, as cuLaunchKernel takes it, or the error
// of an argument that did not fit.
func (a *Args) Params() (unsafe.Pointer, error) {
	if a.bad != nil {
		return nil, a.bad
	}
	return unsafe.Pointer(&a.mem.ptrs), nil
}

// NewArgs makes an empty block of arguments.
func NewArgs() *Args { return &Args{mem: new(argBlock)} }
