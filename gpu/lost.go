package gpu

import (
	"errors"
	"fmt"
)

// ErrLost is in the chain of every error of a device that this process cannot
// use any more. ErrSticky is too.
var ErrLost = errors.New("the device is lost to this process")

// LostError says that a device is of no use to this process any more: its
// context has ended, and the driver allows no other. Some drivers are like that
// after any sticky error, whatever is released or reset. From then on the
// device answers everything with this error, at once and without a call to the
// driver; what it had given out counts as given back, and freeing that is no
// error. Another device, the host, or the program started again can do the work.
type LostError struct {
	Device string // "cuda:0"
	Cause  error  // what ended the context, a *Error
	Err    error  // what the driver said to the last try to make another
}

// Error says what is lost, why, and what helps.
func (e *LostError) Error() string {
	why := ""
	var cause *Error
	switch {
	case errors.As(e.Cause, &cause):
		why = " after " + cause.Name
	case e.Cause != nil:
		why = fmt.Sprintf(" after %v", e.Cause)
	}
	return e.Device + " is lost to this process: the driver allows no new context" + why +
		"; start the program again to use the card"
}

// Is reports whether target is ErrLost or ErrSticky.
func (e *LostError) Is(target error) bool { return target == ErrLost || target == ErrSticky }

// Unwrap is what ended the context.
func (e *LostError) Unwrap() error { return e.Cause }

// Temporary is false: the device does not come back.
func (e *LostError) Temporary() bool { return false }

// FromStart is true: what was on the device can be made again elsewhere.
func (e *LostError) FromStart() bool { return true }

// Lost is why d is lost to this process, a *LostError; nil while it may be used.
func Lost(d Device) error {
	var lost *LostError
	if err := d.Sticky(); errors.As(err, &lost) {
		return lost
	}
	return nil
}
