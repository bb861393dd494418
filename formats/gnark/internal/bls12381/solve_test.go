package bls12381

import (
	"errors"
	"math/big"
	"testing"

	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
)

// The inputs of a commitment's hint come from the constraint system, and so
// perhaps from a stranger's file.
func TestCommitterRefuses(t *testing.T) {
	one := []*big.Int{new(big.Int)}
	huge := []*big.Int{new(big.Int).Lsh(big.NewInt(1), 64)} // 0 as an int64
	for name, e := range map[string]struct{ in, out []*big.Int }{
		"no inputs":       {nil, one},
		"no outputs":      {one, nil},
		"two outputs":     {one, append(one, one...)},
		"negative":        {[]*big.Int{big.NewInt(-1)}, one},
		"none of that":    {[]*big.Int{big.NewInt(1)}, one},
		"too large":       {huge, one},
		"too many inputs": {append(one, one...), one},
	} {
		c := &committer{info: constraint.Groth16Commitments{{}}}
		if err := c.commit(nil, e.in, e.out); err == nil || !errors.Is(c.failed.Err(), err) {
			t.Errorf("%s: %v, kept %v", name, err, c.failed.Err())
		}
	}
}

func TestReason(t *testing.T) {
	debug := "what was compared"
	for want, u := range map[string]*cs.UnsatisfiedConstraintError{
		"2 ⋅ 3 != 5": {CID: 4, Err: errors.New("2 ⋅ 3 != 5")},
		debug:        {CID: 4, Err: errors.New("2 ⋅ 3 != 5"), DebugInfo: &debug},
	} {
		var err error = reason{u}
		var got *cs.UnsatisfiedConstraintError
		if err.Error() != want || !errors.As(err, &got) || got != u {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
