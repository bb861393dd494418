package gpu

import (
	"errors"
	"fmt"
)

// What errors.Is finds in the chain of a device's errors.
var (
	ErrNoDevice = errors.New("no usable device")
	ErrNoMemory = errors.New("out of device memory")
	ErrSticky   = errors.New("the device's context has ended")
)

// Error is a call to the driver that failed.
type Error struct {
	Call string // "cuMemAlloc"
	Args string // "1073741824 bytes"
	Code int    // the driver's status
	Name string // its name, "CUDA_ERROR_OUT_OF_MEMORY"
	Text string // what the driver says about it
	Kind error  // ErrNoDevice, ErrNoMemory or ErrSticky; nil for others
}

// Error is one line: call, arguments, name, code and text.
func (e *Error) Error() string {
	return fmt.Sprintf("%s(%s): %s (%d): %s", e.Call, e.Args, e.Name, e.Code, e.Text)
}

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }
