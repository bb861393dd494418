package parts

import (
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"

	"github.com/consensys/gnark/constraint/solver"
)

// ErrPanic is wrapped by errors made of panics in gnark and in hints.
var ErrPanic = errors.New("panic in gnark")

// Failure keeps the first error of a solver's run that is no fault of the
// witness. gnark's own error need not lead to it.
type Failure struct{ first atomic.Pointer[error] }

// Note keeps err if it is the first.
func (f *Failure) Note(err error) { f.first.CompareAndSwap(nil, &err) }

// Err is the first error, or nil.
func (f *Failure) Err() error {
	if p := f.first.Load(); p != nil {
		return *p
	}
	return nil
}

// GuardHints wraps every hint that the solver knows, so that a panic in one is an
// error: gnark calls hints in goroutines of its own, where a panic would end the
// process. All are wrapped and not only those that the system says it needs, for
// a system from a file may call others. It must be the last option.
func GuardHints(f *Failure) solver.Option {
	return func(c *solver.Config) error {
		for id, hint := range c.HintFunctions {
			c.HintFunctions[id] = func(q *big.Int, in, out []*big.Int) (err error) {
				defer func() {
					p := recover()
					for i := range out {
						if out[i] == nil { // gnark reads all, whatever is returned
							out[i] = new(big.Int)
							if p == nil {
								p = fmt.Sprintf("output %d is gone", i)
							}
						}
					}
					if p != nil {
						err = fmt.Errorf("hint %s with %d inputs and %d outputs: %w: %v", solver.GetHintName(hint), len(in), len(out), ErrPanic, p)
						f.Note(err)
					}
				}()
				return hint(q, in, out)
			}
		}
		return nil
	}
}
