package gpu

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// Reaper ends references when a device is done with them: a copy that runs on
// its own needs its host and device memory until then, and no stage should wait
// on the host for that. One goroutine a device looks after all streams; what
// was queued in one stream ends in order, and no stream waits for another's.
//
// When the context ends by a sticky error, the device has stopped: everything
// is ended at once, exactly once, and the functions are told why.
type Reaper struct {
	dev Device

	mu      sync.Mutex
	lines   []*line
	spare   []Event // of generation spareGen
	sgen    uint64
	seq     uint64
	pending int64
	bytes   int64
	flushes []flush
	closed  bool
	thrown  []error

	wake chan struct{}
	done chan struct{}
}

// line is what waits for one stream, or for one event of somebody else's.
type line struct {
	st    Stream
	queue []*reap
}

type reap struct {
	seq   uint64
	gen   uint64
	st    Stream // where there is no event: the stream is waited for
	ev    Event
	own   bool // ev is the reaper's
	refs  []alloc.Ref
	f     func(error)
	bytes int64
	tries int
}

type flush struct {
	seq uint64
	ch  chan struct{}
}

// What a failing question is answered by, when it is not a sticky error: it is
// asked again, this often, since memory that may still be written to must not
// be let go of lightly.
const (
	reapTries = 50
	reapFirst = 20 * time.Microsecond
	reapLast  = time.Millisecond
)

// NewReaper starts a device's reaper. Close it before the device.
func NewReaper(dev Device) *Reaper {
	r := &Reaper{dev: dev, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r
}

// After ends the references refs, which the caller gives up, and then calls f
// (which may be nil), when all work that is in st now is done. It does not
// wait. f gets nil, or why it is not known that the work was done: then its
// results are not to be used. f must be quick; it runs on the reaper's goroutine.
func (r *Reaper) After(st Stream, f func(error), refs ...alloc.Ref) {
	e := &reap{gen: r.dev.Generation(), st: st, f: f, refs: refs}
	if ev, err := r.event(e.gen); err == nil {
		if err = st.Record(ev); err == nil {
			e.ev, e.own = ev, true
		} else {
			r.keep(ev, e.gen)
		}
	}
	// Without an event the reaper waits for the whole stream.
	r.add(e, st)
}

// AfterEvent is After for an event of the caller's, which must have been
// recorded and must not be recorded again or closed before f was called.
func (r *Reaper) AfterEvent(ev Event, f func(error), refs ...alloc.Ref) {
	r.add(&reap{gen: r.dev.Generation(), ev: ev, f: f, refs: refs}, nil)
}

func (r *Reaper) add(e *reap, st Stream) {
	for _, ref := range e.refs {
		if ref != nil {
			e.bytes += ref.Bytes()
		}
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.late(e)
		return
	}
	r.seq++
	e.seq = r.seq
	r.pending++
	r.bytes += e.bytes
	var l *line
	if st != nil {
		if i := slices.IndexFunc(r.lines, func(l *line) bool { return l.st == st }); i >= 0 {
			l = r.lines[i]
		}
	}
	if l == nil {
		l = &line{st: st}
		r.lines = append(r.lines, l)
	}
	l.queue = append(l.queue, e)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// late serves what comes after Close: the caller waits.
func (r *Reaper) late(e *reap) {
	for {
		if done, err := r.reached(e); done {
			r.finish(e, err)
			return
		}
		time.Sleep(reapFirst)
	}
}

// event is one that nobody uses.
func (r *Reaper) event(gen uint64) (Event, error) {
	r.mu.Lock()
	if k := len(r.spare) - 1; k >= 0 && r.sgen == gen {
		ev := r.spare[k]
		r.spare = r.spare[:k]
		r.mu.Unlock()
		return ev, nil
	}
	r.mu.Unlock()
	return r.dev.NewEvent(false)
}

// keep puts an event by for the next.
func (r *Reaper) keep(ev Event, gen uint64) {
	r.mu.Lock()
	var old []Event
	if r.sgen != gen {
		old, r.spare, r.sgen = r.spare, nil, gen
	}
	if !r.closed && len(r.spare) < 64 && r.dev.Generation() == gen {
		r.spare = append(r.spare, ev)
	} else {
		old = append(old, ev)
	}
	r.mu.Unlock()
	r.drop(old)
}

func (r *Reaper) drop(events []Event) {
	for _, ev := range events {
		if err := ev.Close(); err != nil && !isGone(err) {
			r.failed(err)
		}
	}
}

func (r *Reaper) failed(err error) {
	r.mu.Lock()
	r.thrown = append(r.thrown, err)
	r.mu.Unlock()
}

func (r *Reaper) run() {
	defer close(r.done)
	pause := reapFirst
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		some, left := r.round()
		r.answer()
		if some {
			pause = reapFirst
		}
		if left {
			timer.Reset(pause)
			pause = min(2*pause, reapLast)
			select {
			case <-timer.C:
			case <-r.wake:
				pause = reapFirst
			}
			continue
		}
		r.mu.Lock()
		stop := r.closed && r.pending == 0
		r.mu.Unlock()
		if stop {
			return
		}
		<-r.wake
		pause = reapFirst
	}
}

// round ends what is done in every line. It reports whether there was some and
// whether some is left.
func (r *Reaper) round() (some, left bool) {
	r.mu.Lock()
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	for _, l := range lines {
		for {
			r.mu.Lock()
			if len(l.queue) == 0 {
				if i := slices.Index(r.lines, l); i >= 0 {
					r.lines = slices.Delete(r.lines, i, i+1)
				}
				r.mu.Unlock()
				break
			}
			e := l.queue[0]
			r.mu.Unlock()
			done, err := r.reached(e)
			if !done {
				left = true
				break
			}
			some = true
			r.finish(e, err)
			r.mu.Lock()
			l.queue[0] = nil
			l.queue = l.queue[1:]
			r.pending--
			r.bytes -= e.bytes
			r.mu.Unlock()
		}
	}
	r.mu.Lock()
	left = left || r.pending > 0
	r.mu.Unlock()
	return some, left
}

// reached reports whether e's work is done, or never will be.
func (r *Reaper) reached(e *reap) (bool, error) {
	if r.dev.Generation() != e.gen {
		return true, &StaleError{Device: name(r.dev), What: "work in a stream"}
	}
	var done bool
	var err error
	if e.ev != nil {
		done, err = e.ev.Done()
	} else if err = e.st.Sync(); err == nil {
		done = true
	}
	switch {
	case err == nil:
		return done, nil
	case isGone(err):
		return true, err
	}
	e.tries++
	if e.tries < reapTries {
		return false, nil
	}
	return true, fmt.Errorf("it is not known whether a stream of %s is done: %w", name(r.dev), err)
}

// finish ends e's references and calls its function. What they throw is kept
// for Close: the goroutine is everybody's.
func (r *Reaper) finish(e *reap, err error) {
	for _, ref := range e.refs {
		if ref != nil {
			r.guard(ref.Release)
		}
	}
	e.refs = nil
	if e.f != nil {
		r.guard(func() { e.f(err) })
	}
	if e.own {
		r.keep(e.ev, e.gen)
	}
}

func (r *Reaper) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			r.failed(&PanicError{Value: v, Stack: string(debug.Stack())})
		}
	}()
	f()
}

// answer wakes the flushes that have nothing left to wait for.
func (r *Reaper) answer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.flushes) == 0 {
		return
	}
	oldest := r.seq + 1
	for _, l := range r.lines {
		if len(l.queue) > 0 {
			oldest = min(oldest, l.queue[0].seq)
		}
	}
	r.flushes = slices.DeleteFunc(r.flushes, func(f flush) bool {
		if f.seq < oldest {
			close(f.ch)
			return true
		}
		return false
	})
}

// Flush waits until all that was queued before is ended. A function that the
// reaper runs must not call it.
func (r *Reaper) Flush() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.done
		return
	}
	if r.pending == 0 {
		r.mu.Unlock()
		return
	}
	f := flush{r.seq, make(chan struct{})}
	r.flushes = append(r.flushes, f)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	<-f.ch
}

// Pending is how many calls of After are not ended, and the bytes they hold.
func (r *Reaper) Pending() (n, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending, r.bytes
}

// Close waits for all that was queued, and says what was thrown meanwhile. After
// it, After waits itself.
func (r *Reaper) Close() error {
	r.mu.Lock()
	r.closed = true
	spare := r.spare
	r.spare = nil
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	<-r.done
	r.drop(spare)
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.thrown...)
	r.thrown = nil
	return err
}
