//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// device implements gpu.Device.
type device struct {
	drv     *Driver
	api     *api
	ordinal int32
	info    gpu.Info

	// Calls hold mu for reading; Reset and Close, which pull the context away
	// from under handles, for writing.
	mu         sync.RWMutex
	now        atomic.Pointer[primary] // nil before the first use
	broken     atomic.Pointer[gpu.Error]
	lost       atomic.Pointer[gpu.LostError] // once set, the driver is not asked any more
	generation atomic.Uint64
	closed     atomic.Bool

	memory ledger // both pools
	locked ledger // registrations
	// Handles of what is open. They have no late owners: a stream knows whose
	// it is.
	streams, events, modules ledger
	pinned                   pinned

	launches, in, out, within atomic.Int64
}

// primary is the device's context from when it is made until a Reset.
type primary struct {
	dev             *device
	ctx             uintptr
	pool            uintptr // the default stream-ordered pool
	lowest, highest int32   // priorities of streams
	sticky          atomic.Pointer[gpu.Error]
}

func newDevice(d *Driver, ordinal int32, info gpu.Info) *device {
	return &device{drv: d, api: &d.api, ordinal: ordinal, info: info}
}

func (d *device) Info() gpu.Info     { return d.info }
func (d *device) Space() alloc.Space { return alloc.Device(d.info.Index) }
func (d *device) String() string     { return fmt.Sprintf("cuda:%d", d.info.Index) }

// enter makes the context current on the calling thread, making it first if
// there is none. The caller stays on the thread until exit.
func (d *device) enter() (*primary, error) {
	for {
		if e := d.lost.Load(); e != nil {
			return nil, e
		}
		d.mu.RLock()
		if p := d.now.Load(); p != nil {
			if err := p.current(); err != nil {
				d.mu.RUnlock()
				return nil, err
			}
			return p, nil
		}
		d.mu.RUnlock()
		if err := d.open(); err != nil {
			return nil, err
		}
	}
}

// enter is the same for what belongs to p: a stream, an event, a module.
func (p *primary) enter(what string) error {
	p.dev.mu.RLock()
	if p.dev.now.Load() != p {
		defer p.dev.mu.RUnlock()
		return p.stale(what)
	}
	if err := p.current(); err != nil {
		p.dev.mu.RUnlock()
		return err
	}
	return nil
}

// current binds p. On success the OS thread is locked, for exit to unlock.
func (p *primary) current() error {
	if e := p.sticky.Load(); e != nil {
		return e
	}
	runtime.LockOSThread()
	st := quick(p.dev.api.ctxSet, p.ctx, 0, 0, 0)
	if st != 0 && !st.sticky() {
		st = quick(p.dev.api.ctxSet, p.ctx, 0, 0, 0)
	}
	if st != 0 {
		err := p.fail(st, p.dev.api.ctxSet, p.dev.String())
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

func (p *primary) exit() {
	runtime.UnlockOSThread()
	p.dev.mu.RUnlock()
}

// fail makes the error of a call in p, and ends p if it is sticky.
func (p *primary) fail(st status, s symbol, args string) error {
	e := p.dev.api.failure(st, s, args)
	if st.sticky() && !p.sticky.CompareAndSwap(nil, e) {
		return p.sticky.Load()
	}
	return e
}

// stale is the error of using what was made before a Reset, or a Close.
func (p *primary) stale(what string) error {
	if p.dev.closed.Load() {
		return p.dev.closedError()
	}
	if e := p.dev.lost.Load(); e != nil {
		return e
	}
	return &gpu.StaleError{Device: p.dev.String(), What: what}
}

func (d *device) closedError() error { return fmt.Errorf("%v: %w", d, gpu.ErrClosed) }

// open makes the context if there is none.
func (d *device) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return d.closedError()
	}
	if e := d.lost.Load(); e != nil {
		return e
	}
	if e := d.broken.Load(); e != nil {
		return e
	}
	if d.now.Load() != nil {
		return nil
	}
	return d.retain(false)
}

// retain makes the context. probe asks it for something first, to find one that
// a sticky error still holds. mu is held.
func (d *device) retain(probe bool) (err error) {
	a := d.api
	dev := uintptr(d.ordinal)
	if a.ctxFlags.fn != 0 {
		// A host thread that waits should sleep, not spin: other stages want
		// the core. Not every state of the context allows it; nothing depends
		// on it.
		const blockingSync = 4
		invoke(a.ctxFlags, dev, blockingSync)
	}
	var ctx uintptr
	if st := invoke(a.ctxRetain, uintptr(unsafe.Pointer(&ctx)), dev); st != 0 {
		return d.brokenBy(a.failure(st, a.ctxRetain, d.String()))
	}
	p := &primary{dev: d, ctx: ctx}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.release(p))
		}
	}()
	if err := p.current(); err != nil {
		return d.brokenBy(err)
	}
	defer runtime.UnlockOSThread()
	if probe {
		var free, total uint64
		if st := invoke(a.memInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))); st != 0 {
			return d.brokenBy(a.failure(st, a.memInfo, d.String()))
		}
	}
	if st := invoke(a.ctxPriorities, uintptr(unsafe.Pointer(&p.lowest)), uintptr(unsafe.Pointer(&p.highest))); st != 0 {
		return d.brokenBy(a.failure(st, a.ctxPriorities, d.String()))
	}
	if st := invoke(a.devicePool, uintptr(unsafe.Pointer(&p.pool)), dev); st != 0 {
		return d.brokenBy(a.failure(st, a.devicePool, d.String()))
	}
	// By default the pool gives everything back at each synchronisation.
	keep := ^uint64(0)
	if st := invoke(a.poolSet, p.pool, poolThreshold, uintptr(unsafe.Pointer(&keep))); st != 0 {
		return d.brokenBy(a.failure(st, a.poolSet, "release threshold of the pool of "+d.String()))
	}
	// By default work that takes memory may be made to wait for other streams'
	// work which gives some back, while there is enough that nobody has.
	var no int32
	if st := invoke(a.poolSet, p.pool, poolWaits, uintptr(unsafe.Pointer(&no))); st != 0 {
		return d.brokenBy(a.failure(st, a.poolSet, "dependencies by the pool of "+d.String()))
	}
	d.now.Store(p)
	return nil
}

// brokenBy notes a sticky error that stands in the way of a context.
func (d *device) brokenBy(err error) error {
	var e *gpu.Error
	if errors.As(err, &e) && errors.Is(e.Kind, gpu.ErrSticky) {
		d.broken.Store(e)
	}
	return err
}

// release gives the context back. mu is held.
func (d *device) release(p *primary) error {
	a := d.api
	invoke(a.ctxSet, 0)
	st := invoke(a.ctxRelease, uintptr(d.ordinal))
	if st != 0 && a.ctxState.fn != 0 {
		// Once more, if that did nothing: but not the release of somebody else.
		var flags, active int32
		if invoke(a.ctxState, uintptr(d.ordinal), uintptr(unsafe.Pointer(&flags)), uintptr(unsafe.Pointer(&active))) == 0 {
			if st = 0; active != 0 {
				st = invoke(a.ctxRelease, uintptr(d.ordinal))
			}
		}
	}
	if st != 0 {
		return a.failure(st, a.ctxRelease, d.String())
	}
	return nil
}

// end calls s, which gives back what is at address at (or has that handle), and
// once more if that failed: callers that free have no use for an error, and what
// is not freed stays for good. A call may also have freed it and then reported
// something else. So before the second try nobody may be in the middle of being
// handed the address, and if somebody was, there is none.
func (p *primary) end(l *ledger, s symbol, at uintptr, more ...uintptr) status {
	args := [2]uintptr{at}
	list := args[:1+copy(args[1:], more)]
	st := invoke(s, list...)
	if st == 0 || st.sticky() {
		return st
	}
	l.handing.Lock()
	defer l.handing.Unlock()
	if l.holds(at) {
		return 0
	}
	again := invoke(s, list...)
	switch {
	case !again.unknown():
		return again
	case st.unknown():
		return st
	}
	return 0 // the first try did it
}

func (d *device) Bind() error {
	p, err := d.enter()
	if err != nil {
		return err
	}
	p.exit()
	return nil
}

func (d *device) Sticky() error {
	if e := d.lost.Load(); e != nil {
		return e
	}
	if e := d.broken.Load(); e != nil {
		return e
	}
	if p := d.now.Load(); p != nil {
		if e := p.sticky.Load(); e != nil {
			return e
		}
	}
	return nil
}

func (d *device) Generation() uint64 { return d.generation.Load() }

// Reset does nothing where there is no sticky error, so that all who saw it
// may call it. Pinned memory outlives it: it is page-locked anew. Where the
// driver makes no other context, the device is lost: a *gpu.LostError, now and
// from everything after.
func (d *device) Reset() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return d.closedError()
	}
	if e := d.lost.Load(); e != nil {
		return e
	}
	cause := d.Sticky()
	if cause == nil {
		return nil
	}
	p := d.now.Swap(nil)
	d.broken.Store(nil)
	d.generation.Add(1)
	d.pass()

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := d.remake(p)
	if errors.Is(err, gpu.ErrSticky) {
		err = d.remake(nil) // a context that was still ending would be gone by now
	}
	switch {
	case err == nil:
		d.pinned.relock(d.now.Load())
		return nil
	case errors.Is(err, gpu.ErrSticky):
		e := &gpu.LostError{Device: d.String(), Cause: cause, Err: err}
		d.lost.Store(e)
		return e
	}
	return fmt.Errorf("reset %v: %w", d, err)
}

// remake ends the context, of which p is a reference if it is not nil, and makes
// another. mu is held.
func (d *device) remake(p *primary) error {
	// Either of the two destroys the context: the first also where another
	// library of this process holds it. What they report of the error that
	// ended it is no news; whether it is gone is asked of the new one.
	invoke(d.api.ctxSet, 0)
	if invoke(d.api.ctxReset, uintptr(d.ordinal)) != 0 {
		invoke(d.api.ctxReset, uintptr(d.ordinal))
	}
	if p != nil {
		_ = d.release(p)
	}
	return d.retain(true)
}

func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil
	}
	d.closed.Store(true)
	p := d.now.Swap(nil)
	if p == nil {
		return nil
	}
	var err error
	if p.sticky.Load() == nil {
		err = p.empty()
	}
	d.pass()
	return errors.Join(err, d.release(p))
}

// pass notes that the context and all that is in it are gone. mu is held.
func (d *device) pass() {
	d.memory.pass()
	d.locked.pass()
	d.pinned.pass()
	for _, l := range []*ledger{&d.streams, &d.events, &d.modules} {
		l.clear()
	}
}

// empty gives back what p still holds: another library of this process may have
// the context too, so that its end does not come with ours. Pinned memory stays
// mapped until FreePinned, for whoever still reads it. mu is held.
func (p *primary) empty() error {
	if err := p.current(); err != nil {
		return err
	}
	defer runtime.UnlockOSThread()
	d, a := p.dev, p.dev.api
	var all []error
	if st := invoke(a.ctxSync); st != 0 {
		all = append(all, p.fail(st, a.ctxSync, d.String()))
	}
	for _, g := range []struct {
		give symbol
		list []uintptr
	}{
		{a.streamDestroy, d.streams.live()},
		{a.eventDestroy, d.events.live()},
		{a.moduleUnload, d.modules.live()},
		{a.hostUnregister, d.locked.live()},
		{a.hostUnregister, d.pinned.live()},
		{a.memFree, d.memory.live()},
	} {
		for _, at := range g.list {
			if st := p.end(new(ledger), g.give, at); st != 0 {
				all = append(all, p.fail(st, g.give, fmt.Sprintf("%#x on %v", at, d)))
			}
		}
	}
	return errors.Join(all...)
}

// Counts is not part of gpu.Device: ask for it with an interface.
func (d *device) Counts() Counts {
	return Counts{Launches: d.launches.Load(), In: d.in.Load(), Out: d.out.Load(), Within: d.within.Load()}
}
