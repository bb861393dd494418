package gputest

import (
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/gpu"
)

// stream is a queue that a goroutine works off. It shares the device's lock,
// which makes the device a slow one and its state simple.
type stream struct {
	d     *Device
	gen   uint64
	queue []op
	busy  bool
	ended bool
}

// op is a piece of work. ready says whether it can be done yet; do runs without
// the lock and may end the context with its error.
type op struct {
	ready func() bool
	do    func() error
	host  [2]uintptr // host memory that it reads or writes
}

// NewStream starts a stream.
func (d *Device) NewStream(bool) (gpu.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuStreamCreateWithPriority", ""); err != nil {
		return nil, err
	}
	s := &stream{d: d, gen: d.gen}
	d.streams[s] = true
	go s.run()
	return s, nil
}

func (s *stream) run() {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch {
		case s.ended && len(s.queue) == 0:
			return
		case len(s.queue) == 0 || d.held || d.dying > 0 || s.queue[0].ready != nil && !s.queue[0].ready():
			d.wake.Wait()
			continue
		}
		o := s.queue[0]
		s.busy = true
		var err error
		if o.do != nil {
			d.mu.Unlock()
			err = o.do()
			d.mu.Lock()
		}
		s.busy = false
		if s.gen == d.gen {
			if err != nil {
				d.stick(err)
			}
			if len(s.queue) > 0 {
				s.queue = s.queue[1:]
			}
		}
		d.wake.Broadcast()
	}
}

// drain waits until the queue is empty. Callers hold mu.
func (s *stream) drain() {
	for len(s.queue) > 0 || s.busy {
		s.d.wake.Wait()
	}
}

// enter is call for a method of the stream. Callers hold mu.
func (s *stream) enter(name, format string, args ...any) error {
	if s.gen != s.d.gen {
		return s.d.failure(name, ended, format, args...)
	}
	if s.ended {
		return s.d.failure(name, badHandle, format, args...)
	}
	return s.d.call(name, format, args...)
}

func (s *stream) push(o op) {
	s.queue = append(s.queue, o)
	s.d.wake.Broadcast()
}

// AllocAsync takes from the stream-ordered pool, which takes from the device
// what it has not.
func (s *stream) AllocAsync(n int64) (gpu.Ptr, error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.enter("cuMemAllocAsync", "%d bytes", n); err != nil {
		return 0, err
	}
	k := round(n)
	more := max(d.used+k-d.reserved, 0)
	if more > d.free() {
		return 0, d.failure("cuMemAllocAsync", noMemory, "%d bytes", n)
	}
	d.reserved += more
	d.used += k
	return d.place(k, true), nil
}

// FreeAsync gives it back to that pool.
func (s *stream) FreeAsync(p gpu.Ptr) error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forget(p) {
		return nil
	}
	err := s.enter("cuMemFreeAsync", "%#x", uintptr(p))
	if err != nil && d.sticky == nil && s.gen == d.gen {
		err = s.enter("cuMemFreeAsync", "%#x", uintptr(p)) // see back
	}
	if err != nil {
		if d.sticky != nil {
			d.release(p)
		}
		return err
	}
	b := d.blocks[p]
	if b == nil || !b.async || b.freed {
		return d.failure("cuMemFreeAsync", invalid, "%#x", uintptr(p))
	}
	b.freed = true
	gen := s.gen
	s.push(op{do: func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.gen == gen {
			d.release(p)
		}
		return nil
	}})
	return nil
}

func (s *stream) copy(name string, host unsafe.Pointer, dev gpu.Ptr, n int64, in bool) error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.enter(name, "%#x, %#x, %d bytes", uintptr(dev), uintptr(host), n); err != nil {
		return err
	}
	if d.mem(dev, n) == nil || !d.host.whole(uintptr(host), n) {
		return d.failure(name, invalid, "%#x, %#x, %d bytes", uintptr(dev), uintptr(host), n)
	}
	gen := s.gen
	s.push(op{host: [2]uintptr{uintptr(host), uintptr(host) + uintptr(n)}, do: func() error {
		d.mu.Lock()
		m := d.mem(dev, n)
		ok := d.gen == gen && d.sticky == nil
		d.mu.Unlock()
		switch {
		case !ok:
			return nil
		case m == nil:
			return d.failure(name, badAddress, "%#x", uintptr(dev))
		case in:
			copy(m, unsafe.Slice((*byte)(host), n))
		default:
			copy(unsafe.Slice((*byte)(host), n), m)
		}
		return nil
	}})
	return nil
}

func (s *stream) CopyIn(dst gpu.Ptr, src unsafe.Pointer, n int64) error {
	return s.copy("cuMemcpyHtoDAsync", src, dst, n, true)
}

func (s *stream) CopyOut(dst unsafe.Pointer, src gpu.Ptr, n int64) error {
	return s.copy("cuMemcpyDtoHAsync", dst, src, n, false)
}

// within queues work on device memory.
func (s *stream) within(name string, do func() bool) error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.enter(name, ""); err != nil {
		return err
	}
	gen := s.gen
	s.push(op{do: func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.gen == gen && !do() {
			return d.failure(name, badAddress, "")
		}
		return nil
	}})
	return nil
}

func (s *stream) Copy(dst, src gpu.Ptr, n int64) error {
	return s.within("cuMemcpyDtoDAsync", func() bool {
		to, from := s.d.mem(dst, n), s.d.mem(src, n)
		copy(to, from)
		return to != nil && from != nil
	})
}

func (s *stream) Fill(dst gpu.Ptr, v byte, n int64) error {
	return s.within("cuMemsetD8Async", func() bool {
		m := s.d.mem(dst, n)
		for i := range m {
			m[i] = v
		}
		return m != nil
	})
}

func (s *stream) Record(e gpu.Event) error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	ev, ok := e.(*event)
	if err := s.enter("cuEventRecord", ""); err != nil {
		return err
	}
	if !ok || ev.closed || ev.gen != d.gen {
		return d.failure("cuEventRecord", badHandle, "")
	}
	m := &mark{}
	ev.mark = m
	s.push(op{do: func() error {
		d.mu.Lock()
		m.done, m.at = true, time.Now()
		d.mu.Unlock()
		return nil
	}})
	return nil
}

func (s *stream) Wait(e gpu.Event) error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	ev, ok := e.(*event)
	if err := s.enter("cuStreamWaitEvent", ""); err != nil {
		return err
	}
	if !ok || ev.closed || ev.gen != d.gen {
		return d.failure("cuStreamWaitEvent", badHandle, "")
	}
	if m := ev.mark; m != nil {
		s.push(op{ready: func() bool { return m.done }})
	}
	return nil
}

func (s *stream) Sync() error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.enter("cuStreamSynchronize", ""); err != nil {
		return err
	}
	s.drain()
	if s.gen != d.gen {
		return d.failure("cuStreamSynchronize", ended, "")
	}
	return d.sticky
}

// Close lets the stream end what is queued, as a driver does.
func (s *stream) Close() error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.gen != d.gen || s.ended {
		return nil
	}
	err := d.back("cuStreamDestroy", "")
	if err == nil || d.sticky != nil {
		s.ended = true
		delete(d.streams, s)
		d.wake.Broadcast()
	}
	return err
}
