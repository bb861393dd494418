// CUDA's status codes, with their names and texts.
#pragma once

#define EMU_CODES(X)                                                                            \
  X(SUCCESS, 0, "no error")                                                                     \
  X(ERROR_INVALID_VALUE, 1, "invalid argument")                                                 \
  X(ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                    \
  X(ERROR_NOT_INITIALIZED, 3, "initialization error")                                           \
  X(ERROR_DEINITIALIZED, 4, "driver shutting down")                                             \
  X(ERROR_STUB_LIBRARY, 34, "CUDA driver is a stub library")                                    \
  X(ERROR_DEVICE_UNAVAILABLE, 46, "CUDA-capable device(s) is/are busy or unavailable")          \
  X(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                 \
  X(ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                        \
  X(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                 \
  X(ERROR_INVALID_CONTEXT, 201, "invalid device context")                                       \
  X(ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")   \
  X(ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")                        \
  X(ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed")                                     \
  X(ERROR_UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain.") \
  X(ERROR_INVALID_SOURCE, 300, "device kernel image is invalid")                                \
  X(ERROR_FILE_NOT_FOUND, 301, "file not found")                                                \
  X(ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")        \
  X(ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                       \
  X(ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state")         \
  X(ERROR_NOT_FOUND, 500, "named symbol not found")                                             \
  X(ERROR_NOT_READY, 600, "device not ready")                                                   \
  X(ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                     \
  X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")              \
  X(ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                       \
  X(ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "cannot set while device is active in this process")     \
  X(ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                    \
  X(ERROR_ASSERT, 710, "device-side assert triggered")                                          \
  X(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the requested memory range is already mapped") \
  X(ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "pointer does not correspond to a registered memory region") \
  X(ERROR_HARDWARE_STACK_ERROR, 714, "hardware stack error")                                    \
  X(ERROR_ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered")                   \
  X(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                        \
  X(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                     \
  X(ERROR_NOT_PERMITTED, 800, "operation not permitted")                                        \
  X(ERROR_NOT_SUPPORTED, 801, "operation not supported")                                        \
  X(ERROR_SYSTEM_DRIVER_MISMATCH, 803, "system has unsupported display driver / cuda driver combination") \
  X(ERROR_UNKNOWN, 999, "unknown error")

namespace emu {
enum Code : int {
#define X(name, code, text) name = code,
  EMU_CODES(X)
#undef X
};
}  // namespace emu
