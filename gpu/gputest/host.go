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
	pinned      []byte // memory of AllocPinned
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

// dropAll ends d's registrations. What AllocPinned gave stays, locked.
func (h *host) dropAll(d *Device) {
	h.mu.Lock()
	h.list = slices.DeleteFunc(h.list, func(l lock) bool { return l.d == d && l.pinned == nil })
	h.mu.Unlock()
}

func (h *host) count(d *Device) (registered, pinned int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.list {
		switch {
		case l.d != d:
		case l.pinned != nil:
			pinned++
		default:
			registered++
		}
	}
	return registered, pinned
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
	if d.lost() {
		return nil // it went with the context
	}
	if err := d.back("cuMemHostUnregister", "%#x", uintptr(p)); err != nil {
		return err
	}
	h := d.host
	h.mu.Lock()
	i := slices.IndexFunc(h.list, func(l lock) bool { return l.d == d && l.p == uintptr(p) && l.pinned == nil })
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

// AllocPinned takes page-locked memory. It outlives a Reset.
func (d *Device) AllocPinned(n int64) (unsafe.Pointer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemHostAlloc", "%d bytes", n); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, d.failure("cuMemHostAlloc", invalid, "%d bytes", n)
	}
	b, err := mapPages(n)
	if err != nil {
		return nil, err
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	d.host.mu.Lock()
	d.host.list = append(d.host.list, lock{p: uintptr(p), from: uintptr(p), to: uintptr(p) + uintptr(len(b)), d: d, pinned: b})
	d.host.mu.Unlock()
	return p, nil
}

// FreePinned takes it back, also while the context is ended.
func (d *Device) FreePinned(p unsafe.Pointer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.back("cuMemFreeHost", "%#x", uintptr(p))
	if err != nil && d.sticky == nil {
		return err
	}
	if d.lost() {
		err = nil // only the pages are left
	}
	for s := range d.streams {
		s.drain()
	}
	h := d.host
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.list, func(l lock) bool { return l.d == d && l.p == uintptr(p) && l.pinned != nil })
	if i < 0 {
		return d.failure("cuMemFreeHost", invalid, "%#x", uintptr(p))
	}
	b := h.list[i].pinned
	h.list = slices.Delete(h.list, i, i+1)
	if e := unmapPages(b); e != nil {
		return e
	}
	return err
}
