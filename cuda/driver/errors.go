//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/gpu"
)

// Codes of the driver that mean something here.
const (
	codeInvalidValue    = 1
	codeNoMemory        = 2
	codeOperatingSystem = 304
	codeInvalidHandle   = 400
	codeNotReady        = 600
	codeDestroyed       = 709 // the context is gone
	codeNotRegistered   = 713
	codeNotPermitted    = 800
	codeNotSupported    = 801
)

// kindOf says what a failed call means for the caller.
func kindOf(st status) error {
	switch st {
	case codeNoMemory:
		return gpu.ErrNoMemory
	case 3, 4, // not initialised, or no longer
		34,            // the toolkit's stub library
		46,            // used by another process alone, or prohibited
		100, 101, 102, // none, no such, not licensed
		802, 803, 804: // not ready, not the kernel's version, forward compatibility
		return gpu.ErrNoDevice
	case 214, 220, 226, // ECC, NVLink, contained by the card
		700, 702, // illegal address, a kernel that ran too long
		codeDestroyed, 710, // assertion
		714, 715, 716, 717, 718, 719, 721: // exceptions in a kernel
		return gpu.ErrSticky
	}
	return nil
}

// sticky says that a status ends the context.
func (st status) sticky() bool { return errors.Is(kindOf(st), gpu.ErrSticky) }

// unknown says that what a call was to free is not there.
func (st status) unknown() bool {
	return st == codeInvalidValue || st == codeInvalidHandle || st == codeNotRegistered
}

// failure makes an error of a status. args say in words what was asked.
func (a *api) failure(st status, s symbol, args string) *gpu.Error {
	e := &gpu.Error{Call: s.name, Args: args, Code: int(st), Kind: kindOf(st)}
	var p uintptr
	if invoke(a.errorName, uintptr(st), uintptr(unsafe.Pointer(&p))) == 0 {
		e.Name = cString(p)
	}
	p = 0
	if invoke(a.errorString, uintptr(st), uintptr(unsafe.Pointer(&p))) == 0 {
		e.Text = cString(p)
	}
	if e.Name == "" {
		e.Name = "an unknown status"
	}
	if e.Text == "" {
		e.Text = "the driver has no words for it"
	}
	if st.sticky() {
		e.Text += " (in this call or in work queued before it)"
	}
	return e
}

// size is a number of bytes in words.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d bytes (%s)", n, humanize.IBytes(uint64(n)))
}
