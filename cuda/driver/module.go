//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/gpu"
)

// module implements gpu.Module.
type module struct {
	p *primary
	handle
	name string

	mu        sync.Mutex
	functions map[string]*function
}

// function implements gpu.Function.
type function struct {
	m                *module
	f                uintptr
	name             string
	registers, local int32
}

func (f *function) Name() string   { return f.name }
func (f *function) Registers() int { return int(f.registers) }
func (f *function) Local() int     { return int(f.local) }

// Options of cuModuleLoadDataEx.
const (
	jitInfoLog       = 3
	jitInfoLogBytes  = 4
	jitErrorLog      = 5
	jitErrorLogBytes = 6
)

// Load compiles image, which is PTX, or loads it, which is a cubin or a fat
// binary. What the compiler says about an error is in the error's text.
func (d *device) Load(name string, image []byte) (gpu.Module, error) {
	p, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer p.exit()
	// PTX is a C string. The logs and the table of options are the driver's to
	// write and to follow: all pinned, since it is given their addresses as
	// numbers.
	text := make([]byte, len(image)+1)
	copy(text, image)
	const logBytes = 16 << 10
	infoLog, errorLog := make([]byte, logBytes), make([]byte, logBytes)
	options := []int32{jitInfoLog, jitInfoLogBytes, jitErrorLog, jitErrorLogBytes}
	values := make([]uintptr, len(options))
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&text[0])
	pin.Pin(&infoLog[0])
	pin.Pin(&errorLog[0])
	pin.Pin(&options[0])
	pin.Pin(&values[0])
	values[0], values[1] = uintptr(unsafe.Pointer(&infoLog[0])), logBytes
	values[2], values[3] = uintptr(unsafe.Pointer(&errorLog[0])), logBytes
	d.modules.handing.RLock()
	defer d.modules.handing.RUnlock()
	var h uintptr
	st := invoke(d.api.moduleLoad, uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&text[0])), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if st != 0 {
		err := p.fail(st, d.api.moduleLoad, fmt.Sprintf("%s, %s on %v", name, size(int64(len(image))), d))
		if e, ok := err.(*gpu.Error); ok { //nolint:errorlint // it is what fail makes
			said := strings.TrimSpace(goString(errorLog) + "\n" + goString(infoLog))
			if said != "" && e.Kind == nil {
				e.Text += ": " + strings.Join(strings.Fields(said), " ")
			}
		}
		return nil, err
	}
	m := &module{p: p, name: name}
	m.Store(h)
	d.modules.add(h, 0)
	return m, nil
}

// Attributes of a kernel.
const (
	functionStaticShared  = 1
	functionLocal         = 3
	functionRegisters     = 4
	functionDynamicShared = 8
)

func (m *module) Function(name string) (gpu.Function, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.p.enterFor(&m.handle, "module "+m.name)
	if err != nil {
		return nil, err
	}
	defer m.p.exit()
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	a := m.p.dev.api
	cname := append([]byte(name), 0)
	f := &function{m: m, name: name}
	if st := invoke(a.moduleFunction, uintptr(unsafe.Pointer(&f.f)), h, uintptr(unsafe.Pointer(&cname[0]))); st != 0 {
		return nil, m.p.fail(st, a.moduleFunction, fmt.Sprintf("%s of %s", name, m.name))
	}
	var shared int32
	for _, w := range []struct {
		to   *int32
		attr uintptr
	}{{&shared, functionStaticShared}, {&f.local, functionLocal}, {&f.registers, functionRegisters}} {
		if st := invoke(a.functionGet, uintptr(unsafe.Pointer(w.to)), w.attr, f.f); st != 0 {
			return nil, m.p.fail(st, a.functionGet, fmt.Sprintf("%s, attribute %d", name, w.attr))
		}
	}
	if most := m.p.dev.info.Shared - int(shared); most > 0 {
		if st := invoke(a.functionSet, f.f, functionDynamicShared, uintptr(most)); st != 0 {
			return nil, m.p.fail(st, a.functionSet, fmt.Sprintf("%s, %d bytes of dynamic shared memory", name, most))
		}
	}
	if m.functions == nil {
		m.functions = make(map[string]*function)
	}
	m.functions[name] = f
	return f, nil
}

func (m *module) Close() error {
	return m.p.close(&m.handle, &m.p.dev.modules, m.p.dev.api.moduleUnload, "module "+m.name)
}
