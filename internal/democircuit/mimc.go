package democircuit

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"

	"github.com/consensys/gnark/frontend"
)

// mimcChain is x ← (x + key + cᵢ)⁵ again and again: three constraints a round,
// and every wire a full-size field element.
type mimcChain struct {
	Start, Key frontend.Variable
	End        frontend.Variable `gnark:",public"`

	rounds int
}

// Define implements frontend.Circuit.
func (c *mimcChain) Define(api frontend.API) error {
	x := c.Start
	for i := range c.rounds {
		t := api.Add(x, c.Key, roundConstant(i))
		t2 := api.Mul(t, t)
		x = api.Mul(api.Mul(t2, t2), t)
	}
	api.AssertIsEqual(x, c.End)
	return nil
}

// mimc is the chain in the clear.
func mimc(start, key *big.Int, rounds int, modulus *big.Int) *big.Int {
	x, t := new(big.Int).Set(start), new(big.Int)
	five := big.NewInt(5)
	for i := range rounds {
		t.Add(x, key)
		t.Add(t, roundConstant(i))
		x.Exp(t, five, modulus)
	}
	return x
}

func roundConstant(i int) *big.Int {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("snarkline mimc"), uint64(i)))
	return new(big.Int).SetBytes(sum[:31])
}
