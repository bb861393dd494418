package ifma

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/curve"
)

// Field is plain arithmetic on vectors of one prime field. A vector holds
// eight elements; memory for n elements is Words(n) words, in pairs of vectors.
// It is stateless and safe for concurrent use.
type Field struct {
	k        fieldKernels
	nl, size int // limbs of 52 bits, bytes of an element
}

// fieldKernels are the kernels of one field. Values in vectors are normalised
// and below 4p; what kernels give is below 2p.
type fieldKernels struct {
	load  func(v, m *byte, n int) // n vectors
	store func(m, v *byte, n int)
	mul   func(dst, a, b *byte, n int) // 2n vectors
}

// FieldBatch is how many elements a call takes at the least: counts are
// multiples of it.
const FieldBatch = 16

// NewField is the arithmetic of the base field of a curve or, not base, of its
// scalar field; nil where the kernels cannot run.
func NewField(id curve.ID, base bool) *Field {
	if !Available() {
		return nil
	}
	switch {
	case id == curve.BLS12381 && base:
		return &Field{kernelsFp381(), 8, 48}
	case id == curve.BLS12381:
		return &Field{kernelsFr381(), 5, 32}
	case id == curve.BN254 && base:
		return &Field{kernelsFp254(), 5, 32}
	case id == curve.BN254:
		return &Field{kernelsFr254(), 5, 32}
	}
	return nil
}

// Words is the length in words of the vectors of n elements.
func (f *Field) Words(n int) int { return f.nl * n }

// Load makes vectors of elements in gnark-crypto's layout. They need not be
// reduced: what counts is their value modulo the prime.
func (f *Field) Load(v []uint64, m []byte) error {
	n, ok := f.count(m, v)
	if !ok {
		return fmt.Errorf("load %d bytes of elements to %d words: %w", len(m), len(v), errLength)
	}
	if n > 0 {
		f.k.load(bytePtr(v), &m[0], n/8)
	}
	return nil
}

// Store writes vectors as reduced elements in gnark-crypto's layout.
func (f *Field) Store(m []byte, v []uint64) error {
	n, ok := f.count(m, v)
	if !ok {
		return fmt.Errorf("store %d words to %d bytes of elements: %w", len(v), len(m), errLength)
	}
	if n > 0 {
		f.k.store(&m[0], bytePtr(v), n/8)
	}
	return nil
}

// Mul sets dst to the products of a and b, element by element; dst may be
// either of them.
func (f *Field) Mul(dst, a, b []uint64) error {
	n := len(dst) / f.nl
	if len(a) != len(dst) || len(b) != len(dst) || len(dst)%(f.nl*FieldBatch) != 0 {
		return fmt.Errorf("products of %d and %d words to %d: %w", len(a), len(b), len(dst), errLength)
	}
	if n > 0 {
		f.k.mul(bytePtr(dst), bytePtr(a), bytePtr(b), n/FieldBatch)
	}
	return nil
}

var errLength = errors.New("lengths differ, or are no multiple of 16 elements")

// count is how many elements m has, and whether v has room for them.
func (f *Field) count(m []byte, v []uint64) (int, bool) {
	n := len(m) / f.size
	return n, len(m)%(f.size*FieldBatch) == 0 && len(v) == f.Words(n)
}

func bytePtr(v []uint64) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(v))) }
