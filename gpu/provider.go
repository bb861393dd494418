package gpu

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
)

// deviceProvider is the memory of one generation of a device. A Reset ends it:
// what came from it then frees to nothing, and the next generation has a
// provider of its own, so that alloc's pool never hands out an address of a
// context that is gone.
type deviceProvider struct {
	use *Providers
	dev Device
	gen uint64

	mu     sync.Mutex // of fill
	fill   Stream
	closed bool // fill is kept no more: what is freed late has one for itself
}

func (p *deviceProvider) stale() bool { return p.dev.Generation() != p.gen }

// Ended reports whether a Reset has taken the memory. Until the provider is
// renewed, alloc's pool would hand it out otherwise.
func (p *deviceProvider) Ended() bool { return p.stale() }

// Alloc takes memory that any stream can use. Where there is none it gives back
// what both pools keep, which the other one cannot see, and asks once more.
func (p *deviceProvider) Alloc(n int64) (alloc.Region, error) {
	if err := Lost(p.dev); err != nil {
		return alloc.Region{}, err
	}
	if p.stale() {
		// Whoever reset the device did not say so. What asks now is of the
		// time before and must begin again anyway.
		return alloc.Region{}, errors.Join(&StaleError{Device: name(p.dev), What: "the memory"}, p.use.Renew(p.dev))
	}
	a, err := p.dev.Alloc(n)
	if errors.Is(err, ErrNoMemory) && !p.use.naive {
		if err := trim(p.dev); err != nil {
			return alloc.Region{}, err
		}
		a, err = p.dev.Alloc(n)
	}
	if err != nil {
		return alloc.Region{}, err
	}
	if p.stale() {
		return alloc.Region{}, errors.Join(&StaleError{Device: name(p.dev), What: "the memory"}, p.dev.Free(a))
	}
	return alloc.Region{Addr: uintptr(a), Size: n}, nil
}

// trim gives back what alloc's pool and the stream-ordered pool of a device keep.
func trim(d Device) error {
	alloc.Default().TrimPoolOf(d.Space())
	return d.Trim(0)
}

// Free gives memory back. Memory of a context that has ended went with it, but
// the device is told in any case: it may count how often it handed an address out.
func (p *deviceProvider) Free(r alloc.Region) error {
	if err := p.dev.Free(Ptr(r.Addr)); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// Fill sets memory on a stream of its own and waits for that. What was in a
// context that has ended needs no wiping: it cannot be reached any more.
func (p *deviceProvider) Fill(r alloc.Region, n int64, v byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stale() {
		return nil
	}
	st := p.fill
	if st == nil {
		var err error
		if st, err = p.dev.NewStream(true); isGone(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fill memory of %s: %w", name(p.dev), err)
		}
		if !p.closed {
			p.fill = st
		}
	}
	err := st.Fill(Ptr(r.Addr), v, n)
	if err == nil {
		err = st.Sync()
	}
	if p.closed {
		err = errors.Join(err, st.Close())
	}
	if isGone(err) || p.stale() {
		return nil
	}
	return err
}

func (p *deviceProvider) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.fill == nil {
		return nil
	}
	err := p.fill.Close()
	p.fill = nil
	if isGone(err) {
		return nil
	}
	return err
}

// pinnedProvider is page-locked host memory. It stays readable when the device
// that gave it is reset.
type pinnedProvider struct {
	use   *Providers
	mu    sync.Mutex
	owner map[uintptr]Device
}

// Alloc takes memory from the first device that is in order.
func (p *pinnedProvider) Alloc(n int64) (alloc.Region, error) {
	err := ErrNoDevice
	for _, dev := range p.use.devs {
		var at unsafe.Pointer
		if at, err = dev.AllocPinned(n); err == nil {
			p.mu.Lock()
			p.owner[uintptr(at)] = dev
			p.mu.Unlock()
			return alloc.Region{Bytes: unsafe.Slice((*byte)(at), n), Addr: uintptr(at), Size: n}, nil
		}
		if !isGone(err) {
			break
		}
	}
	return alloc.Region{}, err
}

// Free gives it back. An error other than that the context has ended means that
// the device may still write there, and keeps the pages.
func (p *pinnedProvider) Free(r alloc.Region) error {
	p.mu.Lock()
	dev := p.owner[r.Addr]
	delete(p.owner, r.Addr)
	p.mu.Unlock()
	if dev == nil {
		return fmt.Errorf("free page-locked memory at %#x: there is none", r.Addr)
	}
	if err := dev.FreePinned(toPointer(r.Addr)); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// Fill is not called for memory with Bytes.
func (p *pinnedProvider) Fill(r alloc.Region, n int64, v byte) error {
	for i := range r.Bytes[:n] {
		r.Bytes[i] = v
	}
	return nil
}
