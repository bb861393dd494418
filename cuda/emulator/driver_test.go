package emulator

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func lockThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

func TestCards(t *testing.T) {
	c := fresh(t, Config{Cards: []Card{{}, {Name: "Second", Total: 5 * mib, SMs: 7, Major: 8, Minor: 6, Shared: 99 * kib}}, Driver: 12040})
	m := &machine{cu: c, t: t}
	var n int32
	m.want(notInitialized, "before cuInit", m.DeviceGetCount(&n))
	m.want(invalidValue, "cuInit with flags", m.Init(1))
	m.must(m.Init(0))
	m.must(m.DriverGetVersion(&n))
	if n != 12040 {
		t.Errorf("version %d", n)
	}
	m.must(m.DeviceGetCount(&n))
	if n != 2 {
		t.Errorf("%d devices", n)
	}
	var d int32
	m.must(m.DeviceGet(&d, 1))
	m.want(invalidDevice, "a third device", m.DeviceGet(&d, 2))
	name := make([]byte, 64)
	m.must(m.DeviceGetName(&name[0], 64, 1))
	if got := unix.ByteSliceToString(name); got != "Second" {
		t.Errorf("name %q", got)
	}
	m.must(m.DeviceGetPCIBusId(&name[0], 64, 1))
	if got := unix.ByteSliceToString(name); got != "0000:02:00.0" {
		t.Errorf("bus %q", got)
	}
	var total uint64
	m.must(m.DeviceTotalMem(&total, 1))
	if total != 5*mib {
		t.Errorf("total %d", total)
	}
	for attr, want := range map[int32]int32{16: 7, 75: 8, 76: 6, 97: 99 * kib, 10: 32, 115: 1, 8: 48 * kib} {
		var v int32
		m.must(m.DeviceGetAttribute(&v, attr, 1))
		if v != want {
			t.Errorf("attribute %d: %d, want %d", attr, v, want)
		}
	}
	var v int32
	m.want(invalidValue, "an attribute that is none", m.DeviceGetAttribute(&v, 1000, 0))
	var u0, u1 [16]byte
	m.must(m.DeviceGetUuid(&u0, 0))
	m.must(m.DeviceGetUuid(&u1, 1))
	if u0 == u1 {
		t.Error("two cards with one UUID")
	}
}

func TestNoDevice(t *testing.T) {
	c := fresh(t, Config{None: true})
	m := &machine{cu: c, t: t}
	m.want(noDevice, "cuInit", m.Init(0))
	m.want(notInitialized, "after it", m.DeviceGetCount(new(int32)))
}

func TestContexts(t *testing.T) {
	c := fresh(t, Config{Cards: []Card{{Total: mib}, {Total: mib}}})
	m := &machine{cu: c, t: t}
	m.must(m.Init(0))
	var a, again, other, p uint64
	m.want(invalidContext, "no context", m.MemAlloc(&p, 1))
	m.must(m.PrimarySetFlags(0, 4))
	m.must(m.PrimaryRetain(&a, 0))
	m.must(m.PrimaryRetain(&again, 0))
	m.must(m.PrimaryRetain(&other, 1))
	if a != again || a == other || a == 0 {
		t.Errorf("contexts %#x, %#x, %#x", a, again, other)
	}
	m.must(m.CtxSetCurrent(a))
	var now uint64
	m.must(m.CtxGetCurrent(&now))
	if now != a {
		t.Errorf("current %#x", now)
	}
	// It is the thread's.
	done := make(chan int32)
	go func() {
		defer lockThread()()
		done <- m.CtxSynchronize()
	}()
	m.want(invalidContext, "another thread", <-done)

	var s uint64
	m.must(m.StreamCreate(&s, 1))
	m.must(m.MemAlloc(&p, 1))
	m.must(m.CtxSetCurrent(other))
	m.want(invalidHandle, "a stream of another context", m.StreamSynchronize(s))
	m.want(invalidValue, "memory of another context", m.MemFree(p))
	m.must(m.CtxSetCurrent(a))
	m.must(m.PrimaryRelease(0))
	m.must(m.StreamSynchronize(s))
	m.must(m.PrimaryRelease(0)) // the last one
	m.want(destroyed, "a context that is gone", m.StreamSynchronize(s))
	m.want(destroyed, "a context that is gone", m.CtxSetCurrent(a))
	m.want(invalidContext, "released too often", m.PrimaryRelease(0))
	m.must(m.PrimaryRetain(&again, 0))
	if again == a {
		t.Error("the same handle for another context")
	}
	m.must(m.CtxSetCurrent(again))
	m.want(invalidHandle, "a stream of the last one", m.StreamSynchronize(s))
	if m.free() != mib {
		t.Errorf("%d bytes free", m.free())
	}
	m.want(invalidContext, "no handle", m.CtxSetCurrent(12345))
	m.must(m.CtxSetCurrent(0))
	m.must(m.PrimaryRelease(0))
	m.must(m.PrimaryRelease(1))
	for i, s := range m.stats().Cards {
		if s.Live() || s.Context != 0 || s.Used != 0 {
			t.Errorf("card %d: %+v", i, s)
		}
	}
}

func TestReset(t *testing.T) {
	m := start(t, oneCard(mib))
	host := hostMemory(t, 8*kib)
	m.must(m.HostRegister(unsafe.Pointer(&host[0]), 8*kib, 0))
	var e, q uint64
	m.must(m.EventCreate(&e, 0))
	p, f := m.alloc(mib/2), m.function("probe_double")
	m.must(m.MemAllocAsync(&q, mib/4, m.stream))
	old := *m
	m.must(m.PrimaryReset(0))
	if s := m.stats().Cards[0]; s.Live() || s.Used != 0 || s.Context != 0 {
		t.Errorf("after a reset: %+v", s)
	}
	m.want(destroyed, "after a reset", m.StreamSynchronize(m.stream))
	m.enter()
	if m.free() != mib {
		t.Errorf("%d bytes free", m.free())
	}
	m.want(invalidHandle, "stream", m.StreamDestroy(old.stream))
	m.want(invalidHandle, "event", m.EventDestroy(e))
	m.want(invalidHandle, "module", m.ModuleUnload(old.module))
	m.want(invalidHandle, "function", m.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, m.stream, args(p, p, uint32(0)), nil))
	m.want(invalidValue, "memory", m.MemFree(p))
	m.want(invalidValue, "memory of the pool", m.MemFreeAsync(q, m.stream))
	m.want(notRegistered, "registration", m.HostUnregister(unsafe.Pointer(&host[0])))
	m.must(m.HostRegister(unsafe.Pointer(&host[0]), 8*kib, 0))
	in := upload(m, []uint32{21})
	m.run("probe_double", 1, 1, 0, in, in, uint32(1))
	if got := download[uint32](m, in, 1)[0]; got != 42 {
		t.Errorf("got %d after a reset", got)
	}
}

func TestModules(t *testing.T) {
	m := start(t, Config{Cards: []Card{{Major: 8}}, Driver: 11080})
	var mod, f uint64
	for text, want := range map[string]int32{
		"":                              invalidPTX,
		"\x7fELF":                       noBinary,
		"int main() { return 0; }\x00":  invalidPTX,
		".version 7.8\n":                invalidPTX,
		".version 7.8\n.target none\n":  invalidPTX,
		".version 8.0\n.target sm_80\n": unsupportedPTX,
		".version 7.8\n.target sm_90\n": noBinary,
		".version 7.8\n.target sm_80\n.visible .entry broken(\n)\n": invalidPTX,
		"// .version 7.8\n.target sm_80\n":                          invalidPTX,
	} {
		b := append([]byte(text), 0)
		log := make([]byte, 200)
		keys := []int32{5, 6}
		values := []uintptr{uintptr(unsafe.Pointer(&log[0])), 200}
		m.want(want, text, m.ModuleLoadDataEx(&mod, &b[0], 2, &keys[0], &values[0]))
		if !bytes.Contains(log, []byte("emulator: ")) {
			t.Errorf("%q: nothing in the log", text)
		}
	}
	m.must(m.ModuleLoadDataEx(&mod, ptx("probe_double_bls12381", "stranger"), 0, nil, nil))
	m.must(m.ModuleGetFunction(&f, mod, "probe_double_bls12381"))
	m.want(notFound, "not in this module", m.ModuleGetFunction(new(uint64), mod, "probe_sum_bls12381"))
	m.want(notFound, "not compiled", m.ModuleGetFunction(new(uint64), mod, "stranger"))
	m.want(notFound, "in a comment", m.ModuleGetFunction(new(uint64), m.module, "not_this"))
	m.must(m.ModuleUnload(mod))
	m.want(invalidHandle, "unloaded", m.ModuleGetFunction(&f, mod, "probe_double_bls12381"))
	m.want(invalidHandle, "a function of it", m.FuncGetAttribute(new(int32), 0, f))
}

func TestLaunchBounds(t *testing.T) {
	m := start(t, Config{})
	p := m.alloc(64 * kib)
	f := m.function("probe_double")
	for _, bad := range [][6]uint32{
		{0, 1, 1, 1, 1, 1}, {1, 0, 1, 1, 1, 1}, {1, 1, 0, 1, 1, 1}, {1 << 31, 1, 1, 1, 1, 1}, {1, 65536, 1, 1, 1, 1},
		{1, 1, 65536, 1, 1, 1}, {1, 1, 1, 0, 1, 1}, {1, 1, 1, 1025, 1, 1}, {1, 1, 1, 1, 1, 65}, {1, 1, 1, 32, 32, 2},
	} {
		m.want(invalidValue, "shape", m.LaunchKernel(f, bad[0], bad[1], bad[2], bad[3], bad[4], bad[5], 0, m.stream, args(p, p, uint32(0)), nil))
	}
	m.want(invalidValue, "no parameters", m.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, m.stream, nil, nil))
	m.want(invalidHandle, "no function", m.LaunchKernel(1, 1, 1, 1, 1, 1, 1, 0, m.stream, args(p), nil))
	m.want(invalidHandle, "no stream", m.LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 77, args(p), nil))
	m.want(invalidValue, "more threads than the kernel's bounds", m.launch("probe_sum", 1, 257, 0, p, p, uint32(0)))
	m.must(m.launch("probe_sum", 1, 256, 0, p, p, uint32(0)))

	// Shared memory: 48 KiB, and what the card has for those who ask.
	m.must(m.launch("probe_reverse", 1, 1024, 48*kib, p))
	m.want(invalidValue, "too much shared memory", m.launch("probe_reverse", 1, 1024, 48*kib+1, p))
	r := m.function("probe_reverse")
	m.must(m.FuncSetAttribute(r, 8, 227*kib))
	m.want(invalidValue, "more than there is", m.FuncSetAttribute(r, 8, 227*kib+1))
	m.want(invalidValue, "an attribute that cannot be set", m.FuncSetAttribute(r, 0, 1))
	m.must(m.launch("probe_reverse", 1, 1024, 227*kib, p))
	var v int32
	m.must(m.FuncGetAttribute(&v, 8, r))
	if v != 227*kib {
		t.Errorf("attribute 8: %d", v)
	}
	m.must(m.FuncGetAttribute(&v, 0, m.function("probe_sum")))
	if v != 256 {
		t.Errorf("threads of a block: %d", v)
	}

	// What a kernel declares counts.
	text := []byte(`.version 7.8
.target sm_80
.visible .entry probe_reverse_bls12381(
	.param .u64 a
)
.maxntid 128, 2, 1
.minnctapersm 2
{
	.shared .align 8 .b8 first[2041];
	// .shared .align 8 .b8 no[99999];
	.shared .align 4 .u32 second;
	ld.shared.u32 	%r1, [%r2];
	ret;
}` + "\x00")
	text = bytes.ReplaceAll(text, []byte("	// .shared .align 8 .b8 no[99999];\n"), nil)
	var mod, k uint64
	m.must(m.ModuleLoadData(&mod, &text[0]))
	m.must(m.ModuleGetFunction(&k, mod, "probe_reverse_bls12381"))
	for attr, want := range map[int32]int32{0: 256, 1: 2048, 8: 46 * kib} {
		m.must(m.FuncGetAttribute(&v, attr, k))
		if v != want {
			t.Errorf("attribute %d: %d, want %d", attr, v, want)
		}
	}
	m.must(m.StreamSynchronize(m.stream))
}

func TestErrorTexts(t *testing.T) {
	m := start(t, Config{})
	var p *byte
	m.must(m.GetErrorName(2, &p))
	if got := unix.BytePtrToString(p); got != "CUDA_ERROR_OUT_OF_MEMORY" {
		t.Errorf("name %q", got)
	}
	m.must(m.GetErrorString(712, &p))
	if got := unix.BytePtrToString(p); !strings.Contains(got, "already mapped") {
		t.Errorf("text %q", got)
	}
	m.want(invalidValue, "no code", m.GetErrorName(12345, &p))
	if p != nil {
		t.Error("a name for no code")
	}
}

func TestProcAddress(t *testing.T) {
	c := fresh(t, Config{Driver: 12000})
	m := &machine{cu: c, t: t}
	var f, g uintptr
	var status int32
	m.must(m.GetProcAddress("cuMemAlloc", &f, 12000, 0, &status))
	if f == 0 || status != 0 {
		t.Errorf("address %#x, status %d", f, status)
	}
	m.want(notFound, "a version that has it not", m.GetProcAddress("cuMemAllocAsync", &f, 11000, 0, &status))
	if f != 0 || status != 2 {
		t.Errorf("address %#x, status %d", f, status)
	}
	m.want(notFound, "no call", m.GetProcAddress("cuNothing", &f, 12000, 0, &status))
	if status != 1 {
		t.Errorf("status %d", status)
	}
	m.must(m.GetProcAddress("cuEventElapsedTime", &f, 13000, 0, &status))
	if err := m.Configure(Config{Driver: 13000}); err != nil {
		t.Fatal(err)
	}
	m.must(m.GetProcAddress("cuEventElapsedTime", &g, 13000, 0, nil))
	if f == g {
		t.Error("a newer driver has no newer call")
	}
}

func TestNVML(t *testing.T) {
	m := start(t, Config{Cards: []Card{{Total: 16 * mib, Others: 3 * mib}}, DriverText: "999.1"})
	_ = m.NvmlShutdown()
	var n uint32
	m.want(1, "before nvmlInit", m.NvmlCount(&n))
	m.must(m.NvmlInit())
	m.must(m.NvmlCount(&n))
	b := make([]byte, 64)
	m.must(m.NvmlDriverVersion(&b[0], 64))
	if got := unix.ByteSliceToString(b); n != 1 || got != "999.1" {
		t.Errorf("%d cards, driver %q", n, got)
	}
	m.want(7, "no room", m.NvmlDriverVersion(&b[0], 3))
	var h, g uint64
	m.must(m.NvmlByIndex(0, &h))
	m.must(m.NvmlUUID(h, &b[0], 64))
	uuid := unix.ByteSliceToString(b)
	m.must(m.NvmlByUUID(uuid, &g))
	m.want(6, "no such card", m.NvmlByUUID("GPU-0", &g))
	var raw [16]byte
	m.must(m.DeviceGetUuid(&raw, 0))
	if len(uuid) != 40 || h != g || !strings.HasPrefix(uuid, "GPU-") {
		t.Errorf("UUID %q, handles %d and %d", uuid, h, g)
	}
	m.must(m.NvmlName(h, &b[0], 64))
	m.alloc(5 * mib)
	var mem [3]uint64
	m.must(m.NvmlMemory(h, &mem))
	if mem != [3]uint64{16 * mib, 8 * mib, 8 * mib} {
		t.Errorf("memory %v", mem)
	}
	n = 0
	m.want(7, "no room for processes", m.NvmlProcesses(h, &n, nil))
	if n != 2 {
		t.Errorf("%d processes", n)
	}
	var load [2]uint32
	m.must(m.NvmlUtilization(h, &load))
	var kbs uint32
	m.must(m.NvmlThroughput(h, 0, &kbs))
	w := upload(m, []uint32{0, 0})
	m.run("probe_slow", 1, 1, 0, w, uint32(3000000))
	m.must(m.NvmlUtilization(h, &load))
	if load[0] < 20 || load[0] > 100 {
		t.Errorf("load %d%%", load[0])
	}
	download[byte](m, w, 8)
	m.must(m.NvmlThroughput(h, 0, &kbs))
	if got := m.NvmlErrorString(1); !strings.Contains(got, "nvmlInit") {
		t.Errorf("text %q", got)
	}
}

func TestConfigurations(t *testing.T) {
	l := fresh(t, Config{})
	for text, want := range map[string]string{
		`{"cards":[{"total":1,"what":2}]}`: "what",
		`{"mode":"never"}`:                 "mode",
		`{"none":1}`:                       "true or false",
		`{`:                                "string",
		`{"granule":0}`:                    "granule",
		`{"share":"/no/such/folder/x"}`:    "/no/such/folder/x",
		`{"cards":[{"shared":300000}]}`:    "shared",
	} {
		bad := make([]byte, 512)
		if l.n.configure(text, &bad[0], 512) == 0 {
			t.Errorf("%s: accepted", text)
		} else if got := unix.ByteSliceToString(bad); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if err := l.Configure(Config{Cards: []Card{{Name: "a \"b\" \\ c\n"}}}); err != nil {
		t.Fatal(err)
	}
	m := &machine{cu: l, t: t}
	m.must(m.Init(0))
	name := make([]byte, 64)
	m.must(m.DeviceGetName(&name[0], 64, 0))
	if got := unix.ByteSliceToString(name); got != "a \"b\" \\ c\n" {
		t.Errorf("name %q", got)
	}
}

// A process that configures nothing takes what its environment says.
func TestEnvironment(t *testing.T) {
	bind(t)
	p := again(t, "environment", "", `SNARKLINE_EMULATOR={"cards":[{"total":3145728},{}],"driver":12010}`)
	if got := p.line(); got != "2 cards, 3145728 bytes, driver 12010" {
		t.Errorf("got %q", got)
	}
}
