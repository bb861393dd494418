package gpu_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/gpu"
)

// These tests run on the emulated driver or, where SNARKLINE_TEST_DEVICE names
// one, on a real card.

type onCard struct {
	gpu.Device
	card *gpu.Card
	sc   *alloc.Scope
	host *alloc.Scope
}

var library = sync.OnceValues(func() (*emulator.Lib, error) {
	b, err := emulator.Build(ctx, emulator.Options{Kernels: []string{filepath.Join("testdata", "touch.cu")}})
	if err != nil {
		return nil, err
	}
	return emulator.Open(b.Path)
})

// cardOf is a card of the emulator, with nearly no kernels: quick to build.
func cardOf(t *testing.T, config emulator.Config) (*onCard, *emulator.Lib) {
	t.Helper()
	var dev gpu.Device
	var lib *emulator.Lib
	if emulator.Real() {
		dev = emulator.TestDevice(t)
	} else {
		var err error
		lib, err = library()
		if errors.Is(err, emulator.ErrNoCompiler) && os.Getenv("SNARKLINE_NEED_EMULATOR") != "1" {
			t.Skipf("SKIPPED: %v; devices are NOT tested on the emulator", err)
		}
		ok(t, err)
		ok(t, lib.Configure(config))
		drv := must(driver.Open(lib.Path))(t)
		t.Cleanup(func() { ok(t, drv.Close()) })
		dev = must(drv.Devices())(t)[0]
	}
	mark := alloc.Marked()
	use := must(gpu.Use(dev))(t)
	c := &onCard{dev, gpu.NewCard(dev, gpu.CardOptions{Providers: use, Margin: -1}),
		alloc.NewScope(alloc.StageOf("test"), dev.Space(), nil), alloc.NewScope(alloc.StageOf("test"), alloc.Host, nil)}
	failures, _ := alloc.Default().FreeErrors()
	t.Cleanup(func() {
		ok(t, c.card.Close())
		ok(t, use.Restore())
		alloc.Default().TrimPool()
		if st := c.card.Registry.Stats(); st.Runs != 0 || st.Failures != 0 {
			t.Errorf("%+v", st)
		}
		if n, err := alloc.Default().FreeErrors(); n != failures {
			t.Errorf("memory could not be given back: %v", err)
		}
		if lib != nil {
			st := must(lib.Stats())(t)
			if st.Cards[0].Live() || st.Early != 0 {
				t.Errorf("left: %+v; %d times host memory went before its copy", st.Cards[0], st.Early)
			}
		}
		mark.CheckLeaks(t)
	})
	return c, lib
}

func TestCardSharesRegistrations(t *testing.T) {
	c, _ := cardOf(t, emulator.Config{Mode: emulator.Late})
	p, unmap := mapped(t, 16)
	defer unmap()
	host := unsafe.Slice((*byte)(p), 16*page)
	for i := range host {
		host[i] = byte(i / 11)
	}
	r := c.card.Registry

	inner := must(r.Pin(c, c.host, unsafe.Add(p, 5*page+7), int64(3*page)))(t)
	var e *gpu.Error
	if err := c.Register(p, int64(16*page)); !errors.As(err, &e) || e.Code != 712 {
		t.Errorf("a page is registered twice: %v", err)
		_ = c.Unregister(p)
	}
	whole := must(r.Pin(c, c.host, p, int64(16*page)))(t)
	if st := r.Stats(); st.Runs != 3 || st.Bytes != int64(16*page) {
		t.Fatalf("%+v", st)
	}
	dev := must(alloc.Make[byte](c.sc, 16*page, alloc.Scratch, 0))(t)
	defer dev.Release()
	d := gpu.Ptr(dev.Addr())
	ws := must(c.card.Workers(1, true))(t)
	ok(t, ws.Do(ctx, func(w *gpu.Worker) error {
		// The device does not take a copy from one registration into another,
		// or it does: pieces are right in either case.
		if err := w.Stream().CopyIn(d, p, int64(16*page)); err != nil {
			t.Logf("across registrations: %v", err)
		} else {
			t.Log("across registrations: copied")
		}
		if err := whole.CopyIn(w.Stream(), d+3, 3, int64(16*page-6)); err != nil {
			return err
		}
		done := make(chan error, 1)
		c.card.Reaper.After(w.Stream(), func(err error) { done <- err })
		ok(t, <-done)
		clear(host)
		whole.Retain()
		w.Hold(whole)
		return whole.CopyOut(w.Stream(), 3, d+3, int64(16*page-6))
	}))
	inner.Release()
	whole.Release() // the worker holds it until its copy is done
	c.card.Reaper.Flush()
	for i, v := range host {
		if want := byte(i / 11); i >= 3 && i < len(host)-3 && v != want {
			t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
	if st := r.Stats(); st.Runs != 0 {
		t.Fatalf("%+v", st)
	}
}

// F3 and F4 on the driver.
func TestCardSeesBothPools(t *testing.T) {
	c, _ := cardOf(t, emulator.Config{Cards: []emulator.Card{{Total: 16 * alloc.MiB}}})
	free, _, err := c.Memory()
	ok(t, err)
	n := free / 10 * 6
	ws := must(c.card.Workers(1, false))(t)
	ok(t, ws.Do(ctx, func(w *gpu.Worker) error {
		s, err := w.Scratch(c.sc, n, alloc.Scratch)
		if err != nil {
			return err
		}
		return errors.Join(s.Free(), w.Stream().Sync())
	}))
	c.card.Reaper.Flush()
	if p, err := c.Alloc(n); err == nil {
		ok(t, c.Free(p))
		if !emulator.Real() {
			t.Error("the naive way works: this test shows nothing")
		}
		t.Log("the naive way works here")
	} else if !errors.Is(err, gpu.ErrNoMemory) {
		t.Fatal(err)
	}
	claim := must(c.card.Planner.Place(gpu.Vectors(n/3, false, 0), func(c2 *gpu.Claim) error {
		b, err := gpu.TakeBuffer[byte](c2, c.sc, int(c2.Decision().Chosen().Bytes), alloc.Evaluation, alloc.Dirty)
		if err == nil {
			b.Release()
		}
		return err
	}))(t)
	if claim.Decision().Tier != 0 {
		t.Errorf("%v", claim.Decision())
	}
	claim.Close()
}

func TestCardAfterAStickyError(t *testing.T) {
	if emulator.Real() {
		t.Skip("nobody can make a real card fail so")
	}
	c, lib := cardOf(t, emulator.Config{})
	ws := must(c.card.Workers(2, false))(t)
	dev := must(alloc.Make[uint64](c.sc, 1000, alloc.Witness, alloc.Secret))(t)
	out := must(alloc.Make[uint64](c.host.In(alloc.Pinned), 1000, alloc.Scratch, 0))(t)
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
	lib.Fault("copy", 1, 700, true)
	if err := ws.At(0).Do(ctx, work); !errors.Is(err, gpu.ErrSticky) {
		t.Fatalf("%v", err)
	}
	if err := ws.At(1).Do(ctx, work); !errors.Is(err, gpu.ErrSticky) {
		t.Fatalf("%v", err)
	}
	ok(t, c.card.Reset())
	dev.Release() // late, secret, and of no generation that is left
	clear(out.Slice())
	for i := range ws.Len() {
		ok(t, ws.At(i).Do(ctx, work))
	}
	if out.Slice()[999] != 0x1111111111111111 {
		t.Fatal("the wrong result")
	}
	out.Release()
}
