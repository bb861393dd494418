//go:build amd64 && !purego

package ifma

import "golang.org/x/sys/cpu"

// Available reports whether this processor and its operating system run the
// kernels: AVX-512 F, DQ, VL, IFMA and VBMI2 with the state of the 512-bit and
// mask registers saved (XCR0), which x/sys/cpu checks before it sets the flags.
func Available() bool {
	x := &cpu.X86
	return x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512IFMA && x.HasAVX512VBMI2
}
