package gpu_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

// A device that its driver does not revive: everybody gets the same error at
// once, nothing is tried again, nothing is left.
func TestLostDevice(t *testing.T) {
	b := setOf(t, gputest.Config{Total: 64 * kib, NoRevival: true}, -1)
	ws := must(b.card.Workers(2, false))(t)
	ok(t, ws.Do(ctx, func(*gpu.Worker) error { return nil }))
	kept := must(alloc.Make[byte](b.sc, 4*kib, alloc.Witness, alloc.Secret))(t)
	pinned := must(alloc.Make[byte](b.host.In(alloc.Pinned), 4*kib, alloc.Witness, alloc.Secret))(t)
	host := must(alloc.Make[byte](b.host, 64*kib, alloc.Witness, 0))(t)
	reg := must(b.card.Registry.PinBuffer(b, b.host, host))(t)
	claim := must(b.card.Planner.Claim(gpu.Request{Tiers: []gpu.Tier{{Bytes: kib}}}))(t)
	if b.card.Lost() != nil {
		t.Fatal("lost before anything happened")
	}
	b.Break()
	if b.card.Lost() != nil || b.Sticky() == nil {
		t.Errorf("nobody has tried to revive it: %v", b.card.Lost())
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := b.card.Reset(); !errors.Is(err, gpu.ErrLost) {
				t.Errorf("reset: %v", err)
			}
		})
	}
	all.Wait()
	if n := b.Calls("cuDevicePrimaryCtxReset"); n != 1 {
		t.Errorf("the driver was asked %d times to reset", n)
	}
	calls := b.Calls("")
	lost := b.card.Lost()
	for what, err := range map[string]error{
		"reset":  b.card.Reset(),
		"worker": ws.Do(ctx, func(*gpu.Worker) error { return nil }),
		"bind":   b.card.Bind(),
		"memory": second(alloc.Make[byte](b.sc, 1, alloc.Witness, 0)),
		"pinned": second(alloc.Make[byte](b.host.In(alloc.Pinned), 1, alloc.Witness, 0)),
		"pin":    second(b.card.Registry.Pin(b, b.host, unsafe.Pointer(&host.Slice()[0]), 64*kib)),
		"claim":  second(b.card.Planner.Claim(gpu.Request{Tiers: []gpu.Tier{{Bytes: kib}}})),
		"sticky": b.card.Sticky(),
	} {
		if !errors.Is(err, gpu.ErrLost) || !errors.Is(err, lost) {
			t.Errorf("%s: %v", what, err)
		}
		if strings.Count(err.Error(), "lost to this process") != 1 {
			t.Errorf("%s does not say it once: %v", what, err)
		}
	}
	if b.Calls("") != calls {
		t.Error("the driver was asked")
	}
	var told *gpu.LostError
	var cause *gpu.Error
	if !errors.As(lost, &told) || told.Temporary() || !told.FromStart() || !errors.Is(lost, gpu.ErrSticky) || !errors.As(lost, &cause) || cause.Code != 700 {
		t.Errorf("%#v", lost)
	}
	want := "cuda:0 is lost to this process: the driver allows no new context after CUDA_ERROR_ILLEGAL_ADDRESS; start the program again to use the card"
	if lost.Error() != want {
		t.Errorf("it says %q", lost)
	}
	pinned.Slice()[7] = 1 // the pages are there until they are freed
	host.Slice()[7] = 1
	claim.Close()
	reg.Release()
	kept.Release()
	pinned.Release()
	host.Release()
	alloc.Default().TrimPoolOf(alloc.Pinned) // debug builds keep some for a while
	if st := b.Stats(); st.Registrations != 0 || st.Pinned != 0 || st.Allocations != 0 || st.Streams != 0 {
		t.Errorf("left: %+v", st)
	}
}

func second[T any](_ T, err error) error { return err }

// Waiting for a lost device's memory ends.
func TestLostWhileWaiting(t *testing.T) {
	b := setOf(t, gputest.Config{Total: 64 * kib, NoRevival: true}, -1)
	claim := must(b.card.Planner.Claim(gpu.Request{Tiers: []gpu.Tier{{Bytes: 60 * kib}}}))(t)
	defer claim.Close()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := b.card.Planner.Wait(ctx, gpu.Request{Tiers: []gpu.Tier{{Bytes: 32 * kib}}})
			done <- err
		}()
	}
	time.Sleep(5 * time.Millisecond)
	b.Break()
	_ = b.card.Reset()
	for range 2 {
		if err := <-done; !errors.Is(err, gpu.ErrSticky) {
			t.Errorf("%v", err)
		}
	}
}

// The same on the driver.
func TestCardThatIsNotRevived(t *testing.T) {
	if emulator.Real() {
		t.Skip("nobody can make a real card fail so")
	}
	c, lib := cardOf(t, emulator.Config{NoRevival: true})
	ws := must(c.card.Workers(2, false))(t)
	dev := must(alloc.Make[uint64](c.sc, 1000, alloc.Witness, alloc.Secret))(t)
	out := must(alloc.Make[uint64](c.host.In(alloc.Pinned), 1000, alloc.Scratch, alloc.Secret))(t)
	work := func(w *gpu.Worker) error {
		s, err := w.Scratch(c.sc, 8000, alloc.Scratch)
		if err != nil {
			return err
		}
		out.Retain()
		w.Hold(out)
		return errors.Join(w.Stream().Fill(s.Ptr, 0x11, 8000), w.Stream().CopyOut(unsafe.Pointer(&out.Slice()[0]), s.Ptr, 8000), s.Free(), w.Stream().Sync())
	}
	ok(t, ws.At(0).Do(ctx, work))
	ok(t, ws.At(1).Do(ctx, work))
	lib.Fault("copy", 1, 719, true)
	if err := ws.At(0).Do(ctx, work); !errors.Is(err, gpu.ErrSticky) {
		t.Fatalf("%v", err)
	}
	if err := c.card.Reset(); !errors.Is(err, gpu.ErrLost) || !strings.Contains(err.Error(), "CUDA_ERROR_LAUNCH_FAILED") {
		t.Fatalf("%v", err)
	}
	calls := lib.Calls()
	for i := range ws.Len() {
		if err := ws.At(i).Do(ctx, work); !errors.Is(err, gpu.ErrLost) {
			t.Fatalf("%v", err)
		}
	}
	dev.Release()
	if out.Slice()[999] != 0x1111111111111111 {
		t.Error("pinned memory does not outlive the card")
	}
	out.Release()
	c.card.Reaper.Flush()
	if n := lib.Calls() - calls; n != 0 {
		t.Errorf("%d calls to a driver that has given the card up", n)
	}
}
