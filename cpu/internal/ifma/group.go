package ifma

import (
	"github.com/snarkline/snarkline/curve"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfp "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"
	bnfp "github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// Group is the arithmetic of one source group of one curve. It is stateless
// and safe for concurrent use.
type Group struct {
	k     *kernels
	ops   lanes
	accs  func(n int) accumulators
	bits  int // of the largest scalar, folded
	order [4]uint64
}

// NewGroup is the arithmetic of group g of curve id, or nil where the kernels
// cannot run.
func NewGroup(id curve.ID, g curve.Group) *Group {
	if !Available() {
		return nil
	}
	r := &Group{}
	switch {
	case id == curve.BLS12381 && g == curve.InG1:
		r.k, r.ops, r.accs = kernelsG1x381(), &laneOps[blsfp.Element, *blsfp.Element]{laneG1x381, setG1x381}, accsG1x381
	case id == curve.BLS12381 && g == curve.InG2:
		r.k, r.ops, r.accs = kernelsG2x381(), &laneOps[bls.E2, *bls.E2]{laneG2x381, setG2x381}, accsG2x381
	case id == curve.BN254 && g == curve.InG1:
		r.k, r.ops, r.accs = kernelsG1x254(), &laneOps[bnfp.Element, *bnfp.Element]{laneG1x254, setG1x254}, accsG1x254
	case id == curve.BN254 && g == curve.InG2:
		r.k, r.ops, r.accs = kernelsG2x254(), &laneOps[bn.E2, *bn.E2]{laneG2x254, setG2x254}, accsG2x254
	default:
		return nil
	}
	m := id.ScalarModulus()
	r.bits = m.BitLen() - 1
	for i := range r.order {
		r.order[i] = word(m, i)
	}
	return r
}

func laneG1x381(v []uint64, lane int) blsfp.Element   { return get381(v[lane:], 8) }
func setG1x381(v []uint64, lane int, e blsfp.Element) { put381(v[lane:], 8, e) }
func laneG1x254(v []uint64, lane int) bnfp.Element    { return get254(v[lane:], 8) }
func setG1x254(v []uint64, lane int, e bnfp.Element)  { put254(v[lane:], 8, e) }
func laneG2x381(v []uint64, lane int) (e bls.E2) {
	e.A0, e.A1 = get381(v[lane:], 8), get381(v[64+lane:], 8)
	return e
}
func setG2x381(v []uint64, lane int, e bls.E2) {
	put381(v[lane:], 8, e.A0)
	put381(v[64+lane:], 8, e.A1)
}
func laneG2x254(v []uint64, lane int) (e bn.E2) {
	e.A0, e.A1 = get254(v[lane:], 8), get254(v[40+lane:], 8)
	return e
}
func setG2x254(v []uint64, lane int, e bn.E2) {
	put254(v[lane:], 8, e.A0)
	put254(v[40+lane:], 8, e.A1)
}
