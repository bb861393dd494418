// Package emulator builds and steers a stand-in for CUDA's driver: a shared
// library that exports the calls of libcuda and NVML which package driver uses,
// and runs the kernels of cuda/kernels on the CPU. Its sources are in src; it
// needs a C++17 compiler, and is built when it is first asked for. It is for
// tests of the device path on machines without a device. Linux and macOS.
//
// What it does as a card does: the codes of the calls, memory with a limit in
// two pools that do not see each other, streams that work later and on their
// own, errors that end a context, blocks whose threads wait for each other. What
// it does worse on purpose, so that a mistake shows: new device memory holds
// 0xa5; freed memory is gone at once, and past each allocation nothing is; what
// the pool has it keeps until it is trimmed; lanes of a warp do not run in step;
// a handle is never given twice, and a context is another one after a reset;
// host memory that is freed or unregistered while a copy of it is queued ends
// the context.
//
// A test has a card from Need (the library's path, for cuda.Open) or TestDevice (a
// gpu.Device); a program is given the library by SNARKLINE_CUDA_LIBRARY, which
// `go run ./cuda/emulator/build` builds and names.
//
// The library's state is the process's: tests that use it do not run in
// parallel with each other.
package emulator
