package stages

import (
	"fmt"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// A curve.G1 or G2 begins with the memory of gnark-crypto's affine point.

func blsG1(p *curve.G1) *bls.G1Affine { return (*bls.G1Affine)(unsafe.Pointer(p)) }
func blsG2(p *curve.G2) *bls.G2Affine { return (*bls.G2Affine)(unsafe.Pointer(p)) }
func bnG1(p *curve.G1) *bn.G1Affine   { return (*bn.G1Affine)(unsafe.Pointer(p)) }
func bnG2(p *curve.G2) *bn.G2Affine   { return (*bn.G2Affine)(unsafe.Pointer(p)) }

// addG1 is a + b.
func addG1(id curve.ID, a, b curve.G1) (curve.G1, error) {
	switch id {
	case curve.BLS12381:
		blsG1(&a).Add(blsG1(&a), blsG1(&b))
	case curve.BN254:
		bnG1(&a).Add(bnG1(&a), bnG1(&b))
	default:
		return curve.G1{}, fmt.Errorf("add points: unknown %v", id)
	}
	return a, nil
}

// suspects are the stages that may have given the wrong one of the sums of a
// proof that does not verify, likeliest first. A sum that is no point of the
// group convicts its stages. Otherwise b1 and b2 are the same combination in
// the two groups, which a pairing can tell: if they differ, one of their two
// stages is wrong; if they agree, it is likely another sum.
func suspects(id curve.ID, s groth16.Sums) []string {
	var out []string
	if !inG1(id, s.H) {
		out = append(out, NameHMSM)
	}
	if !inG1(id, s.L) || !inG1(id, s.A) || !inG1(id, s.B1) {
		out = append(out, NameTailMSM, NameBatchAdd)
	}
	if !inG2(id, s.B2) {
		out = append(out, NameBG2MSM)
	}
	switch {
	case len(out) > 0:
		return out
	case !sameLog(id, s.B1, s.B2):
		return []string{NameBG2MSM, NameTailMSM, NameBatchAdd}
	}
	return []string{NameHMSM, NameNTT, NameTailMSM, NameBatchAdd, NameSynthesize}
}

func inG1(id curve.ID, p curve.G1) bool {
	if id == curve.BLS12381 {
		return blsG1(&p).IsInSubGroup()
	}
	return bnG1(&p).IsInSubGroup()
}

func inG2(id curve.ID, p curve.G2) bool {
	if id == curve.BLS12381 {
		return blsG2(&p).IsInSubGroup()
	}
	return bnG2(&p).IsInSubGroup()
}

// sameLog reports whether p and q are the same multiple of the two generators.
func sameLog(id curve.ID, p curve.G1, q curve.G2) bool {
	var ok bool
	var err error
	if id == curve.BLS12381 {
		_, _, g1, g2 := bls.Generators()
		g1.Neg(&g1)
		ok, err = bls.PairingCheck([]bls.G1Affine{*blsG1(&p), g1}, []bls.G2Affine{g2, *blsG2(&q)})
	} else {
		_, _, g1, g2 := bn.Generators()
		g1.Neg(&g1)
		ok, err = bn.PairingCheck([]bn.G1Affine{*bnG1(&p), g1}, []bn.G2Affine{g2, *bnG2(&q)})
	}
	return ok && err == nil
}
