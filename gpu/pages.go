//go:build unix

package gpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// mapPages maps n bytes of zeroed memory, in whole pages, outside Go's heap.
func mapPages(n int64) ([]byte, error) {
	page := int64(pageSize)
	n = (n + page - 1) &^ (page - 1)
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	b := unsafe.Slice((*byte)(p), n)
	if n >= hugePage {
		adviseHuge(b) // far fewer pages to lock
	}
	return b, nil
}

func unmapPages(b []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(b), err)
	}
	return nil
}

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
