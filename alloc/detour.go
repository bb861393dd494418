package alloc

import (
	"sync"
	"sync/atomic"
)

// detour is what this package does not do: every free goes to one goroutine
// behind one mutex. Tests switch it on to show what it costs (freed memory
// queues up), and that nothing queues without it.
type detour struct {
	mu      sync.Mutex
	queue   []*core
	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	pending atomic.Int64 // bytes released and not yet freed
	peak    atomic.Int64
}

func newDetour() *detour {
	d := &detour{wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go d.run()
	return d
}

func (d *detour) send(c *core) {
	n := d.pending.Add(c.bytes)
	for p := d.peak.Load(); n > p && !d.peak.CompareAndSwap(p, n); p = d.peak.Load() {
	}
	d.mu.Lock()
	d.queue = append(d.queue, c)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *detour) run() {
	defer close(d.done)
	for {
		d.mu.Lock()
		var c *core
		if len(d.queue) > 0 {
			c, d.queue = d.queue[0], d.queue[1:]
		}
		d.mu.Unlock()
		if c != nil {
			c.free()
			d.pending.Add(-c.bytes)
			continue
		}
		select {
		case <-d.wake:
		case <-d.stop:
			return
		}
	}
}

func (d *detour) close() {
	close(d.stop)
	<-d.done
}
