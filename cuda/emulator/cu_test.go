package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// Codes that the tests look for.
const (
	ok                 = 0
	invalidValue       = 1
	outOfMemory        = 2
	notInitialized     = 3
	noDevice           = 100
	invalidDevice      = 101
	invalidContext     = 201
	noBinary           = 209
	invalidPTX         = 218
	unsupportedPTX     = 222
	invalidHandle      = 400
	notFound           = 500
	notReady           = 600
	illegalAddress     = 700
	launchTimeout      = 702
	destroyed          = 709
	registered         = 712
	notRegistered      = 713
	stackError         = 714
	illegalInstruction = 715
	launchFailed       = 719
)

// cu are the calls themselves, without package driver: it has tests of its own.
type cu struct {
	*Lib
	Init               func(flags uint32) int32
	DriverGetVersion   func(*int32) int32
	DeviceGetCount     func(*int32) int32
	DeviceGet          func(*int32, int32) int32
	DeviceGetName      func(*byte, int32, int32) int32
	DeviceGetUuid      func(*[16]byte, int32) int32 `sym:"cuDeviceGetUuid_v2"`
	DeviceGetAttribute func(*int32, int32, int32) int32
	DeviceTotalMem     func(*uint64, int32) int32 `sym:"cuDeviceTotalMem_v2"`
	DeviceGetPCIBusId  func(*byte, int32, int32) int32
	PrimaryRetain      func(*uint64, int32) int32 `sym:"cuDevicePrimaryCtxRetain"`
	PrimaryRelease     func(int32) int32          `sym:"cuDevicePrimaryCtxRelease_v2"`
	PrimaryReset       func(int32) int32          `sym:"cuDevicePrimaryCtxReset_v2"`
	PrimarySetFlags    func(int32, uint32) int32  `sym:"cuDevicePrimaryCtxSetFlags_v2"`
	CtxSetCurrent      func(uint64) int32
	CtxGetCurrent      func(*uint64) int32
	CtxSynchronize     func() int32
	StreamPriorities   func(*int32, *int32) int32   `sym:"cuCtxGetStreamPriorityRange"`
	MemGetInfo         func(*uint64, *uint64) int32 `sym:"cuMemGetInfo_v2"`
	MemAlloc           func(*uint64, uint64) int32  `sym:"cuMemAlloc_v2"`
	MemFree            func(uint64) int32           `sym:"cuMemFree_v2"`
	MemAllocAsync      func(*uint64, uint64, uint64) int32
	MemFreeAsync       func(uint64, uint64) int32
	DefaultPool        func(*uint64, int32) int32                         `sym:"cuDeviceGetDefaultMemPool"`
	PoolTrimTo         func(uint64, uint64) int32                         `sym:"cuMemPoolTrimTo"`
	PoolGet            func(uint64, int32, *uint64) int32                 `sym:"cuMemPoolGetAttribute"`
	PoolSet            func(uint64, int32, *uint64) int32                 `sym:"cuMemPoolSetAttribute"`
	HostAlloc          func(*unsafe.Pointer, uint64, uint32) int32        `sym:"cuMemHostAlloc"`
	FreeHost           func(unsafe.Pointer) int32                         `sym:"cuMemFreeHost"`
	HostRegister       func(unsafe.Pointer, uint64, uint32) int32         `sym:"cuMemHostRegister_v2"`
	HostUnregister     func(unsafe.Pointer) int32                         `sym:"cuMemHostUnregister"`
	HtoDAsync          func(uint64, unsafe.Pointer, uint64, uint64) int32 `sym:"cuMemcpyHtoDAsync_v2"`
	DtoHAsync          func(unsafe.Pointer, uint64, uint64, uint64) int32 `sym:"cuMemcpyDtoHAsync_v2"`
	DtoDAsync          func(uint64, uint64, uint64, uint64) int32         `sym:"cuMemcpyDtoDAsync_v2"`
	HtoD               func(uint64, unsafe.Pointer, uint64) int32         `sym:"cuMemcpyHtoD_v2"`
	DtoH               func(unsafe.Pointer, uint64, uint64) int32         `sym:"cuMemcpyDtoH_v2"`
	MemsetD8Async      func(uint64, uint8, uint64, uint64) int32
	MemsetD32Async     func(uint64, uint32, uint64, uint64) int32
	StreamCreate       func(*uint64, uint32) int32
	StreamPriority     func(*uint64, uint32, int32) int32 `sym:"cuStreamCreateWithPriority"`
	StreamDestroy      func(uint64) int32                 `sym:"cuStreamDestroy_v2"`
	StreamSynchronize  func(uint64) int32
	StreamQuery        func(uint64) int32
	StreamWaitEvent    func(uint64, uint64, uint32) int32
	EventCreate        func(*uint64, uint32) int32
	EventDestroy       func(uint64) int32 `sym:"cuEventDestroy_v2"`
	EventRecord        func(uint64, uint64) int32
	EventQuery         func(uint64) int32
	EventSynchronize   func(uint64) int32
	EventElapsed       func(*float32, uint64, uint64) int32 `sym:"cuEventElapsedTime"`
	ModuleLoadDataEx   func(*uint64, *byte, uint32, *int32, *uintptr) int32
	ModuleLoadData     func(*uint64, *byte) int32
	ModuleUnload       func(uint64) int32
	ModuleGetFunction  func(*uint64, uint64, string) int32
	FuncGetAttribute   func(*int32, int32, uint64) int32
	FuncSetAttribute   func(uint64, int32, int32) int32
	LaunchKernel       func(f uint64, gx, gy, gz, bx, by, bz, shared uint32, stream uint64, params, extra unsafe.Pointer) int32
	GetErrorName       func(int32, **byte) int32
	GetErrorString     func(int32, **byte) int32
	GetProcAddress     func(string, *uintptr, int32, uint64, *int32) int32 `sym:"cuGetProcAddress_v2"`
	NvmlInit           func() int32                                        `sym:"nvmlInit_v2"`
	NvmlShutdown       func() int32                                        `sym:"nvmlShutdown"`
	NvmlErrorString    func(int32) string                                  `sym:"nvmlErrorString"`
	NvmlDriverVersion  func(*byte, uint32) int32                           `sym:"nvmlSystemGetDriverVersion"`
	NvmlCount          func(*uint32) int32                                 `sym:"nvmlDeviceGetCount_v2"`
	NvmlByUUID         func(string, *uint64) int32                         `sym:"nvmlDeviceGetHandleByUUID"`
	NvmlByIndex        func(uint32, *uint64) int32                         `sym:"nvmlDeviceGetHandleByIndex_v2"`
	NvmlName           func(uint64, *byte, uint32) int32                   `sym:"nvmlDeviceGetName"`
	NvmlUUID           func(uint64, *byte, uint32) int32                   `sym:"nvmlDeviceGetUUID"`
	NvmlUtilization    func(uint64, *[2]uint32) int32                      `sym:"nvmlDeviceGetUtilizationRates"`
	NvmlMemory         func(uint64, *[3]uint64) int32                      `sym:"nvmlDeviceGetMemoryInfo"`
	NvmlProcesses      func(uint64, *uint32, *nvmlProcess) int32           `sym:"nvmlDeviceGetComputeRunningProcesses_v3"`
	NvmlThroughput     func(uint64, int32, *uint32) int32                  `sym:"nvmlDeviceGetPcieThroughput"`
}

type nvmlProcess struct {
	pid  uint32
	used uint64
	_, _ uint32 // instances
}

var probe struct {
	sync.Once
	cu  *cu
	err error
}

// bind opens the library that holds the kernels of testdata/probe.cu alone: those
// of the project are other people's.
func bind(t testing.TB) *cu {
	t.Helper()
	probe.Do(func() {
		b, err := Build(context.Background(), Options{Kernels: []string{filepath.Join("testdata", "probe.cu")}})
		if err != nil {
			probe.err = err
			return
		}
		for _, f := range b.Files {
			fmt.Printf("compiled %s in %v\n", f.File, f.Took)
		}
		probe.cu, probe.err = bindPath(b.Path)
	})
	if errors.Is(probe.err, ErrNoCompiler) && os.Getenv(needEnv) != "1" {
		t.Skip("SKIPPED: ", probe.err)
	}
	if probe.err != nil {
		t.Fatal(probe.err)
	}
	return probe.cu
}

func bindPath(path string) (*cu, error) {
	l, err := Open(path)
	if err != nil {
		return nil, err
	}
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	c := &cu{Lib: l}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type.Kind() != reflect.Func {
			continue
		}
		name := f.Tag.Get("sym")
		if name == "" {
			name = "cu" + f.Name
		}
		at, err := purego.Dlsym(h, name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), at)
	}
	return c, nil
}

// machine is a configured library with card 0's context current on this thread,
// and a stream. At the test's end nothing may be left in it.
type machine struct {
	*cu
	t       testing.TB
	context uint64
	stream  uint64
	module  uint64
}

// fresh configures the library and initialises it, without a context.
func fresh(t testing.TB, c Config) *cu {
	t.Helper()
	l := bind(t)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	if err := l.Configure(c); err != nil {
		t.Fatal(err)
	}
	return l
}

func start(t testing.TB, c Config) *machine {
	t.Helper()
	m := &machine{cu: fresh(t, c), t: t}
	m.must(m.Init(0))
	m.enter()
	return m
}

// enter takes card 0's context and makes in it what the tests use.
func (m *machine) enter() {
	m.t.Helper()
	m.must(m.PrimaryRetain(&m.context, 0))
	m.must(m.CtxSetCurrent(m.context))
	m.must(m.StreamCreate(&m.stream, 1))
	m.must(m.ModuleLoadData(&m.module, ptx(m.Kernels()...)))
}

// ptx is a module with those entries.
func ptx(entries ...string) *byte { return &ptxBytes(entries...)[0] }

func ptxBytes(entries ...string) []byte {
	var s strings.Builder
	s.WriteString("//\n// .entry not_this\n.version 7.8\n.target sm_80\n.address_size 64\n\n")
	for _, e := range entries {
		fmt.Fprintf(&s, ".visible .entry %s(\n\t.param .u64 %s_param_0\n)\n{\n\tret;\n\n}\n", e, e)
	}
	return append([]byte(s.String()), 0)
}

func (m *machine) must(code int32) {
	m.t.Helper()
	if code != ok {
		m.t.Fatalf("%s", m.name(code))
	}
}

func (m *machine) want(code int32, call string, got int32) {
	m.t.Helper()
	if got != code {
		m.t.Errorf("%s: %s, want %s", call, m.name(got), m.name(code))
	}
}

func (c *cu) name(code int32) string {
	var p *byte
	if c.GetErrorName(code, &p) != ok {
		return fmt.Sprint(code)
	}
	return unix.BytePtrToString(p)
}

func (m *machine) alloc(n uint64) uint64 {
	m.t.Helper()
	var p uint64
	m.must(m.MemAlloc(&p, n))
	return p
}

func (m *machine) free() int64 {
	m.t.Helper()
	var free, total uint64
	m.must(m.MemGetInfo(&free, &total))
	return int64(free)
}

func (m *machine) function(name string) uint64 {
	m.t.Helper()
	var f uint64
	m.must(m.ModuleGetFunction(&f, m.module, name+"_bls12381"))
	return f
}

// args are pointers to copies of the values, as cuLaunchKernel takes them.
func args(values ...any) unsafe.Pointer {
	ptrs := make([]unsafe.Pointer, len(values)+1)
	for i, v := range values {
		p := reflect.New(reflect.TypeOf(v))
		p.Elem().Set(reflect.ValueOf(v))
		ptrs[i] = p.UnsafePointer()
	}
	return unsafe.Pointer(&ptrs[0])
}

func (m *machine) launch(kernel string, grid, block, shared uint32, values ...any) int32 {
	m.t.Helper()
	return m.LaunchKernel(m.function(kernel), grid, 1, 1, block, 1, 1, shared, m.stream, args(values...), nil)
}

// run launches and waits.
func (m *machine) run(kernel string, grid, block, shared uint32, values ...any) {
	m.t.Helper()
	m.must(m.launch(kernel, grid, block, shared, values...))
	m.must(m.StreamSynchronize(m.stream))
}

// upload and download copy a slice that is not pinned.
func upload[T any](m *machine, v []T) uint64 {
	m.t.Helper()
	n := uint64(len(v)) * uint64(unsafe.Sizeof(v[0]))
	p := m.alloc(n)
	m.must(m.HtoD(p, unsafe.Pointer(&v[0]), n))
	return p
}

func download[T any](m *machine, p uint64, n int) []T {
	m.t.Helper()
	v := make([]T, n)
	m.must(m.DtoH(unsafe.Pointer(&v[0]), p, uint64(n)*uint64(unsafe.Sizeof(v[0]))))
	return v
}

// hostMemory is n bytes that are not of Go's heap.
func hostMemory(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

func (m *machine) stats() Counters {
	m.t.Helper()
	s, err := m.Stats()
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}
