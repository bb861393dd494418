package ifma

import "unsafe"

// scratch hands out pieces of the caller's memory, each aligned to 64 bytes.
// The memory's previous contents do not matter.
type scratch struct{ free []byte }

func newScratch(b []byte) *scratch {
	if len(b) == 0 {
		return &scratch{}
	}
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return &scratch{b[min(skip, len(b)):]}
}

func align(n int) int { return (n + 63) &^ 63 }

func (s *scratch) bytes(n int) []byte {
	b := s.free[:n:n]
	s.free = s.free[min(align(n), len(s.free)):]
	return b
}

func (s *scratch) uint32s(n int) []uint32 {
	b := s.bytes(4 * n)
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func segments(s *scratch, n int) []segment {
	b := s.bytes(n * int(unsafe.Sizeof(segment{})))
	return unsafe.Slice((*segment)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// bytesAt are n bytes from p on.
func bytesAt(p *byte, n int) []byte { return unsafe.Slice(p, n) }
