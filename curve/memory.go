package curve

import (
	"fmt"
	"unsafe"
)

// ScalarBytes is the size of a scalar of every known curve.
const ScalarBytes = 32

// Scalar is an element of a curve's scalar field: four 64-bit limbs, least
// significant first, in Montgomery form (R = 2^256). It has the memory of
// gnark-crypto's fr.Element of either curve, so the stages need not know which.
type Scalar [4]uint64

// IsZero reports whether s is 0 (0 is its own Montgomery form).
func (s *Scalar) IsZero() bool { return s[0]|s[1]|s[2]|s[3] == 0 }

// G1 is an affine G1 point by value: x then y in the memory of gnark-crypto's
// G1Affine, little-endian limbs in Montgomery form, all zero for infinity. On
// BN254 the first 8 words are used and the rest are zero.
type G1 [12]uint64

// G2 is an affine G2 point by value: x.c0, x.c1, y.c0, y.c1. On BN254 the
// first 16 words are used and the rest are zero.
type G2 [24]uint64

// IsInfinity reports whether p is the point at infinity.
func (p *G1) IsInfinity() bool { return *p == G1{} }

// IsInfinity reports whether p is the point at infinity.
func (p *G2) IsInfinity() bool { return *p == G2{} }

// Group is one of the two source groups of the pairing.
type Group uint8

// The source groups.
const (
	InG1 Group = 1
	InG2 Group = 2
)

// String is "G1" or "G2".
func (g Group) String() string { return fmt.Sprintf("G%d", uint8(g)) }

// PointBytes is the size of an affine point of group g in memory.
func (id ID) PointBytes(g Group) int {
	if g == InG2 {
		return id.G2Bytes()
	}
	return id.G1Bytes()
}

// Points is a vector of affine points in the memory layout of gnark-crypto
// (which is also that of a .zkey): a view, it owns nothing. Whoever made it
// keeps Data alive and mapped while it is in use.
type Points struct {
	Curve ID
	Group Group
	Data  []byte // Len() × Curve.PointBytes(Group)
}

// Len is the number of points.
func (p Points) Len() int {
	n := p.Curve.PointBytes(p.Group)
	if n == 0 {
		return 0
	}
	return len(p.Data) / n
}

// Slice is the sub-vector of points [from, to).
func (p Points) Slice(from, to int) Points {
	n := p.Curve.PointBytes(p.Group)
	p.Data = p.Data[from*n : to*n]
	return p
}

// View reads raw memory as a vector of T without copying. The length must be
// a multiple of T's size and the address a multiple of 4 (sections of circom
// files are only 4-byte aligned; amd64 and arm64 read such words in place).
// T must hold no pointers. The view owns nothing.
func View[T any](b []byte) ([]T, error) {
	var t T
	size := int(unsafe.Sizeof(t))
	if len(b)%size != 0 {
		return nil, fmt.Errorf("view memory as %T: %d bytes are not a multiple of %d", t, len(b), size)
	}
	if len(b) == 0 {
		return nil, nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%4 != 0 {
		return nil, fmt.Errorf("view memory as %T: address is not a multiple of 4", t)
	}
	return unsafe.Slice((*T)(p), len(b)/size), nil
}

// Bytes is the memory of v as bytes, without copying.
func Bytes[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}
