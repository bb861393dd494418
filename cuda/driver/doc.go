// Package driver is a gpu.Device for each CUDA card of the machine, through the
// CUDA driver API. The driver's library is opened when Open is called and not
// before: a program that never asks for a card never touches it. It needs no
// cgo, no CUDA toolkit and no header.
//
// Which library it is, is a path, so that a stand-in with the same symbols can
// take its place: the argument of Open, or SNARKLINE_CUDA_LIBRARY, or
// libcuda.so.1. The same goes for OpenNVML, which tells how busy a card is and
// who else is on it.
//
// # Threads
//
// A CUDA context is current on an OS thread; goroutines move between threads.
// Every method therefore makes the device's context current on the thread it
// runs on before it calls, and stays on that thread for the pair of calls. That
// costs about 0.1 µs, so nothing depends on who bound what.
//
// # Generations
//
// Each card has one context, its primary one, made when first needed. A sticky
// error ends it: every later call fails at once, with the same error, until
// Reset. What was made before a Reset is refused with a *gpu.StaleError and
// frees to nothing. Device addresses can come back after a
// Reset: one that was handed out before it and again after it is given back when
// it was freed as often as it was handed out, so that a late free of old
// memory never takes new memory from its owner. Free each address once.
//
// # Cards that are lost
//
// Not every driver makes a context after a sticky error: 580 on an H200 answers
// the error that ended the last one to whoever asks for another, until the
// process ends. Reset finds that out, and the card is lost then: everything
// answers with the same *gpu.LostError, without a call to the driver. What was
// made before frees to nothing. Memory of AllocPinned can be read and written
// until FreePinned, and memory of others that was registered stays theirs; both
// are merely not page-locked for the card any more.
//
// Use one Driver in a process: a card's primary context is shared by all of
// them, and Reset ends it for all.
package driver

// LibraryEnv names the variable that holds the path of the driver's library.
const LibraryEnv = "SNARKLINE_CUDA_LIBRARY"

// NVMLEnv names the variable that holds the path of NVML's library.
const NVMLEnv = "SNARKLINE_NVML_LIBRARY"

// MinVersion is the oldest driver interface that runs the kernels: CUDA 11.8,
// the first that reads PTX 7.8. It comes with drivers from 520.61 on.
const MinVersion = 11080

// MinMajor is the oldest compute capability that runs the kernels: 8.0.
const MinMajor = 8

const (
	defaultLibrary = "libcuda.so.1"
	defaultNVML    = "libnvidia-ml.so.1"
)

// Counts is what went through a device since it was opened.
type Counts struct {
	Launches        int64
	In, Out, Within int64 // bytes copied: host to device, device to host, on the device
}
