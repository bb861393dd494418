//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/gpu"
)

// Flags of a registration.
const (
	registerPortable = 1
	registerReadOnly = 8
)

// pinned is the page-locked memory of AllocPinned. It is a mapping of our own
// that is registered, and not what cuMemHostAlloc gives: that would be unmapped
// when a Reset destroys the context, under whoever is reading it.
type pinned struct {
	mu sync.Mutex
	m  map[uintptr]*pinnedBlock
}

type pinnedBlock struct {
	bytes  []byte
	locked bool // in the present context
}

func (d *device) AllocPinned(n int64) (unsafe.Pointer, error) {
	if n <= 0 {
		return nil, fmt.Errorf("allocate %d bytes of pinned memory: the size must be positive", n)
	}
	p, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer p.exit()
	page := int64(unix.Getpagesize())
	b, err := unix.Mmap(-1, 0, int((n+page-1)/page*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %s to pin: %w", size(n), err)
	}
	if n >= 2<<20 {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // fewer pages to pin; not every system has them
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	if st := invoke(d.api.hostRegister, uintptr(at), uintptr(len(b)), registerPortable); st != 0 {
		_ = unix.Munmap(b)
		return nil, p.fail(st, d.api.hostRegister, size(n)+" of pinned host memory")
	}
	d.pinned.mu.Lock()
	defer d.pinned.mu.Unlock()
	if d.pinned.m == nil {
		d.pinned.m = make(map[uintptr]*pinnedBlock)
	}
	d.pinned.m[uintptr(at)] = &pinnedBlock{bytes: b, locked: true}
	return at, nil
}

func (d *device) FreePinned(at unsafe.Pointer) error {
	if at == nil {
		return nil
	}
	for {
		p, err := d.enter()
		if err == nil {
			defer p.exit()
			return d.unpin(p, uintptr(at), nil)
		}
		again, err := d.unpinEnded(uintptr(at), err)
		if !again {
			return err
		}
	}
}

// unpinEnded is unpin where no call can be made, because of err. again says that
// a Reset has come in between, so that one can.
func (d *device) unpinEnded(at uintptr, err error) (again bool, _ error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.Sticky() == nil && !d.closed.Load() {
		return errors.Is(err, gpu.ErrSticky), err
	}
	return false, d.unpin(nil, at, err)
}

// unpin unregisters and unmaps a block. Without p the context has ended, by
// err, and holds no block any more. mu is held.
func (d *device) unpin(p *primary, at uintptr, err error) error {
	l := &d.pinned
	l.mu.Lock()
	block := l.m[at]
	delete(l.m, at)
	l.mu.Unlock()
	if block == nil {
		return fmt.Errorf("free pinned memory at %#x: %v has none there", at, d)
	}
	switch {
	case !block.locked:
		err = nil
	case p != nil:
		if st := p.end(new(ledger), d.api.hostUnregister, at); st != 0 {
			err = p.fail(st, d.api.hostUnregister, fmt.Sprintf("%#x, %s of pinned memory", at, size(int64(len(block.bytes)))))
			if p.sticky.Load() == nil && !st.unknown() {
				// The card may still write there: the mapping must stay.
				l.mu.Lock()
				l.m[at] = block
				l.mu.Unlock()
				return err
			}
		}
	}
	if d.lost.Load() != nil {
		return d.retire(block)
	}
	if e := unix.Munmap(block.bytes); e != nil && err == nil {
		err = fmt.Errorf("unmap pinned memory at %#x: %w", at, e)
	}
	return err
}

// retire is the end of a block of a device that is lost. The driver could not be
// told, and may hold the pages for as long as the process lives: they are given
// back as far as that is ours to do, and the addresses are not, so that nobody
// who is given them anew finds them registered.
func (d *device) retire(block *pinnedBlock) error {
	_ = unix.Madvise(block.bytes, unix.MADV_DONTNEED)
	if err := unix.Mprotect(block.bytes, unix.PROT_NONE); err != nil {
		return fmt.Errorf("retire pinned memory at %p: %w", unsafe.SliceData(block.bytes), err)
	}
	return nil
}

// pass notes that nothing is page-locked any more.
func (l *pinned) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.m {
		b.locked = false
	}
}

// relock locks the pages of all blocks in a new context. One that cannot be
// locked stays as it is: copies are right, and slow.
func (l *pinned) relock(p *primary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.m) == 0 || p.current() != nil {
		return
	}
	defer runtime.UnlockOSThread()
	for at, b := range l.m {
		b.locked = invoke(p.dev.api.hostRegister, at, uintptr(len(b.bytes)), registerPortable) == 0
	}
}

// live lists the blocks that are page-locked.
func (l *pinned) live() []uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []uintptr
	for at, b := range l.m {
		if b.locked {
			all = append(all, at)
		}
	}
	return all
}

func (d *device) Register(at unsafe.Pointer, n int64) error {
	if at == nil || n <= 0 {
		return fmt.Errorf("register %d bytes at %p: there must be some", n, at)
	}
	p, err := d.enter()
	if err != nil {
		return err
	}
	defer p.exit()
	d.locked.handing.RLock()
	defer d.locked.handing.RUnlock()
	st := invoke(d.api.hostRegister, uintptr(at), uintptr(n), registerPortable)
	if st == codeInvalidValue || st == codeOperatingSystem || st == codeNotPermitted || st == codeNotSupported {
		// A mapping that cannot be written, of a key's file say.
		if invoke(d.api.hostRegister, uintptr(at), uintptr(n), registerPortable|registerReadOnly) == 0 {
			st = 0
		}
	}
	if st != 0 {
		return p.fail(st, d.api.hostRegister, fmt.Sprintf("%s at %p", size(n), at))
	}
	d.locked.add(uintptr(at), n)
	return nil
}

func (d *device) Unregister(at unsafe.Pointer) error {
	return d.giveBack(&d.locked, d.api.hostUnregister, uintptr(at))
}
