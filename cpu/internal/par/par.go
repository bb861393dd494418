// Package par runs a body on several goroutines over blocks of a range, until
// the range is done, the context is, or the body fails.
package par

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Run calls body(worker) for worker in [0, workers) at the same time, worker 0
// in the calling goroutine, and waits for all. A panic in a body becomes an
// error: it must not take the process with it. The first error by worker
// number is returned.
func Run(workers int, body func(worker int) error) error {
	if workers <= 1 {
		return guard(0, body)
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := 1; w < workers; w++ {
		wg.Go(func() { errs[w] = guard(w, body) })
	}
	errs[0] = guard(0, body)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func guard(w int, body func(int) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the arithmetic: %v\n%s", p, debug.Stack())
		}
	}()
	return body(w)
}

var errStop = errors.New("stopped")

// Blocks cuts [0, n) into blocks of the given size and has the workers take
// them, in order, one at a time. The context is looked at before each block.
func Blocks(ctx context.Context, workers, n, block int, body func(worker, from, to int) error) error {
	if n <= 0 {
		return ctx.Err()
	}
	blocks := (n + block - 1) / block
	var next atomic.Int64
	var failed atomic.Bool
	var first error
	var once sync.Once
	err := Run(min(workers, blocks), func(w int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= blocks {
				return nil
			}
			if failed.Load() {
				return errStop
			}
			err := ctx.Err()
			if err == nil {
				err = body(w, i*block, min((i+1)*block, n))
			}
			if err != nil {
				failed.Store(true)
				once.Do(func() { first = err })
				return errStop
			}
		}
	})
	if first != nil {
		return first
	}
	return err
}

// Ranges cuts [0, n) into one range a worker, of nearly the same length. The
// same arguments give the same ranges. Bodies look at the context themselves.
func Ranges(workers, n int, body func(worker, from, to int) error) error {
	return Run(workers, func(w int) error {
		return body(w, w*n/workers, (w+1)*n/workers)
	})
}
