//go:build (linux || darwin) && (amd64 || arm64)

package emulator

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// native are the library's control functions.
type native struct {
	configure func(json string, bad *byte, room uintptr) int32
	fault     func(call string, n uint64, code, sticky int32)
	clear     func() int32
	calls     func() uint64
	corrupt   func(kernel string, n uint64)
	stats     func(out *byte, room uintptr) uintptr
	kernels   func(out *byte, room uintptr) uintptr
}

func open(path string) (n *native, err error) {
	runtime.LockOSThread() // dlerror's words are the thread's
	defer runtime.UnlockOSThread()
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("open %s: %s", path, strings.TrimSpace(err.Error()))
	}
	n = new(native)
	for _, f := range []struct {
		name string
		to   any
	}{
		{"emu_configure", &n.configure}, {"emu_fault", &n.fault}, {"emu_clear", &n.clear},
		{"emu_calls", &n.calls}, {"emu_corrupt", &n.corrupt}, {"emu_stats", &n.stats},
		{"emu_kernels", &n.kernels},
	} {
		at, err := purego.Dlsym(h, f.name)
		if err != nil {
			return nil, fmt.Errorf("%s is no emulator: it has no %s", path, f.name)
		}
		purego.RegisterFunc(f.to, at)
	}
	return n, nil
}
