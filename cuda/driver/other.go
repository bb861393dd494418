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
	return fmt.Errorf("%s: this build, for %s/%s, is without CUDA (the tag nocuda, or no Linux on amd64 or arm64): %w", what, runtime.GOOS, runtime.GOARCH, gpu.ErrNoDevice)
}

// Version is 0.
func (*Driver) Version() int { return 0 }

// Path is empty.
func (*Driver) Path() string { return "" }

// Devices lists none.
func (*Driver) Devices() ([]gpu.Device, error) { return nil, none("CUDA driver") }

// Close does nothing.
func (*Driver) Close() error { return nil }

// NVML is the management library. On this system there is none.
type NVML struct{}

// OpenNVML says that there is none.
func OpenNVML(string) (*NVML, error) { return nil, none("NVML") }

// Close does nothing.
func (*NVML) Close() error { return nil }

// DriverVersion is unknown.
func (*NVML) DriverVersion() (string, error) { return "", none("NVML") }

// Card finds none.
func (*NVML) Card(string) (*Card, error) { return nil, none("NVML") }

// Card is a card as NVML sees it.
type Card struct{}

// Name is unknown.
func (*Card) Name() (string, error) { return "", none("NVML") }

// Utilization is unknown.
func (*Card) Utilization() (compute, memory float64, err error) { return 0, 0, none("NVML") }

// Memory is unknown.
func (*Card) Memory() (used, total int64, err error) { return 0, 0, none("NVML") }

// Process is a program that computes on a card.
type Process struct {
	PID   int
	Bytes int64
}

// Processes is unknown.
func (*Card) Processes() ([]Process, error) { return nil, none("NVML") }

// OthersMemory is unknown.
func (*Card) OthersMemory() (int64, error) { return 0, none("NVML") }

// Throughput is unknown.
func (*Card) Throughput() (toDevice, fromDevice int64, err error) { return 0, 0, none("NVML") }
