//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/gpu"
)

// stream implements gpu.Stream.
type stream struct {
	p *primary
	handle
}

// handle is what the driver calls an object of a context; 0 once it is closed.
type handle struct{ atomic.Uintptr }

const streamNonBlocking = 1 // does not wait for the stream that has no name

func (d *device) NewStream(high bool) (gpu.Stream, error) {
	p, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer p.exit()
	priority := p.lowest
	if high {
		priority = p.highest
	}
	d.streams.handing.RLock()
	defer d.streams.handing.RUnlock()
	var h uintptr
	if st := invoke(d.api.streamCreate, uintptr(unsafe.Pointer(&h)), streamNonBlocking, uintptr(priority)); st != 0 {
		return nil, p.fail(st, d.api.streamCreate, fmt.Sprintf("priority %d on %v", priority, d))
	}
	s := &stream{p: p}
	s.Store(h)
	d.streams.add(h, 0)
	return s, nil
}

// enter binds the stream's context and gives its handle.
func (s *stream) enter() (uintptr, error) { return s.p.enterFor(&s.handle, "a stream") }

func (p *primary) enterFor(h *handle, what string) (uintptr, error) {
	if err := p.enter(what); err != nil {
		return 0, err
	}
	v := h.Load()
	if v == 0 {
		p.exit()
		return 0, fmt.Errorf("%s of %v: %w", what, p.dev, gpu.ErrClosed)
	}
	return v, nil
}

// close gives an object of p, which is in l, back by s.
func (p *primary) close(h *handle, l *ledger, s symbol, what string) error {
	v := h.Swap(0)
	if v == 0 {
		return nil
	}
	if err := p.enter(what); err != nil {
		p.dev.mu.RLock()
		defer p.dev.mu.RUnlock()
		if p.dev.now.Load() != p {
			return nil // a Reset or Close took it
		}
		if p.sticky.Load() == nil {
			h.Store(v)
		}
		return err
	}
	defer p.exit()
	l.claim(v, false)
	if st := p.end(l, s, v); st != 0 {
		err := p.fail(st, s, what+" on "+p.dev.String())
		if p.sticky.Load() == nil && !st.unknown() {
			l.add(v, 0)
			h.Store(v)
		}
		return err
	}
	return nil
}

func (s *stream) Close() error {
	return s.p.close(&s.handle, &s.p.dev.streams, s.p.dev.api.streamDestroy, "a stream")
}

func (s *stream) AllocAsync(n int64) (gpu.Ptr, error) {
	if n <= 0 {
		return 0, fmt.Errorf("allocate %d bytes on %v: the size must be positive", n, s.p.dev)
	}
	h, err := s.enter()
	if err != nil {
		return 0, err
	}
	defer s.p.exit()
	d := s.p.dev
	d.memory.handing.RLock()
	defer d.memory.handing.RUnlock()
	var at uintptr
	if st := invoke(d.api.memAllocAsync, uintptr(unsafe.Pointer(&at)), uintptr(n), h); st != 0 {
		return 0, s.p.noRoom(st, d.api.memAllocAsync, n)
	}
	d.memory.add(at, n)
	return gpu.Ptr(at), nil
}

func (s *stream) FreeAsync(at gpu.Ptr) error {
	d := s.p.dev
	h, err := s.enter()
	if err != nil {
		again, err := d.forget(&d.memory, uintptr(at), err)
		if again {
			return d.Free(at)
		}
		return err
	}
	defer s.p.exit()
	return s.p.giveBack(&d.memory, d.api.memFreeAsync, uintptr(at), h)
}

func (s *stream) CopyIn(dst gpu.Ptr, src unsafe.Pointer, n int64) error {
	if n <= 0 {
		return s.nothing(n)
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	d := s.p.dev
	if st := quick(d.api.copyIn, uintptr(dst), uintptr(src), uintptr(n), h); st != 0 {
		return s.p.fail(st, d.api.copyIn, fmt.Sprintf("%s from host %p to %#x on %v", size(n), src, uintptr(dst), d))
	}
	d.in.Add(n)
	return nil
}

func (s *stream) CopyOut(dst unsafe.Pointer, src gpu.Ptr, n int64) error {
	if n <= 0 {
		return s.nothing(n)
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	d := s.p.dev
	if st := quick(d.api.copyOut, uintptr(dst), uintptr(src), uintptr(n), h); st != 0 {
		return s.p.fail(st, d.api.copyOut, fmt.Sprintf("%s from %#x on %v to host %p", size(n), uintptr(src), d, dst))
	}
	d.out.Add(n)
	return nil
}

func (s *stream) Copy(dst, src gpu.Ptr, n int64) error {
	if n <= 0 {
		return s.nothing(n)
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	d := s.p.dev
	if st := quick(d.api.copyWithin, uintptr(dst), uintptr(src), uintptr(n), h); st != 0 {
		return s.p.fail(st, d.api.copyWithin, fmt.Sprintf("%s from %#x to %#x on %v", size(n), uintptr(src), uintptr(dst), d))
	}
	d.within.Add(n)
	return nil
}

func (s *stream) Fill(dst gpu.Ptr, v byte, n int64) error {
	if n <= 0 {
		return s.nothing(n)
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	d := s.p.dev
	if st := quick(d.api.fill, uintptr(dst), uintptr(v), uintptr(n), h); st != 0 {
		return s.p.fail(st, d.api.fill, fmt.Sprintf("%s of %#x at %#x on %v", size(n), v, uintptr(dst), d))
	}
	return nil
}

// nothing is copying or filling no bytes, or fewer.
func (s *stream) nothing(n int64) error {
	if n < 0 {
		return fmt.Errorf("copy or fill %d bytes on %v", n, s.p.dev)
	}
	return nil
}

func (s *stream) Launch(f gpu.Function, l gpu.Launch, args *gpu.Args) error {
	k, ok := f.(*function)
	if !ok {
		return fmt.Errorf("launch on %v: %T is no kernel of this driver", s.p.dev, f)
	}
	params, err := args.Params()
	if err != nil {
		return fmt.Errorf("launch %s: %w", k.name, err)
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	if k.m.p != s.p {
		return fmt.Errorf("launch %s on %v: %w", k.name, s.p.dev, k.m.p.strange(s.p.dev, "a kernel"))
	}
	if k.m.Load() == 0 {
		return fmt.Errorf("launch %s on %v: its module: %w", k.name, s.p.dev, gpu.ErrClosed)
	}
	g, b := l.Grid, l.Block
	for i := range 3 {
		g[i], b[i] = max(g[i], 1), max(b[i], 1)
	}
	call := frames.Get().(*frame)
	*call = frame{k.f, uintptr(g[0]), uintptr(g[1]), uintptr(g[2]), uintptr(b[0]), uintptr(b[1]), uintptr(b[2]),
		uintptr(l.Shared), h, uintptr(params), 0}
	st := call.all(s.p.dev.api.launch)
	runtime.KeepAlive(args)
	if st != 0 {
		return s.p.fail(st, s.p.dev.api.launch, fmt.Sprintf("%s, grid %v, block %v, %d bytes of shared memory, on %v", k.name, g, b, l.Shared, s.p.dev))
	}
	s.p.dev.launches.Add(1)
	return nil
}

// strange is the error of using what belongs to p in the present context of on.
func (p *primary) strange(on *device, what string) error {
	if p.dev == on {
		return p.stale(what)
	}
	return fmt.Errorf("%s of %v is not its own", what, p.dev)
}

func (s *stream) Record(e gpu.Event) error {
	return s.withEvent(e, s.p.dev.api.eventRecord, true)
}

func (s *stream) Wait(e gpu.Event) error {
	return s.withEvent(e, s.p.dev.api.streamWait, false)
}

// withEvent calls cuEventRecord(event, stream) or
// cuStreamWaitEvent(stream, event, 0).
func (s *stream) withEvent(e gpu.Event, call symbol, record bool) error {
	ev, ok := e.(*event)
	if !ok {
		return fmt.Errorf("%s on %v: %T is no event of this driver", call.name, s.p.dev, e)
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	if ev.p != s.p {
		return fmt.Errorf("%s on %v: %w", call.name, s.p.dev, ev.p.strange(s.p.dev, "an event"))
	}
	v := ev.Load()
	if v == 0 {
		return fmt.Errorf("%s on %v: the event: %w", call.name, s.p.dev, gpu.ErrClosed)
	}
	var st status
	if record {
		st = quick(call, v, h, 0, 0)
	} else {
		st = quick(call, h, v, 0, 0)
	}
	if st != 0 {
		return s.p.fail(st, call, "an event on "+s.p.dev.String())
	}
	return nil
}

func (s *stream) Sync() error {
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.p.exit()
	if st := quick(s.p.dev.api.streamSync, h, 0, 0, 0); st != 0 {
		return s.p.fail(st, s.p.dev.api.streamSync, "a stream of "+s.p.dev.String())
	}
	return nil
}
