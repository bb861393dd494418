package alloc

import (
	"fmt"
	"unsafe"
)

// Region is a piece of memory as a Provider hands it out. Memory that Go can
// read and write has Bytes; other memory has an address alone.
type Region struct {
	Bytes  []byte // nil if Go cannot address it
	Addr   uintptr
	Size   int64
	Zeroed bool // all zero already
}

// Provider supplies the memory of a space. It is called by any goroutine at any
// time. Regions are at least 64-byte aligned.
type Provider interface {
	// Alloc returns a region of at least n > 0 bytes.
	Alloc(n int64) (Region, error)
	// Free takes back what Alloc gave. An error means that the memory is lost.
	Free(Region) error
	// Fill sets the first n bytes of a region to v. It is used to clear and to
	// wipe, and must have happened when it returns. It is not called for
	// regions with Bytes.
	Fill(r Region, n int64, v byte) error
}

// Ender is a Provider whose memory can end all at once, as that of a device does
// which is reset. From when Ended reports so, nothing that it gave is handed out
// anew, whether or not another provider has been registered by then.
type Ender interface{ Ended() bool }

// Register makes p the provider of space s, in place of the one before, and
// returns that one (nil if there was none). Buffers that are live go back to
// the provider they came from. Host has a provider from the start; another one
// must give memory with Bytes, and small buffers (2 KiB at most) share regions
// of it.
func (t *Tracker) Register(s Space, p Provider) (Provider, error) {
	if !s.Valid() {
		return nil, fmt.Errorf("register a provider: %v is not valid", s)
	}
	if s == Host && p == nil {
		return nil, fmt.Errorf("register a provider: there must be one for %v memory", s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var old *Provider
	if p == nil {
		old = t.providers[s].Swap(nil)
	} else {
		old = t.providers[s].Swap(&p)
	}
	// What is pooled belongs to the old provider; what is live goes back there.
	t.TrimPoolOf(s)
	if old == nil {
		return nil, nil
	}
	return *old, nil
}

// hostProvider is the anonymous memory of the process.
type hostProvider struct{}

func (hostProvider) Alloc(n int64) (Region, error) {
	b, err := sysAlloc(n)
	if err != nil {
		return Region{}, err
	}
	return Region{Bytes: b, Addr: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Size: int64(len(b)), Zeroed: true}, nil
}

func (hostProvider) Free(r Region) error { return sysFree(r.Bytes) }

func (hostProvider) Fill(r Region, n int64, v byte) error {
	fillBytes(r.Bytes[:n], v)
	return nil
}
