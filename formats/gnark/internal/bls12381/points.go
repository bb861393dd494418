// Package bls12381 holds the parts of formats/gnark that need a concrete curve.
// The package of the other curve is generated from this one.
package bls12381

import (
	"bytes"
	"unsafe"

	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/curve"
)

// Backend is the curve's part of the format.
type Backend struct{}

// ID is the curve.
func (Backend) ID() curve.ID { return curve.BLS12381 }

func scalars(v []fr.Element) []curve.Scalar {
	return unsafe.Slice((*curve.Scalar)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

func g1s(p curve.Points) []ec.G1Affine {
	return unsafe.Slice((*ec.G1Affine)(unsafe.Pointer(unsafe.SliceData(p.Data))), p.Len())
}

func g2s(p curve.Points) []ec.G2Affine {
	return unsafe.Slice((*ec.G2Affine)(unsafe.Pointer(unsafe.SliceData(p.Data))), p.Len())
}

func viewG1(v []ec.G1Affine) curve.Points {
	return curve.Points{Curve: curve.BLS12381, Group: curve.InG1, Data: curve.Bytes(v)}
}

func viewG2(v []ec.G2Affine) curve.Points {
	return curve.Points{Curve: curve.BLS12381, Group: curve.InG2, Data: curve.Bytes(v)}
}

func toG1(p *curve.G1) ec.G1Affine { return *(*ec.G1Affine)(unsafe.Pointer(p)) }

func toG2(p *curve.G2) ec.G2Affine { return *(*ec.G2Affine)(unsafe.Pointer(p)) }

func fromG1(p *ec.G1Affine) (out curve.G1) {
	*(*ec.G1Affine)(unsafe.Pointer(&out)) = *p
	return out
}

func fromG2(p *ec.G2Affine) (out curve.G2) {
	*(*ec.G2Affine)(unsafe.Pointer(&out)) = *p
	return out
}

// Decode reads the points that follow one another in buf, all of one size, to
// out. It returns the index of the first that does not decode, or −1. Whether
// raw points are on the curve, and any in the subgroup, is left unchecked.
func (Backend) Decode(buf []byte, out curve.Points) (int, error) {
	r := bytes.NewReader(buf)
	dec := ec.NewDecoder(r, ec.NoSubgroupChecks())
	if out.Group == curve.InG2 {
		v := g2s(out)
		for i := range v {
			if err := dec.Decode(&v[i]); err != nil {
				return i, err
			}
		}
		return -1, nil
	}
	v := g1s(out)
	for i := range v {
		if err := dec.Decode(&v[i]); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// Element reads a canonical big-endian scalar.
func (Backend) Element(b *[fr.Bytes]byte) (curve.Scalar, error) {
	e, err := fr.BigEndian.Element(b)
	return curve.Scalar(e), err
}
