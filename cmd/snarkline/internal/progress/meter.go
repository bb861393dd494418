// Package progress shows how far work has come: a bar on a terminal, a line at
// intervals elsewhere, nothing when it is off.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// Options say what to show and where.
type Options struct {
	Out      io.Writer
	Off      bool          // show nothing
	Bar      bool          // a bar that is redrawn, rather than lines
	Interval time.Duration // between lines; 0 means 5 s
	Unit     string        // of what is counted: "proofs"
	Total    int           // how many there will be; below 0 if unknown

	// Memory, when set, gives the bytes in use now and the limit (0: none).
	Memory func() (live, limit int64)
	// Note, when set, gives what else is to be said now.
	Note func() string
}

// Meter counts work and shows it. Its methods may be called from any goroutine.
type Meter struct {
	opt   Options
	start time.Time

	mu     sync.Mutex
	done   int
	failed int
	busy   []stage // in the order in which they were first seen

	draw   interface{ stop() }
	out    io.Writer
	onStop []func()
}

type stage struct {
	name string
	n    int
}

// Start begins to show. Stop ends it.
func Start(opt Options) *Meter {
	if opt.Interval <= 0 {
		opt.Interval = 5 * time.Second
	}
	m := &Meter{opt: opt, start: time.Now(), out: opt.Out}
	switch {
	case opt.Off:
		m.draw = nothing{}
	case opt.Bar:
		m.draw, m.out = newBar(m)
	default:
		m.draw = newLines(m)
	}
	return m
}

// Writer is where messages go while the meter runs, so that they and the bar
// do not overwrite each other.
func (m *Meter) Writer() io.Writer { return m.out }

// Stop ends the display; a bar stays on the screen as it was last.
func (m *Meter) Stop() {
	m.draw.stop()
	for _, f := range m.onStop {
		f()
	}
}

// OnStop adds f to what Stop does, after the display has ended.
func (m *Meter) OnStop(f func()) { m.onStop = append(m.onStop, f) }

// nothing is no display.
type nothing struct{}

func (nothing) stop() {}

// Begin says that a stage took up an item.
func (m *Meter) Begin(name string) { m.move(name, 1) }

// End says that a stage is done with an item.
func (m *Meter) End(name string) { m.move(name, -1) }

func (m *Meter) move(name string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.busy {
		if m.busy[i].name == name {
			m.busy[i].n += by
			return
		}
	}
	m.busy = append(m.busy, stage{name, by})
}

// Done counts n more of what is counted.
func (m *Meter) Done(n int) {
	m.mu.Lock()
	m.done += n
	m.mu.Unlock()
}

// Fail counts one that failed; it is done too.
func (m *Meter) Fail() {
	m.mu.Lock()
	m.done++
	m.failed++
	m.mu.Unlock()
}

// Set says how many are done of how many. Calls that come late, from several
// goroutines, do not take anything back.
func (m *Meter) Set(done, total int) {
	m.mu.Lock()
	m.done, m.opt.Total = max(m.done, done), total
	m.mu.Unlock()
}

func (m *Meter) counts() (done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done, m.opt.Total
}

// status is what is worth saying besides the count.
func (m *Meter) status() string {
	m.mu.Lock()
	var parts []string
	if m.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", m.failed))
	}
	var busy []string
	for _, s := range m.busy {
		switch {
		case s.n == 1:
			busy = append(busy, s.name)
		case s.n > 1:
			busy = append(busy, fmt.Sprintf("%s ×%d", s.name, s.n))
		}
	}
	m.mu.Unlock()
	if busy != nil {
		parts = append(parts, strings.Join(busy, " "))
	}
	if m.opt.Memory != nil {
		live, limit := m.opt.Memory()
		mem := humanize.IBytes(uint64(max(live, 0)))
		if limit > 0 {
			mem += " of " + humanize.IBytes(uint64(limit))
		}
		parts = append(parts, mem)
	}
	if m.opt.Note != nil {
		if note := m.opt.Note(); note != "" {
			parts = append(parts, note)
		}
	}
	return strings.Join(parts, ", ")
}

// line is the state as one line of text.
func (m *Meter) line() string {
	done, total := m.counts()
	count := fmt.Sprintf("%d %s", done, m.opt.Unit)
	if total >= 0 {
		count = fmt.Sprintf("%d of %d %s", done, total, m.opt.Unit)
	}
	parts := []string{count, time.Since(m.start).Round(time.Second).String()}
	if s := m.status(); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// lines is the display without a terminal.
type lines struct {
	quit chan struct{}
	done chan struct{}
}

func newLines(m *Meter) *lines {
	l := &lines{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(l.done)
		tick := time.NewTicker(m.opt.Interval)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-tick.C:
				if done, total := m.counts(); done == total && done > 0 {
					continue // only the end is missing
				}
				_, _ = fmt.Fprintf(m.opt.Out, "snarkline: %s\n", m.line())
			}
		}
	}()
	return l
}

func (l *lines) stop() {
	close(l.quit)
	<-l.done
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
