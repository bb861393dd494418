//go:build unix

package gputest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapPages maps n bytes of memory, in whole pages, outside Go's heap.
func mapPages(n int64) ([]byte, error) {
	n = (n + int64(page) - 1) &^ (int64(page) - 1)
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

func unmapPages(b []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(b), err)
	}
	return nil
}
