//go:build unix && !linux

package alloc

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Resident is the memory of the process as the system sees it, in bytes.
type Resident struct {
	Current int64 `json:"current"`
	Peak    int64 `json:"peak"`
	Anon    int64 `json:"anon"` // of Current: memory proper; −1 where unknown
	File    int64 `json:"file"` // of Current: pages of mapped files; −1 where unknown
}

// ResidentNow asks the system, which tells the peak alone: it stands for the
// current size too.
func ResidentNow() (Resident, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return Resident{}, fmt.Errorf("read resident memory: %w", err)
	}
	peak := int64(u.Maxrss)
	if runtime.GOOS != "darwin" {
		peak *= KiB
	}
	return Resident{Current: peak, Peak: peak, Anon: -1, File: -1}, nil
}

// ResetResidentPeak makes the peak what is resident now.
func ResetResidentPeak() error {
	return fmt.Errorf("reset the peak of resident memory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
