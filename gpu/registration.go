package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
)

// Registration is a range of host memory that is page-locked until its last
// Release. It begins with one reference and is an alloc.Ref.
type Registration struct {
	r     *Registry
	p     unsafe.Pointer
	n     int64
	spans []*span
	hold  alloc.Ref    // the memory, if the registration keeps it
	extra atomic.Int32 // references but one; −1 once they are ended
}

func newRegistration(r *Registry, p unsafe.Pointer, n int64, spans []*span) *Registration {
	return &Registration{r: r, p: p, n: n, spans: spans}
}

// HostBuffer is an *alloc.Buffer of any type.
type HostBuffer interface {
	alloc.Ref
	Addr() uintptr
}

// PinBuffer is Pin of a buffer's memory, of which it keeps a reference until
// the registration's end. A buffer of alloc.Pinned needs no registration and
// gets one that does nothing else.
func (r *Registry) PinBuffer(dev Device, sc *alloc.Scope, b HostBuffer) (*Registration, error) {
	p, n := toPointer(b.Addr()), b.Bytes()
	if n == 0 || b.Space() == alloc.Pinned {
		b.Retain()
		return &Registration{r: r, p: p, n: n, hold: b}, nil
	}
	if b.Space() != alloc.Host {
		return nil, fmt.Errorf("register host memory: a buffer of %v memory", b.Space())
	}
	b.Retain()
	reg, err := r.Pin(dev, sc, p, n)
	if err != nil {
		b.Release()
		return nil, err
	}
	reg.hold = b
	return reg, nil
}

// Retain takes another reference. Only the holder of one may call it.
func (g *Registration) Retain() {
	for {
		n := g.extra.Load()
		if n < 0 {
			panic(&alloc.UseAfterFreeError{What: "Retain", Ref: g.describe()})
		}
		if g.extra.CompareAndSwap(n, n+1) {
			return
		}
	}
}

// Release ends a reference. The last one ends the use of the pages, which
// unregisters those that nobody else uses; the work that reads or writes them
// must be done by then.
func (g *Registration) Release() {
	for {
		n := g.extra.Load()
		if n < 0 {
			panic(&alloc.DoubleReleaseError{Ref: g.describe()})
		}
		if !g.extra.CompareAndSwap(n, n-1) {
			continue
		}
		if n == 0 {
			g.r.end(g.spans)
			if g.hold != nil {
				g.hold.Release()
			}
		}
		return
	}
}

func (g *Registration) describe() string {
	return fmt.Sprintf("a registration of %d bytes of host memory", g.n)
}

// Bytes is the size of the range. What is counted is whole pages.
func (g *Registration) Bytes() int64 { return g.n }

// Space is alloc.Pinned.
func (g *Registration) Space() alloc.Space { return alloc.Pinned }

// Ptr is where the range begins.
func (g *Registration) Ptr() unsafe.Pointer { return g.p }

// Pieces calls f for the parts of n bytes from off on that lie each within one
// registration, in order, until it fails: drivers refuse a copy that passes
// from one registration into another.
func (g *Registration) Pieces(off, n int64, f func(off, n int64) error) error {
	if off < 0 || n < 0 || off > g.n || n > g.n-off {
		return fmt.Errorf("%d bytes at offset %d of a registration of %d bytes", n, off, g.n)
	}
	at, end := uintptr(g.p)+uintptr(off), uintptr(g.p)+uintptr(off+n)
	if len(g.spans) == 0 && n > 0 {
		return f(off, n)
	}
	for _, s := range g.spans {
		if at >= end {
			return nil
		}
		if s.to <= at {
			continue
		}
		to := min(s.to, end)
		if err := f(int64(at-uintptr(g.p)), int64(to-at)); err != nil {
			return err
		}
		at = to
	}
	return nil
}

// CopyIn queues a copy of n bytes from offset off of the range to dst.
func (g *Registration) CopyIn(st Stream, dst Ptr, off, n int64) error {
	return g.Pieces(off, n, func(o, k int64) error {
		return st.CopyIn(dst+Ptr(o-off), unsafe.Add(g.p, o), k)
	})
}

// CopyOut queues a copy of n bytes from src to offset off of the range.
func (g *Registration) CopyOut(st Stream, off int64, src Ptr, n int64) error {
	return g.Pieces(off, n, func(o, k int64) error {
		return st.CopyOut(unsafe.Add(g.p, o), src+Ptr(o-off), k)
	})
}

// isGone reports whether err says that the context has ended, or ended since,
// and with it all that was in it.
func isGone(err error) bool { return errors.Is(err, ErrSticky) || errors.Is(err, ErrReset) }
