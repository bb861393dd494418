//go:build race

package alloc

import (
	"fmt"
	"unsafe"
)

// sysAlloc takes memory from Go's heap: the race detector watches that and
// data segments alone, so that races on mapped memory would go unseen.
func sysAlloc(n int64) (b []byte, err error) {
	n = (n + pageSize - 1) &^ (pageSize - 1)
	if n > 1<<34 {
		return nil, fmt.Errorf("allocate %d bytes: too much for a build with the race detector", n)
	}
	const align = 64
	raw := make([]byte, n+align)
	off := int64(-uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % align)
	return raw[off : off+n : off+n], nil
}

func sysFree([]byte) error { return nil }
