package main

import (
	"io"
	"sync"
	"time"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
)

// relay is a writer for several goroutines whose destination can change.
type relay struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes to the destination of the moment.
func (r *relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to.Write(p)
}

func (r *relay) writer() io.Writer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to
}

// divert sends to w what comes from now on; the function it returns undoes it.
func (r *relay) divert(w io.Writer) (back func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.to
	r.to = w
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.to = before
	}
}

// meter starts a display of progress as --progress says: by default on a
// terminal only. While it runs, messages go through it. Stop ends it.
func (a *app) meter(opt progress.Options) *progress.Meter {
	show := a.terminal && !a.flags.Quiet
	if p := a.flags.Progress; p != nil {
		show = *p
	}
	show = show && !opt.Off
	opt.Out, opt.Bar, opt.Off = a.stderr.writer(), a.terminal, !show
	m := progress.Start(opt)
	back := []func(){a.stderr.divert(m.Writer())}
	if a.terminals && show {
		// The bar is redrawn in place, so what is printed must go above it.
		back = append(back, a.stdout.divert(m.Writer()))
	}
	m.OnStop(func() {
		for _, f := range back {
			f()
		}
	})
	return m
}

// stepper counts work whose size is not known before its first call, as key
// checks and set-ups tell it.
func (a *app) stepper(unit string) (step func(done, total int), stop func()) {
	m := a.meter(progress.Options{Unit: unit, Total: -1, Interval: 2 * time.Second})
	return m.Set, m.Stop
}
