package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// op is one call's work on a card.
type op struct {
	name string
	stat method
	// least and most are the device memory that the operation takes: what it
	// gets lies between them, and the work is cut to fit. most is what is stated
	// to be needed, and least what it cannot do without.
	least, most int64
	stays       int64 // of it, what is to be on the card from then on
	// spoils says that the vectors the job holds may be overwritten by an attempt
	// that fails, or be lost with the device: it must begin again then.
	spoils bool
	body   func(t *task) error
}

// task is an attempt at an op, on a worker. Its methods are for the body, which
// runs on the worker's goroutine.
type task struct {
	ctx  context.Context
	e    *Engine
	sc   *alloc.Scope
	l    *lane
	st   gpu.Stream
	args *gpu.Args
	gen  uint64
	room int64 // device memory that is left of what the ledger granted

	touched bool // what the job holds was overwritten
	scratch []piece
	ends    []func()     // run once nothing is under way any more
	finish  func() error // what is left to do without the device
	charges []*alloc.Charge
}

// piece is memory of the stream-ordered pool.
type piece struct {
	ptr   gpu.Ptr
	bytes int64
}

// run does an op: it waits for memory and a worker, and tries again with less
// where memory was short.
func (e *Engine) run(ctx context.Context, sc *alloc.Scope, o *op) error {
	for level := 0; ; level++ {
		begun, lost, err := e.attempt(ctx, sc, o, level)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %s: %w", e.card.name, o.name, context.Cause(ctx))
		}
		var bad argumentError
		var over *alloc.OverdrawError
		var known *Error
		var gone lostError
		switch {
		case errors.As(err, &bad), errors.As(err, &over), errors.Is(err, gpu.ErrClosed):
			return fmt.Errorf("%s: %s: %w", e.card.name, o.name, err)
		case errors.As(err, &known):
			return err
		case isGone(err):
			err = e.ended(err)
			if begun || level > 0 || e.o.unguarded.reset || errors.Is(err, gpu.ErrLost) {
				return e.fail(o, err, o.spoils || lost)
			}
			// The context was ended by somebody else's work, or being reset: what
			// this operation reads may be from after that.
			e.stats.again.Add(1)
		case errors.As(err, &gone), lost:
			return e.fail(o, err, true)
		case isNoMemory(err):
			if e.o.unguarded.trim || level > 0 && o.most>>(level-1) <= o.least {
				return e.fail(o, err, false)
			}
			if err := e.shrink(ctx, o, level); isGone(err) {
				return e.fail(o, e.ended(err), o.spoils)
			} else if err != nil {
				return e.fail(o, err, false)
			}
		case level > 0:
			return e.fail(o, err, false)
		default:
			// A call that failed for a reason that it alone knows: nothing was
			// spoiled, so it may as well be tried once more.
			e.stats.again.Add(1)
		}
	}
}

// shrink makes room for another try after one that found too little memory: at
// first by what the pools keep without a user, then by what others can do without.
func (e *Engine) shrink(ctx context.Context, o *op, level int) error {
	e.stats.again.Add(1)
	if level > 0 {
		e.card.makeRoom(ctx, o.most)
	}
	return e.card.trim()
}

// isGone reports whether err says that the context has ended, or ended since.
func isGone(err error) bool {
	return errors.Is(err, gpu.ErrSticky) || errors.Is(err, gpu.ErrReset)
}

// fail is the error of an op that failed.
func (e *Engine) fail(o *op, err error, start bool) error {
	out := &Error{Device: e.card.name, Op: o.name, Start: start || errors.Is(err, gpu.ErrLost), Err: err}
	if isNoMemory(err) {
		out.Asked = o.least
		var room *roomError
		if errors.As(err, &room) {
			out.Free = room.left
		} else if free, _, ferr := e.card.Memory(); ferr == nil {
			out.Free = free
		}
	}
	return out
}

// attempt is one try. It reports whether anything of it was done on the card, and
// whether what the job holds was spoiled.
func (e *Engine) attempt(ctx context.Context, sc *alloc.Scope, o *op, level int) (begun, lost bool, err error) {
	most := o.most
	if level > 1 {
		most = max(o.least, most>>(level-1))
	}
	since := time.Now()
	room, err := e.card.mem.acquire(ctx, o.least, most, o.stays)
	if err != nil {
		return false, false, err
	}
	var t *task
	defer func() {
		if t != nil {
			room = t.room // the rest has another owner now
		}
		e.card.mem.give(working, room)
	}()
	err = e.pool.workers.Do(ctx, func(w *gpu.Worker) error {
		e.stats.waited(o.stat, time.Since(since))
		l := e.pool.lanes[w.Index()]
		if err := l.ready(w.Generation()); err != nil {
			return err
		}
		t = &task{ctx: ctx, e: e, sc: sc, l: l, st: w.Stream(), args: w.Args(), gen: w.Generation(), room: room}
		return t.run(o)
	})
	if t == nil {
		return false, false, err
	}
	if err == nil && t.finish != nil {
		err = t.finish()
	}
	return true, t.touched && err != nil, err
}

// run is the part of an attempt that is on the worker.
func (t *task) run(o *op) (err error) {
	t.e.stats.busy.begin(t.e.card, t.st, t.gen)
	if err := t.st.Record(t.l.from); err != nil {
		return err
	}
	err = o.body(t)
	if e := t.end(o); err == nil {
		err = e
	}
	return err
}

// end waits for what was queued, whatever came of it, and frees. It is one wait
// for the whole operation.
func (t *task) end(o *op) error {
	var first error
	keep := func(err error) {
		if first == nil && err != nil && !t.e.o.unguarded.status {
			first = err
		}
	}
	// Copies on the belt may be on their way to memory that is freed next: where
	// the body failed, the work in the stream does not wait for them.
	if err := t.l.belt.drain(); err != nil {
		keep(err)
		t.touched = true // what was brought may be under way still
	}
	for _, p := range t.scratch {
		// It holds scalars of the witness.
		keep(t.st.Fill(p.ptr, 0, p.bytes))
		keep(t.st.FreeAsync(p.ptr))
	}
	keep(t.st.Record(t.l.to))
	keep(drain(t.st))
	t.l.read = [2]bool{}
	for _, c := range t.charges {
		t.e.card.taken.Add(-c.Bytes())
		c.Release()
	}
	for i := len(t.ends) - 1; i >= 0; i-- {
		t.ends[i]()
	}
	if first == nil {
		ms, err := t.l.to.Since(t.l.from)
		if isGone(err) {
			return err
		}
		if err == nil { // a time that is not known spoils no result
			t.e.stats.add(o.stat, ms)
			t.e.stats.busy.add(t.l.from, t.l.to, t.gen)
		}
	}
	return first
}

// take is n bytes of scratch for the operation, out of what was granted.
func (t *task) take(n int64, p alloc.Purpose) (gpu.Ptr, error) {
	if n == 0 {
		return 0, nil
	}
	if n > t.room {
		return 0, fmt.Errorf("%d bytes of scratch, %d are left of what was granted: %w", n, t.room, gpu.ErrNoMemory)
	}
	charge, err := alloc.Foreign(t.sc.In(t.e.card.space), p, n)
	if err != nil {
		return 0, err
	}
	ptr, err := t.st.AllocAsync(n)
	if errors.Is(err, gpu.ErrNoMemory) && !t.e.o.unguarded.trim {
		// The stream-ordered pool does not see what the other one keeps.
		if err = t.e.card.trim(); err == nil {
			ptr, err = t.st.AllocAsync(n)
		}
	}
	if err != nil {
		charge.Release()
		return 0, err
	}
	t.e.card.taken.Add(n)
	t.charges = append(t.charges, charge)
	t.scratch = append(t.scratch, piece{ptr, n})
	t.room -= n
	t.ends = append(t.ends, func() { t.room += n })
	return ptr, nil
}

// check is the context's error.
func (t *task) check() error { return context.Cause(t.ctx) }

// after runs f once nothing of the operation is under way any more.
func (t *task) after(f func()) { t.ends = append(t.ends, f) }

// carved hands out parts of one piece of scratch, each 256-byte aligned.
type carved struct{ at, end gpu.Ptr }

// aligned is n rounded up to what carve takes for it.
func aligned(n int64) int64 { return (n + 255) &^ 255 }

func (c *carved) carve(n int64) gpu.Ptr {
	p := c.at
	c.at += gpu.Ptr(aligned(n))
	if c.at > c.end {
		return 0
	}
	return p
}
