//go:build linux && (amd64 || arm64) && !nocuda

package driver

// AddPTX is the kernel of the tests, by another name.
func AddPTX(kernel string) []byte { return ptx(kernel) }
