//go:build unix

package trace

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time of all threads of the process, user and
// system.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
