package groth16

import (
	"fmt"
	"math/bits"

	"github.com/snarkline/snarkline/curve"
)

// NewDomain is the domain on which this module's and gnark's keys interpolate n
// constraints: 2^⌈log₂ n⌉ points with gnark-crypto's root of unity. For the
// coset basis the shift is a root of twice that order, so that Z is −2 on the
// coset (snarkjs's choice); otherwise it is gnark's.
func NewDomain(id curve.ID, n int, basis curve.Basis) (curve.Domain, error) {
	f, err := backendOf(id)
	if err != nil {
		return curve.Domain{}, err
	}
	if n < 1 {
		return curve.Domain{}, fmt.Errorf("no domain for %d constraints", n)
	}
	d := curve.Domain{Log: bits.Len(uint(n - 1))}
	if d.Generator, err = f.RootOfUnity(d.Log); err != nil {
		return curve.Domain{}, err
	}
	if basis == curve.Coset {
		if d.Shift, err = f.RootOfUnity(d.Log + 1); err != nil {
			return curve.Domain{}, fmt.Errorf("odd coset: %w", err)
		}
		return d, nil
	}
	d.Shift = f.MultiplicativeGenerator()
	return d, nil
}

// CheckDomain reports what is wrong with d: a generator that is not a primitive
// root, or a shift that leaves Z zero on the coset.
func CheckDomain(id curve.ID, d curve.Domain) error {
	f, err := backendOf(id)
	if err != nil {
		return err
	}
	if d.Log < 0 || d.Log > id.TwoAdicity() {
		return fmt.Errorf("the scalar field of %v has no domain of 2^%d", id, d.Log)
	}
	if !f.Reduced(d.Generator) || !f.Reduced(d.Shift) {
		return fmt.Errorf("the domain's generator or shift is not reduced")
	}
	if d.Log == 0 {
		if d.Generator != f.One() {
			return fmt.Errorf("the generator of a domain of one point is not 1")
		}
	} else if pow(f, d.Generator, 1<<(d.Log-1)) != f.Sub(curve.Scalar{}, f.One()) {
		return fmt.Errorf("the domain's generator is not a primitive root of order 2^%d", d.Log)
	}
	if d.Shift.IsZero() || pow(f, d.Shift, 1<<d.Log) == f.One() {
		return fmt.Errorf("the coset of the domain meets the domain")
	}
	return nil
}

// CheckInverses reports whether sizeInv, generatorInv and shiftInv are the
// inverses of d's size, generator and shift, as files that hold them should say.
func CheckInverses(id curve.ID, d curve.Domain, sizeInv, generatorInv, shiftInv curve.Scalar) error {
	f, err := backendOf(id)
	if err != nil {
		return err
	}
	for _, e := range []struct {
		name   string
		v, inv curve.Scalar
	}{{"size", f.FromUint64(uint64(d.Size())), sizeInv}, {"generator", d.Generator, generatorInv}, {"shift", d.Shift, shiftInv}} {
		if f.Mul(e.v, e.inv) != f.One() {
			return fmt.Errorf("the inverse of the domain's %s is wrong", e.name)
		}
	}
	return nil
}

// Reduced reports whether the limbs of s are below the order of the curve's
// groups, as those of every scalar must be. Unknown curves have no scalars.
func Reduced(id curve.ID, s curve.Scalar) bool {
	f, err := backendOf(id)
	return err == nil && f.Reduced(s)
}
