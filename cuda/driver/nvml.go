//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/gpu"
)

// NVML is the management library: it tells how busy a card is, and with whom it
// is shared. It is not needed to compute.
type NVML struct {
	lib                           *library
	errorText                     symbol
	initialise, shutdown, version symbol
	byUUID, name                  symbol
	utilization, memory           symbol
	processes, throughput         symbol
	closed                        atomic.Bool
}

// OpenNVML opens NVML's library at path. An empty path is what
// SNARKLINE_NVML_LIBRARY says, or libnvidia-ml.so.1. Its errors are
// gpu.ErrNoDevice.
func OpenNVML(path string) (*NVML, error) {
	l, err := openLibrary(path, NVMLEnv, defaultNVML)
	if err != nil {
		return nil, fmt.Errorf("NVML: %w", err)
	}
	n := &NVML{lib: l}
	var missing []string
	for _, w := range []want{
		{&n.errorText, []string{"nvmlErrorString"}},
		{&n.initialise, []string{"nvmlInit_v2"}},
		{&n.shutdown, []string{"nvmlShutdown"}},
		{&n.version, []string{"nvmlSystemGetDriverVersion"}},
		{&n.byUUID, []string{"nvmlDeviceGetHandleByUUID"}},
		{&n.name, []string{"nvmlDeviceGetName"}},
		{&n.utilization, []string{"nvmlDeviceGetUtilizationRates"}},
		{&n.memory, []string{"nvmlDeviceGetMemoryInfo"}},
	} {
		var ok bool
		if *w.to, ok = l.find(w.names...); !ok {
			missing = append(missing, w.names[0])
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("NVML: %s lacks %s: %w", l.path, strings.Join(missing, ", "), gpu.ErrNoDevice)
	}
	// These two answer errors.ErrUnsupported where they are missing.
	n.processes, _ = l.find("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
	n.throughput, _ = l.find("nvmlDeviceGetPcieThroughput")
	if st := invoke(n.initialise); st != 0 {
		err := n.failure(st, n.initialise, "")
		err.Kind = gpu.ErrNoDevice
		return nil, fmt.Errorf("NVML: %w", err)
	}
	return n, nil
}

// Close ends the use of the library. A second Close does nothing.
func (n *NVML) Close() error {
	if n.closed.Swap(true) {
		return nil
	}
	if st := invoke(n.shutdown); st != 0 {
		return n.failure(st, n.shutdown, "")
	}
	return nil
}

// What NVML's statuses mean.
const (
	nvmlNotSupported     = 3
	nvmlNoPermission     = 4
	nvmlInsufficientSize = 7
)

// nvmlNames are the statuses that users meet.
var nvmlNames = map[status]string{1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", nvmlNotSupported: "NOT_SUPPORTED",
	nvmlNoPermission: "NO_PERMISSION", 6: "NOT_FOUND", nvmlInsufficientSize: "INSUFFICIENT_SIZE", 9: "DRIVER_NOT_LOADED",
	12: "LIBRARY_NOT_FOUND", 15: "GPU_IS_LOST", 17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 999: "UNKNOWN"}

func (n *NVML) failure(st status, s symbol, args string) *gpu.Error {
	e := &gpu.Error{Call: s.name, Args: args, Code: int(st), Name: "an NVML status"}
	if name := nvmlNames[st]; name != "" {
		e.Name = "NVML_ERROR_" + name
	}
	if st == nvmlNotSupported || st == nvmlNoPermission {
		e.Kind = errors.ErrUnsupported
	}
	if s := invokePointer(n.errorText, uintptr(st)); s != 0 {
		e.Text = cString(s)
	}
	return e
}

// DriverVersion is what people call the driver: "580.95.05".
func (n *NVML) DriverVersion() (string, error) {
	b := make([]byte, 96)
	if st := invoke(n.version, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); st != 0 {
		return "", n.failure(st, n.version, "")
	}
	return goString(b), nil
}

// Card is a card as NVML sees it.
type Card struct {
	n    *NVML
	h    uintptr
	uuid string
}

// Card finds the card of a gpu.Info's UUID.
func (n *NVML) Card(uuid string) (*Card, error) {
	c := &Card{n: n, uuid: uuid}
	var st status
	// A slice of a card has a UUID of its own, which NVML writes with MIG.
	for _, u := range []string{uuid, "MIG-" + strings.TrimPrefix(uuid, "GPU-")} {
		name := append([]byte(u), 0)
		if st = invoke(n.byUUID, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&c.h))); st == 0 {
			return c, nil
		}
	}
	err := n.failure(st, n.byUUID, uuid)
	err.Kind = gpu.ErrNoDevice
	return nil, err
}

// Name is the card's, "NVIDIA H200".
func (c *Card) Name() (string, error) {
	b := make([]byte, 96)
	if st := invoke(c.n.name, c.h, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); st != 0 {
		return "", c.n.failure(st, c.n.name, c.uuid)
	}
	return goString(b), nil
}

// Utilization is the share of the last sample period (a sixth of a second to a
// second, by card) in which a kernel ran, and in which device memory was read or
// written: 0 to 1.
func (c *Card) Utilization() (compute, memory float64, err error) {
	var u [2]uint32
	if st := invoke(c.n.utilization, c.h, uintptr(unsafe.Pointer(&u[0]))); st != 0 {
		return 0, 0, c.n.failure(st, c.n.utilization, c.uuid)
	}
	return float64(u[0]) / 100, float64(u[1]) / 100, nil
}

// Memory is what all programs together use of the card, and what there is.
func (c *Card) Memory() (used, total int64, err error) {
	var m struct{ total, free, used uint64 }
	if st := invoke(c.n.memory, c.h, uintptr(unsafe.Pointer(&m))); st != 0 {
		return 0, 0, c.n.failure(st, c.n.memory, c.uuid)
	}
	return int64(m.used), int64(m.total), nil
}

// Process is a program that computes on a card.
type Process struct {
	PID   int   // in the system's outermost namespace
	Bytes int64 // of device memory; −1 where NVML does not tell
}

// nvmlProcess is nvmlProcessInfo_t since CUDA 11.
type nvmlProcess struct {
	pid               uint32
	_                 uint32
	used              uint64
	instance, compute uint32
}

// Processes lists who computes on the card. The error is errors.ErrUnsupported
// where NVML cannot tell.
func (c *Card) Processes() ([]Process, error) {
	s := c.n.processes
	if s.fn == 0 {
		return nil, fmt.Errorf("%s lacks nvmlDeviceGetComputeRunningProcesses_v3: %w", c.n.lib.path, errors.ErrUnsupported)
	}
	for room := 32; ; room *= 2 {
		list := make([]nvmlProcess, room)
		count := uint32(room)
		st := invoke(s, c.h, uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&list[0])))
		if st == nvmlInsufficientSize && room < 1<<16 {
			continue
		}
		if st != 0 {
			return nil, c.n.failure(st, s, c.uuid)
		}
		var all []Process
		for _, p := range list[:min(int(count), room)] {
			b := int64(p.used)
			if p.used == ^uint64(0) {
				b = -1
			}
			all = append(all, Process{PID: int(p.pid), Bytes: b})
		}
		return all, nil
	}
}

// OthersMemory is what other programs use of the card. The error is
// errors.ErrUnsupported where that cannot be told: NVML does not say how much
// each has, or this process runs in a PID namespace of its own and is not found
// among several.
func (c *Card) OthersMemory() (int64, error) {
	all, err := c.Processes()
	if err != nil {
		return 0, err
	}
	var sum int64
	found := false
	for _, p := range all {
		switch {
		case p.PID == os.Getpid():
			found = true
		case p.Bytes < 0:
			return 0, fmt.Errorf("NVML does not tell the memory of process %d: %w", p.PID, errors.ErrUnsupported)
		default:
			sum += p.Bytes
		}
	}
	if sum > 0 && !found && ownNamespace() {
		return 0, fmt.Errorf("this process is not found among those on the card: %w", errors.ErrUnsupported)
	}
	return sum, nil
}

// ownNamespace guesses whether PIDs here are not those of the system: its
// outermost namespace has a kernel thread with PID 2.
func ownNamespace() bool {
	b, err := os.ReadFile("/proc/2/comm")
	return err != nil || strings.TrimSpace(string(b)) != "kthreadd"
}

// Throughput is what passes over PCIe, bytes a second, over the last 20 ms; it
// takes that long. The error is errors.ErrUnsupported where NVML cannot tell.
func (c *Card) Throughput() (toDevice, fromDevice int64, err error) {
	s := c.n.throughput
	if s.fn == 0 {
		return 0, 0, fmt.Errorf("%s lacks nvmlDeviceGetPcieThroughput: %w", c.n.lib.path, errors.ErrUnsupported)
	}
	var kib [2]uint32 // what the card sends, what it receives
	for i := range kib {
		if st := invoke(s, c.h, uintptr(i), uintptr(unsafe.Pointer(&kib[i]))); st != 0 {
			return 0, 0, c.n.failure(st, s, c.uuid)
		}
	}
	return int64(kib[1]) << 10, int64(kib[0]) << 10, nil
}
