// Names of errors, and addresses of the calls.
#include <string.h>

#include "api.h"

using namespace emu;

EMU_API Result cuGetErrorName(int code, const char** out) {
  switch (code) {
#define X(name, value, text) \
  case value: *out = "CUDA_" #name; return SUCCESS;
    EMU_CODES(X)
#undef X
  }
  *out = nullptr;
  return ERROR_INVALID_VALUE;
}

EMU_API Result cuGetErrorString(int code, const char** out) {
  switch (code) {
#define X(name, value, text) \
  case value: *out = text; return SUCCESS;
    EMU_CODES(X)
#undef X
  }
  *out = nullptr;
  return ERROR_INVALID_VALUE;
}

// The calls: name without version, the symbol, the first driver that has it.
#define EMU_CALLS(X)                                                                  \
  X(cuInit, cuInit, 2000)                                                             \
  X(cuDriverGetVersion, cuDriverGetVersion, 2020)                                     \
  X(cuDeviceGetCount, cuDeviceGetCount, 2000)                                         \
  X(cuDeviceGet, cuDeviceGet, 2000)                                                   \
  X(cuDeviceGetName, cuDeviceGetName, 2000)                                           \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040)                                       \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)                                 \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020)                                      \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)                                   \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                         \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000)                   \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000)                       \
  X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000)                 \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000)                     \
  X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                           \
  X(cuCtxGetCurrent, cuCtxGetCurrent, 4000)                                           \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000)                                         \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050)                   \
  X(cuMemGetInfo, cuMemGetInfo_v2, 3020)                                              \
  X(cuMemAlloc, cuMemAlloc_v2, 3020)                                                  \
  X(cuMemFree, cuMemFree_v2, 3020)                                                    \
  X(cuMemAllocAsync, cuMemAllocAsync, 11020)                                          \
  X(cuMemFreeAsync, cuMemFreeAsync, 11020)                                            \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020)                      \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020)                                          \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020)                              \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020)                              \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020)                                             \
  X(cuMemFreeHost, cuMemFreeHost, 2000)                                               \
  X(cuMemHostRegister, cuMemHostRegister_v2, 6050)                                    \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000)                                   \
  X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020)                    \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020)                                    \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020)                                    \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020)                                    \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020)                                              \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020)                                              \
  X(cuMemsetD8Async, cuMemsetD8Async, 3020)                                           \
  X(cuMemsetD32Async, cuMemsetD32Async, 3020)                                         \
  X(cuStreamCreate, cuStreamCreate, 2000)                                             \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050)                     \
  X(cuStreamDestroy, cuStreamDestroy_v2, 4000)                                        \
  X(cuStreamSynchronize, cuStreamSynchronize, 2000)                                   \
  X(cuStreamQuery, cuStreamQuery, 2000)                                               \
  X(cuStreamWaitEvent, cuStreamWaitEvent, 3020)                                       \
  X(cuEventCreate, cuEventCreate, 2000)                                               \
  X(cuEventDestroy, cuEventDestroy_v2, 4000)                                          \
  X(cuEventRecord, cuEventRecord, 2000)                                               \
  X(cuEventQuery, cuEventQuery, 2000)                                                 \
  X(cuEventSynchronize, cuEventSynchronize, 2000)                                     \
  X(cuEventElapsedTime, cuEventElapsedTime_v2, 12080)                                 \
  X(cuEventElapsedTime, cuEventElapsedTime, 2000)                                     \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010)                                     \
  X(cuModuleLoadData, cuModuleLoadData, 2000)                                         \
  X(cuModuleUnload, cuModuleUnload, 2000)                                             \
  X(cuModuleGetFunction, cuModuleGetFunction, 2000)                                   \
  X(cuFuncGetAttribute, cuFuncGetAttribute, 2020)                                     \
  X(cuFuncSetAttribute, cuFuncSetAttribute, 9000)                                     \
  X(cuLaunchKernel, cuLaunchKernel, 4000)                                             \
  X(cuGetErrorName, cuGetErrorName, 6000)                                             \
  X(cuGetErrorString, cuGetErrorString, 6000)                                         \
  X(cuGetProcAddress, cuGetProcAddress_v2, 12000)                                     \
  X(cuGetProcAddress, cuGetProcAddress, 11030)

extern "C" {
#define X(name, symbol, since) \
  __attribute__((visibility("default"))) void symbol##_declared(void) __asm__(EMU_PREFIX #symbol);
#ifdef __APPLE__
#define EMU_PREFIX "_"
#else
#define EMU_PREFIX ""
#endif
EMU_CALLS(X)
#undef X
}

static void* address_of(const char* name, int version, int* status) {
  static const struct {
    const char* name;
    void (*f)();
    int since;
  } table[] = {
#define X(name, symbol, since) {#name, symbol##_declared, since},
      EMU_CALLS(X)
#undef X
  };
  *status = 1;  // no such name
  for (auto& t : table) {
    if (strcmp(t.name, name) != 0) continue;
    *status = 2;  // the version is too low
    if (version < t.since || world().config.driver < t.since) continue;
    *status = 0;
    return reinterpret_cast<void*>(t.f);
  }
  return nullptr;
}

EMU_API Result cuGetProcAddress_v2(const char* name, void** f, int version, uint64_t, int* status) {
  if (!name || !f) return ERROR_INVALID_VALUE;
  int s;
  *f = address_of(name, version, &s);
  if (status) *status = s;
  return *f ? SUCCESS : ERROR_NOT_FOUND;
}

EMU_API Result cuGetProcAddress(const char* name, void** f, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, f, version, flags, nullptr);
}
