package emulator

import (
	"fmt"
	"testing"
	"unsafe"
)

func environment(t *testing.T) {
	m := &machine{cu: bind(t), t: t}
	var n, version int32
	var total uint64
	m.must(m.Init(0))
	m.must(m.DeviceGetCount(&n))
	m.must(m.DriverGetVersion(&version))
	m.must(m.DeviceTotalMem(&total, 0))
	fmt.Printf("%d cards, %d bytes, driver %d\n", n, total, version)
}

func TestFaults(t *testing.T) {
	m := start(t, Config{})
	p := m.alloc(1)
	m.Fault("cuMemAlloc", 3, outOfMemory, false)
	m.Fault("cuMemAllocAsync", 1, outOfMemory, false)
	for i, want := range []int32{ok, ok, outOfMemory, ok} {
		var q uint64
		m.want(want, fmt.Sprintf("allocation %d", i+1), m.MemAlloc(&q, 1))
	}
	before := m.Calls()
	m.free()
	m.must(m.StreamSynchronize(m.stream))
	_ = m.name(2) // no call that can fail
	if got := m.Calls() - before; got != 2 {
		t.Errorf("%d calls counted, want 2", got)
	}
	m.Fault("", 2, launchFailed, false)
	m.must(m.StreamSynchronize(m.stream))
	m.want(launchFailed, "the second call of any name", m.StreamSynchronize(m.stream))
	m.must(m.StreamSynchronize(m.stream))
	if n := m.Clear(); n != 1 {
		t.Errorf("%d faults were left, want 1", n)
	}
	m.must(m.MemAllocAsync(&p, 1, m.stream))

	// Calls that end something have ended it.
	blocks := m.stats().Cards[0].ClassicBlocks
	q := m.alloc(1)
	m.Fault("cuMemFree_v2", 1, launchFailed, false)
	m.want(launchFailed, "a free", m.MemFree(q))
	if got := m.stats().Cards[0].ClassicBlocks; got != blocks {
		t.Errorf("%d blocks after a free that failed, want %d", got, blocks)
	}
	for i := range 300 { // every call by its number
		if err := m.Configure(Config{}); err != nil {
			t.Fatal(err)
		}
		m.Fault("", i+1, launchFailed, false)
		failed := failing(m)
		if failed == 0 {
			if i != m.Calls() {
				t.Errorf("no call failed with number %d, and %d calls were made", i+1, m.Calls())
			}
			break
		}
		if failed != launchFailed {
			t.Fatalf("call %d: %s", i+1, m.name(failed))
		}
	}
}

// failing does a little of everything until a call fails.
func failing(m *machine) int32 {
	var ctx, s, e, p, q, mod, f uint64
	v := []uint32{1}
	for _, call := range []func() int32{
		func() int32 { return m.Init(0) },
		func() int32 { return m.PrimaryRetain(&ctx, 0) },
		func() int32 { return m.CtxSetCurrent(ctx) },
		func() int32 { return m.StreamCreate(&s, 1) },
		func() int32 { return m.EventCreate(&e, 0) },
		func() int32 { return m.MemAlloc(&p, 4) },
		func() int32 { return m.MemAllocAsync(&q, 4, s) },
		func() int32 { return m.HtoDAsync(p, unsafe.Pointer(&v[0]), 4, s) },
		func() int32 { return m.ModuleLoadData(&mod, ptx(m.Kernels()...)) },
		func() int32 { return m.ModuleGetFunction(&f, mod, "probe_double_bn254") },
		func() int32 { return m.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, args(p, q, uint32(1)), nil) },
		func() int32 { return m.DtoHAsync(unsafe.Pointer(&v[0]), q, 4, s) },
		func() int32 { return m.EventRecord(e, s) },
		func() int32 { return m.EventSynchronize(e) },
		func() int32 { return m.MemFree(p) },
		func() int32 { return m.MemFreeAsync(q, s) },
		func() int32 { return m.EventDestroy(e) },
		func() int32 { return m.StreamSynchronize(s) },
		func() int32 { return m.StreamDestroy(s) },
		func() int32 { return m.PrimaryRelease(0) },
	} {
		if code := call(); code != ok {
			return code
		}
	}
	if v[0] != 2 {
		m.t.Errorf("got %d", v[0])
	}
	return ok
}

// An error that is sticky ends the context: all fails until it is reset.
func TestSticky(t *testing.T) {
	m := start(t, Config{})
	p := m.alloc(64)
	m.Fault("cuMemcpyDtoDAsync", 1, illegalAddress, true)
	m.want(illegalAddress, "the call", m.DtoDAsync(p, p, 4, m.stream))
	var x, free, total uint64
	var v int32
	for name, code := range map[string]int32{
		"cuMemAlloc": m.MemAlloc(&x, 1), "cuMemFree": m.MemFree(p), "cuMemGetInfo": m.MemGetInfo(&free, &total),
		"cuMemAllocAsync": m.MemAllocAsync(&x, 1, m.stream), "cuStreamSynchronize": m.StreamSynchronize(m.stream),
		"cuEventCreate": m.EventCreate(&x, 0), "cuStreamDestroy": m.StreamDestroy(m.stream),
		"cuModuleUnload": m.ModuleUnload(m.module), "cuCtxSynchronize": m.CtxSynchronize(),
	} {
		m.want(illegalAddress, name, code)
	}
	m.must(m.DeviceGetCount(&v))
	m.must(m.CtxSetCurrent(m.context))
	m.must(m.PrimaryReset(0))
	m.enter()
	m.run("probe_write", 1, 1, 0, m.alloc(4), uint32(7))
}

// What streams do fails later.
func TestFaultsOfStreams(t *testing.T) {
	for call, do := range map[string]func(m *machine, p uint64) int32{
		"copy":                        func(m *machine, p uint64) int32 { return m.DtoDAsync(p, p+32, 4, m.stream) },
		"kernel":                      func(m *machine, p uint64) int32 { return m.launch("probe_write", 1, 1, 0, p, uint32(1)) },
		"kernel:probe_write_bls12381": func(m *machine, p uint64) int32 { return m.launch("probe_write", 1, 1, 0, p, uint32(1)) },
	} {
		m := start(t, Config{Mode: Late})
		p := m.alloc(64)
		m.Fault(call, 2, launchFailed, true)
		m.must(do(m, p))
		m.must(m.StreamSynchronize(m.stream))
		m.must(do(m, p))
		m.want(launchFailed, call, m.StreamSynchronize(m.stream))
		m.want(launchFailed, call, m.CtxSynchronize())
	}
}

// Kernels that do what they may not.
func TestKernelsThatFail(t *testing.T) {
	for _, c := range []struct {
		name string
		code int32
		run  func(m *machine) int32
	}{
		{"past the end", illegalAddress, func(m *machine) int32 {
			return m.launch("probe_write", 1, 1, 0, m.alloc(256)+256, uint32(1))
		}},
		{"nowhere", illegalAddress, func(m *machine) int32 { return m.launch("probe_write", 1, 1, 0, uint64(16), uint32(1)) }},
		{"freed", illegalAddress, func(m *machine) int32 {
			p := m.alloc(256)
			m.must(m.MemFree(p))
			return m.launch("probe_write", 1, 1, 0, p, uint32(1))
		}},
		{"freed in another stream", illegalAddress, func(m *machine) int32 {
			var other, p, e uint64
			m.must(m.StreamCreate(&other, 1))
			m.must(m.EventCreate(&e, 0))
			m.must(m.MemAllocAsync(&p, 256, other))
			m.must(m.MemFreeAsync(p, other))
			m.must(m.EventRecord(e, other))
			m.must(m.StreamWaitEvent(m.stream, e, 0))
			return m.launch("probe_write", 1, 1, 0, p, uint32(1))
		}},
		{"an argument that is no memory", illegalAddress, func(m *machine) int32 {
			return m.launch("probe_double", 1, 1, 0, m.alloc(256), uint64(4096), uint32(0))
		}},
		{"past dynamic shared memory", illegalAddress, func(m *machine) int32 {
			return m.launch("probe_reverse", 1, 1000, 0, m.alloc(4000))
		}},
		{"for ever", launchTimeout, func(m *machine) int32 { return m.launch("probe_hang", 1, 64, 0, m.alloc(4)) }},
		{"deep", stackError, func(m *machine) int32 {
			return m.launch("probe_deep", 1, 1, 0, upload(m, []uint32{1, 2, 3}), uint32(100000))
		}},
		{"division", launchFailed, func(m *machine) int32 {
			return m.launch("probe_divide", 1, 1, 0, upload(m, []uint32{1, 0, 3}))
		}},
		{"trap", illegalInstruction, func(m *machine) int32 { return m.launch("probe_trap", 1, 1, 0, m.alloc(4)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, mode := range []Mode{Async, Eager} {
				m := start(t, Config{Mode: mode, Threads: 2})
				code := c.run(m)
				if mode == Async {
					m.must(code)
					code = m.StreamSynchronize(m.stream)
				}
				m.want(c.code, "afterwards", code)
				m.want(c.code, "and ever after", m.CtxSynchronize())
				m.must(m.PrimaryReset(0))
				m.enter()
				p := upload(m, ramp(512, func(i uint32) uint32 { return i }))
				m.run("probe_reverse", 2, 256, 1024, p) // the same threads are of use
				equal(t, "reverse", download[uint32](m, p, 512), ramp(512, func(i uint32) uint32 { return i&^255 + 255 - i&255 }))
			}
		})
	}
}

// Go's own faults are still Go's.
func TestGoFaultsStay(t *testing.T) {
	start(t, Config{})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var p *[4]int
	t.Log(p[2])
}

func TestCorrupt(t *testing.T) {
	m := start(t, Config{})
	in := ramp(1000, func(i uint32) uint32 { return i + 1 })
	din, out := upload(m, in), m.alloc(4096)
	m.Corrupt("probe_double", 2)
	for i := range 3 {
		m.must(m.MemsetD8Async(out, 0, 4096, m.stream))
		m.run("probe_double", 4, 256, 0, din, out, uint32(1000))
		wrong, bits := 0, uint32(0)
		for k, v := range download[uint32](m, out, 1000) {
			if v != 2*in[k] {
				wrong++
				bits = v ^ 2*in[k]
			}
		}
		if want := map[int]int{1: 1}[i]; wrong != want || bits&(bits-1) != 0 {
			t.Errorf("launch %d: %d values are wrong, the last in %#x; want %d", i+1, wrong, bits, want)
		}
	}
	equal(t, "what was only read", download[uint32](m, din, 1000), in)
	s := m.stats()
	if s.Corrupted != 1 || s.Faults != 0 || s.Kernels["probe_double_bls12381"] != 3 {
		t.Errorf("stats: %+v", s)
	}
	// A kernel that has its address in a plain word.
	m.Corrupt("", 1)
	m.run("probe_write", 1, 1, 0, out, uint32(0x5555))
	if got := download[uint32](m, out, 1)[0]; got == 0x5555 {
		t.Error("nothing was changed")
	}
}
