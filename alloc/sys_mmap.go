//go:build unix && !race

package alloc

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// sysAlloc maps n bytes, rounded up to whole pages, of zeroed memory outside
// Go's heap. From 2 MiB on it begins at a huge page and asks for huge pages.
//
// unix.Mmap is not used: it keeps every mapping in one map behind one mutex.
func sysAlloc(n int64) ([]byte, error) {
	n = (n + pageSize - 1) &^ (pageSize - 1)
	p, err := mapAnon(n)
	if err != nil {
		return nil, err
	}
	if n < hugePage {
		return unsafe.Slice((*byte)(p), n), nil
	}
	if off := uintptr(p) % hugePage; off != 0 {
		// The system did not align it (Linux does from 6.7 on): map more and
		// cut both ends off.
		if err := unix.MunmapPtr(p, uintptr(n)); err != nil {
			return nil, fmt.Errorf("unmap %d bytes: %w", n, err)
		}
		if p, err = mapAnon(n + hugePage); err != nil {
			return nil, err
		}
		head := (hugePage - uintptr(p)%hugePage) % hugePage
		if head > 0 {
			if err := unix.MunmapPtr(p, head); err != nil {
				return nil, fmt.Errorf("unmap %d bytes: %w", head, err)
			}
		}
		if tail := hugePage - head; tail > 0 {
			if err := unix.MunmapPtr(unsafe.Add(p, int64(head)+n), tail); err != nil {
				return nil, fmt.Errorf("unmap %d bytes: %w", tail, err)
			}
		}
		p = unsafe.Add(p, head)
	}
	b := unsafe.Slice((*byte)(p), n)
	adviseHuge(b)
	return b, nil
}

func mapAnon(n int64) (unsafe.Pointer, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return p, nil
}

// sysFree gives mapped memory back to the system.
func sysFree(b []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(b), err)
	}
	return nil
}
