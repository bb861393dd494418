package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a context that a signal has ended.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first SIGINT or SIGTERM cancels, so
// that work in progress is drained and no file is left half-written. A second
// one ends the process at once. stop undoes it.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
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
			os.Exit(codeInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		close(signals)
	}
}
