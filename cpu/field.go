package cpu

import (
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/curve"
)

// ErrNoVectors is the error where the processor lacks AVX-512 IFMA.
var ErrNoVectors = errors.New("this processor has no AVX-512 IFMA")

// FieldBatch is what numbers of elements of a [Field] are multiples of.
const FieldBatch = ifma.FieldBatch

// Field is the arithmetic of one prime field on vectors: eight elements
// at a time, in limbs of 52 bits, in a representation of its own that Load and
// Store convert from and to gnark-crypto's. Sums and transforms have kernels of
// their own on the same representation; a Field is for what else one may want
// to do with many elements. It is safe for concurrent use.
type Field struct{ f *ifma.Field }

// NewField is the base field of a curve or, not base, its scalar field. Where
// the processor cannot do it the error is [ErrNoVectors], and gnark-crypto's
// types are what there is.
func NewField(id curve.ID, base bool) (*Field, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("vector arithmetic: %v is not a known curve", id)
	}
	f := ifma.NewField(id, base)
	if f == nil {
		return nil, fmt.Errorf("vector arithmetic: %w", ErrNoVectors)
	}
	return &Field{f}, nil
}

// Words is how many words the vectors of n elements take.
func (f *Field) Words(n int) int { return f.f.Words(n) }

// Load writes elements in gnark-crypto's layout to v; they need not be reduced.
func (f *Field) Load(v []uint64, elements []byte) error { return f.f.Load(v, elements) }

// Store writes v to elements, reduced and in gnark-crypto's layout.
func (f *Field) Store(elements []byte, v []uint64) error { return f.f.Store(elements, v) }

// Mul sets dst to a·b, element by element; dst may be a or b.
func (f *Field) Mul(dst, a, b []uint64) error { return f.f.Mul(dst, a, b) }
