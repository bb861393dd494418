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

// RootLog is the k with ω^k = root, where ω is the shift of the SnarkjsDomain
// of 2^log points, a primitive root of order 2^(log+1). It is odd, and an
// error if root is no primitive root of that order.
//
// Bit by bit, after Pohlig and Hellman ("An improved algorithm for computing
// logarithms", 1978): the order is a power of two.
func RootLog(id curve.ID, log int, root curve.Scalar) (uint64, error) {
	d, err := SnarkjsDomain(id, log)
	if err != nil {
		return 0, err
	}
	f, err := FieldOf(id)
	if err != nil {
		return 0, err
	}
	step := new(big.Int).ModInverse(f.ToBig(d.Shift), f.r) // ω^(−2^bit)
	rest := f.ToBig(root)                                  // root·ω^(−k)
	minusOne := new(big.Int).Sub(f.r, big.NewInt(1))
	one := big.NewInt(1)
	var k uint64
	for bit := 0; bit <= log; bit++ {
		t := new(big.Int).Set(rest)
		for range log - bit {
			t.Mul(t, t).Mod(t, f.r)
		}
		if t.Cmp(minusOne) == 0 {
			k |= 1 << bit
			rest.Mul(rest, step).Mod(rest, f.r)
		} else if t.Cmp(one) != 0 {
			break
		}
		step.Mul(step, step).Mod(step, f.r)
	}
	if rest.Cmp(one) != 0 || k%2 == 0 {
		return 0, fmt.Errorf("not a primitive root of order 2^%d on %v", log+1, id)
	}
	return k, nil
}
