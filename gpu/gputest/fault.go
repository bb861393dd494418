package gputest

import (
	"fmt"

	"github.com/snarkline/snarkline/gpu"
)

// code is a status as CUDA numbers and names it.
type code struct {
	n    int
	name string
	text string
	kind error
}

var (
	invalid       = code{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument", nil}
	noMemory      = code{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory", gpu.ErrNoMemory}
	deinitialized = code{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down", nil}
	badHandle     = code{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle", nil}
	notFound      = code{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found", nil}
	badAddress    = code{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered", gpu.ErrSticky}
	registered    = code{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped", nil}
	unregistered  = code{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region", nil}
	launchFailed  = code{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure", gpu.ErrSticky}
	ended         = code{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed: it was made before a reset", gpu.ErrSticky}
)

func (d *Device) failure(call string, c code, format string, args ...any) *gpu.Error {
	return &gpu.Error{Call: call, Args: fmt.Sprintf(format, args...), Code: c.n, Name: c.name, Text: c.text, Kind: c.kind}
}

// Fault is how a call is made to fail.
type Fault int

// The faults there are.
const (
	NoMemory Fault = iota // out of memory
	Invalid               // an error that changes nothing
	Sticky                // an error that ends the context
)

type fault struct {
	call string
	left int
	kind Fault
}

// Fail makes the n-th call from now (1 is the next) of that CUDA name fail; ""
// is any call.
func (d *Device) Fail(call string, n int, kind Fault) {
	d.mu.Lock()
	d.faults = append(d.faults, &fault{call, n, kind})
	d.mu.Unlock()
}

// Calls is how many calls there were of that name; "" is all.
func (d *Device) Calls(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name == "" {
		return d.allCalls
	}
	return d.calls[name]
}

// call counts a call that may fail, and fails it if it is to. Callers hold mu.
func (d *Device) call(name, format string, args ...any) error {
	if d.lost() {
		return d.sticky // and the driver is not asked
	}
	d.calls[name]++
	d.allCalls++
	if d.closed {
		return d.failure(name, deinitialized, format, args...)
	}
	if d.sticky != nil {
		return d.sticky
	}
	return d.struck(name, format, args...)
}

// back is call for what gives something back. It is tried twice, as a good
// driver binding does, since nobody would try again later. Callers hold mu.
func (d *Device) back(name, format string, args ...any) error {
	err := d.call(name, format, args...)
	if err != nil && d.sticky == nil && !d.closed {
		err = d.call(name, format, args...)
	}
	return err
}

// Heal forgets the faults that have not met a call.
func (d *Device) Heal() {
	d.mu.Lock()
	d.faults = nil
	d.mu.Unlock()
}

// struck is the fault that meets this call, if one does. Callers hold mu.
func (d *Device) struck(name, format string, args ...any) error {
	var hit *fault
	keep := d.faults[:0]
	for _, f := range d.faults {
		if f.call == "" || f.call == name {
			if f.left--; f.left == 0 {
				hit = f
				continue
			}
		}
		keep = append(keep, f)
	}
	d.faults = keep
	if hit == nil {
		return nil
	}
	switch hit.kind {
	case NoMemory:
		return d.failure(name, noMemory, format, args...)
	case Invalid:
		return d.failure(name, invalid, format, args...)
	}
	d.stick(d.failure(name, launchFailed, format, args...))
	return d.sticky
}

// stick ends the context, once the streams have stopped: nothing reads or
// writes host memory when somebody is told. Callers hold mu.
func (d *Device) stick(err error) {
	gen := d.gen
	d.dying++
	for s := range d.streams {
		for s.busy {
			d.wake.Wait()
		}
	}
	d.dying--
	if d.gen == gen && d.sticky == nil {
		d.sticky = err
		for s := range d.streams {
			s.queue = nil
		}
	}
	d.wake.Broadcast()
}
