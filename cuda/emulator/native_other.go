//go:build !((linux || darwin) && (amd64 || arm64))

package emulator

import "errors"

type native struct {
	configure func(json string, bad *byte, room uintptr) int32
	fault     func(call string, n uint64, code, sticky int32)
	clear     func() int32
	calls     func() uint64
	corrupt   func(kernel string, n uint64)
	stats     func(out *byte, room uintptr) uintptr
	kernels   func(out *byte, room uintptr) uintptr
}

func open(string) (*native, error) {
	return nil, errors.New("the emulator is for Linux and macOS on x86-64 and arm64")
}
