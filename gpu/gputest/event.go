package gputest

import (
	"time"

	"github.com/snarkline/snarkline/gpu"
)

type event struct {
	d      *Device
	gen    uint64
	mark   *mark
	closed bool
}

// mark is one recording of an event.
type mark struct {
	done bool
	at   time.Time
}

// NewEvent makes an event.
func (d *Device) NewEvent(bool) (gpu.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuEventCreate", ""); err != nil {
		return nil, err
	}
	d.events++
	return &event{d: d, gen: d.gen}, nil
}

func (e *event) enter(name string) error {
	if e.gen != e.d.gen {
		return e.d.failure(name, ended, "")
	}
	if e.closed {
		return e.d.failure(name, badHandle, "")
	}
	return e.d.call(name, "")
}

func (e *event) Done() (bool, error) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if err := e.enter("cuEventQuery"); err != nil {
		return false, err
	}
	return e.mark == nil || e.mark.done, nil
}

func (e *event) Sync() error {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if err := e.enter("cuEventSynchronize"); err != nil {
		return err
	}
	for m := e.mark; m != nil && !m.done && e.d.sticky == nil && e.gen == e.d.gen; {
		e.d.wake.Wait()
	}
	if e.gen != e.d.gen {
		return e.d.failure("cuEventSynchronize", ended, "")
	}
	return e.d.sticky
}

func (e *event) Since(earlier gpu.Event) (float64, error) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if err := e.enter("cuEventElapsedTime"); err != nil {
		return 0, err
	}
	f, ok := earlier.(*event)
	if !ok || f.mark == nil || e.mark == nil || !f.mark.done || !e.mark.done {
		return 0, e.d.failure("cuEventElapsedTime", badHandle, "")
	}
	return float64(e.mark.at.Sub(f.mark.at)) / 1e6, nil
}

func (e *event) Close() error {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if e.closed || e.gen != e.d.gen {
		return nil
	}
	err := e.d.back("cuEventDestroy", "")
	if err == nil || e.d.sticky != nil {
		e.closed = true
		e.d.events--
	}
	return err
}
