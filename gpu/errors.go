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
	ErrReset    = errors.New("the device was reset since")
	ErrClosed   = errors.New("closed")
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

// StaleError says that something was made before a device's last Reset and is
// gone with its memory. What it was for can be done again from the start.
type StaleError struct {
	Device string // "cuda:0"
	What   string // "a buffer"
}

// Error says what is gone.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%s of %s: %v; it can be done again from the start", e.What, e.Device, ErrReset)
}

// Unwrap is ErrReset.
func (e *StaleError) Unwrap() error { return ErrReset }

// Temporary is true: the device works again.
func (e *StaleError) Temporary() bool { return true }

// FromStart is true: what was on the device is lost.
func (e *StaleError) FromStart() bool { return true }

// PanicError is a panic of a function that a Worker or a Reaper ran.
type PanicError struct {
	Value any
	Stack string
}

// Error is what was thrown, and where.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic on a device's worker: %v\n%s", e.Value, e.Stack)
}

// Unwrap is what was thrown, if that was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// name is how people call a device: "cuda:0".
func name(d Device) string { return fmt.Sprintf("cuda:%d", d.Info().Index) }
