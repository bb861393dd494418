// Package rss reads how much memory the system says this process has resident.
package rss

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Peak is the most that was ever resident, in bytes, mapped files included; 0
// if the system does not say.
func Peak() int64 {
	// VmHWM belongs to this program; the rusage maximum is inherited over exec.
	if n := status("VmHWM:"); n > 0 {
		return n
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // counts bytes, others KiB
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

// Anonymous is what is resident now apart from mapped files, in bytes; 0 if
// the system does not say.
func Anonymous() int64 { return status("RssAnon:") }

func status(field string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(text), "\n"+field)
	if !ok {
		return 0
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// Sampler finds the peak of Anonymous by looking at intervals: the system
// keeps no such record.
type Sampler struct {
	peak atomic.Int64
	quit chan struct{}
	done chan struct{}
}

// Sample starts to look, at once and then every interval.
func Sample(interval time.Duration) *Sampler {
	s := &Sampler{quit: make(chan struct{}), done: make(chan struct{})}
	s.look()
	go func() {
		defer close(s.done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-tick.C:
				s.look()
			}
		}
	}()
	return s
}

func (s *Sampler) look() {
	if n := Anonymous(); n > s.peak.Load() {
		s.peak.Store(n)
	}
}

// Stop ends the sampling and returns the peak in bytes.
func (s *Sampler) Stop() int64 {
	close(s.quit)
	<-s.done
	s.look()
	return s.peak.Load()
}
