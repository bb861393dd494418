//go:build linux && (amd64 || arm64) && !nocuda

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/gpu"
)

const kernel = "add_bls12381"

var build = sync.OnceValues(func() (*emulator.Lib, error) {
	b, err := emulator.Build(context.Background(), emulator.Options{Kernels: []string{filepath.Join("testdata", "add.cu")}})
	if err != nil {
		return nil, err
	}
	return emulator.Open(b.Path)
})

// emulated is the emulator, with the driver's own kernel alone: quick to build.
func emulated(t *testing.T, c emulator.Config) *emulator.Lib {
	t.Helper()
	if os.Getenv("SNARKLINE_TEST_DEVICE") != "" {
		t.Skip("a real card is tested")
	}
	l, err := build()
	if errors.Is(err, emulator.ErrNoCompiler) && os.Getenv("SNARKLINE_NEED_EMULATOR") != "1" {
		t.Skipf("SKIPPED: %v; the driver is NOT tested on the emulator", err)
	}
	ok(t, err)
	ok(t, l.Configure(c))
	return l
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// open gives the emulated cards. At the test's end nothing may be left of them.
func open(t *testing.T, l *emulator.Lib) []gpu.Device {
	t.Helper()
	d, err := driver.Open(l.Path)
	ok(t, err)
	devices, err := d.Devices()
	ok(t, err)
	t.Cleanup(func() {
		l.Clear()
		nothing(t, l)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		st, err := l.Stats()
		ok(t, err)
		for _, c := range st.Cards {
			if c.Context != 0 {
				t.Errorf("%d references to the context are left", c.Context)
			}
		}
		if st.Early != 0 {
			t.Errorf("host memory went %d times before its copy was done", st.Early)
		}
	})
	return devices
}

// nothing checks that no card has anything that a program must give back.
func nothing(t *testing.T, l *emulator.Lib) {
	t.Helper()
	st, err := l.Stats()
	ok(t, err)
	for i, c := range st.Cards {
		if c.Live() {
			t.Errorf("left on card %d: %+v", i, c)
		}
	}
}

var modes = []emulator.Mode{emulator.Async, emulator.Late, emulator.Eager}

func TestEmulatorProgram(t *testing.T) {
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) {
			l := emulated(t, emulator.Config{Mode: m, Cards: []emulator.Card{{Name: "one", Total: 64 << 20}, {Name: "two"}}})
			devices := open(t, l)
			if len(devices) != 2 || devices[1].Info().Name != "two" || devices[0].Info().UUID == devices[1].Info().UUID {
				t.Fatalf("%d devices", len(devices))
			}
			for _, dev := range devices {
				driver.CardProgram(t, dev, false, kernel)
				ok(t, dev.Trim(0))
				free, total, err := dev.Memory()
				ok(t, err)
				if free != total || total != dev.Info().Total {
					t.Errorf("%d of %d bytes free", free, total)
				}
			}
		})
	}
}

func TestEmulatorSticky(t *testing.T) {
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) {
			driver.CardSticky(t, open(t, emulated(t, emulator.Config{Mode: m}))[0], kernel)
		})
	}
}

// TestEmulatorLost is TestEmulatorSticky where a card is not revived. Another
// card of the process goes on.
func TestEmulatorLost(t *testing.T) {
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) {
			l := emulated(t, emulator.Config{Mode: m, NoRevival: true, Cards: []emulator.Card{{}, {}}})
			devices := open(t, l)
			driver.CardSticky(t, devices[0], kernel)
			if err := gpu.Lost(devices[0]); err == nil {
				t.Fatal("the card was revived")
			}
			before := l.Calls()
			for range 3 {
				_ = driver.Program(devices[0], kernel)
				_ = devices[0].Reset()
			}
			if n := l.Calls() - before; n != 0 {
				t.Errorf("%d calls to the driver for a card that is lost", n)
			}
			nothing(t, l)
			ok(t, driver.Program(devices[1], kernel))
		})
	}
}

// TestEmulatorEveryCallFails fails the n-th call that can fail for every n of a
// program that uses everything once.
func TestEmulatorEveryCallFails(t *testing.T) {
	l := emulated(t, emulator.Config{})
	for _, f := range []struct {
		code   int
		sticky bool
		kind   error
	}{{1, false, nil}, {2, false, gpu.ErrNoMemory}, {999, false, nil}, {700, true, gpu.ErrSticky}} {
		failed := 0
		for n := 1; ; n++ {
			ok(t, l.Configure(emulator.Config{Cards: []emulator.Card{{Total: 64 << 20}}}))
			d, err := driver.Open(l.Path)
			ok(t, err)
			devices, err := d.Devices()
			ok(t, err)
			dev := devices[0]
			l.Fault("", n, f.code, f.sticky)
			err = driver.Program(dev, kernel)
			if l.Clear() > 0 {
				if err != nil || failed < 30 {
					t.Fatalf("after %d calls, %d of which failed: %v", n, failed, err)
				}
				ok(t, d.Close())
				break
			}
			if err != nil {
				failed++
				var e *gpu.Error
				if !errors.As(err, &e) || e.Code != f.code || f.kind != nil && !errors.Is(err, f.kind) {
					t.Errorf("call %d, %d: %v", n, f.code, err)
				}
			}
			if dev.Sticky() != nil {
				ok(t, dev.Reset())
			}
			nothing(t, l)
			if err := driver.Program(dev, kernel); err != nil {
				t.Errorf("call %d, %d: the next run: %v", n, f.code, err)
			}
			nothing(t, l)
			ok(t, d.Close())
			st, err := l.Stats()
			ok(t, err)
			if st.Cards[0].Context != 0 || st.Cards[0].Used != 0 || st.Early != 0 {
				t.Errorf("call %d, %d: %+v", n, f.code, st)
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%d: %d calls whose failure shows", f.code, failed)
	}
}

// TestEmulatorStreams orders work of two streams by events.
func TestEmulatorStreams(t *testing.T) {
	l := emulated(t, emulator.Config{Mode: emulator.Late})
	dev := open(t, l)[0]
	one, err := dev.NewStream(false)
	ok(t, err)
	two, err := dev.NewStream(true)
	ok(t, err)
	begin, err := dev.NewEvent(true)
	ok(t, err)
	end, err := dev.NewEvent(true)
	ok(t, err)
	m, err := dev.Load("add", driver.AddPTX(kernel))
	ok(t, err)
	add, err := m.Function(kernel)
	ok(t, err)
	const n = 1 << 16
	mem, err := dev.Alloc(4 * n)
	ok(t, err)
	p, err := dev.AllocPinned(4 * n)
	ok(t, err)
	host := unsafe.Slice((*uint32)(p), n)
	args := gpu.NewArgs()
	defer args.Close()
	// 1, doubled twelve times by the first stream, then read by the second.
	for i := range host {
		host[i] = 1
	}
	ok(t, one.Record(begin), one.CopyIn(mem, p, 4*n))
	for range 12 {
		ok(t, one.Launch(add, gpu.Linear(n, 256), args.Reset().Ptr(mem).Ptr(mem).Ptr(mem).U32(n)))
	}
	ok(t, one.Record(end), two.Wait(end), two.CopyOut(p, mem, 4*n))
	if done, err := end.Done(); err != nil || done {
		t.Logf("done at once: %v, %v", done, err)
	}
	ok(t, two.Sync())
	for i := range host {
		if host[i] != 1<<12 {
			t.Fatalf("word %d is %d", i, host[i])
		}
	}
	done, err := end.Done()
	ok(t, err)
	ms, err := end.Since(begin)
	ok(t, err)
	if !done || ms <= 0 {
		t.Errorf("done %v, %v ms", done, ms)
	}
	t.Logf("12 additions: %.2f ms", ms)
	ok(t, dev.Free(mem), dev.FreePinned(p), begin.Close(), end.Close(), m.Close(), one.Close(), two.Close())
}

// TestEmulatorPools shows that the two pools do not see each other's memory, and
// that a trim helps.
func TestEmulatorPools(t *testing.T) {
	l := emulated(t, emulator.Config{Cards: []emulator.Card{{Total: 16 << 20, Others: 2 << 20}}})
	dev := open(t, l)[0]
	st, err := dev.NewStream(false)
	ok(t, err)
	a, err := st.AllocAsync(8 << 20)
	ok(t, err)
	ok(t, st.FreeAsync(a), st.Sync())
	used, reserved, err := dev.Pooled()
	ok(t, err)
	if used != 0 || reserved != 8<<20 {
		t.Errorf("%d of %d bytes of the pool in use", used, reserved)
	}
	_, err = dev.Alloc(8 << 20)
	if !errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("memory of the pool was given: %v", err)
	}
	t.Log(err)
	ok(t, dev.Trim(0))
	b, err := dev.Alloc(8 << 20)
	ok(t, err)
	if _, err := st.AllocAsync(8 << 20); !errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("more than there is: %v", err)
	}
	ok(t, dev.Free(b), st.Close())
}

// TestEmulatorNoDevice asks machines that lack what is needed.
func TestEmulatorNoDevice(t *testing.T) {
	for what, c := range map[string]emulator.Config{
		"no card":    {None: true},
		"old driver": {Driver: 11070},
		"old card":   {Cards: []emulator.Card{{Major: 7, Minor: 5}}},
	} {
		l := emulated(t, c)
		d, err := driver.Open(l.Path)
		if err == nil {
			_, err = d.Devices()
		}
		if !errors.Is(err, gpu.ErrNoDevice) {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: %v", what, err)
	}
	l := emulated(t, emulator.Config{Driver: driver.MinVersion, Cards: []emulator.Card{{Major: driver.MinMajor}}})
	driver.CardProgram(t, open(t, l)[0], false, kernel)
}

func TestEmulatorNVML(t *testing.T) {
	l := emulated(t, emulator.Config{Cards: []emulator.Card{{Total: 1 << 30, Others: 100 << 20}}})
	dev := open(t, l)[0]
	n, err := driver.OpenNVML(l.Path)
	ok(t, err)
	text, err := n.DriverVersion()
	ok(t, err)
	c, err := n.Card(dev.Info().UUID)
	ok(t, err)
	name, err := c.Name()
	ok(t, err)
	if name != dev.Info().Name || text != "580.95.05" {
		t.Errorf("%s, driver %s", name, text)
	}
	mem, err := dev.Alloc(64 << 20)
	ok(t, err)
	used, total, err := c.Memory()
	ok(t, err)
	others, err := c.OthersMemory()
	ok(t, err)
	if used != 164<<20 || total != 1<<30 || others != 100<<20 {
		t.Errorf("%d of %d bytes, %d by others", used, total, others)
	}
	m, err := dev.Load("add", driver.AddPTX(kernel))
	ok(t, err)
	add, err := m.Function(kernel)
	ok(t, err)
	st, err := dev.NewStream(false)
	ok(t, err)
	args := gpu.NewArgs()
	defer args.Close()
	s := c.Sample(true)
	for start := time.Now(); time.Since(start) < 5*driver.SampleEvery/2; {
		ok(t, st.Launch(add, gpu.Linear(1<<20, 256), args.Reset().Ptr(mem).Ptr(mem).Ptr(mem).U32(1<<20)), st.Sync())
	}
	u := s.Stop()
	t.Log(u)
	if u.Samples == 0 || u.ComputeMax == 0 || u.UsedMax < 164<<20 {
		t.Errorf("%+v", u)
	}
	ok(t, dev.Free(mem), m.Close(), st.Close(), n.Close())
}

// TestEmulatorTwoWorkers lets two goroutines work and reset on one card.
func TestEmulatorTwoWorkers(t *testing.T) {
	l := emulated(t, emulator.Config{Cards: []emulator.Card{{Total: 64 << 20}}})
	dev := open(t, l)[0]
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 30 {
				if w == 0 && i%7 == 3 {
					l.Fault("cuMemcpyDtoDAsync", 2, 719, true)
				}
				err := driver.Program(dev, kernel)
				if err != nil && !errors.Is(err, gpu.ErrSticky) && !errors.Is(err, gpu.ErrReset) {
					t.Error(fmt.Errorf("worker %d: %w", w, err))
					return
				}
				if err := dev.Reset(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	l.Clear()
	ok(t, dev.Reset(), driver.Program(dev, kernel))
	t.Logf("%d resets", dev.Generation())
	if dev.Generation() == 0 {
		t.Error("nothing failed")
	}
}
