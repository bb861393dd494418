package main

import (
	"time"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
)

// meter starts a display of progress as --progress says: by default on a
// terminal only. While it runs, messages go through it. Stop ends it.
func (a *app) meter(opt progress.Options) *progress.Meter {
	terminal := progress.IsTerminal(a.stderr)
	show := terminal && !a.flags.Quiet
	if p := a.flags.Progress; p != nil {
		show = *p
	}
	opt.Out, opt.Bar, opt.Off = a.stderr, terminal, !show
	m := progress.Start(opt)
	plain := a.stderr
	a.stderr = m.Writer()
	m.OnStop(func() { a.stderr = plain })
	return m
}

// stepper counts work whose size is not known before its first call, as key
// checks and set-ups tell it.
func (a *app) stepper(unit string) (step func(done, total int), stop func()) {
	m := a.meter(progress.Options{Unit: unit, Total: -1, Interval: 2 * time.Second})
	return m.Set, m.Stop
}
