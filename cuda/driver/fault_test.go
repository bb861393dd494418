//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/gpu"
)

func program(dev gpu.Device) error { return Program(dev, "add") }

// Program uses everything once, like a caller that frees on every path, and is
// wrong if its sum is.
func Program(dev gpu.Device, kernel string) (err error) {
	defer func() { err = errors.Join(err, dev.Trim(0)) }()
	closing := func(f func() error) { err = errors.Join(err, f()) }
	if _, _, err := dev.Memory(); err != nil {
		return err
	}
	st, err := dev.NewStream(false)
	if err != nil {
		return err
	}
	defer func() { closing(st.Close) }()
	high, err := dev.NewStream(true)
	if err != nil {
		return err
	}
	defer func() { closing(high.Close) }()
	begin, err := dev.NewEvent(true)
	if err != nil {
		return err
	}
	defer func() { closing(begin.Close) }()
	end, err := dev.NewEvent(true)
	if err != nil {
		return err
	}
	defer func() { closing(end.Close) }()
	m, err := dev.Load("add", ptx(kernel))
	if err != nil {
		return err
	}
	defer func() { closing(m.Close) }()
	add, err := m.Function(kernel)
	if err != nil {
		return err
	}
	const n = 64
	pinned, err := dev.AllocPinned(4 * n)
	if err != nil {
		return err
	}
	defer func() { closing(func() error { return dev.FreePinned(pinned) }) }()
	mapped, err := unix.Mmap(-1, 0, 1<<14, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	defer func() { closing(func() error { return unix.Munmap(mapped) }) }()
	here := unsafe.Pointer(unsafe.SliceData(mapped))
	if err := dev.Register(here, int64(len(mapped))); err != nil {
		return err
	}
	defer func() { closing(func() error { return dev.Unregister(here) }) }()
	// What was queued is done before anything is let go.
	defer func() {
		for _, s := range []gpu.Stream{st, high} {
			if err := s.Sync(); err != nil {
				closing(s.Sync)
			}
		}
	}()
	a, err := dev.Alloc(4 * n)
	if err != nil {
		return err
	}
	defer func() { closing(func() error { return dev.Free(a) }) }()
	b, err := st.AllocAsync(4 * n)
	if err != nil {
		return err
	}
	defer func() { closing(func() error { return st.FreeAsync(b) }) }()
	for i := range words(here, n) {
		words(here, n)[i] = uint32(i)
	}
	args := gpu.NewArgs()
	defer args.Close()
	for _, f := range []func() error{
		func() error { return st.Record(begin) },
		func() error { return st.CopyIn(a, here, 4*n) },
		func() error { return st.Fill(b, 1, 4*n) },
		func() error { return st.Launch(add, gpu.Linear(n, 32), args.Ptr(a).Ptr(b).Ptr(b).U32(n)) },
		func() error { return st.Copy(a, b, 4*n) },
		func() error { return st.Record(end) },
		func() error { return high.Wait(end) },
		func() error { return high.CopyOut(pinned, a, 4*n) },
		func() error { _, err := end.Done(); return err },
		end.Sync,
		func() error { _, err := end.Since(begin); return err },
		high.Sync,
		func() error { _, _, err := dev.Pooled(); return err },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	for i, v := range words(pinned, n) {
		if v != uint32(i)+0x01010101 {
			return fmt.Errorf("word %d is %#x", i, v)
		}
	}
	return nil
}

// names of CUDA for the codes that tests use.
var names = map[int32]string{1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 100: "CUDA_ERROR_NO_DEVICE",
	700: "CUDA_ERROR_ILLEGAL_ADDRESS", 999: "CUDA_ERROR_UNKNOWN", 716: "an unknown status"}

var kinds = map[int32]error{2: gpu.ErrNoMemory, 100: gpu.ErrNoDevice, 700: gpu.ErrSticky, 716: gpu.ErrSticky}

// TestEveryCallFails fails the n-th call for every n that a program makes, from
// the making of the context to its end, with each kind of status. Nothing may
// stay behind, the error must say what it was, and the next run must be right.
func TestEveryCallFails(t *testing.T) {
	t.Run("at once", func(t *testing.T) { everyCallFails(t, 0) })
	t.Run("after it freed", func(t *testing.T) { everyCallFails(t, 1) })
}

func everyCallFails(t *testing.T, late int32) {
	s := newStandin(t)
	for code, name := range names {
		absorbed := 0
		for n := int32(1); ; n++ {
			s.Setup(12040, 1, 8)
			s.Late(late)
			d := must[*Driver](t)(Open(s.path))
			dev := must[[]gpu.Device](t)(d.Devices())[0]
			before := s.Calls()
			s.Fault("", n, code)
			err := program(dev)
			over := s.Calls()-before < int64(n)
			s.Fault("", 1, 0)
			if over {
				if err != nil || n < 50 {
					t.Fatalf("after %d calls: %v", n, err)
				}
				ok(t, d.Close())
				break
			}
			if err == nil {
				absorbed++ // giving back is tried twice, and some calls are no loss
				if errors.Is(kinds[code], gpu.ErrSticky) && dev.Sticky() != nil {
					t.Errorf("call %d, %s: sticky, and no error", n, name)
				}
			} else {
				var e *gpu.Error
				if !errors.As(err, &e) || e.Code != int(code) || e.Name != name || !errors.Is(e.Kind, kinds[code]) ||
					!strings.HasPrefix(e.Call, "cu") || strings.Contains(e.Call, "_v") || e.Text == "" {
					t.Errorf("call %d, %s: %#v from %v", n, name, e, err)
				}
			}
			if sticky := dev.Sticky(); sticky != nil {
				if !errors.Is(err, gpu.ErrSticky) || !errors.Is(kinds[code], gpu.ErrSticky) {
					t.Errorf("call %d, %s: sticky %v, error %v", n, name, sticky, err)
				}
				ok(t, dev.Reset())
			}
			if l := s.Live(); l != "contexts 1"+strings.TrimPrefix(nothingLive, "contexts 0") && l != nothingLive {
				t.Errorf("call %d, %s: left behind: %s", n, name, l)
			}
			if err := program(dev); err != nil {
				t.Errorf("call %d, %s: the next run: %v", n, name, err)
			}
			if dv := dev.(*device); len(dv.memory.m) != 0 || len(dv.locked.m) != 0 || len(dv.pinned.m) != 0 {
				t.Errorf("call %d, %s: the books: %v %v %v", n, name, dv.memory.m, dv.locked.m, dv.pinned.m)
			}
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if l := s.Live(); l != nothingLive {
				t.Fatalf("call %d, %s: left behind after close: %s", n, name, l)
			}
		}
		t.Logf("%s: %d failures cost nothing", name, absorbed)
		if absorbed > 50 {
			t.Errorf("%s: %d failures gave no error", name, absorbed)
		}
	}
}

// TestFreeFails lets calls that give back fail for good: what they were to free
// is still there, and goes when it is freed again, or with the device.
func TestFreeFails(t *testing.T) {
	s := newStandin(t)
	dev := s.open(t)
	st := must[gpu.Stream](t)(dev.NewStream(false))
	ev := must[gpu.Event](t)(dev.NewEvent(false))
	m := must[gpu.Module](t)(dev.Load("add", []byte(addPTX)))
	a, b := must[gpu.Ptr](t)(dev.Alloc(16)), must[gpu.Ptr](t)(st.AllocAsync(16))
	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(16))
	p, _ := hostMemory(t, 1<<12)
	ok(t, dev.Register(p, 1<<12))
	for call, f := range map[string]func() error{
		"cuMemFree":           func() error { return dev.Free(a) },
		"cuMemFreeAsync":      func() error { return st.FreeAsync(b) },
		"cuMemHostUnregister": func() error { return dev.Unregister(p) },
		"cuEventDestroy":      ev.Close,
		"cuModuleUnload":      m.Close,
	} {
		symbol := call
		if call == "cuMemFree" || call == "cuEventDestroy" {
			symbol += "_v2"
		}
		live := s.Live()
		for range 2 {
			s.Fault(symbol, 0, 999)
			mustSay(t, f(), nil, call, "CUDA_ERROR_UNKNOWN")
			if l := s.Live(); l != live {
				t.Errorf("%s: %s, was %s", call, l, live)
			}
		}
		if call == "cuMemHostUnregister" {
			mustSay(t, dev.FreePinned(pinned), nil, call)
			words(pinned, 1)[0] = 1 // must not be unmapped
		}
		s.Fault(symbol, 1, 1) // once: the second try does it
		ok(t, f())
		if l := s.Live(); l == live {
			t.Errorf("%s freed nothing: %s", call, l)
		}
	}
	s.Fault("cuStreamDestroy_v2", 0, 999)
	mustSay(t, st.Close(), nil, "cuStreamDestroy")
	s.Fault("", 1, 0)
	ok(t, st.Close(), dev.FreePinned(pinned))
	mustSay(t, dev.FreePinned(pinned), nil, "none there")
	if l := s.Live(); l != "contexts 1 memory 0 streams 0 events 0 modules 0 registered 0" {
		t.Error(l)
	}
}

// TestCloseFails fails each call of a Close of a device that holds things.
func TestCloseFails(t *testing.T) {
	s := newStandin(t)
	for _, late := range []int32{0, 1} {
		for n := int32(1); ; n++ {
			s.Setup(12040, 1, 8)
			s.Late(late)
			d := must[*Driver](t)(Open(s.path))
			dev := must[[]gpu.Device](t)(d.Devices())[0]
			st := must[gpu.Stream](t)(dev.NewStream(false))
			_, err := dev.NewEvent(false)
			_, err2 := dev.Alloc(1)
			_, err3 := st.AllocAsync(1)
			_, err4 := dev.Load("add", []byte(addPTX))
			ok(t, err, err2, err3, err4)
			before := s.Calls()
			s.Fault("", n, 999)
			err = dev.Close()
			over := s.Calls()-before < int64(n)
			s.Fault("", 1, 0)
			if l := s.Live(); l != nothingLive {
				t.Errorf("call %d: left behind: %s; %v", n, l, err)
			}
			ok(t, d.Close())
			if over {
				ok(t, err)
				break
			}
		}
	}
}

// TestCloseGivesBack closes a device that still holds things.
func TestCloseGivesBack(t *testing.T) {
	s := newStandin(t)
	d := must[*Driver](t)(Open(s.path))
	dev := must[[]gpu.Device](t)(d.Devices())[0]
	st := must[gpu.Stream](t)(dev.NewStream(false))
	ev := must[gpu.Event](t)(dev.NewEvent(false))
	a, b := must[gpu.Ptr](t)(dev.Alloc(16)), must[gpu.Ptr](t)(st.AllocAsync(16))
	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(16))
	p, _ := hostMemory(t, 1<<12)
	ok(t, dev.Register(p, 1<<12))
	ok(t, dev.Close(), dev.Close())
	if l := s.Live(); l != nothingLive {
		t.Error(l)
	}
	words(pinned, 1)[0] = 1
	ok(t, st.FreeAsync(b), dev.Free(a), dev.Unregister(p), dev.FreePinned(pinned), st.Close(), ev.Close())
	mustSay(t, st.Sync(), gpu.ErrClosed, "cuda:0")
	_, err := dev.Alloc(1)
	mustSay(t, err, gpu.ErrClosed)
	mustSay(t, dev.Reset(), gpu.ErrClosed)
	ok(t, d.Close())
}

func TestArguments(t *testing.T) {
	s := newStandin(t)
	dev := s.open(t)
	st := must[gpu.Stream](t)(dev.NewStream(false))
	_, err := dev.Alloc(1 << 40)
	mustSay(t, err, gpu.ErrNoMemory, "cuMemAlloc", "1.0 TiB", "64 MiB of 64 MiB are free", "cuda:0", "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory")
	_, err = st.AllocAsync(1 << 30)
	mustSay(t, err, gpu.ErrNoMemory, "cuMemAllocAsync", "1.0 GiB")
	for _, n := range []int64{0, -1} {
		_, err = dev.Alloc(n)
		mustSay(t, err, nil, "positive")
		_, err = st.AllocAsync(n)
		mustSay(t, err, nil, "positive")
		_, err = dev.AllocPinned(n)
		mustSay(t, err, nil, "positive")
		mustSay(t, dev.Register(unsafe.Pointer(&s), n), nil, "bytes")
	}
	ok(t, st.CopyIn(1, nil, 0), st.CopyOut(nil, 1, 0), st.Copy(1, 1, 0), st.Fill(1, 1, 0))
	mustSay(t, st.Fill(1, 1, -1), nil, "-1")
	ok(t, dev.Free(0), st.FreeAsync(0), dev.FreePinned(nil), dev.Unregister(nil))
	mustSay(t, dev.Free(4096), nil, "cuMemFree", "0x1000")

	_, err = dev.Load("broken", []byte("no PTX"))
	mustSay(t, err, nil, "broken", "CUDA_ERROR_INVALID_PTX", "line 1; no kernel add")
	m := must[gpu.Module](t)(dev.Load("add", []byte(addPTX)))
	_, err = m.Function("sub")
	mustSay(t, err, nil, "sub of add", "cuModuleGetFunction")
	add := must[gpu.Function](t)(m.Function("add"))
	args := gpu.NewArgs()
	defer args.Close()
	err = st.Launch(add, gpu.Launch{Grid: [3]uint32{2}, Block: [3]uint32{2048}, Shared: 5}, args)
	mustSay(t, err, nil, "cuLaunchKernel", "add", "[2 1 1]", "[2048 1 1]", "5 bytes")
	mustSay(t, st.Launch(nil, gpu.Linear(1, 1), args), nil, "no kernel")
	mustSay(t, st.Wait(nil), nil, "no event")
	for range 40 {
		args.U64(1)
	}
	mustSay(t, st.Launch(add, gpu.Linear(1, 1), args), nil, "launch add", "more than")
	ok(t, m.Close())
	mustSay(t, st.Launch(add, gpu.Linear(1, 1), args.Reset()), gpu.ErrClosed, "add")
	_, err = m.Function("add")
	mustSay(t, err, gpu.ErrClosed)
	ev := must[gpu.Event](t)(dev.NewEvent(true))
	ok(t, ev.Close(), ev.Close())
	mustSay(t, st.Record(ev), gpu.ErrClosed)
	mustSay(t, ev.Sync(), gpu.ErrClosed)
	ok(t, st.Close())
}

// TestResetWhileOthersWork lets workers run while the context ends and is made
// anew, over and over.
func TestResetWhileOthersWork(t *testing.T) {
	s := newStandin(t)
	dev := s.open(t)
	const resets = 30
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, err := range each(program(dev)) {
					if !errors.Is(err, gpu.ErrSticky) && !errors.Is(err, gpu.ErrReset) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range resets {
		s.Fault("cuMemcpyDtoDAsync_v2", 3, 700)
		for dev.Sticky() == nil && !t.Failed() {
			if _, err := dev.NewEvent(false); err != nil { // for the Reset to take
				break
			}
		}
		var both sync.WaitGroup // all who saw it may reset
		for range 2 {
			both.Go(func() {
				if err := dev.Reset(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	close(stop)
	wg.Wait()
	s.Fault("", 1, 0)
	ok(t, dev.Reset(), program(dev))
	if g := dev.Generation(); g < resets {
		t.Errorf("generation %d", g)
	}
	if dv := dev.(*device); len(dv.memory.m) != 0 || len(dv.locked.m) != 0 || len(dv.pinned.m) != 0 {
		t.Errorf("the books: %v %v %v", dv.memory.m, dv.locked.m, dv.pinned.m)
		for p, h := range dv.memory.m {
			t.Errorf("%#x: %+v", p, *h)
		}
	}
}

// each lists the errors that errors.Join has joined.
func each(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the chain is what is taken apart
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, each(e)...)
		}
		return all
	}
	return []error{err}
}
