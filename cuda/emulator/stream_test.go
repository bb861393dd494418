package emulator

import (
	"sync"
	"testing"
	"time"
	"unsafe"
)

// Copies of pinned memory happen after the call: what is written to it before
// the stream got there is copied, as on a card.
func TestCopiesAreLate(t *testing.T) {
	m := start(t, Config{Mode: Late})
	var p unsafe.Pointer
	m.must(m.HostAlloc(&p, 4*kib, 0))
	host := unsafe.Slice((*uint32)(p), kib)
	d := m.alloc(4 * kib)
	host[5] = 1
	m.must(m.HtoDAsync(d, p, 4*kib, m.stream))
	host[5] = 2
	m.must(m.StreamSynchronize(m.stream))
	m.must(m.DtoHAsync(unsafe.Add(p, 16), d+20, 4, m.stream))
	host[4] = 9
	if host[4] != 9 {
		t.Error("a copy to the host was early")
	}
	m.must(m.StreamSynchronize(m.stream))
	if host[4] != 2 {
		t.Errorf("got %d: the copy in was not late, or the copy out did not happen", host[4])
	}
	// What is not pinned has been read when the call returns.
	v := []uint32{3}
	m.must(m.HtoDAsync(d, unsafe.Pointer(&v[0]), 4, m.stream))
	v[0] = 4
	m.must(m.StreamSynchronize(m.stream))
	if got := download[uint32](m, d, 1)[0]; got != 3 {
		t.Errorf("got %d from memory that was not pinned", got)
	}
	// Nobody asks: it happens all the same.
	m.must(m.DtoHAsync(p, d, 4, m.stream))
	for end := time.Now().Add(5 * time.Second); *(*uint32)(p) != 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	m.must(m.StreamSynchronize(m.stream))
}

// Host memory that goes before its copy is done ends the context.
func TestHostMemoryThatGoesTooEarly(t *testing.T) {
	for _, free := range []bool{false, true} {
		m := start(t, Config{Mode: Late})
		d := m.alloc(64 * kib)
		var p unsafe.Pointer
		host := hostMemory(t, 64*kib)
		if free {
			m.must(m.HostAlloc(&p, 64*kib, 0))
		} else {
			p = unsafe.Pointer(&host[0])
			m.must(m.HostRegister(p, 64*kib, 0))
		}
		m.must(m.HtoDAsync(d, p, 64*kib, m.stream))
		if free {
			m.must(m.FreeHost(p))
		} else {
			m.must(m.HostUnregister(p))
		}
		m.want(illegalAddress, "after memory went too early", m.StreamSynchronize(m.stream))
		if n := m.stats().Early; n != 1 {
			t.Errorf("early: %d", n)
		}
	}
}

func TestStreamsAndEvents(t *testing.T) {
	for _, mode := range []Mode{Async, Late, Eager} {
		t.Run(string(mode), func(t *testing.T) {
			m := start(t, Config{Mode: mode})
			var other, begin, end, flag uint64
			m.must(m.StreamPriority(&other, 1, -5))
			m.must(m.EventCreate(&begin, 0))
			m.must(m.EventCreate(&end, 0))
			m.must(m.EventCreate(&flag, 2))
			m.must(m.EventQuery(flag)) // never recorded: nothing to wait for
			m.must(m.EventSynchronize(flag))
			var ms float32
			m.want(invalidHandle, "time before records", m.EventElapsed(&ms, begin, end))

			// The sum of 20 slow steps, half of them in each stream, one waiting for the other.
			w := upload(m, []uint32{0, 0})
			slow, streams := m.function("probe_slow"), []uint64{m.stream, other}
			m.must(m.EventRecord(begin, m.stream))
			for i := range 20 {
				s := streams[i%2]
				m.must(m.StreamWaitEvent(s, flag, 0))
				m.must(m.LaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, s, args(w, uint32(20000)), nil))
				m.must(m.EventRecord(flag, s))
			}
			m.must(m.EventRecord(end, other))
			if mode != Eager {
				m.want(notReady, "query of a stream at work", m.StreamQuery(other))
				m.want(notReady, "query of an event to come", m.EventQuery(end))
				m.want(notReady, "time of an event to come", m.EventElapsed(&ms, begin, end))
			}
			m.must(m.EventSynchronize(end))
			m.must(m.EventQuery(end))
			m.must(m.EventElapsed(&ms, begin, end))
			if ms <= 0 || ms > 60000 {
				t.Errorf("%v ms", ms)
			}
			if got := download[uint32](m, w, 2); got[0] != 20 || got[1] != 400000 {
				t.Errorf("sum %v, want 20 and 400000", got)
			}
			m.want(invalidHandle, "time of an event that has none", m.EventElapsed(&ms, begin, flag))
			m.must(m.CtxSynchronize())
			m.must(m.StreamQuery(other))

			// A stream that is destroyed still does its work.
			m.must(m.LaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, other, args(w, uint32(20000)), nil))
			m.must(m.EventRecord(flag, other))
			m.must(m.StreamDestroy(other))
			m.want(invalidHandle, "work in a stream that is gone", m.StreamSynchronize(other))
			m.must(m.EventSynchronize(flag))
			if got := download[uint32](m, w, 1); got[0] != 21 {
				t.Errorf("sum %v after the stream was destroyed", got)
			}
			m.must(m.EventDestroy(flag))
			m.want(invalidHandle, "an event that is gone", m.EventRecord(flag, m.stream))
			m.want(invalidHandle, "a stream as an event", m.EventQuery(m.stream))
		})
	}
}

// The default stream waits for those that are not told to be apart, and they
// for it.
func TestDefaultStream(t *testing.T) {
	m := start(t, Config{Mode: Late})
	var with uint64
	m.must(m.StreamCreate(&with, 0))
	w := upload(m, []uint32{0, 0})
	slow := m.function("probe_slow")
	one := args(w, uint32(20000))
	for i := range 6 {
		s := []uint64{with, 0}[i%2]
		m.must(m.LaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, s, one, nil))
	}
	if got := download[uint32](m, w, 1); got[0] != 6 {
		t.Errorf("%d steps were done", got[0])
	}
	m.must(m.StreamSynchronize(0))
}

// Two streams and many threads at once.
func TestConcurrentLaunches(t *testing.T) {
	m := start(t, Config{Threads: 3})
	const n = 1 << 14
	in := ramp(n, func(i uint32) uint32 { return i })
	din := upload(m, in)
	f := m.function("probe_sum")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			lock := lockThread()
			defer lock()
			if code := m.CtxSetCurrent(m.context); code != ok {
				t.Error(m.name(code))
				return
			}
			var s, out uint64
			if m.StreamCreate(&s, 1)|m.MemAllocAsync(&out, n/256*8, s) != ok {
				t.Error("no stream or memory")
				return
			}
			got := make([]uint64, n/256)
			for range 20 {
				code := m.LaunchKernel(f, n/256, 1, 1, 256, 1, 1, 0, s, args(din, out, uint32(n)), nil)
				code |= m.DtoHAsync(unsafe.Pointer(&got[0]), out, n/256*8, s)
				code |= m.StreamSynchronize(s)
				if code != ok {
					t.Error("a call failed")
					return
				}
				for b, v := range got {
					if want := uint64(256*b)*256 + 255*256/2; v != want {
						t.Errorf("block %d: %d, want %d", b, v, want)
						return
					}
				}
			}
			if m.MemFreeAsync(out, s)|m.StreamSynchronize(s)|m.StreamDestroy(s) != ok {
				t.Error("freeing failed")
			}
		})
	}
	wg.Wait()
}
