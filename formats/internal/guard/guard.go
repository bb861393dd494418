// Package guard makes errors of panics in goroutines that the readers start, so
// that no file can take the process with it.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Call runs do; a panic in it is its error, with the stack.
func Call(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}
