package cuda

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// Error is an operation of an Engine that failed on its device.
type Error struct {
	Device string // "cuda:0"
	Op     string // "sum of h", as people call it
	// Asked and Free are bytes of device memory: what the operation wanted in
	// the end and what there was. Both are 0 unless memory was the cause.
	Asked, Free int64
	// Start says that what the device held of the job is lost or spoiled: the
	// device was reset, a copy failed. The job must begin again.
	Start bool
	Err   error
}

// Error names device, operation and cause.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: ", e.Device, e.Op)
	if e.Asked > 0 {
		s += fmt.Sprintf("%s of device memory asked, %s to be had: ", humanize.IBytes(uint64(e.Asked)), humanize.IBytes(uint64(max(e.Free, 0))))
	}
	s += e.Err.Error()
	if e.Start {
		s += " (the job must begin again from its input)"
	}
	return s
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary says that the call, or the job where FromStart says so, can be made
// again: the device failed, not what it was given. It is false where the device
// is lost to this process (gpu.ErrLost): only another processor can help then.
func (e *Error) Temporary() bool { return !errors.Is(e.Err, gpu.ErrLost) }

// FromStart says that the job must be made again from its input.
func (e *Error) FromStart() bool { return e.Start }

// Reasons that are not the driver's.
var (
	errReset   = errors.New("the device was reset after an error")
	errSpoiled = errors.New("an earlier attempt at the quotient has spoiled the vectors")
	errClosed  = errors.New("the engine is closed")
)

// argumentError is a mistake of the caller: no processor can help.
type argumentError struct{ error }

func (e argumentError) Unwrap() error { return e.error }

// lostError is a failure after which the job's vectors are not what they should
// be, whatever the device says later.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

func argument(format string, args ...any) error {
	return argumentError{fmt.Errorf(format, args...)}
}

func isSticky(err error) bool { return errors.Is(err, gpu.ErrSticky) }

// isNoMemory reports whether the device had too little memory. A scope that has
// reserved too little is another matter: no trimming helps there.
func isNoMemory(err error) bool {
	var over *alloc.OverdrawError
	return errors.Is(err, gpu.ErrNoMemory) && !errors.As(err, &over)
}
