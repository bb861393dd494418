//go:build !(linux && (amd64 || arm64) && !nocuda)

package driver

import (
	"fmt"
	"runtime"

	"github.com/snarkline/snarkline/gpu"
)

// Driver is an open CUDA driver. On this system there is none.
type Driver struct{}

// Open says that there are no CUDA devices: on systems other than Linux on amd64
// and arm64, and in builds with the tag nocuda.
func Open(string) (*Driver, error) { return nil, none("CUDA driver") }

func none(what string) error {
	return fmt.Errorf("%s: this build, for %s/%s, is without: %w", what, runtime.GOOS, runtime.GOARCH, gpu.ErrNoDevice)
}

// Version is 0.
func (*Driver) Version() int { return 0 }

// Path is empty.
func (*Driver) Path() string { return "" }

// Devices lists none.
func (*Driver) Devices() ([]gpu.Device, error) { return nil, none("CUDA driver") }

// Close does nothing.
func (*Driver) Close() error { return nil }
