package groth16

import (
	"context"
	"fmt"
	"io"

	gnark "github.com/consensys/gnark/backend/groth16"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16/internal/bls12381"
	"github.com/snarkline/snarkline/groth16/internal/bn254"
	"github.com/snarkline/snarkline/groth16/internal/model"
)

//go:generate go run ../internal/gen -from groth16/internal/bls12381

// backend is the part of the work that needs a concrete curve.
type backend interface {
	ID() curve.ID

	One() curve.Scalar
	FromUint64(uint64) curve.Scalar
	Add(a, b curve.Scalar) curve.Scalar
	Sub(a, b curve.Scalar) curve.Scalar
	Mul(a, b curve.Scalar) curve.Scalar
	Inverse(a curve.Scalar) curve.Scalar
	Reduced(a curve.Scalar) bool
	Random(r io.Reader) (curve.Scalar, error)
	RootOfUnity(log int) (curve.Scalar, error)
	MultiplicativeGenerator() curve.Scalar

	Generators() (curve.G1, curve.G2)
	TimesG1(q curve.G1, s curve.Scalar) curve.G1
	TimesG2(q curve.G2, s curve.Scalar) curve.G2
	CheckG1(p *curve.G1) error
	CheckG2(p *curve.G2) error
	CheckPoints(ctx context.Context, p curve.Points, subgroup bool) error

	Assemble(p *model.Parts, r, s *curve.Scalar) (a curve.G1, b curve.G2, c curve.G1)
	Prepare(vk *model.VerifyingKey) (any, error)
	Verify(prepared any, proof *model.Proof, public []curve.Scalar) error
	ToGnarkProof(p *model.Proof) gnark.Proof
	FromGnarkProof(g gnark.Proof) (*model.Proof, bool)
	FromGnarkVerifyingKey(g gnark.VerifyingKey) (*model.VerifyingKey, bool)

	FoldBasis(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, h, coset, lagrange curve.Points, done func(int)) error
	FoldWork(d curve.Domain, basis curve.Basis) int
	FoldWires(ctx context.Context, sc *alloc.Scope, c curve.Matrix, lagrange curve.Points, l curve.Query, out curve.Points, done func(int)) error
}

// fixedBase is a table for multiples of a group's generator.
type fixedBase interface {
	Mul(ctx context.Context, scalars []curve.Scalar, out curve.Points, done func(int)) error
	Close()
}

func backendOf(id curve.ID) (backend, error) {
	switch id {
	case curve.BN254:
		return bn254.Backend{}, nil
	case curve.BLS12381:
		return bls12381.Backend{}, nil
	}
	return nil, fmt.Errorf("no arithmetic for %v", id)
}

// newBase builds the fixed-base table of group g's generator for about n multiples.
func newBase(ctx context.Context, sc *alloc.Scope, id curve.ID, g curve.Group, n int) (fixedBase, error) {
	switch id {
	case curve.BN254:
		b, err := bn254.Backend{}.NewBase(ctx, sc, g, n)
		if err != nil {
			return nil, err // not b: a nil *Base is no nil fixedBase
		}
		return b, nil
	case curve.BLS12381:
		b, err := bls12381.Backend{}.NewBase(ctx, sc, g, n)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	return nil, fmt.Errorf("no arithmetic for %v", id)
}

// pow is a^n. It clears its copies of a.
func pow(f backend, a curve.Scalar, n uint64) curve.Scalar {
	out := f.One()
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			out = f.Mul(out, a)
		}
		a = f.Mul(a, a)
	}
	wipe(&a)
	return out
}

// wipe clears a scalar. It is not inlined, so that the compiler does not leave
// the store out where nobody reads the scalar afterwards.
//
//go:noinline
func wipe(s *curve.Scalar) { *s = curve.Scalar{} }
