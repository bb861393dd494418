package gpu_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

// A copy needs its host memory until it is done.
func TestCopiesHoldTheirBuffers(t *testing.T) {
	b := set(t, 1<<20, 0)
	st := must(b.NewStream(false))(t)
	n := 8 * page
	dst := b.make(t, int64(n))
	defer dst.Release()
	run := func(release func(*gpu.Registration)) byte {
		host := b.hostBytes(t, n)
		for i := range host.Slice() {
			host.Slice()[i] = 0x42
		}
		reg := must(b.card.Registry.PinBuffer(b, b.host, host))(t)
		b.Hold()
		defer b.Go()
		ok(t, reg.CopyIn(st, gpu.Ptr(dst.Addr()), 0, int64(n)))
		release(reg)
		host.Release()
		other := b.hostBytes(t, n) // the memory of the one before, if that is free
		for i := range other.Slice() {
			other.Slice()[i] = 0x13
		}
		b.Go()
		ok(t, st.Sync())
		b.card.Reaper.Flush()
		other.Release()
		return b.Mem(gpu.Ptr(dst.Addr()), 1)[0]
	}
	if got := run(func(reg *gpu.Registration) { b.card.Reaper.After(st, nil, reg) }); got != 0x42 {
		t.Fatalf("%#x was copied", got)
	}
	// Released at once, its pages are unregistered under it.
	if run(func(reg *gpu.Registration) { host := reg; host.Release() }); len(b.Violations()) == 0 {
		t.Fatal("the naive way is not noticed: this test shows nothing")
	}
	b.Forgive()
	ok(t, st.Close())
}

func TestReaperDoesNotWaitAndKeepsStreamsApart(t *testing.T) {
	b := set(t, 1<<20, 0)
	r := b.card.Reaper
	one, two := must(b.NewStream(false))(t), must(b.NewStream(false))(t)
	ev := must(b.NewEvent(false))(t)
	gate := make(chan struct{})
	b.Define("wait", func(*gputest.Call) error { <-gate; return nil })
	mod := must(b.Load("", nil))(t)
	f := must(mod.Function("wait"))(t)
	args := gpu.NewArgs()
	ok(t, one.Launch(f, gpu.Launch{}, args))
	ok(t, one.Record(ev))

	var order []int
	var mu sync.Mutex
	note := func(i int) func(error) {
		return func(err error) {
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		}
	}
	var x, y ref
	r.After(one, note(1), &x, nil)
	r.After(one, note(2))
	r.AfterEvent(ev, note(3), &y)
	r.After(two, note(4))
	until(t, "the other stream's", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 1 })
	if n, bytes := r.Pending(); n != 3 || bytes != 14 || x.ends != 0 {
		t.Fatalf("%d wait with %d bytes", n, bytes)
	}
	close(gate)
	r.Flush()
	if x.ends != 1 || y.ends != 1 || len(order) != 4 || order[0] != 4 {
		t.Fatalf("%v %v %v", order, x, y)
	}
	for i, k := range order { // 1 before 2
		if k == 2 && !contains(order[:i], 1) {
			t.Fatalf("%v", order)
		}
	}
	args.Close()
	ok(t, errors.Join(ev.Close(), mod.Close(), one.Close(), two.Close()))
}

func contains(s []int, v int) bool {
	for _, x := range s {
		if x == v {
			return true
		}
	}
	return false
}

func TestAStickyErrorEndsEverythingOnce(t *testing.T) {
	b := set(t, 1<<20, 0)
	st := must(b.NewStream(false))(t)
	b.Hold()
	ok(t, st.Fill(must(b.Alloc(256))(t), 1, 256))
	refs := make([]ref, 20)
	var told atomic.Int32
	for i := range refs {
		b.card.Reaper.After(st, func(err error) {
			if errors.Is(err, gpu.ErrSticky) {
				told.Add(1)
			}
		}, &refs[i])
	}
	b.Break()
	b.card.Reaper.Flush()
	b.Go()
	// And what comes while the context is ended.
	var late ref
	b.card.Reaper.After(st, nil, &late)
	ok(t, b.card.Reset())
	for i := range refs {
		if refs[i].ends != 1 {
			t.Fatalf("%d: %d times", i, refs[i].ends)
		}
	}
	if told.Load() != 20 || late.ends != 1 {
		t.Fatalf("%d were told why", told.Load())
	}
	// The stream is of the time before.
	b.card.Reaper.After(st, func(err error) {
		if err == nil {
			t.Error("no error")
		}
	}, &late)
	b.card.Reaper.Flush()
	if late.ends != 2 {
		t.Fatal("not ended")
	}
	ok(t, st.Close())
}

func TestReaperWithoutEvents(t *testing.T) {
	b := set(t, 1<<20, 0)
	st := must(b.NewStream(false))(t)
	for _, call := range []string{"cuEventCreate", "cuEventRecord", "cuEventQuery"} {
		var x ref
		var got error
		b.Fail(call, 1, gputest.Invalid)
		b.card.Reaper.After(st, func(err error) { got = err }, &x)
		b.card.Reaper.Flush()
		if x.ends != 1 || got != nil {
			t.Fatalf("%s: ended %d times, %v", call, x.ends, got)
		}
	}
	// A device that never answers.
	var x ref
	var got error
	for range 100 {
		b.Fail("cuEventQuery", 1, gputest.Invalid)
	}
	b.card.Reaper.After(st, func(err error) { got = err }, &x)
	b.card.Reaper.Flush()
	if x.ends != 1 || got != nil {
		t.Fatalf("100 faults at one call are one: %d, %v", x.ends, got)
	}
	ok(t, st.Close())
}

func TestReaperCloseDrainsAndKeepsPanics(t *testing.T) {
	dev := gputest.One(1 << 20)
	r := gpu.NewReaper(dev)
	st := must(dev.NewStream(false))(t)
	dev.Hold()
	var x, y ref
	r.After(st, func(error) { panic("f") }, &x)
	r.After(st, nil, &y)
	done := make(chan error)
	go func() { done <- r.Close() }()
	dev.Go()
	var p *gpu.PanicError
	if err := <-done; !errors.As(err, &p) || p.Value != "f" {
		t.Fatal(err)
	}
	if x.ends != 1 || y.ends != 1 {
		t.Fatal("not drained")
	}
	r.After(st, nil, &x)
	if x.ends != 2 {
		t.Fatal("after Close nobody else ends it")
	}
	ok(t, st.Close())
	if s := dev.Stats(); !s.Empty() {
		t.Fatalf("%+v", s)
	}
	ok(t, dev.Close())
}
