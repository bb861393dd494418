//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/snarkline/snarkline/gpu"
)

func TestNVML(t *testing.T) {
	s := newStandin(t)
	n := must[*NVML](t)(OpenNVML(s.path))
	if v := must[string](t)(n.DriverVersion()); v != "580.00" {
		t.Error(v)
	}
	_, err := n.Card("GPU-ffffffff-0405-0607-0809-0a0b0c0d0e0f")
	mustSay(t, err, gpu.ErrNoDevice, "GPU-ffffffff", "NVML_ERROR_NOT_FOUND (6)")
	c := must[*Card](t)(n.Card(s.open(t).Info().UUID))
	if v := must[string](t)(c.Name()); v != "Stand-in 0" {
		t.Error(v)
	}
	if a, b, err := c.Utilization(); err != nil || a != .75 || b != .4 {
		t.Error(a, b, err)
	}
	if used, total, err := c.Memory(); err != nil || used != 600 || total != 1000 {
		t.Error(used, total, err)
	}
	if in, out, err := c.Throughput(); err != nil || in != 2<<20 || out != 1<<20 {
		t.Error(in, out, err)
	}
	all := must[[]Process](t)(c.Processes()) // more than it asks for at first
	if len(all) != 40 || all[3] != (Process{os.Getpid(), 500}) {
		t.Error(all)
	}
	if v := must[int64](t)(c.OthersMemory()); v != 100 {
		t.Error(v)
	}
	s.NVML(3)
	_, err = c.OthersMemory()
	mustSay(t, err, errors.ErrUnsupported, "nvmlDeviceGetComputeRunningProcesses(GPU-0001", "Not Supported", "NVML_ERROR_NOT_SUPPORTED")
	_, _, err = c.Throughput()
	mustSay(t, err, errors.ErrUnsupported)
	s.NVML(15)
	for _, f := range []func() error{
		func() error { _, err := n.DriverVersion(); return err },
		func() error { _, err := c.Name(); return err },
		func() error { _, _, err := c.Utilization(); return err },
		func() error { _, _, err := c.Memory(); return err },
		func() error { _, err := OpenNVML(s.path); return err },
	} {
		mustSay(t, f(), nil, "NVML_ERROR_GPU_IS_LOST (15)")
	}
	s.NVML(0)
	ok(t, n.Close(), n.Close())

	n = must[*NVML](t)(OpenNVML(newStandin(t, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetPcieThroughput").path))
	c = must[*Card](t)(n.Card("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"))
	_, err = c.Processes()
	mustSay(t, err, errors.ErrUnsupported, "lacks")
	_, _, err = c.Throughput()
	mustSay(t, err, errors.ErrUnsupported, "lacks")
	ok(t, n.Close())
}

func TestSampleCard(t *testing.T) {
	s := newStandin(t)
	n := must[*NVML](t)(OpenNVML(s.path))
	w := must[*Card](t)(n.Card("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f")).Sample(true)
	time.Sleep(3 * SampleEvery)
	u := w.Stop()
	if u.Samples < 1 || u.Compute != .75 || u.MemoryMax != .4 || u.UsedMax != 600 || u.PCIeIn != 2<<20 {
		t.Errorf("%+v", u)
	}
	ok(t, n.Close())
}

// TestCardNVML prints what NVML says of a real card.
func TestCardNVML(t *testing.T) {
	dev, real := card(t)
	if !real {
		t.Skip("no real card: set " + testDeviceEnv)
	}
	n, err := OpenNVML("")
	if err != nil {
		t.Skipf("no NVML: %v", err)
	}
	v, err := n.DriverVersion()
	t.Logf("driver %s, %v", v, err)
	c, err := n.Card(dev.Info().UUID)
	if err != nil {
		t.Fatal(err)
	}
	name, err := c.Name()
	t.Logf("%s, %v", name, err)
	ok(t, dev.Bind())
	used, total, err := c.Memory()
	t.Logf("%d of %d bytes in use, %v", used, total, err)
	all, err := c.Processes()
	t.Logf("processes %v, %v; this is %d", all, err, os.Getpid())
	others, err := c.OthersMemory()
	t.Logf("others %d, %v", others, err)
	in, out, err := c.Throughput()
	t.Logf("PCIe in %d, out %d bytes/s, %v", in, out, err)
	s := c.Sample(true)
	m := must[gpu.Module](t)(dev.Load("add", []byte(addPTX)))
	add := must[gpu.Function](t)(m.Function("add"))
	st := must[gpu.Stream](t)(dev.NewStream(false))
	const words = 1 << 26
	mem := must[gpu.Ptr](t)(dev.Alloc(4 * words))
	args := gpu.NewArgs()
	defer args.Close()
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; {
		for range 100 {
			ok(t, st.Launch(add, gpu.Linear(words, 256), args.Reset().Ptr(mem).Ptr(mem).Ptr(mem).U32(words)))
		}
		ok(t, st.Sync())
	}
	u := s.Stop()
	t.Log(u)
	t.Logf("%+v", u)
	if u.ComputeMax < .5 {
		t.Error("a card that works all the time is said to be idle")
	}
	ok(t, dev.Free(mem), st.Close(), m.Close(), n.Close())
}
