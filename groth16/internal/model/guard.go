package model

import (
	"fmt"
	"runtime/debug"
)

// Guard runs do on a piece of work; a panic in it is its error, with the stack:
// in a goroutine of ours it must not take the process with it.
func Guard(do func(from, to int) error, from, to int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(from, to)
}
