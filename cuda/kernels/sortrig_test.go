package kernels

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// rig is a device with a stream, for tests of kernels that take vectors and
// give vectors.
type rig struct {
	dev  gpu.Device
	set  *Set
	st   gpu.Stream
	args *gpu.Args
	held []gpu.Ptr
}

func newRig(t testing.TB, dev gpu.Device, id curve.ID) *rig {
	t.Helper()
	st, err := dev.NewStream(false)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{dev: dev, set: NewSet(dev, id), st: st, args: gpu.NewArgs()}
	t.Cleanup(func() {
		r.free(t, 0)
		r.args.Close()
		for _, err := range []error{r.set.Close(), st.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// mark returns what frees the memory that is taken from now on.
func (r *rig) mark() func() {
	n := len(r.held)
	return func() { r.free(nil, n) }
}

func (r *rig) free(t testing.TB, from int) {
	for _, p := range r.held[from:] {
		if err := r.dev.Free(p); err != nil && t != nil {
			t.Error(err)
		}
	}
	r.held = r.held[:from]
}

func (r *rig) room(t fataler, n int64) gpu.Ptr {
	t.Helper()
	p, err := r.dev.Alloc(max(n, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.held = append(r.held, p)
	// kernels may not rely on zeros
	if err := r.st.Fill(p, 0xa5, n); err != nil {
		t.Fatal(err)
	}
	return p
}

// up copies v to the device.
func up[T any](t fataler, r *rig, v []T) gpu.Ptr {
	t.Helper()
	var one T
	n := int64(len(v)) * int64(unsafe.Sizeof(one))
	p := r.room(t, n)
	if n > 0 {
		if err := r.st.CopyIn(p, unsafe.Pointer(unsafe.SliceData(v)), n); err != nil {
			t.Fatal(err)
		}
		if err := r.st.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.KeepAlive(v)
	return p
}

// down copies n values from the device, after all that is queued.
func down[T any](t fataler, r *rig, p gpu.Ptr, n int) []T {
	t.Helper()
	v := make([]T, n)
	if n > 0 {
		var one T
		if err := r.st.CopyOut(unsafe.Pointer(unsafe.SliceData(v)), p, int64(n)*int64(unsafe.Sizeof(one))); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.st.Sync(); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(v)
	return v
}
