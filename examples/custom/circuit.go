package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// Chain is the statement: I know the seed from which a chain of hashes ends at
// End. It stands for a circuit of your own; the hash is a toy, not to be used.
type Chain struct {
	Seed frontend.Variable
	End  frontend.Variable `gnark:",public"`

	links int // fixed when the circuit is compiled
}

// kept is how many bits of a hash go into the next one.
const kept = 64

// Define writes the chain as constraints. A link is x → the low bits of (x+i)⁵;
// most of its constraints, and of the witness, are bits.
func (c *Chain) Define(api frontend.API) error {
	x := c.Seed
	for i := range c.links {
		y := api.Add(x, i)
		square := api.Mul(y, y)
		bits := api.ToBinary(api.Mul(square, square, y))
		x = api.FromBinary(bits[:kept]...)
	}
	api.AssertIsEqual(x, c.End)
	return nil
}

// assign is the input of the circuit for a seed: what the chain ends at is
// computed as Define does it.
func assign(seed int64, links int) *Chain {
	x := big.NewInt(seed)
	mask := new(big.Int).Lsh(big.NewInt(1), kept)
	mask.Sub(mask, big.NewInt(1))
	for i := range links {
		x.Add(x, big.NewInt(int64(i)))
		x.Exp(x, big.NewInt(5), field)
		x.And(x, mask)
	}
	return &Chain{Seed: seed, End: x}
}

// The curve of the proofs, and its scalar field as gnark names it.
const id = curve.BLS12381

var field = ecc.BLS12_381.ScalarField()

// newProver compiles the chain and makes keys for it. The set-up is for
// development: whoever runs it could forge proofs. The caller closes the key.
func newProver(ctx context.Context, links int) (*stages.Prover, error) {
	if links < 1 {
		return nil, errors.New("the chain has no link")
	}
	ccs, err := frontend.Compile(field, r1cs.NewBuilder, &Chain{links: links})
	if err != nil {
		return nil, fmt.Errorf("compile the circuit: %w", err)
	}
	matrices, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		return nil, err
	}
	p := &stages.Prover{}
	if p.Circuit, err = gnark.NewCircuit(ccs); err != nil {
		return nil, err
	}
	if p.Arith, err = cpu.New(id); err != nil {
		return nil, err
	}
	p.Key, p.VK, err = groth16.UnsafeSetup(ctx, matrices, groth16.SetupOptions{Basis: curve.Coset, Folded: true})
	return p, err
}
