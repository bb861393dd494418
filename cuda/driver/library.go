//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/snarkline/snarkline/gpu"
)

// symbol is a function of a shared library.
type symbol struct {
	fn   uintptr
	name string // as it is written in a program: without the version's suffix
}

// library is a shared library that is open. It is never closed: the driver has
// threads of its own that run in it.
type library struct {
	path   string
	handle uintptr
}

// openLibrary opens path, or what env says, or fallback.
func openLibrary(path, env, fallback string) (*library, error) {
	how := ""
	if path == "" {
		if path = os.Getenv(env); path != "" {
			how = " (from " + env + ")"
		} else {
			path = fallback
		}
	}
	runtime.LockOSThread() // dlerror's words are the thread's
	defer runtime.UnlockOSThread()
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("open %s%s: %s: %w", path, how, strings.TrimSpace(err.Error()), gpu.ErrNoDevice)
	}
	return &library{path: path, handle: h}, nil
}

// find looks for the first of names.
func (l *library) find(names ...string) (symbol, bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, n := range names {
		if fn, err := purego.Dlsym(l.handle, n); err == nil && fn != 0 {
			return symbol{fn, plain(n)}, true
		}
	}
	return symbol{}, false
}

// plain is a symbol's name without its version.
func plain(name string) string {
	if i := strings.LastIndex(name, "_v"); i > 0 && strings.Trim(name[i+2:], "0123456789") == "" {
		return name[:i]
	}
	return name
}

// status is what a call to the driver returns: 0, or a CUresult.
type status int32

// invoke calls fn. Pointers are converted to uintptr in the call itself: the
// directive makes what they point to live on the heap, where nothing moves,
// and keeps it until the call returns.
//
//go:uintptrescapes
func invoke(s symbol, args ...uintptr) status {
	r, _, _ := purego.SyscallN(s.fn, args...)
	return status(int32(r))
}

// frames hold the arguments of calls that allocate nothing: those given to
// SyscallN one by one would be on the heap.
var frames = sync.Pool{New: func() any { return new(frame) }}

type frame [11]uintptr

// quick is invoke for up to four arguments, without an allocation. The others
// are 0, which C functions with fewer do not see.
//
//go:uintptrescapes
func quick(s symbol, a, b, c, d uintptr) status {
	f := frames.Get().(*frame)
	f[0], f[1], f[2], f[3] = a, b, c, d
	r, _, _ := purego.SyscallN(s.fn, f[:4]...)
	frames.Put(f)
	return status(int32(r))
}

// all calls s with the whole frame and puts it back.
func (f *frame) all(s symbol) status {
	r, _, _ := purego.SyscallN(s.fn, f[:]...)
	frames.Put(f)
	return status(int32(r))
}

// cString copies the C string at address p, which is not Go's.
func cString(p uintptr) string {
	if p == 0 {
		return ""
	}
	start := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	n := 0
	for n < 4096 && *(*byte)(unsafe.Add(start, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(start), n))
}

// goString copies a C string that was written into b.
func goString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// invokePointer calls a function that returns a pointer.
func invokePointer(s symbol, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(s.fn, args...)
	return r
}
