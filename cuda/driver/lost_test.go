//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/gpu"
)

// remnants are what a program has of a card whose context has ended.
type remnants struct {
	st     gpu.Stream
	ev     gpu.Event
	m      gpu.Module
	add    gpu.Function
	mem    gpu.Ptr
	pinned unsafe.Pointer // of a page
	reg    unsafe.Pointer // of 64 KiB, registered
}

// cardLost checks a card that Reset gave up with err: it says so in one way, at
// once, and takes back what it gave out.
func cardLost(t *testing.T, dev gpu.Device, err error, r remnants) {
	t.Helper()
	var lost *gpu.LostError
	var cause *gpu.Error
	if !errors.As(err, &lost) || !errors.Is(err, gpu.ErrSticky) || !errors.As(err, &cause) || !errors.Is(lost.Err, gpu.ErrSticky) {
		t.Fatalf("%#v", err)
	}
	want := " is lost to this process: the driver allows no new context after " + cause.Name + "; start the program again to use the card"
	if s := err.Error(); !strings.HasPrefix(s, "cuda:") || !strings.HasSuffix(s, want) || strings.Count(s, "lost") != 1 {
		t.Errorf("it says %q", s)
	}
	t.Logf("the last try: %v", lost.Err)
	args := gpu.NewArgs()
	defer args.Close()
	start := time.Now()
	const rounds = 100
	for range rounds {
		for what, f := range map[string]func() error{
			"reset":    dev.Reset,
			"sticky":   dev.Sticky,
			"bind":     dev.Bind,
			"alloc":    func() error { _, err := dev.Alloc(16); return err },
			"memory":   func() error { _, _, err := dev.Memory(); return err },
			"pooled":   func() error { _, _, err := dev.Pooled(); return err },
			"trim":     func() error { return dev.Trim(0) },
			"pinned":   func() error { _, err := dev.AllocPinned(16); return err },
			"register": func() error { return dev.Register(r.reg, 16) },
			"stream":   func() error { _, err := dev.NewStream(true); return err },
			"event":    func() error { _, err := dev.NewEvent(true); return err },
			"load":     func() error { _, err := dev.Load("add", ptx(r.add.Name())); return err },
			"function": func() error { _, err := r.m.Function("other"); return err },
			"launch":   func() error { return r.st.Launch(r.add, gpu.Linear(1, 1), args) },
			"copy":     func() error { return r.st.CopyIn(r.mem, r.pinned, 16) },
			"async":    func() error { _, err := r.st.AllocAsync(16); return err },
			"sync":     r.st.Sync,
			"query":    func() error { _, err := r.ev.Done(); return err },
			"wait":     func() error { return r.st.Wait(r.ev) },
		} {
			if again := f(); again != err { //nolint:errorlint // the same one
				t.Fatalf("%s on a card that is lost: %v", what, again)
			}
		}
	}
	if took := time.Since(start); took > rounds*10*time.Millisecond {
		t.Errorf("%d rounds of what a card that is lost refuses took %v", rounds, took)
	}
	if dev.Generation() != 1 {
		t.Errorf("generation %d", dev.Generation())
	}

	// Host memory is the program's, locked or not.
	if words(r.pinned, 1)[0] != 4711 {
		t.Error("pinned memory is lost")
	}
	words(r.pinned, 1024)[1023] = 1
	words(r.reg, 1<<14)[1<<14-1] = 1
	ok(t, dev.Free(r.mem), dev.Unregister(r.reg), dev.FreePinned(r.pinned))
	ok(t, r.st.Close(), r.ev.Close(), r.m.Close(), r.st.Close())
	for what, err := range map[string]error{"free": dev.Free(r.mem), "unregister": dev.Unregister(r.reg), "free pinned": dev.FreePinned(r.pinned)} {
		if err == nil {
			t.Errorf("%s twice", what)
		}
	}
	if dv, is := dev.(*device); !is || len(dv.memory.m)+len(dv.locked.m)+len(dv.pinned.m)+len(dv.streams.m)+len(dv.events.m)+len(dv.modules.m) != 0 {
		t.Errorf("the books are not empty")
	}
	words(r.reg, 1)[0] = 2
	fresh, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	ok(t, err)
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(fresh))); uintptr(r.pinned)-at < 1<<20 {
		t.Error("an address that the driver may hold is given out anew")
	}
	ok(t, unix.Munmap(fresh))
}

// TestResetThatFails is a driver that wants a new process.
func TestResetThatFails(t *testing.T) {
	s := newStandin(t)
	dev := s.open(t)
	st := must[gpu.Stream](t)(dev.NewStream(false))
	ev := must[gpu.Event](t)(dev.NewEvent(false))
	m := must[gpu.Module](t)(dev.Load("add", ptx("add")))
	add := must[gpu.Function](t)(m.Function("add"))
	mem := must[gpu.Ptr](t)(dev.Alloc(16))
	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(16))
	words(pinned, 1)[0] = 4711
	reg, _ := hostMemory(t, 1<<16)
	ok(t, dev.Register(reg, 1<<16))
	s.Fault("cuStreamSynchronize", 1, 700)
	mustSay(t, st.Sync(), gpu.ErrSticky, "(700)")
	if gpu.Lost(dev) != nil {
		t.Error("lost before a Reset was tried")
	}
	s.Ended(1)
	err := dev.Reset()
	mustSay(t, err, gpu.ErrLost)
	s.Ended(0) // it is not asked again
	before := s.Calls()
	cardLost(t, dev, err, remnants{st, ev, m, add, mem, pinned, reg})
	if n := s.Calls() - before; n != 0 {
		t.Errorf("%d calls to a driver that has given the card up", n)
	}
	ok(t, dev.Close())
	if n := s.Calls() - before; n != 0 {
		t.Errorf("%d calls to close what is lost", n)
	}
	mustSay(t, dev.Reset(), gpu.ErrClosed)
}

// TestResetThatFailsOnce: a context that is still ending is waited out, and a
// failure that is not for good leaves the card to be tried again.
func TestResetThatFailsOnce(t *testing.T) {
	for _, code := range []int32{700, 2, 999} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := newStandin(t)
			dev := s.open(t)
			st := must[gpu.Stream](t)(dev.NewStream(false))
			s.Fault("cuStreamSynchronize", 1, 700)
			mustSay(t, st.Sync(), gpu.ErrSticky)
			s.Fault("cuDevicePrimaryCtxRetain", 1, code)
			if err := dev.Reset(); (err == nil) != (code == 700) || gpu.Lost(dev) != nil {
				t.Errorf("%v", err)
			}
			ok(t, dev.Reset(), program(dev), st.Close())
		})
	}
}
