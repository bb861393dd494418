//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"unsafe"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/gpu"
)

// Attributes of a pool.
const (
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
	if kindOf(st) == gpu.ErrNoMemory {
		if free, total, err := p.memory(); err == nil {
			args += fmt.Sprintf(", where %s of %s are free", humanize.IBytes(uint64(free)), humanize.IBytes(uint64(total)))
		}
	}
	return p.fail(st, s, args)
}

func (d *device) Free(at gpu.Ptr) error {
	p, err := d.enter()
	if err != nil {
		return d.forget(&d.memory, uintptr(at), err)
	}
	defer p.exit()
	return p.giveBack(&d.memory, d.api.memFree, uintptr(at))
}

// giveBack ends an ownership of what begins at address at: s frees it if it is
// of this context and nobody else has it. The context is current.
func (p *primary) giveBack(l *ledger, s symbol, at uintptr, more ...uintptr) error {
	if at == 0 {
		return nil
	}
	n, do, known := l.claim(at)
	if !known {
		return fmt.Errorf("%s(%#x) on %v: nothing that it could free begins there", s.name, at, p.dev)
	}
	if !do {
		return nil
	}
	args := [2]uintptr{at}
	if st := twice(s, args[:1+copy(args[1:], more)]...); st != 0 {
		err := p.fail(st, s, fmt.Sprintf("%#x, %s on %v", at, size(n), p.dev))
		if p.sticky.Load() != nil {
			l.drop(at)
		}
		return err
	}
	l.drop(at)
	return nil
}

// forget ends an ownership where no call can be made, because of err. What a
// sticky error holds is gone with the next Reset, and what an earlier one took
// is gone already.
func (d *device) forget(l *ledger, at uintptr, err error) error {
	if at == 0 {
		return nil
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, do, known := l.claim(at)
	if known && !do {
		return nil
	}
	if known && d.Sticky() != nil {
		l.drop(at)
	}
	return err
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
