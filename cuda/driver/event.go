//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/gpu"
)

// event implements gpu.Event.
type event struct {
	p *primary
	handle
	timed bool
}

// Flags of an event.
const (
	eventBlocking = 1 // who waits for it sleeps
	eventUntimed  = 2
)

func (d *device) NewEvent(timed bool) (gpu.Event, error) {
	p, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer p.exit()
	flags := uintptr(eventBlocking)
	if !timed {
		flags |= eventUntimed
	}
	d.events.handing.RLock()
	defer d.events.handing.RUnlock()
	var h uintptr
	if st := invoke(d.api.eventCreate, uintptr(unsafe.Pointer(&h)), flags); st != 0 {
		return nil, p.fail(st, d.api.eventCreate, "on "+d.String())
	}
	e := &event{p: p, timed: timed}
	e.Store(h)
	d.events.add(h, 0)
	return e, nil
}

func (e *event) enter() (uintptr, error) { return e.p.enterFor(&e.handle, "an event") }

func (e *event) Done() (bool, error) {
	h, err := e.enter()
	if err != nil {
		return false, err
	}
	defer e.p.exit()
	switch st := quick(e.p.dev.api.eventQuery, h, 0, 0, 0); st {
	case 0:
		return true, nil
	case codeNotReady:
		return false, nil
	default:
		return false, e.p.fail(st, e.p.dev.api.eventQuery, "an event of "+e.p.dev.String())
	}
}

func (e *event) Sync() error {
	h, err := e.enter()
	if err != nil {
		return err
	}
	defer e.p.exit()
	if st := quick(e.p.dev.api.eventSync, h, 0, 0, 0); st != 0 {
		return e.p.fail(st, e.p.dev.api.eventSync, "an event of "+e.p.dev.String())
	}
	return nil
}

func (e *event) Since(earlier gpu.Event) (float64, error) {
	from, ok := earlier.(*event)
	if !ok {
		return 0, fmt.Errorf("time between events of %v: %T is no event of this driver", e.p.dev, earlier)
	}
	if !e.timed || !from.timed {
		return 0, fmt.Errorf("time between events of %v: they are not timed", e.p.dev)
	}
	h, err := e.enter()
	if err != nil {
		return 0, err
	}
	defer e.p.exit()
	if from.p != e.p {
		return 0, fmt.Errorf("time between events of %v: %w", e.p.dev, from.p.strange(e.p.dev, "the earlier one"))
	}
	f := from.Load()
	if f == 0 {
		return 0, fmt.Errorf("time between events of %v: the earlier one: %w", e.p.dev, gpu.ErrClosed)
	}
	var ms float32
	if st := invoke(e.p.dev.api.eventElapsed, uintptr(unsafe.Pointer(&ms)), f, h); st != 0 {
		return 0, e.p.fail(st, e.p.dev.api.eventElapsed, "two events of "+e.p.dev.String())
	}
	return float64(ms), nil
}

func (e *event) Close() error {
	return e.p.close(&e.handle, &e.p.dev.events, e.p.dev.api.eventDestroy, "an event")
}
