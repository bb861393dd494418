package gputest

import (
	"os"
	"slices"
	"sync"
	"unsafe"
)

var page = uintptr(os.Getpagesize())

// host is the page-locked memory of the machine, which all devices share.
type host struct {
	mu   sync.Mutex
	list []lock
}

type lock struct {
	p, from, to uintptr
	d           *Device
}

// whole reports whether no registration ends within n bytes from p on: a driver
// refuses to copy from one into another.
func (h *host) whole(p uintptr, n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := p + uintptr(n)
	for _, l := range h.list {
		if l.from < end && p < l.to && (l.from > p || l.to < end) {
			return false
		}
	}
	return true
}

func (h *host) dropAll(d *Device) {
	h.mu.Lock()
	h.list = slices.DeleteFunc(h.list, func(l lock) bool { return l.d == d })
	h.mu.Unlock()
}

func (h *host) count(d *Device) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.list {
		if l.d == d {
			n++
		}
	}
	return n
}

// Locked reports whether the page of p is page-locked.
func (d *Device) Locked(p unsafe.Pointer) bool {
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	return slices.ContainsFunc(d.host.list, func(l lock) bool { return l.from <= uintptr(p) && uintptr(p) < l.to })
}

// Register page-locks whole pages, each at most once on the machine.
func (d *Device) Register(p unsafe.Pointer, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemHostRegister", "%#x, %d bytes", uintptr(p), n); err != nil {
		return err
	}
	if n <= 0 {
		return d.failure("cuMemHostRegister", invalid, "%#x, %d bytes", uintptr(p), n)
	}
	l := lock{p: uintptr(p), from: uintptr(p) &^ (page - 1), to: (uintptr(p) + uintptr(n) + page - 1) &^ (page - 1), d: d}
	h := d.host
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.list {
		if o.from < l.to && l.from < o.to {
			return d.failure("cuMemHostRegister", registered, "%#x, %d bytes", uintptr(p), n)
		}
	}
	h.list = append(h.list, l)
	return nil
}

// Unregister ends a registration of this device's.
func (d *Device) Unregister(p unsafe.Pointer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemHostUnregister", "%#x", uintptr(p)); err != nil {
		return err
	}
	h := d.host
	h.mu.Lock()
	i := slices.IndexFunc(h.list, func(l lock) bool { return l.d == d && l.p == uintptr(p) })
	if i < 0 {
		h.mu.Unlock()
		if d.gen > 0 {
			return nil // perhaps of an earlier generation
		}
		return d.failure("cuMemHostUnregister", unregistered, "%#x", uintptr(p))
	}
	l := h.list[i]
	h.list = slices.Delete(h.list, i, i+1)
	h.mu.Unlock()
	for s := range d.streams {
		for _, o := range s.queue {
			if o.host[0] < l.to && l.from < o.host[1] {
				d.violations = append(d.violations, "pages are unregistered while a copy of them is queued")
			}
		}
	}
	return nil
}

// AllocPinned takes page-locked memory of the driver's own.
func (d *Device) AllocPinned(n int64) (unsafe.Pointer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemHostAlloc", "%d bytes", n); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, d.failure("cuMemHostAlloc", invalid, "%d bytes", n)
	}
	b := make([]byte, n)
	p := unsafe.Pointer(unsafe.SliceData(b))
	d.pinned[p] = b
	return p, nil
}

// FreePinned takes it back.
func (d *Device) FreePinned(p unsafe.Pointer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemFreeHost", "%#x", uintptr(p)); err != nil {
		return err
	}
	if d.pinned[p] == nil && d.gen == 0 {
		return d.failure("cuMemFreeHost", invalid, "%#x", uintptr(p))
	}
	delete(d.pinned, p)
	return nil
}
