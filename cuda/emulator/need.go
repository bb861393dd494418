package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/gpu"
)

const (
	needEnv   = "SNARKLINE_NEED_EMULATOR"
	deviceEnv = "SNARKLINE_TEST_DEVICE"
)

// Need gives a test the path of the library, open and with the configuration
// (one card when there is none). Without a C++ compiler the test is skipped, or
// fails when SNARKLINE_NEED_EMULATOR is 1.
func Need(t testing.TB, config ...Config) string {
	t.Helper()
	l, err := Default(context.Background())
	if errors.Is(err, ErrNoCompiler) && os.Getenv(needEnv) != "1" {
		t.Skipf("SKIPPED: %v; the device path is NOT tested here", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := building(); s != "" {
		t.Log(s)
	}
	var c Config
	if len(config) > 0 {
		c = config[0]
	}
	if err := l.Configure(c); err != nil {
		t.Fatal(err)
	}
	return l.Path
}

// TestDevice gives a test a device: the emulated card (the first one of config),
// or the real one that SNARKLINE_TEST_DEVICE names ("cuda:0"). It is closed at
// the test's end.
func TestDevice(t testing.TB, config ...Config) gpu.Device {
	t.Helper()
	return TestDevices(t, config...)[0]
}

// Real says whether TestDevice gives a real card.
func Real() bool { return os.Getenv(deviceEnv) != "" }

// TestDevices are all cards of the configuration, or the real one alone.
func TestDevices(t testing.TB, config ...Config) []gpu.Device {
	t.Helper()
	path, n := "", -1
	if name := os.Getenv(deviceEnv); name != "" {
		if _, err := fmt.Sscanf(name, "cuda:%d", &n); err != nil {
			t.Fatalf("%s=%s: want cuda:N", deviceEnv, name)
		}
	} else {
		path = Need(t, config...)
	}
	d, err := driver.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the driver: %v", err)
		}
	})
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if n >= len(devices) {
		t.Fatalf("%s=%s: there are %d devices", deviceEnv, os.Getenv(deviceEnv), len(devices))
	}
	if n >= 0 {
		devices = devices[n : n+1]
	}
	return devices
}
