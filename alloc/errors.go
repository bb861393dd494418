package alloc

import (
	"errors"
	"fmt"
)

// ErrNoProvider is wrapped by allocations in a space that no Provider serves.
var ErrNoProvider = errors.New("no provider of memory is registered for this space")

// ErrClosed is returned by draws on a reservation that was closed.
var ErrClosed = errors.New("the reservation is closed")

// TooLargeError says that a reservation can never be granted: it asks more than
// the whole budget holds.
type TooLargeError struct {
	Asked, Limit Amount
}

// Error says what was asked and what the budget is.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("reserve memory: %v can never fit in the budget of %v", e.Asked, e.Limit)
}

// OverdrawError says that a stage asked for more than is left of its
// reservation, which means that what it declared to need was too little.
type OverdrawError struct {
	Stage   Stage
	Purpose Purpose
	Space   Space
	Asked   int64 // bytes
	Left    int64 // bytes left of the reservation in that space
	Closed  bool  // the reservation was already closed
}

// Error says which stage asked for how much, and what was left.
func (e *OverdrawError) Error() string {
	s := fmt.Sprintf("stage %v overdraws its reservation: %s of %v memory for %v asked, %s left",
		e.Stage, formatBytes(e.Asked), e.Space, e.Purpose, formatBytes(e.Left))
	if e.Closed {
		s += " (" + ErrClosed.Error() + ")"
	}
	return s
}

// Unwrap is ErrClosed if the reservation was closed.
func (e *OverdrawError) Unwrap() error {
	if e.Closed {
		return ErrClosed
	}
	return nil
}

// NoMemoryError says that the provider of a space had no memory, after the pool
// was trimmed.
type NoMemoryError struct {
	Stage   Stage
	Purpose Purpose
	Space   Space
	Asked   int64 // bytes
	Err     error // what the provider said
}

// Error says which stage asked for how much, and why there is none.
func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("stage %v: allocate %s of %v memory for %v: %v",
		e.Stage, formatBytes(e.Asked), e.Space, e.Purpose, e.Err)
}

// Unwrap is what the provider said.
func (e *NoMemoryError) Unwrap() error { return e.Err }
