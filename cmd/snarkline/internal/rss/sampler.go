// Package rss finds the peak of this process's memory apart from mapped files:
// the system keeps a record of the whole alone.
package rss

import (
	"sync/atomic"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// Sampler looks at intervals.
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
	if r, err := alloc.ResidentNow(); err == nil {
		s.peak.Store(max(s.peak.Load(), r.Anon)) // calls come one at a time
	}
}

// Stop ends the sampling and returns the peak in bytes; 0 where the system
// does not say.
func (s *Sampler) Stop() int64 {
	close(s.quit)
	<-s.done
	s.look()
	return s.peak.Load()
}
