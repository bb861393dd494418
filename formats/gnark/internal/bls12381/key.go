package bls12381

import (
	"math/bits"

	ec "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/pedersen"
	gnark "github.com/consensys/gnark/backend/groth16"
	impl "github.com/consensys/gnark/backend/groth16/bls12-381"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	"github.com/snarkline/snarkline/groth16"
)

// ToGnark is the key in gnark's type. Its vectors are those of k, not copies.
func (Backend) ToGnark(k *parts.Key) gnark.ProvingKey {
	pk := &impl.ProvingKey{}
	shift := fr.Element(k.Domain.Shift)
	pk.Domain = *fft.NewDomain(uint64(k.Domain.Size()), fft.WithShift(shift))
	pk.G1.Alpha, pk.G1.Beta, pk.G1.Delta = toG1(&k.Alpha1), toG1(&k.Beta1), toG1(&k.Delta1)
	pk.G2.Beta, pk.G2.Delta = toG2(&k.Beta2), toG2(&k.Delta2)
	pk.G1.A, pk.G1.B, pk.G1.Z, pk.G1.K = g1s(k.A), g1s(k.B1), g1s(k.Z), g1s(k.K)
	pk.G2.B = g2s(k.B2)
	pk.InfinityA, pk.InfinityB = k.InfinityA, k.InfinityB
	pk.NbInfinityA = uint64(len(k.InfinityA) - k.A.Len())
	pk.NbInfinityB = uint64(len(k.InfinityB) - k.B1.Len())
	for _, c := range k.Commitments {
		pk.CommitmentKeys = append(pk.CommitmentKeys, pedersen.ProvingKey{Basis: g1s(c.Basis), BasisExpSigma: g1s(c.BasisExpSigma)})
	}
	return pk
}

// CopyKey replaces the vectors of gnark's key by copies on Go's heap.
func (Backend) CopyKey(g gnark.ProvingKey) {
	pk, ok := g.(*impl.ProvingKey)
	if !ok {
		return
	}
	for _, v := range []*[]ec.G1Affine{&pk.G1.A, &pk.G1.B, &pk.G1.Z, &pk.G1.K} {
		*v = append(make([]ec.G1Affine, 0, len(*v)), *v...)
	}
	pk.G2.B = append(make([]ec.G2Affine, 0, len(pk.G2.B)), pk.G2.B...)
	for i := range pk.CommitmentKeys {
		c := &pk.CommitmentKeys[i]
		c.Basis = append(make([]ec.G1Affine, 0, len(c.Basis)), c.Basis...)
		c.BasisExpSigma = append(make([]ec.G1Affine, 0, len(c.BasisExpSigma)), c.BasisExpSigma...)
	}
}

// FromGnark views gnark's key; false when it is another curve's.
func (Backend) FromGnark(g gnark.ProvingKey) (*parts.Key, bool) {
	pk, ok := g.(*impl.ProvingKey)
	if !ok {
		return nil, false
	}
	k := &parts.Key{
		Curve: curve.BLS12381,
		Domain: curve.Domain{
			Log:       bits.Len64(pk.Domain.Cardinality) - 1,
			Generator: curve.Scalar(pk.Domain.Generator),
			Shift:     curve.Scalar(pk.Domain.FrMultiplicativeGen),
		},
		Alpha1: fromG1(&pk.G1.Alpha), Beta1: fromG1(&pk.G1.Beta), Delta1: fromG1(&pk.G1.Delta),
		Beta2: fromG2(&pk.G2.Beta), Delta2: fromG2(&pk.G2.Delta),
		A: viewG1(pk.G1.A), B1: viewG1(pk.G1.B), Z: viewG1(pk.G1.Z), K: viewG1(pk.G1.K), B2: viewG2(pk.G2.B),
		InfinityA: pk.InfinityA, InfinityB: pk.InfinityB,
	}
	for _, c := range pk.CommitmentKeys {
		k.Commitments = append(k.Commitments, groth16.CommitmentKey{Basis: viewG1(c.Basis), BasisExpSigma: viewG1(c.BasisExpSigma)})
	}
	return k, true
}
