package gputest

import (
	"encoding/binary"

	"github.com/snarkline/snarkline/gpu"
)

// Kernel is a kernel in Go: one call a launch. An error ends the context.
type Kernel func(*Call) error

// Call is a launch.
type Call struct {
	Launch gpu.Launch
	d      *Device
	args   [][]byte
}

// U32 is argument i.
func (c *Call) U32(i int) uint32 { return binary.NativeEndian.Uint32(c.args[i]) }

// U64 is argument i.
func (c *Call) U64(i int) uint64 { return binary.NativeEndian.Uint64(c.args[i]) }

// Mem is n bytes of the memory that argument i points to, or nil.
func (c *Call) Mem(i int, n int64) []byte { return c.d.Mem(gpu.Ptr(c.U64(i)), n) }

// Define makes a kernel, which every module has.
func (d *Device) Define(name string, k Kernel) {
	d.mu.Lock()
	d.kernels[name] = k
	d.mu.Unlock()
}

type module struct {
	d      *Device
	gen    uint64
	closed bool
}

type function struct {
	m    *module
	name string
}

// Load makes a module; the image is not read.
func (d *Device) Load(string, []byte) (gpu.Module, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("cuModuleLoadDataEx", ""); err != nil {
		return nil, err
	}
	d.modules++
	return &module{d: d, gen: d.gen}, nil
}

func (m *module) Function(name string) (gpu.Function, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.call("cuModuleGetFunction", "%s", name); err != nil {
		return nil, err
	}
	if m.d.kernels[name] == nil {
		return nil, m.d.failure("cuModuleGetFunction", notFound, "%s", name)
	}
	return function{m, name}, nil
}

func (m *module) Close() error {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.closed || m.gen != m.d.gen {
		return nil
	}
	err := m.d.back("cuModuleUnload", "")
	if err == nil || m.d.sticky != nil {
		m.closed = true
		m.d.modules--
	}
	return err
}

func (f function) Name() string   { return f.name }
func (f function) Registers() int { return 32 }
func (f function) Local() int     { return 0 }

// Launch queues a kernel with a copy of its arguments.
func (s *stream) Launch(f gpu.Function, l gpu.Launch, args *gpu.Args) error {
	d := s.d
	if _, err := args.Params(); err != nil {
		return err
	}
	c := &Call{Launch: l, d: d}
	for i := range args.Len() {
		c.args = append(c.args, append([]byte(nil), args.Arg(i)...))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.enter("cuLaunchKernel", "%s", f.Name()); err != nil {
		return err
	}
	fn, ok := f.(function)
	if !ok || fn.m.closed || fn.m.gen != d.gen {
		return d.failure("cuLaunchKernel", badHandle, "%s", f.Name())
	}
	k, gen := d.kernels[fn.name], s.gen
	s.push(op{do: func() error {
		if d.Generation() != gen {
			return nil
		}
		if err := k(c); err != nil {
			e := d.failure("cuLaunchKernel", launchFailed, "%s", fn.name)
			e.Text += ": " + err.Error()
			return e
		}
		return nil
	}})
	return nil
}
