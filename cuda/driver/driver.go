//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// Driver is an open CUDA driver.
type Driver struct {
	api     api
	lib     *library
	version int

	mu      sync.Mutex
	devices []*device
	listed  bool
	closed  bool
}

// Open opens the driver's library at path and starts it. An empty path is what
// SNARKLINE_CUDA_LIBRARY says, or libcuda.so.1. Every error is
// gpu.ErrNoDevice and says what is missing: the library, its symbols, a version
// that is new enough, a card.
func Open(path string) (*Driver, error) {
	l, err := openLibrary(path, LibraryEnv, defaultLibrary)
	if err != nil {
		return nil, fmt.Errorf("CUDA driver: %w", err)
	}
	d := &Driver{lib: l}
	if err := d.start(); err != nil {
		return nil, fmt.Errorf("CUDA driver: %w", err)
	}
	return d, nil
}

func (d *Driver) start() error {
	if err := d.api.first(d.lib); err != nil {
		return err
	}
	var v int32
	if st := invoke(d.api.getVersion, uintptr(unsafe.Pointer(&v))); st != 0 {
		return d.unusable(d.api.failure(st, d.api.getVersion, ""))
	}
	d.version = int(v)
	if d.version < MinVersion {
		return fmt.Errorf("%s supports CUDA %s, and the kernels need %s or later (an NVIDIA driver from 520.61 on): %w",
			d.lib.path, versionText(d.version), versionText(MinVersion), gpu.ErrNoDevice)
	}
	if err := d.api.rest(d.lib); err != nil {
		return err
	}
	if st := invoke(d.api.init, 0); st != 0 {
		return d.unusable(d.api.failure(st, d.api.init, "0"))
	}
	return nil
}

// unusable makes an error of start one that is ErrNoDevice.
func (d *Driver) unusable(e *gpu.Error) error {
	e.Kind = gpu.ErrNoDevice
	return e
}

// versionText is "11.8" for 11080.
func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Version is the driver's interface version, 13000 for CUDA 13.0.
func (d *Driver) Version() int { return d.version }

// Path is the library that was opened.
func (d *Driver) Path() string { return d.lib.path }

// Devices lists the cards that can run the kernels, in the driver's order; a
// later call gives the same ones. A context is made on a card when it is first
// used. Without a card that can be used the error is gpu.ErrNoDevice and says
// what is wrong with each.
func (d *Driver) Devices() ([]gpu.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("CUDA driver: %w", gpu.ErrClosed)
	}
	if !d.listed {
		if err := d.list(); err != nil {
			return nil, fmt.Errorf("CUDA driver: %w", err)
		}
		d.listed = true
	}
	out := make([]gpu.Device, len(d.devices))
	for i, dev := range d.devices {
		out[i] = dev
	}
	return out, nil
}

func (d *Driver) list() error {
	var n int32
	if st := invoke(d.api.deviceCount, uintptr(unsafe.Pointer(&n))); st != 0 {
		return d.unusable(d.api.failure(st, d.api.deviceCount, ""))
	}
	if n == 0 {
		return fmt.Errorf("%s lists no card: %w", d.lib.path, gpu.ErrNoDevice)
	}
	var refused []string
	var found []*device
	for i := range int(n) {
		dev, err := d.inspect(i)
		var old *tooOldError
		if errors.As(err, &old) {
			refused = append(refused, err.Error())
			continue
		}
		if err != nil {
			return err
		}
		if !alloc.Device(i).Valid() {
			break // memory is counted for the first ones only
		}
		found = append(found, dev)
	}
	if found == nil {
		return fmt.Errorf("%s: %w", strings.Join(refused, "; "), gpu.ErrNoDevice)
	}
	d.devices = found
	return nil
}

type tooOldError struct{ info gpu.Info }

func (e *tooOldError) Error() string {
	return fmt.Sprintf("cuda:%d, %s, has compute capability %d.%d, and the kernels need %d.0",
		e.info.Index, e.info.Name, e.info.Major, e.info.Minor, MinMajor)
}

// Attributes of a device.
const (
	attrSMs    = 16
	attrL2     = 38
	attrMajor  = 75
	attrMinor  = 76
	attrShared = 97 // a block may opt in to
)

// inspect asks what card i is.
func (d *Driver) inspect(i int) (*device, error) {
	a := &d.api
	var ordinal int32
	fail := func(st status, s symbol, what string) error {
		return a.failure(st, s, fmt.Sprintf("cuda:%d%s", i, what))
	}
	if st := invoke(a.deviceGet, uintptr(unsafe.Pointer(&ordinal)), uintptr(i)); st != 0 {
		return nil, fail(st, a.deviceGet, "")
	}
	dev := uintptr(ordinal)
	info := gpu.Info{Index: i, Driver: d.version}
	name := make([]byte, 256)
	if st := invoke(a.deviceName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), dev); st != 0 {
		return nil, fail(st, a.deviceName, "")
	}
	info.Name = goString(name)
	for _, w := range []struct {
		to   *int
		attr uintptr
	}{{&info.SMs, attrSMs}, {&info.L2, attrL2}, {&info.Major, attrMajor}, {&info.Minor, attrMinor}, {&info.Shared, attrShared}} {
		var v int32
		if st := invoke(a.deviceAttribute, uintptr(unsafe.Pointer(&v)), w.attr, dev); st != 0 {
			return nil, fail(st, a.deviceAttribute, fmt.Sprintf(", attribute %d", w.attr))
		}
		*w.to = int(v)
	}
	if info.Major < MinMajor {
		return nil, &tooOldError{info}
	}
	uuid := make([]byte, 16)
	if st := invoke(a.deviceUUID, uintptr(unsafe.Pointer(&uuid[0])), dev); st != 0 {
		return nil, fail(st, a.deviceUUID, "")
	}
	info.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	pci := make([]byte, 32)
	if st := invoke(a.devicePCI, uintptr(unsafe.Pointer(&pci[0])), uintptr(len(pci)), dev); st != 0 {
		return nil, fail(st, a.devicePCI, "")
	}
	info.PCI = strings.ToLower(goString(pci))
	var total uint64
	if st := invoke(a.deviceTotal, uintptr(unsafe.Pointer(&total)), dev); st != 0 {
		return nil, fail(st, a.deviceTotal, "")
	}
	info.Total = int64(total)
	return newDevice(d, ordinal, info), nil
}

// Close closes the devices. The library stays open.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	var all []error
	for _, dev := range d.devices {
		all = append(all, dev.Close())
	}
	return errors.Join(all...)
}
