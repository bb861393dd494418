// Package bn254 holds the parts of groth16 that need a concrete curve:
// scalar field operations, fixed-base tables, point checks, the last step of a
// proof, verification through gnark, and the group transforms that fold a key.
// The package of the other curve is generated from this one.
package bn254

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	ec "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"

	"github.com/snarkline/snarkline/curve"
)

// Backend is the arithmetic of one curve. It holds nothing.
type Backend struct{}

// ID is the curve.
func (Backend) ID() curve.ID { return curve.BN254 }

// elements reads scalars as gnark-crypto's elements in place.
func elements(s []curve.Scalar) []fr.Element {
	return unsafe.Slice((*fr.Element)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// g1s reads a vector of G1 points in place.
func g1s(p curve.Points) []ec.G1Affine {
	return unsafe.Slice((*ec.G1Affine)(unsafe.Pointer(unsafe.SliceData(p.Data))), p.Len())
}

// g2s reads a vector of G2 points in place.
func g2s(p curve.Points) []ec.G2Affine {
	return unsafe.Slice((*ec.G2Affine)(unsafe.Pointer(unsafe.SliceData(p.Data))), p.Len())
}

// ToG1 is gnark-crypto's form of p.
func ToG1(p *curve.G1) ec.G1Affine { return *(*ec.G1Affine)(unsafe.Pointer(p)) }

// ToG2 is gnark-crypto's form of p.
func ToG2(p *curve.G2) ec.G2Affine { return *(*ec.G2Affine)(unsafe.Pointer(p)) }

// FromG1 is the neutral form of p.
func FromG1(p *ec.G1Affine) (out curve.G1) {
	*(*ec.G1Affine)(unsafe.Pointer(&out)) = *p
	return out
}

// FromG2 is the neutral form of p.
func FromG2(p *ec.G2Affine) (out curve.G2) {
	*(*ec.G2Affine)(unsafe.Pointer(&out)) = *p
	return out
}

// One is 1 in Montgomery form.
func (Backend) One() curve.Scalar { return curve.Scalar(fr.One()) }

// FromUint64 is v in Montgomery form.
func (Backend) FromUint64(v uint64) curve.Scalar { return curve.Scalar(fr.NewElement(v)) }

// Add is a + b.
func (Backend) Add(a, b curve.Scalar) curve.Scalar {
	x, y := fr.Element(a), fr.Element(b)
	x.Add(&x, &y)
	return curve.Scalar(x)
}

// Sub is a − b.
func (Backend) Sub(a, b curve.Scalar) curve.Scalar {
	x, y := fr.Element(a), fr.Element(b)
	x.Sub(&x, &y)
	return curve.Scalar(x)
}

// Mul is a·b.
func (Backend) Mul(a, b curve.Scalar) curve.Scalar {
	x, y := fr.Element(a), fr.Element(b)
	x.Mul(&x, &y)
	return curve.Scalar(x)
}

// Inverse is 1/a, and 0 for 0.
func (Backend) Inverse(a curve.Scalar) curve.Scalar {
	x := fr.Element(a)
	x.Inverse(&x)
	return curve.Scalar(x)
}

// Reduced reports whether the limbs of a are below the modulus.
func (Backend) Reduced(a curve.Scalar) bool {
	var b [fr.Bytes]byte
	for i, w := range a {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	_, err := fr.LittleEndian.Element(&b)
	clear(b[:])
	return err == nil
}

// Random draws a uniform non-zero scalar from r, or from crypto/rand when r is
// nil, by rejection: the bytes stay on the stack and are wiped.
func (Backend) Random(r io.Reader) (curve.Scalar, error) {
	if r == nil {
		r = rand.Reader
	}
	var b [fr.Bytes]byte
	defer clear(b[:])
	for range 1000 {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return curve.Scalar{}, fmt.Errorf("draw a random scalar: %w", err)
		}
		b[0] &= 0xff >> (8*fr.Bytes - fr.Bits)
		x, err := fr.BigEndian.Element(&b)
		if err == nil && !x.IsZero() {
			return curve.Scalar(x), nil
		}
	}
	return curve.Scalar{}, fmt.Errorf("draw a random scalar: the source gave no usable value in 1000 draws")
}

// RootOfUnity is gnark-crypto's primitive 2^log-th root of unity.
func (Backend) RootOfUnity(log int) (curve.Scalar, error) {
	if log < 0 || log > curve.BN254.TwoAdicity() {
		return curve.Scalar{}, fmt.Errorf("the scalar field of %s has no domain of 2^%d", curve.BN254, log)
	}
	g, err := fr.Generator(1 << log)
	if err != nil {
		return curve.Scalar{}, fmt.Errorf("domain of 2^%d: %w", log, err)
	}
	return curve.Scalar(g), nil
}

// MultiplicativeGenerator generates the multiplicative group of the scalar field.
func (Backend) MultiplicativeGenerator() curve.Scalar {
	return curve.Scalar(fft.GeneratorFullMultiplicativeGroup())
}
