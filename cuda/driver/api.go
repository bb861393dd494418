//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"fmt"
	"strings"

	"github.com/snarkline/snarkline/gpu"
)

// api is what is used of libcuda.
type api struct {
	init, getVersion             symbol
	errorName, errorString       symbol
	deviceCount, deviceGet       symbol
	deviceName, deviceUUID       symbol
	deviceAttribute, deviceTotal symbol
	devicePCI                    symbol

	ctxRetain, ctxRelease, ctxReset, ctxFlags symbol
	ctxState, ctxSet, ctxPriorities, ctxSync  symbol

	memInfo, memAlloc, memFree             symbol
	memAllocAsync, memFreeAsync            symbol
	devicePool, poolTrim, poolGet, poolSet symbol
	hostRegister, hostUnregister           symbol
	copyIn, copyOut, copyWithin, fill      symbol

	streamCreate, streamDestroy, streamSync, streamWait symbol
	eventCreate, eventDestroy, eventRecord, eventQuery  symbol
	eventSync, eventElapsed                             symbol
	moduleLoad, moduleUnload, moduleFunction            symbol
	functionSet, functionGet                            symbol
	launch                                              symbol
}

// first are the symbols that tell which driver it is: an old one may lack
// others, and its version says more than the name of what is missing.
func (a *api) first(l *library) error {
	return a.resolve(l, []want{
		{&a.getVersion, []string{"cuDriverGetVersion"}},
		{&a.init, []string{"cuInit"}},
		{&a.errorName, []string{"cuGetErrorName"}},
		{&a.errorString, []string{"cuGetErrorString"}},
	})
}

// rest are all others. The names with _v2 are the current ones since CUDA 3.2
// to 11.4; those without take 32-bit sizes or older structs.
func (a *api) rest(l *library) error {
	one := func(s *symbol, names ...string) want { return want{s, names} }
	err := a.resolve(l, []want{
		one(&a.deviceCount, "cuDeviceGetCount"),
		one(&a.deviceGet, "cuDeviceGet"),
		one(&a.deviceName, "cuDeviceGetName"),
		one(&a.deviceUUID, "cuDeviceGetUuid_v2", "cuDeviceGetUuid"),
		one(&a.deviceAttribute, "cuDeviceGetAttribute"),
		one(&a.deviceTotal, "cuDeviceTotalMem_v2"),
		one(&a.devicePCI, "cuDeviceGetPCIBusId"),
		one(&a.ctxRetain, "cuDevicePrimaryCtxRetain"),
		one(&a.ctxRelease, "cuDevicePrimaryCtxRelease_v2"),
		one(&a.ctxReset, "cuDevicePrimaryCtxReset_v2"),
		one(&a.ctxSet, "cuCtxSetCurrent"),
		one(&a.ctxSync, "cuCtxSynchronize"),
		one(&a.ctxPriorities, "cuCtxGetStreamPriorityRange"),
		one(&a.memInfo, "cuMemGetInfo_v2"),
		one(&a.memAlloc, "cuMemAlloc_v2"),
		one(&a.memFree, "cuMemFree_v2"),
		one(&a.memAllocAsync, "cuMemAllocAsync"),
		one(&a.memFreeAsync, "cuMemFreeAsync"),
		one(&a.devicePool, "cuDeviceGetDefaultMemPool"),
		one(&a.poolTrim, "cuMemPoolTrimTo"),
		one(&a.poolGet, "cuMemPoolGetAttribute"),
		one(&a.poolSet, "cuMemPoolSetAttribute"),
		one(&a.hostRegister, "cuMemHostRegister_v2"),
		one(&a.hostUnregister, "cuMemHostUnregister"),
		one(&a.copyIn, "cuMemcpyHtoDAsync_v2"),
		one(&a.copyOut, "cuMemcpyDtoHAsync_v2"),
		one(&a.copyWithin, "cuMemcpyDtoDAsync_v2"),
		one(&a.fill, "cuMemsetD8Async"),
		one(&a.streamCreate, "cuStreamCreateWithPriority"),
		one(&a.streamDestroy, "cuStreamDestroy_v2"),
		one(&a.streamSync, "cuStreamSynchronize"),
		one(&a.streamWait, "cuStreamWaitEvent"),
		one(&a.eventCreate, "cuEventCreate"),
		one(&a.eventDestroy, "cuEventDestroy_v2"),
		one(&a.eventRecord, "cuEventRecord"),
		one(&a.eventQuery, "cuEventQuery"),
		one(&a.eventSync, "cuEventSynchronize"),
		one(&a.eventElapsed, "cuEventElapsedTime", "cuEventElapsedTime_v2"),
		one(&a.moduleLoad, "cuModuleLoadDataEx"),
		one(&a.moduleUnload, "cuModuleUnload"),
		one(&a.moduleFunction, "cuModuleGetFunction"),
		one(&a.functionSet, "cuFuncSetAttribute"),
		one(&a.functionGet, "cuFuncGetAttribute"),
		one(&a.launch, "cuLaunchKernel"),
	})
	// These two are no loss.
	a.ctxState, _ = l.find("cuDevicePrimaryCtxGetState")
	a.ctxFlags, _ = l.find("cuDevicePrimaryCtxSetFlags_v2")
	return err
}

type want struct {
	to    *symbol
	names []string
}

func (a *api) resolve(l *library, list []want) error {
	var missing []string
	for _, w := range list {
		s, ok := l.find(w.names...)
		if !ok {
			missing = append(missing, w.names[0])
			continue
		}
		*w.to = s
	}
	if missing != nil {
		return fmt.Errorf("%s is no CUDA driver that can be used: it lacks %s: %w",
			l.path, strings.Join(missing, ", "), gpu.ErrNoDevice)
	}
	return nil
}
