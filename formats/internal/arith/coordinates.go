package arith

import (
	"errors"
	"fmt"
	"math/big"
	"sync"

	fpbls "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	fpbn "github.com/consensys/gnark-crypto/ecc/bn254/fp"

	"github.com/snarkline/snarkline/curve"
)

// base is the base field of a curve.
type base struct {
	q       *big.Int
	modulus []uint64
}

var bases = [...]func() *base{
	curve.BN254:    sync.OnceValue(func() *base { return newBase(curve.BN254) }),
	curve.BLS12381: sync.OnceValue(func() *base { return newBase(curve.BLS12381) }),
}

func newBase(id curve.ID) *base {
	b := &base{q: id.FieldModulus(), modulus: make([]uint64, id.FieldBytes()/8)}
	putLimbs(b.modulus, b.q)
	return b
}

// The reasons why a point is refused.
var (
	ErrCoordinate = errors.New("a coordinate is not below the field's modulus")
	ErrOffCurve   = errors.New("the point is not on the curve")
	ErrSubgroup   = errors.New("the point is not in the subgroup of order r")
	ErrInfinity   = errors.New("the point is at infinity")
)

// words is how many 64-bit words of a G1 or G2 value the curve uses.
func words(id curve.ID, g curve.Group) int { return id.PointBytes(g) / 8 }

// Coordinates are the plain coordinates of p: x, y. Infinity is 0, 0.
func Coordinates(id curve.ID, p *curve.G1) [2]*big.Int {
	var out [2]*big.Int
	n := id.FieldBytes() / 8
	for i := range out {
		out[i] = plainCoordinate(id, p[n*i:n*(i+1)])
	}
	return out
}

// Coordinates2 are the plain coordinates of p: x.c0, x.c1, y.c0, y.c1.
func Coordinates2(id curve.ID, p *curve.G2) [4]*big.Int {
	var out [4]*big.Int
	n := id.FieldBytes() / 8
	for i := range out {
		out[i] = plainCoordinate(id, p[n*i:n*(i+1)])
	}
	return out
}

// FromCoordinates makes a point of plain coordinates and checks that it is on
// the curve and in the subgroup. 0, 0 is infinity.
func FromCoordinates(id curve.ID, c [2]*big.Int) (p curve.G1, err error) {
	if err := setCoordinates(id, p[:words(id, curve.InG1)], c[:]); err != nil {
		return curve.G1{}, err
	}
	return p, CheckG1(id, &p)
}

// FromCoordinates2 is FromCoordinates in G2: x.c0, x.c1, y.c0, y.c1.
func FromCoordinates2(id curve.ID, c [4]*big.Int) (p curve.G2, err error) {
	if err := setCoordinates(id, p[:words(id, curve.InG2)], c[:]); err != nil {
		return curve.G2{}, err
	}
	return p, CheckG2(id, &p)
}

func setCoordinates(id curve.ID, p []uint64, c []*big.Int) error {
	if !id.Valid() {
		return fmt.Errorf("point of %v: unknown curve", id)
	}
	q, n := bases[id]().q, id.FieldBytes()/8
	for i, v := range c {
		if v.Sign() < 0 || v.Cmp(q) >= 0 {
			return ErrCoordinate
		}
		switch id {
		case curve.BN254:
			e := new(fpbn.Element).SetBigInt(v)
			copy(p[n*i:], e[:])
		case curve.BLS12381:
			e := new(fpbls.Element).SetBigInt(v)
			copy(p[n*i:], e[:])
		}
	}
	return nil
}

func plainCoordinate(id curve.ID, limbs []uint64) *big.Int {
	v := new(big.Int)
	switch id {
	case curve.BN254:
		e := fpbn.Element(limbs)
		e.BigInt(v)
	case curve.BLS12381:
		e := fpbls.Element(limbs)
		e.BigInt(v)
	}
	return v
}

// CheckG1 checks that p is on the curve and in the subgroup. Infinity is.
func CheckG1(id curve.ID, p *curve.G1) error {
	return checkOne(curve.Points{Curve: id, Group: curve.InG1, Data: curve.Bytes(p[:words(id, curve.InG1)])})
}

// CheckG2 checks that p is on the curve and in the subgroup. Infinity is.
func CheckG2(id curve.ID, p *curve.G2) error {
	return checkOne(curve.Points{Curve: id, Group: curve.InG2, Data: curve.Bytes(p[:words(id, curve.InG2)])})
}

func checkOne(p curve.Points) error {
	c, err := checkerOf(p)
	if err != nil {
		return err
	}
	if err := c.onCurve(0); err != nil {
		return err
	}
	if !c.inSubgroup(0) {
		return ErrSubgroup
	}
	return nil
}

// Load1 is point i of p by value.
func Load1(p curve.Points, i int) (out curve.G1) {
	copy(curve.Bytes(out[:]), p.Slice(i, i+1).Data)
	return out
}

// Load2 is point i of p by value.
func Load2(p curve.Points, i int) (out curve.G2) {
	copy(curve.Bytes(out[:]), p.Slice(i, i+1).Data)
	return out
}
