// Package meter measures this process: wall and processor time, and the peak
// of its resident memory since the last reset.
package meter

import (
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// Sample is what one piece of work cost.
type Sample struct {
	Wall time.Duration
	CPU  time.Duration
	Peak int64 // bytes resident at the most, mapped files included
	Base int64 // bytes resident before it
}

// Run does work once and measures it. It collects garbage first and starts the
// kernel's count of the peak afresh, so that loading does not count.
func Run(work func() error) (Sample, error) {
	debug.FreeOSMemory() // what loading left behind counts for nobody
	if err := alloc.ResetResidentPeak(); err != nil {
		return Sample{}, err
	}
	base, _, err := alloc.RSS()
	if err != nil {
		return Sample{}, err
	}
	cpu, start := cpuTime(), time.Now()
	if err := work(); err != nil {
		return Sample{}, err
	}
	s := Sample{Wall: time.Since(start), CPU: cpuTime() - cpu, Base: base}
	_, s.Peak, err = alloc.RSS()
	return s, err
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Median is the middle of v by key; v is not empty.
func Median[T any, K int64 | float64 | time.Duration](v []T, key func(T) K) K {
	keys := make([]K, len(v))
	for i := range v {
		keys[i] = key(v[i])
	}
	slices.Sort(keys)
	return keys[len(keys)/2]
}
