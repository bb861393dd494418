//go:build !amd64 || purego

package ifma

// Available reports whether the kernels can run: not in this build.
func Available() bool { return false }

func kernelsG1x381() *kernels    { return nil }
func kernelsG2x381() *kernels    { return nil }
func kernelsG1x254() *kernels    { return nil }
func kernelsG2x254() *kernels    { return nil }
func nttKernels381() *nttKernels { return nil }
func nttKernels254() *nttKernels { return nil }
func kernelsFp381() fieldKernels { return fieldKernels{} }
func kernelsFp254() fieldKernels { return fieldKernels{} }
func kernelsFr381() fieldKernels { return fieldKernels{} }
func kernelsFr254() fieldKernels { return fieldKernels{} }
