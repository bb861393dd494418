package gpu_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

func TestWorkersRunSideBySide(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(3, false))(t)
	var now, most atomic.Int32
	streams := sync.Map{}
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if err := ws.Do(ctx, func(w *gpu.Worker) error {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				streams.Store(w.Stream(), w.Index())
				time.Sleep(time.Millisecond)
				now.Add(-1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	streams.Range(func(_, _ any) bool { n++; return true })
	if most.Load() > 3 || most.Load() < 2 || n > 3 || b.Stats().Streams != n {
		t.Fatalf("%d at once on %d streams", most.Load(), n)
	}
	for i := range ws.Len() {
		ok(t, ws.At(i).Do(ctx, func(w *gpu.Worker) error {
			if w.Index() != i || w.Card() != b.card {
				t.Error("another worker")
			}
			return nil
		}))
	}
}

func TestWorkersOutliveWhatTheyRun(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(1, true))(t)
	bad := errors.New("bad")
	if err := ws.Do(ctx, func(*gpu.Worker) error { return bad }); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	var p *gpu.PanicError
	if err := ws.Do(ctx, func(*gpu.Worker) error { panic(bad) }); !errors.As(err, &p) || !errors.Is(err, bad) || !strings.Contains(p.Stack, "worker_test.go") {
		t.Fatal(err)
	}
	if err := ws.Do(ctx, func(*gpu.Worker) error { runtime.Goexit(); return nil }); err == nil {
		t.Fatal("no error")
	}
	var st gpu.Stream
	for range 2 {
		ok(t, ws.Do(ctx, func(w *gpu.Worker) error {
			if st != nil && st != w.Stream() {
				t.Error("another stream")
			}
			st = w.Stream()
			return nil
		}))
	}
}

func TestWaitingForAWorkerCanBeCancelled(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(1, false))(t)
	in, out := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	c, cancel := context.WithCancelCause(ctx)
	go func() { done <- ws.Do(c, func(*gpu.Worker) error { close(in); <-out; return nil }) }()
	<-in
	why := errors.New("enough")
	time.AfterFunc(5*time.Millisecond, func() { cancel(why) })
	if err := ws.Do(c, func(*gpu.Worker) error { t.Error("it ran"); return nil }); !errors.Is(err, why) {
		t.Fatal(err)
	}
	select {
	case <-done:
		t.Fatal("what runs is not run to its end")
	default:
	}
	close(out)
	ok(t, <-done)
	if err := ws.Do(c, func(*gpu.Worker) error { t.Error("it ran"); return nil }); !errors.Is(err, why) {
		t.Fatal(err)
	}
}

func TestCloseWaitsForWhatRuns(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(2, false))(t)
	in, out := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	go func() {
		_ = ws.Do(ctx, func(*gpu.Worker) error { close(in); <-out; ended.Store(true); return nil })
	}()
	<-in
	time.AfterFunc(5*time.Millisecond, func() { close(out) })
	ok(t, ws.Close())
	if !ended.Load() {
		t.Fatal("it does not wait")
	}
	ok(t, ws.Close())
	if err := ws.Do(ctx, func(*gpu.Worker) error { return nil }); !errors.Is(err, gpu.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := b.card.Workers(0, false); err == nil {
		t.Fatal("no workers")
	}
}

func TestStreamsAreMadeAnewAfterAReset(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(2, false))(t)
	var old gpu.Stream
	var gen uint64
	ok(t, ws.At(0).Do(ctx, func(w *gpu.Worker) error { old, gen = w.Stream(), w.Generation(); return nil }))
	b.Fail("cuMemsetD8Async", 1, gputest.Sticky)
	err := ws.At(0).Do(ctx, func(w *gpu.Worker) error { return w.Stream().Fill(0, 0, 1) })
	if !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	if err := ws.Do(ctx, func(*gpu.Worker) error { t.Error("it ran"); return nil }); !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 { // everybody who met the error resets; it happens once
		wg.Go(func() { ok(t, b.card.Reset()) })
	}
	wg.Wait()
	if b.Generation() != 1 || b.card.Resets() != 1 {
		t.Fatalf("generation %d after %d resets", b.Generation(), b.card.Resets())
	}
	ok(t, ws.At(0).Do(ctx, func(w *gpu.Worker) error {
		if w.Stream() == old {
			t.Error("the same stream")
		}
		if err := w.Check(gen, "a, b and c"); !errors.Is(err, gpu.ErrReset) || !strings.Contains(err.Error(), "a, b and c of cuda:0") {
			t.Error(err)
		}
		return w.Check(w.Generation(), "")
	}))
}

// A Reset waits for what runs, and what runs can call other workers meanwhile
// without either waiting for the other.
func TestResetWaitsForWhatRuns(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(2, false))(t)
	in, out := make(chan struct{}), make(chan struct{})
	done, reset := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- ws.Do(ctx, func(w *gpu.Worker) error {
			close(in)
			<-out
			if w.Generation() != b.Generation() {
				t.Error("reset under a function")
			}
			return ws.Do(ctx, func(*gpu.Worker) error { return nil })
		})
	}()
	<-in
	b.Break()
	go func() { reset <- b.card.Reset() }()
	time.AfterFunc(5*time.Millisecond, func() { close(out) })
	if err := <-done; !errors.Is(err, gpu.ErrSticky) {
		t.Fatal(err)
	}
	ok(t, <-reset)
	if b.Generation() != 1 {
		t.Fatal("no reset")
	}
}

// Hold keeps what a copy reads although the function that queued it panics.
func TestHoldEndsWhenTheStreamIsThere(t *testing.T) {
	b := set(t, 1<<20, 0)
	ws := must(b.card.Workers(1, false))(t)
	host, dst := b.hostBytes(t, 3*page), b.make(t, int64(3*page))
	for i := range host.Slice() {
		host.Slice()[i] = 0x42
	}
	b.Hold()
	err := ws.Do(ctx, func(w *gpu.Worker) error {
		reg := must(b.card.Registry.PinBuffer(b, b.host, host))(t)
		host.Release()
		w.Hold(reg)
		if err := w.Stream().CopyIn(gpu.Ptr(dst.Addr()), reg.Ptr(), reg.Bytes()); err != nil {
			return err
		}
		panic("later")
	})
	var p *gpu.PanicError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	if n, _ := b.card.Reaper.Pending(); n != 1 || host.Refs() != 1 {
		t.Fatalf("%d wait, %d references", n, host.Refs())
	}
	b.Go()
	b.card.Reaper.Flush()
	if host.Refs() != 0 || b.Mem(gpu.Ptr(dst.Addr()), 1)[0] != 0x42 {
		t.Fatal("not ended, or not copied")
	}
	dst.Release()
}

func TestKernelsRunInOrder(t *testing.T) {
	b := set(t, 1<<20, 0)
	b.Define("add", func(c *gputest.Call) error {
		m := c.Mem(0, 4)
		if m == nil {
			return errors.New("a wild address")
		}
		m[0] += byte(c.U32(1))
		return nil
	})
	ws := must(b.card.Workers(1, false))(t)
	buf := must(alloc.Make[byte](b.sc, 4, alloc.Scratch, 0))(t)
	out := must(alloc.Make[byte](b.host.In(alloc.Pinned), 4, alloc.Scratch, 0))(t)
	mod := must(b.Load("m", nil))(t)
	f := must(mod.Function("add"))(t)
	ok(t, ws.Do(ctx, func(w *gpu.Worker) error {
		for i := range uint32(10) {
			if err := w.Stream().Launch(f, gpu.Linear(1, 32), w.Args().Reset().Ptr(gpu.Ptr(buf.Addr())).U32(i)); err != nil {
				return err
			}
		}
		return errors.Join(w.Stream().CopyOut(unsafe.Pointer(&out.Slice()[0]), gpu.Ptr(buf.Addr()), 4), w.Stream().Sync())
	}))
	if out.Slice()[0] != 45 {
		t.Fatalf("%v", out.Slice())
	}
	buf.Release()
	out.Release()
	ok(t, mod.Close())
}
