package emulator

import (
	"errors"
	"testing"

	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/gpu"
)

// Package driver on the emulator, with the tests' own kernels.
func TestDriver(t *testing.T) {
	c := fresh(t, Config{Cards: []Card{{Total: 16 * mib}, {Total: 8 * mib}}})
	d, err := driver.Open(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) != 2 || devices[1].Info().Total != 8*mib {
		t.Fatalf("devices: %+v", devices)
	}
	dev := devices[0]
	if got := double(t, c, dev); got != 42 {
		t.Errorf("got %d", got)
	}

	// F3 through the driver.
	s, err := dev.NewStream(false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.AllocAsync(12 * mib)
	if err := errors.Join(err, s.FreeAsync(p), s.Sync()); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.Alloc(8 * mib); !errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("an allocation beside what the pool keeps: %v", err)
	}
	if err := dev.Trim(0); err != nil {
		t.Fatal(err)
	}
	q, err := dev.Alloc(8 * mib)
	if err := errors.Join(err, dev.Free(q)); err != nil {
		t.Fatal(err)
	}

	// F6: a sticky error, and all works again after a reset.
	c.Fault("cuMemcpyDtoDAsync", 1, illegalAddress, true)
	p, err = s.AllocAsync(64)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(p, p+32, 32); !errors.Is(err, gpu.ErrSticky) {
		t.Errorf("a sticky error: %v", err)
	}
	if dev.Sticky() == nil {
		t.Error("the device does not know of it")
	}
	if err := errors.Join(dev.Reset(), s.FreeAsync(p), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := double(t, c, dev); got != 42 {
		t.Errorf("after a reset: %d", got)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	stats, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range stats.Cards {
		if s.Live() || s.Context != 0 || s.Used != 0 {
			t.Errorf("card %d after Close: %+v", i, s)
		}
	}
}

func double(t *testing.T, c *cu, dev gpu.Device) uint32 {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := dev.NewStream(false)
	must(err)
	m, err := dev.Load("probe", ptxBytes("probe_double_bn254"))
	must(err)
	f, err := m.Function("probe_double_bn254")
	must(err)
	host, err := dev.AllocPinned(4)
	must(err)
	*(*uint32)(host) = 21
	p, err := s.AllocAsync(4)
	must(err)
	e, err := dev.NewEvent(true)
	must(err)
	must(s.CopyIn(p, host, 4))
	must(s.Launch(f, gpu.Linear(1, 32), gpu.NewArgs().Ptr(p).Ptr(p).U32(1)))
	must(s.CopyOut(host, p, 4))
	must(s.Record(e))
	must(e.Sync())
	v := *(*uint32)(host)
	must(errors.Join(s.FreeAsync(p), s.Sync(), dev.Trim(0), dev.FreePinned(host), e.Close(), m.Close(), s.Close()))
	return v
}
