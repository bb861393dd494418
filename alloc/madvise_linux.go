//go:build linux

package alloc

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. A kernel without them says no, and small
// pages do as well.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
