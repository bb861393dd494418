package gputest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// Config is what a device is like. The zero value has 64 MiB.
type Config struct {
	Name   string
	Total  int64 // bytes of memory
	Others int64 // of it, in use by other programs

	// NoRevival makes the device one that is lost with its context: Reset ends
	// what there is and answers with a *gpu.LostError, as all does after it.
	NoRevival bool
}

// Device is one card.
type Device struct {
	info gpu.Info
	host *host

	mu         sync.Mutex
	wake       sync.Cond // anything that a stream may wait for has changed
	held       bool
	closed     bool
	gen        uint64
	sticky     error
	mortal     bool // NoRevival
	dying      int  // of those who end the context: no stream begins anything
	others     int64
	blocks     map[gpu.Ptr]*block
	late       map[gpu.Ptr]int // addresses of earlier generations that are not freed
	plain      int64           // bytes taken by Alloc
	used       int64           // of the stream-ordered pool
	reserved   int64
	streams    map[*stream]bool
	events     int
	modules    int
	kernels    map[string]Kernel
	faults     []*fault
	calls      map[string]int
	allCalls   int
	violations []string
}

// block is an allocation.
type block struct {
	at    gpu.Ptr
	mem   []byte
	n     int64 // as counted
	async bool
	freed bool // FreeAsync is queued
}

const align = 256

// New makes devices of one machine: cuda:0, cuda:1 and so on.
func New(configs ...Config) []*Device {
	h := &host{}
	out := make([]*Device, len(configs))
	for i, c := range configs {
		if c.Total == 0 {
			c.Total = 64 * alloc.MiB
		}
		if c.Name == "" {
			c.Name = "Test device"
		}
		d := &Device{
			info: gpu.Info{Index: i, Name: c.Name, UUID: fmt.Sprintf("GPU-%08d", i), PCI: fmt.Sprintf("0000:%02x:00.0", i),
				Major: 9, SMs: 4, Shared: 64 << 10, L2: 1 << 20, Total: c.Total, Driver: 13000},
			host: h, others: c.Others, mortal: c.NoRevival, blocks: map[gpu.Ptr]*block{}, late: map[gpu.Ptr]int{},
			streams: map[*stream]bool{}, kernels: map[string]Kernel{}, calls: map[string]int{},
		}
		d.wake.L = &d.mu
		out[i] = d
	}
	return out
}

// One is a single device with total bytes of memory.
func One(total int64) *Device { return New(Config{Total: total})[0] }

// Info is what does not change.
func (d *Device) Info() gpu.Info { return d.info }

// Space is alloc.Device of its number.
func (d *Device) Space() alloc.Space { return alloc.Device(d.info.Index) }

func (d *Device) free() int64 { return d.info.Total - d.others - d.plain - d.reserved }

// Memory is free and total bytes.
func (d *Device) Memory() (free, total int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemGetInfo", ""); err != nil {
		return 0, 0, err
	}
	return d.free(), d.info.Total, nil
}

// SetOthers changes what other programs use.
func (d *Device) SetOthers(n int64) {
	d.mu.Lock()
	d.others = n
	d.mu.Unlock()
}

// Alloc takes memory.
func (d *Device) Alloc(n int64) (gpu.Ptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemAlloc", "%d bytes", n); err != nil {
		return 0, err
	}
	k := round(n)
	if n <= 0 {
		return 0, d.failure("cuMemAlloc", invalid, "%d bytes", n)
	}
	if k > d.free() {
		return 0, d.failure("cuMemAlloc", noMemory, "%d bytes", n)
	}
	d.plain += k
	return d.place(k, false), nil
}

func round(n int64) int64 { return (n + align - 1) &^ (align - 1) }

// place finds the lowest address that is free, so that addresses come back.
func (d *Device) place(n int64, async bool) gpu.Ptr {
	at := gpu.Ptr(0x7f00_0000_0000) + gpu.Ptr(d.info.Index)<<36
	if async {
		at += 1 << 35
	}
	for {
		next := gpu.Ptr(0)
		for _, b := range d.blocks {
			if b.at < at+gpu.Ptr(n) && at < b.at+gpu.Ptr(b.n) {
				next = max(next, b.at+gpu.Ptr(b.n))
			}
		}
		if next == 0 {
			break
		}
		at = next
	}
	b := &block{at: at, mem: make([]byte, n), n: n, async: async}
	for i := range b.mem {
		b.mem[i] = 0xA5
	}
	d.blocks[at] = b
	return at
}

// Free waits for the streams and takes memory back. An address that was handed
// out before a Reset and again after it is taken back when it was freed twice.
func (d *Device) Free(p gpu.Ptr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forget(p) {
		return nil
	}
	if err := d.back("cuMemFree", "%#x", uintptr(p)); err != nil {
		if d.sticky != nil {
			// It ends with the context and is not asked for again.
			d.release(p)
		}
		return err
	}
	b := d.blocks[p]
	if b == nil || b.async {
		return d.failure("cuMemFree", invalid, "%#x", uintptr(p))
	}
	for s := range d.streams {
		s.drain()
	}
	d.release(p)
	return nil
}

// forget is true for a late free.
func (d *Device) forget(p gpu.Ptr) bool {
	if d.late[p] == 0 {
		return false
	}
	if d.late[p]--; d.late[p] == 0 {
		delete(d.late, p)
	}
	return true
}

func (d *Device) release(p gpu.Ptr) {
	b := d.blocks[p]
	if b == nil {
		return
	}
	delete(d.blocks, p)
	for i := range b.mem {
		b.mem[i] = 0xDD
	}
	if b.async {
		d.used -= b.n
	} else {
		d.plain -= b.n
	}
}

// Trim gives back what the stream-ordered pool keeps.
func (d *Device) Trim(keep int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemPoolTrimTo", "keep %d", keep); err != nil {
		return err
	}
	d.reserved = max(d.used, min(d.reserved, keep))
	return nil
}

// Pooled is what that pool has.
func (d *Device) Pooled() (used, reserved int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuMemPoolGetAttribute", ""); err != nil {
		return 0, 0, err
	}
	return d.used, d.reserved, nil
}

// Mem is n bytes of device memory from p on, or nil if they are not of one
// allocation. The caller keeps apart from the streams.
func (d *Device) Mem(p gpu.Ptr, n int64) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mem(p, n)
}

func (d *Device) mem(p gpu.Ptr, n int64) []byte {
	for _, b := range d.blocks {
		if p >= b.at && n >= 0 && p+gpu.Ptr(n) <= b.at+gpu.Ptr(b.n) {
			return b.mem[p-b.at : p-b.at+gpu.Ptr(n)]
		}
	}
	return nil
}

// Bind does nothing: there are no threads to bind.
func (d *Device) Bind() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.call("cuCtxSetCurrent", "")
}

// Sticky is what ended the context.
func (d *Device) Sticky() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sticky
}

// Generation counts Resets.
func (d *Device) Generation() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gen
}

// Break ends the context by a sticky error.
func (d *Device) Break() {
	d.mu.Lock()
	d.stick(d.failure("cuLaunchKernel", badAddress, ""))
	d.mu.Unlock()
}

// Reset begins a new generation, if the context has ended. All that was there
// is gone.
func (d *Device) Reset() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost() {
		return d.sticky
	}
	d.calls["cuDevicePrimaryCtxReset"]++
	if d.closed {
		return d.failure("cuDevicePrimaryCtxReset", deinitialized, "")
	}
	if d.sticky == nil {
		return nil
	}
	if err := d.struck("cuDevicePrimaryCtxReset", ""); err != nil {
		return err
	}
	for s := range d.streams {
		for s.queue = nil; s.busy; { // what runs now has its memory until it is done
			d.wake.Wait()
		}
	}
	for p, b := range d.blocks {
		if !b.freed {
			d.late[p]++
		}
		d.release(b.at)
	}
	d.end()
	d.gen++
	d.reserved = 0
	if d.wake.Broadcast(); d.mortal {
		d.sticky = &gpu.LostError{Device: fmt.Sprintf("cuda:%d", d.info.Index), Cause: d.sticky, Err: d.sticky}
		return d.sticky
	}
	d.sticky = nil
	return nil
}

// lost reports whether the device is of no use any more. Callers hold mu.
func (d *Device) lost() bool { return errors.Is(d.sticky, gpu.ErrLost) }

// end takes away what a context holds besides memory. Callers hold mu.
func (d *Device) end() {
	for s := range d.streams {
		s.ended, s.queue = true, nil
		delete(d.streams, s)
	}
	d.events, d.modules = 0, 0
	d.host.dropAll(d)
	d.wake.Broadcast()
}

// Close ends everything.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = false
	d.wake.Broadcast()
	for s := range d.streams {
		s.drain()
	}
	d.end()
	clear(d.blocks)
	d.plain, d.used, d.reserved = 0, 0, 0
	d.closed = true
	return nil
}

// Hold stops the streams before what they do next, until Go.
func (d *Device) Hold() {
	d.mu.Lock()
	d.held = true
	d.mu.Unlock()
}

// Go lets the streams go on.
func (d *Device) Go() {
	d.mu.Lock()
	d.held = false
	d.wake.Broadcast()
	d.mu.Unlock()
}

// Stats is what a device has given out.
type Stats struct {
	Allocations   int // in both pools
	Plain         int64
	Used          int64 // of the stream-ordered pool
	Reserved      int64
	Pinned        int // allocations of page-locked memory
	Registrations int // by this device
	Streams       int
	Events        int
	Modules       int
}

// Stats is what the device has given out and not got back.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	registered, pinned := d.host.count(d)
	return Stats{Allocations: len(d.blocks), Plain: d.plain, Used: d.used, Reserved: d.reserved, Pinned: pinned,
		Registrations: registered, Streams: len(d.streams), Events: d.events, Modules: d.modules}
}

// Empty reports whether nothing is given out, but for what the pool keeps.
func (s Stats) Empty() bool {
	s.Reserved, s.Modules = 0, 0
	return s == Stats{}
}

// Violations are mistakes that a driver would not have noticed.
func (d *Device) Violations() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.violations
}

// Forgive forgets the violations that a test expects.
func (d *Device) Forgive() {
	d.mu.Lock()
	d.violations = nil
	d.mu.Unlock()
}
