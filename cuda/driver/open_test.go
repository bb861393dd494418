//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/gpu"
)

// mustSay checks that err is one of kind and has all the words.
func mustSay(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func TestOpenWithoutLibrary(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libnothing.so")
	_, err := Open(missing)
	mustSay(t, err, gpu.ErrNoDevice, missing, "No such file")
	_, err = OpenNVML(missing)
	mustSay(t, err, gpu.ErrNoDevice, missing, "No such file")

	t.Setenv(LibraryEnv, missing)
	_, err = Open("")
	mustSay(t, err, gpu.ErrNoDevice, missing, LibraryEnv, "No such file")
	t.Setenv(NVMLEnv, missing)
	_, err = OpenNVML("")
	mustSay(t, err, gpu.ErrNoDevice, missing, NVMLEnv)

	s := newStandin(t)
	t.Setenv(LibraryEnv, s.path)
	d := must[*Driver](t)(Open(""))
	if d.Path() != s.path || d.Version() != 12040 {
		t.Errorf("%s, version %d", d.Path(), d.Version())
	}
	ok(t, d.Close(), d.Close())
	_, err = d.Devices()
	mustSay(t, err, gpu.ErrClosed)
}

func TestOpenMissingSymbols(t *testing.T) {
	for _, name := range []string{"cuInit", "cuMemAllocAsync", "cuMemFree_v2", "cuLaunchKernel"} {
		_, err := Open(newStandin(t, name).path)
		mustSay(t, err, gpu.ErrNoDevice, "lacks "+name)
	}
	s := newStandin(t, "cuDevicePrimaryCtxSetFlags_v2") // no loss
	ok(t, program(s.open(t)))
	_, err := OpenNVML(newStandin(t, "nvmlDeviceGetName").path)
	mustSay(t, err, gpu.ErrNoDevice, "lacks nvmlDeviceGetName")
}

func TestOpenOldDriver(t *testing.T) {
	s := newStandin(t, "cuMemAllocAsync") // as an old one would
	s.Setup(11040, 1, 8)
	_, err := Open(s.path)
	mustSay(t, err, gpu.ErrNoDevice, "11.4", "11.8", s.path)
}

func TestOpenNoDevice(t *testing.T) {
	s := newStandin(t)
	s.Setup(12040, 0, 8)
	_, err := Open(s.path)
	mustSay(t, err, gpu.ErrNoDevice, "cuInit", "CUDA_ERROR_NO_DEVICE")
	for _, call := range []string{"cuInit", "cuDriverGetVersion"} {
		s.Setup(12040, 1, 8)
		s.Fault(call, 1, 999)
		_, err = Open(s.path)
		mustSay(t, err, gpu.ErrNoDevice, call, "(999)")
	}
	s.Setup(12040, 2, 7)
	d := must[*Driver](t)(Open(s.path))
	_, err = d.Devices()
	mustSay(t, err, gpu.ErrNoDevice, "cuda:0", "cuda:1", "7.6", "8.0")
	s.Setup(12040, 0, 8)
	_, err = d.Devices()
	mustSay(t, err, gpu.ErrNoDevice, "no card")
	s.Setup(12040, 12, 9)
	devices := must[[]gpu.Device](t)(d.Devices())
	if len(devices) != 8 || devices[7].Info().Index != 7 || !devices[7].Space().Valid() {
		t.Errorf("%d devices", len(devices))
	}
	ok(t, d.Close())
}

// TestListFaults fails each call that lists devices.
func TestListFaults(t *testing.T) {
	s := newStandin(t)
	for n := int32(1); ; n++ {
		s.Setup(12040, 2, 8)
		d := must[*Driver](t)(Open(s.path))
		s.Fault("", n, 999)
		devices, err := d.Devices()
		if err == nil {
			if n < 20 || len(devices) != 2 {
				t.Errorf("%d devices after %d calls", len(devices), n)
			}
			return
		}
		var e *gpu.Error
		if !errors.As(err, &e) || e.Code != 999 || e.Name != "CUDA_ERROR_UNKNOWN" || !strings.HasPrefix(e.Call, "cuDevice") {
			t.Errorf("call %d: %v", n, err)
		}
		s.Fault("", 1, 0)
		if devices, err := d.Devices(); err != nil || len(devices) != 2 {
			t.Errorf("again: %d devices, %v", len(devices), err)
		}
		ok(t, d.Close())
	}
}
