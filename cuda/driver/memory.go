//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/gpu"
)

// Attributes of a pool.
const (
	poolWaits     = 3 // an int: whether memory is reused by making streams wait
	poolThreshold = 4
	poolReserved  = 5
	poolUsed      = 7
)

func (d *device) Memory() (free, total int64, err error) {
	p, err := d.enter()
	if err != nil {
		return 0, 0, err
	}
	defer p.exit()
	return p.memory()
}

func (p *primary) memory() (free, total int64, err error) {
	var f, t uint64
	if st := invoke(p.dev.api.memInfo, uintptr(unsafe.Pointer(&f)), uintptr(unsafe.Pointer(&t))); st != 0 {
		return 0, 0, p.fail(st, p.dev.api.memInfo, p.dev.String())
	}
	return int64(f), int64(t), nil
}

func (d *device) Alloc(n int64) (gpu.Ptr, error) {
	if n <= 0 {
		return 0, fmt.Errorf("allocate %d bytes on %v: the size must be positive", n, d)
	}
	p, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer p.exit()
	d.memory.handing.RLock()
	defer d.memory.handing.RUnlock()
	var at uintptr
	if st := invoke(d.api.memAlloc, uintptr(unsafe.Pointer(&at)), uintptr(n)); st != 0 {
		return 0, p.noRoom(st, d.api.memAlloc, n)
	}
	d.memory.add(at, n)
	return gpu.Ptr(at), nil
}

// noRoom is the error of an allocation: with what is free, where that is why.
func (p *primary) noRoom(st status, s symbol, n int64) error {
	args := fmt.Sprintf("%s on %v", size(n), p.dev)
	if st == codeNoMemory {
		if free, total, err := p.memory(); err == nil {
			args += fmt.Sprintf(", where %s of %s are free", humanize.IBytes(uint64(free)), humanize.IBytes(uint64(total)))
		}
	}
	return p.fail(st, s, args)
}

func (d *device) Free(at gpu.Ptr) error {
	return d.giveBack(&d.memory, d.api.memFree, uintptr(at))
}

// giveBack ends an ownership of what begins at address at, and has s free it if
// it is to be freed.
func (d *device) giveBack(l *ledger, s symbol, at uintptr) error {
	for {
		p, err := d.enter()
		if err == nil {
			defer p.exit()
			return p.giveBack(l, s, at)
		}
		if again, err := d.forget(l, at, err); !again {
			return err
		}
	}
}

// giveBack is the same in p, which is current.
func (p *primary) giveBack(l *ledger, s symbol, at uintptr, more ...uintptr) error {
	if at == 0 {
		return nil
	}
	c := l.claim(at, false)
	if !c.known {
		return fmt.Errorf("%s(%#x) on %v: nothing that it could free begins there", s.name, at, p.dev)
	}
	if !c.do {
		return nil
	}
	var st status
	if c.wait {
		st = invoke(p.dev.api.ctxSync) // rare: see ledger
	}
	if st == 0 {
		st = p.end(l, s, at, more...)
	}
	if st != 0 {
		err := p.fail(st, s, fmt.Sprintf("%#x, %s on %v", at, size(c.size), p.dev))
		if p.sticky.Load() == nil && !st.unknown() {
			l.put(at, c)
		}
		return err
	}
	return nil
}

// forget ends an ownership where no call can be made, because of err. What a
// sticky error holds is gone with the next Reset, and what an earlier one took
// is gone already. again says that a call can be made by now.
func (d *device) forget(l *ledger, at uintptr, err error) (again bool, _ error) {
	if at == 0 {
		return false, nil
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	ended := errors.Is(err, gpu.ErrReset)
	c := l.claim(at, ended)
	if c.known && !c.do {
		return false, nil
	}
	if c.do && d.Sticky() == nil {
		l.put(at, c)
		return ended || errors.Is(err, gpu.ErrSticky), err
	}
	return false, err
}

func (d *device) Trim(keep int64) error {
	p, err := d.enter()
	if err != nil {
		return err
	}
	defer p.exit()
	if st := invoke(d.api.poolTrim, p.pool, uintptr(max(keep, 0))); st != 0 {
		return p.fail(st, d.api.poolTrim, fmt.Sprintf("the pool of %v to %s", d, size(max(keep, 0))))
	}
	return nil
}

func (d *device) Pooled() (used, reserved int64, err error) {
	p, err := d.enter()
	if err != nil {
		return 0, 0, err
	}
	defer p.exit()
	var u, r uint64
	if st := invoke(d.api.poolGet, p.pool, poolUsed, uintptr(unsafe.Pointer(&u))); st != 0 {
		return 0, 0, p.fail(st, d.api.poolGet, fmt.Sprintf("used bytes of the pool of %v", d))
	}
	if st := invoke(d.api.poolGet, p.pool, poolReserved, uintptr(unsafe.Pointer(&r))); st != 0 {
		return 0, 0, p.fail(st, d.api.poolGet, fmt.Sprintf("reserved bytes of the pool of %v", d))
	}
	return int64(u), int64(r), nil
}
