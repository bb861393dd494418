// Package arith holds what the file formats need of the two curves'
// arithmetic: scalars between their plain and Montgomery forms, points checked
// in bulk, and coordinates as numbers. The arithmetic itself is gnark-crypto's.
package arith

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"sync"

	frbls "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	frbn "github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/snarkline/snarkline/curve"
)

// Field is the scalar field of a curve with the constants that conversions need.
type Field struct {
	id      curve.ID
	r       *big.Int
	modulus [4]uint64
	rr      curve.Scalar // R² mod r: a Montgomery product with it takes plain to Montgomery
	one     curve.Scalar // 1 in Montgomery form
}

var fields = [...]func() *Field{
	curve.BN254:    sync.OnceValue(func() *Field { return newField(curve.BN254) }),
	curve.BLS12381: sync.OnceValue(func() *Field { return newField(curve.BLS12381) }),
}

// FieldOf is the scalar field of a known curve.
func FieldOf(id curve.ID) (*Field, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("scalar field of %v: unknown curve", id)
	}
	return fields[id](), nil
}

func newField(id curve.ID) *Field {
	f := &Field{id: id, r: id.ScalarModulus()}
	f.modulus = limbs4(f.r)
	power := new(big.Int).Lsh(big.NewInt(1), 256)
	f.one = limbs4(new(big.Int).Mod(power, f.r))
	f.rr = limbs4(new(big.Int).Mod(power.Mul(power, power), f.r))
	return f
}

// Curve is the curve whose scalar field this is.
func (f *Field) Curve() curve.ID { return f.id }

// One is 1 in Montgomery form.
func (f *Field) One() curve.Scalar { return f.one }

// Load copies plain little-endian values of 32 bytes, len(dst) of them, to dst
// without changing their form. It returns the index of the first value that is
// not below r, or −1.
func (f *Field) Load(dst []curve.Scalar, src []byte) int {
	for i := range dst {
		b := src[curve.ScalarBytes*i : curve.ScalarBytes*(i+1)]
		for j := range dst[i] {
			dst[i][j] = binary.LittleEndian.Uint64(b[8*j:])
		}
		if !below(dst[i][:], f.modulus[:]) {
			return i
		}
	}
	return -1
}

// Store writes the limbs of src, in the form they have, as little-endian values of 32 bytes.
func Store(dst []byte, src []curve.Scalar) {
	for i := range src {
		for j, limb := range src[i] {
			binary.LittleEndian.PutUint64(dst[curve.ScalarBytes*i+8*j:], limb)
		}
	}
}

// ToMontgomery takes v from plain to Montgomery form in place.
func (f *Field) ToMontgomery(v []curve.Scalar) { f.scale(v, f.rr) }

// FromMontgomery divides the limbs of v by R in place: Montgomery form becomes
// plain, and the v·R² of a .zkey becomes Montgomery form.
func (f *Field) FromMontgomery(v []curve.Scalar) { f.scale(v, curve.Scalar{1}) }

// scale is the Montgomery product of every element of v with the limbs k.
func (f *Field) scale(v []curve.Scalar, k curve.Scalar) {
	switch f.id {
	case curve.BN254:
		scaleEach[frbn.Element](v, k)
	case curve.BLS12381:
		scaleEach[frbls.Element](v, k)
	}
}

type element[E any] interface {
	*E
	Mul(x, y *E) *E
}

func scaleEach[E ~[4]uint64, P element[E]](v []curve.Scalar, k curve.Scalar) {
	factor := new(E(k))
	// A view cannot fail here: scalars are 8-byte aligned and of E's size.
	e, err := curve.View[E](curve.Bytes(v))
	if err != nil {
		return
	}
	for i := range e {
		P(&e[i]).Mul(&e[i], factor)
	}
}

// FromBig is v mod r in Montgomery form; v may be negative.
func (f *Field) FromBig(v *big.Int) curve.Scalar {
	s := [1]curve.Scalar{limbs4(new(big.Int).Mod(v, f.r))}
	f.ToMontgomery(s[:])
	return s[0]
}

// ToBig is the value of s, which is in Montgomery form.
func (f *Field) ToBig(s curve.Scalar) *big.Int {
	v := [1]curve.Scalar{s}
	f.FromMontgomery(v[:])
	return bigOf(v[0][:])
}

// Reduced reports whether the limbs of s are below r, as those of an element are.
func (f *Field) Reduced(s *curve.Scalar) bool { return below(s[:], f.modulus[:]) }

// below reports a < b for little-endian limbs of the same length.
func below(a, b []uint64) bool {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// bigOf is the number with the given limbs, least significant first.
func bigOf(limbs []uint64) *big.Int {
	b := make([]byte, 8*len(limbs))
	for i, limb := range limbs {
		binary.BigEndian.PutUint64(b[8*(len(limbs)-1-i):], limb)
	}
	return new(big.Int).SetBytes(b)
}

// putLimbs writes v, which fits, to limbs, least significant first.
func putLimbs(limbs []uint64, v *big.Int) {
	b := v.FillBytes(make([]byte, 8*len(limbs)))
	for i := range limbs {
		limbs[i] = binary.BigEndian.Uint64(b[8*(len(limbs)-1-i):])
	}
}

func limbs4(v *big.Int) (out [4]uint64) {
	putLimbs(out[:], v)
	return out
}
