//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/gpu"
)

// addPTX adds two vectors of words. Its 16 bytes of shared memory are there to
// be subtracted from what a block may have.
const addPTX = `
.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 po, .param .u32 pn)
{
	.shared .align 4 .b8 room[16];
	.reg .pred %p;
	.reg .b32 %r<8>;
	.reg .b64 %a, %b, %o, %i;
	ld.param.u32 %r1, [pn];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p bra done;
	mul.wide.u32 %i, %r2, 4;
	ld.param.u64 %a, [pa];
	ld.param.u64 %b, [pb];
	ld.param.u64 %o, [po];
	cvta.to.global.u64 %a, %a;
	cvta.to.global.u64 %b, %b;
	cvta.to.global.u64 %o, %o;
	add.u64 %a, %a, %i;
	add.u64 %b, %b, %i;
	add.u64 %o, %o, %i;
	ld.global.u32 %r5, [%a];
	ld.global.u32 %r6, [%b];
	add.u32 %r5, %r5, %r6;
	mov.u32 %r7, room;
	st.shared.u32 [%r7], %r5;
	st.global.u32 [%o], %r5;
done:
	ret;
}
`

// ptx is addPTX with another name for its kernel.
func ptx(kernel string) []byte {
	return []byte(strings.Replace(addPTX, "entry add(", "entry "+kernel+"(", 1))
}

const testDeviceEnv = "SNARKLINE_TEST_DEVICE"

// card is the real card that SNARKLINE_TEST_DEVICE names, or a stand-in's.
func card(t testing.TB) (dev gpu.Device, real bool) {
	t.Helper()
	name := os.Getenv(testDeviceEnv)
	if name == "" {
		return newStandin(t).open(t), false
	}
	var n int
	if _, err := fmt.Sscanf(name, "cuda:%d", &n); err != nil {
		t.Fatalf("%s=%s: want cuda:N", testDeviceEnv, name)
	}
	d, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if n >= len(devices) {
		t.Fatalf("%s=%s: there are %d devices", testDeviceEnv, name, len(devices))
	}
	return devices[n], true
}

// must takes a value and an error, and fails the test on an error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// hostMemory is n bytes that are not of Go's heap.
func hostMemory(t testing.TB, n int) (unsafe.Pointer, []uint32) {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	ok(t, err)
	t.Cleanup(func() { _ = unix.Munmap(b) })
	p := unsafe.Pointer(unsafe.SliceData(b))
	return p, unsafe.Slice((*uint32)(p), n/4)
}

func words(p unsafe.Pointer, n int) []uint32 { return unsafe.Slice((*uint32)(p), n) }

func TestCardInfo(t *testing.T) {
	dev, real := card(t)
	info := dev.Info()
	free, total, err := dev.Memory()
	ok(t, err)
	t.Logf("%+v; %d of %d bytes free", info, free, total)
	if info.Name == "" || !strings.HasPrefix(info.UUID, "GPU-") || len(info.UUID) != 40 || info.PCI == "" ||
		info.Major < 8 || info.SMs < 1 || info.Shared < 48<<10 || info.L2 < 1 || info.Driver < MinVersion {
		t.Errorf("info: %+v", info)
	}
	if free <= 0 || free > total || total > info.Total {
		t.Errorf("%d bytes free of %d; card %d", free, total, info.Total)
	}
	if !real && (info.UUID != "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f" || info.PCI != "0000:3b:00.0") {
		t.Errorf("info: %+v", info)
	}
}

func TestCardProgram(t *testing.T) {
	dev, real := card(t)
	CardProgram(t, dev, real, "add")
}

// CardProgram does everything that gpu.Device can do, and checks what comes
// out.
func CardProgram(t *testing.T, dev gpu.Device, real bool, kernel string) {
	n := 1 << 12
	if real {
		n = 1 << 24
	}
	bytes := int64(n) * 4
	st := must[gpu.Stream](t)(dev.NewStream(false))
	up := must[gpu.Stream](t)(dev.NewStream(true))
	m := must[gpu.Module](t)(dev.Load("add", ptx(kernel)))
	add := must[gpu.Function](t)(m.Function(kernel))
	if again := must[gpu.Function](t)(m.Function(kernel)); again != add {
		t.Error("the same kernel is another value")
	}
	t.Logf("add: %d registers, %d bytes local", add.Registers(), add.Local())
	if add.Name() != kernel || add.Registers() < 1 {
		t.Errorf("kernel %s, %d registers", add.Name(), add.Registers())
	}

	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(3 * bytes))
	host := words(pinned, 3*n)
	for i := range n {
		host[i], host[n+i] = uint32(i)*2654435761, uint32(i)*40503+7
	}
	da := must[gpu.Ptr](t)(dev.Alloc(bytes))
	db := must[gpu.Ptr](t)(up.AllocAsync(bytes))
	dout := must[gpu.Ptr](t)(st.AllocAsync(bytes))
	for _, p := range []gpu.Ptr{da, db, dout} {
		if p%256 != 0 {
			t.Errorf("address %#x is not aligned", p)
		}
	}
	if used, reserved, err := dev.Pooled(); err != nil || used <= 0 || reserved < used {
		t.Errorf("pooled: %d of %d, %v", used, reserved, err)
	}

	begin := must[gpu.Event](t)(dev.NewEvent(true))
	end := must[gpu.Event](t)(dev.NewEvent(true))
	uploaded := must[gpu.Event](t)(dev.NewEvent(false))
	ok(t, up.Record(begin))
	ok(t, up.CopyIn(da, pinned, bytes), up.CopyIn(db, unsafe.Add(pinned, bytes), bytes))
	ok(t, up.Record(uploaded))
	ok(t, st.Wait(uploaded))
	ok(t, st.Fill(dout, 0xA5, bytes))
	args := gpu.NewArgs()
	defer args.Close()
	launch := gpu.Linear(int64(n), 256)
	ok(t, st.Launch(add, launch, args.Reset().Ptr(da).Ptr(db).Ptr(dout).U32(uint32(n-1))))
	ok(t, st.Copy(da, dout, bytes))
	ok(t, st.CopyOut(unsafe.Add(pinned, 2*bytes), da, bytes))
	ok(t, st.Record(end))
	for {
		done, err := end.Done()
		ok(t, err)
		if done {
			break
		}
		time.Sleep(time.Millisecond)
	}
	ok(t, end.Sync(), st.Sync())
	for i := range n - 1 {
		if host[2*n+i] != host[i]+host[n+i] {
			t.Fatalf("word %d is %#x", i, host[2*n+i])
		}
	}
	if host[3*n-1] != 0xA5A5A5A5 {
		t.Errorf("past the end: %#x", host[3*n-1])
	}
	ms := must[float64](t)(end.Since(begin))
	t.Logf("%d bytes in, added, copied and out: %.3f ms", bytes, ms)
	if ms <= 0 {
		t.Errorf("%v ms", ms)
	}
	if _, err := end.Since(uploaded); err == nil {
		t.Error("an event that is not timed gives a time")
	}

	// Memory of somebody else.
	p, w := hostMemory(t, int(bytes))
	ok(t, dev.Register(p, bytes))
	if err := dev.Register(p, bytes); err == nil || !strings.Contains(err.Error(), "(712)") {
		t.Errorf("registered twice: %v", err)
	}
	ok(t, st.CopyOut(p, dout, bytes), st.Sync())
	if w[5] != host[2*n+5] {
		t.Errorf("through registered memory: %#x", w[5])
	}
	ok(t, dev.Unregister(p))
	if err := dev.Unregister(p); err == nil {
		t.Error("unregistered twice")
	}

	// Give everything back.
	ok(t, up.FreeAsync(db), st.FreeAsync(dout), up.Sync(), st.Sync(), dev.Free(da))
	if err := dev.Free(da); err == nil {
		t.Error("freed twice")
	}
	if real {
		_, reserved, err := dev.Pooled()
		ok(t, err)
		before, _, err := dev.Memory()
		ok(t, err, dev.Trim(0))
		after, _, err := dev.Memory()
		ok(t, err)
		used, left, err := dev.Pooled()
		ok(t, err)
		t.Logf("pool: %d bytes reserved, %d after a trim, %d in use; free %d, then %d", reserved, left, used, before, after)
		if used != 0 || left != 0 || reserved == 0 || after-before < reserved/2 {
			t.Error("the trim gave nothing back")
		}
	} else {
		ok(t, dev.Trim(0))
	}
	ok(t, begin.Close(), end.Close(), uploaded.Close(), m.Close(), st.Close(), up.Close(), st.Close())
	ok(t, dev.FreePinned(pinned))
	if err := st.Sync(); err == nil {
		t.Error("a closed stream works")
	}
	c := dev.(interface{ Counts() Counts }).Counts()
	if c != (Counts{Launches: 1, In: 2 * bytes, Out: 2 * bytes, Within: bytes}) {
		t.Errorf("counts: %+v", c)
	}
}

// TestCardLaunch counts allocations of a launch and measures it.
func TestCardLaunch(t *testing.T) {
	dev, real := card(t)
	st := must[gpu.Stream](t)(dev.NewStream(false))
	m := must[gpu.Module](t)(dev.Load("add", []byte(addPTX)))
	add := must[gpu.Function](t)(m.Function("add"))
	mem := must[gpu.Ptr](t)(dev.Alloc(4096))
	ok(t, st.Fill(mem, 1, 4096))
	args := gpu.NewArgs()
	defer args.Close()
	ev := must[gpu.Event](t)(dev.NewEvent(false))
	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(4096))
	one := func() {
		ok(t, st.Launch(add, gpu.Linear(32, 32), args.Reset().Ptr(mem).Ptr(mem+1024).Ptr(mem+2048).U32(32)))
	}
	if n := testing.AllocsPerRun(500, one); n != 0 && !raceOn { // sync.Pool forgets under it
		t.Errorf("a launch allocates %v times", n)
	}
	if n := testing.AllocsPerRun(500, func() {
		ok(t, st.Record(ev), st.Wait(ev), st.CopyIn(mem, pinned, 64), st.Copy(mem, mem+1024, 64), st.Fill(mem, 1, 64), st.CopyOut(pinned, mem, 64))
	}); n != 0 && !raceOn {
		t.Errorf("copies and events allocate %v times", n)
	}
	ok(t, st.Sync())
	runs := 2000
	if real {
		runs = 20000
	}
	start := time.Now()
	for range runs {
		one()
	}
	queued := time.Since(start)
	ok(t, st.Sync())
	all := time.Since(start)
	fmt.Printf("launch: %.2f µs to queue, %.2f µs with its work, of %d\n",
		queued.Seconds()*1e6/float64(runs), all.Seconds()*1e6/float64(runs), runs)
	start = time.Now()
	for range runs {
		ok(t, dev.Bind())
	}
	fmt.Printf("bind: %.3f µs\n", time.Since(start).Seconds()*1e6/float64(runs))
	if real {
		const waits = 200
		start = time.Now()
		for range waits {
			one()
			ok(t, st.Sync())
		}
		fmt.Printf("launch and wait: %.1f µs\n", time.Since(start).Seconds()*1e6/waits)
	}
	ok(t, dev.Free(mem), dev.FreePinned(pinned), ev.Close(), m.Close(), st.Close())
}

// TestCardCopies measures the rates of copies by kind of host memory.
func TestCardCopies(t *testing.T) {
	dev, real := card(t)
	n := int64(1 << 16)
	if real {
		n = 1 << 30
	}
	st := must[gpu.Stream](t)(dev.NewStream(false))
	mem := must[gpu.Ptr](t)(dev.Alloc(n))
	rate := func(what string, f func() error) {
		ok(t, f(), st.Sync())
		start := time.Now()
		ok(t, f(), st.Sync())
		if real {
			fmt.Printf("%s: %.1f GB/s\n", what, float64(n)/time.Since(start).Seconds()/1e9)
		}
	}
	start := time.Now()
	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(n))
	took := time.Since(start)
	p, w := hostMemory(t, int(n))
	w[0] = 77
	start = time.Now()
	ok(t, dev.Register(p, n))
	if real {
		fmt.Printf("pin %d MiB: %v; register: %v\n", n>>20, took, time.Since(start))
	}
	rate("pinned, in", func() error { return st.CopyIn(mem, pinned, n) })
	rate("pinned, out", func() error { return st.CopyOut(pinned, mem, n) })
	rate("registered, in", func() error { return st.CopyIn(mem, p, n) })
	rate("registered, out", func() error { return st.CopyOut(p, mem, n) })
	ok(t, dev.Unregister(p))
	rate("pageable, in", func() error { return st.CopyIn(mem, p, n) })

	// A file that is mapped to be read, as a key is.
	f := must[*os.File](t)(os.CreateTemp(t.TempDir(), "key"))
	defer f.Close()
	ok(t, f.Truncate(n))
	b, err := unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	ok(t, err)
	defer func() { _ = unix.Munmap(b) }()
	at := unsafe.Pointer(unsafe.SliceData(b))
	if err := dev.Register(at, n); err != nil {
		t.Logf("a mapped file cannot be registered here: %v", err)
	} else {
		rate("mapped file, registered, in", func() error { return st.CopyIn(mem, at, n) })
		ok(t, dev.Unregister(at))
	}
	ok(t, dev.Free(mem), dev.FreePinned(pinned), st.Close())
}

// In a process of its own on a real card: nobody knows what is left of this one.
func TestCardSticky(t *testing.T) {
	if os.Getenv(testDeviceEnv) != "" && os.Getenv("SNARKLINE_TEST_STICKY") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCardSticky$", "-test.v")
		cmd.Env = append(os.Environ(), "SNARKLINE_TEST_STICKY=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	dev, _ := card(t)
	CardSticky(t, dev, "add")
}

// CardSticky ends the context with a kernel that writes where nothing is, and
// goes on after a Reset, or without the card where the driver wants that.
func CardSticky(t *testing.T, dev gpu.Device, kernel string) {
	st := must[gpu.Stream](t)(dev.NewStream(false))
	ev := must[gpu.Event](t)(dev.NewEvent(false))
	m := must[gpu.Module](t)(dev.Load("add", ptx(kernel)))
	add := must[gpu.Function](t)(m.Function(kernel))
	mem := must[gpu.Ptr](t)(dev.Alloc(4096))
	pooled := must[gpu.Ptr](t)(st.AllocAsync(4096))
	pinned := must[unsafe.Pointer](t)(dev.AllocPinned(4096))
	reg, _ := hostMemory(t, 1<<16)
	ok(t, dev.Register(reg, 1<<16))
	words(pinned, 1)[0] = 4711
	args := gpu.NewArgs()
	defer args.Close()
	if dev.Sticky() != nil || dev.Generation() != 0 || dev.Reset() != nil || dev.Generation() != 0 {
		t.Fatal("a reset of a device that is well")
	}

	err := st.Launch(add, gpu.Linear(32, 32), args.Reset().Ptr(mem).Ptr(mem).Ptr(4096).U32(32))
	if err == nil {
		err = st.Sync()
	}
	t.Logf("after a wild write: %v", err)
	var e *gpu.Error
	if !errors.Is(err, gpu.ErrSticky) || !errors.As(err, &e) || e.Code != 700 {
		t.Fatalf("not sticky: %v", err)
	}
	for what, f := range map[string]func() error{
		"alloc":    func() error { _, err := dev.Alloc(16); return err },
		"launch":   func() error { return st.Launch(add, gpu.Linear(1, 1), args) },
		"query":    func() error { _, err := ev.Done(); return err },
		"memory":   func() error { _, _, err := dev.Memory(); return err },
		"pinned":   func() error { _, err := dev.AllocPinned(16); return err },
		"register": func() error { return dev.Register(reg, 16) },
		"sticky":   dev.Sticky,
		"bind":     dev.Bind,
	} {
		if again := f(); again != err { //nolint:errorlint // the same one
			t.Errorf("%s after a sticky error: %v", what, again)
		}
	}
	if err := dev.Free(pooled); !errors.Is(err, gpu.ErrSticky) {
		t.Errorf("free after a sticky error: %v", err)
	}
	start := time.Now()
	err = dev.Reset()
	t.Logf("reset in %v: %v", time.Since(start), err)
	if errors.Is(err, gpu.ErrLost) {
		cardLost(t, dev, err, remnants{st, ev, m, add, mem, pinned, reg})
		return
	}
	ok(t, err)
	if dev.Generation() != 1 || dev.Sticky() != nil {
		t.Errorf("generation %d, sticky %v", dev.Generation(), dev.Sticky())
	}

	// What is old frees to nothing and does nothing.
	for what, f := range map[string]func() error{
		"sync":    st.Sync,
		"launch":  func() error { return st.Launch(add, gpu.Linear(1, 1), args) },
		"query":   func() error { _, err := ev.Done(); return err },
		"kernels": func() error { _, err := m.Function(kernel); return err },
	} {
		if err := f(); !errors.Is(err, gpu.ErrReset) {
			t.Errorf("%s of an old generation: %v", what, err)
		}
	}
	st2 := must[gpu.Stream](t)(dev.NewStream(false))
	if err := st2.Launch(add, gpu.Linear(1, 1), args); !errors.Is(err, gpu.ErrReset) {
		t.Errorf("an old kernel on a new stream: %v", err)
	}
	if err := st2.Wait(ev); !errors.Is(err, gpu.ErrReset) {
		t.Errorf("an old event on a new stream: %v", err)
	}
	ok(t, st.Close(), ev.Close(), m.Close())

	// The addresses come back; late owners free them without harm.
	var fresh []gpu.Ptr
	for range 4 {
		fresh = append(fresh, must[gpu.Ptr](t)(dev.Alloc(4096)))
	}
	t.Logf("before %#x, after %#x", mem, fresh)
	ok(t, dev.Free(mem), dev.Unregister(reg))
	ok(t, dev.Register(reg, 1<<16), dev.Unregister(reg))

	// Everything works again, pinned memory included.
	m2 := must[gpu.Module](t)(dev.Load("add", ptx(kernel)))
	add2 := must[gpu.Function](t)(m2.Function(kernel))
	ok(t, st2.Fill(fresh[0], 1, 4096))
	ok(t, st2.Launch(add2, gpu.Linear(32, 32), args.Reset().Ptr(fresh[0]).Ptr(fresh[0]).Ptr(fresh[1]).U32(32)))
	if words(pinned, 1)[0] != 4711 {
		t.Error("pinned memory is lost")
	}
	ok(t, st2.CopyOut(pinned, fresh[1], 128), st2.Sync())
	if v := words(pinned, 1)[0]; v != 0x02020202 {
		t.Errorf("after a reset: %#x", v)
	}
	for _, p := range fresh {
		ok(t, dev.Free(p))
	}
	ok(t, dev.FreePinned(pinned), m2.Close(), st2.Close())
}
