package arith

import (
	"fmt"
	"math/big"

	"github.com/snarkline/snarkline/curve"
)

// SnarkjsDomain is the domain of 2^log points that snarkjs uses, and the coset
// of it (the odd powers of a root of order 2^(log+1)) on which it takes the
// quotient.
//
// snarkjs derives its roots of unity from the least non-residue of the scalar
// field: 5 on both curves. gnark-crypto takes 7 on BLS12-381, so its own
// domains do not go with a .zkey there.
func SnarkjsDomain(id curve.ID, log int) (curve.Domain, error) {
	f, err := FieldOf(id)
	if err != nil {
		return curve.Domain{}, err
	}
	s := id.TwoAdicity()
	if log < 0 || log >= s {
		return curve.Domain{}, fmt.Errorf("a domain of 2^%d points with its odd coset does not exist on %v (at most 2^%d)", log, id, s-1)
	}
	nonResidue := big.NewInt(2)
	for big.Jacobi(nonResidue, f.r) != -1 {
		nonResidue.Add(nonResidue, big.NewInt(1))
	}
	// The root of order 2^(log+1) is nonResidue^((r−1)/2^(log+1)).
	exponent := new(big.Int).Sub(f.r, big.NewInt(1))
	exponent.Rsh(exponent, uint(log+1))
	shift := new(big.Int).Exp(nonResidue, exponent, f.r)
	generator := new(big.Int).Mul(shift, shift)
	return curve.Domain{Log: log, Generator: f.FromBig(generator), Shift: f.FromBig(shift)}, nil
}
