package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a context that a signal has ended.
var errInterrupted = errors.New("interrupted")

// interruptedText is what the reader is told of the first signal.
const interruptedText = "interrupted: giving memory back and leaving (once more to quit at once)"

// lastly is what is to be done before the second signal ends the process.
type lastly struct {
	mu sync.Mutex
	do func()
}

type lastlyKey struct{}

// beforeExit has f called before a second signal ends the process, if ctx comes
// from interruptible; undo takes that back.
func beforeExit(ctx context.Context, f func()) (undo func()) {
	l, ok := ctx.Value(lastlyKey{}).(*lastly)
	if !ok {
		return func() {}
	}
	set := func(f func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.do = f
	}
	set(f)
	return func() { set(nil) }
}

func (l *lastly) call() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.do != nil {
		l.do()
	}
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels, so
// that work in progress is drained and no file is left half-written. A second
// one ends the process at once. stop undoes it.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	last := new(lastly)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, lastlyKey{}, last))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		cancel(errInterrupted)
		if _, again := <-signals; again {
			last.call()
			os.Exit(codeInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		close(signals)
	}
}
