package main

import (
	"context"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// id is the curve of the proofs.
const id = curve.BN254

// Factors is the statement: I know two numbers of at most 64 bits, neither of
// them 1, whose product is N. It stands for a circuit of your own.
type Factors struct {
	P, Q frontend.Variable
	N    frontend.Variable `gnark:",public"`
}

// Define writes the statement as constraints.
func (c *Factors) Define(api frontend.API) error {
	for _, f := range []frontend.Variable{c.P, c.Q} {
		api.ToBinary(f, 64)
		api.AssertIsDifferent(f, 1)
	}
	api.AssertIsEqual(api.Mul(c.P, c.Q), c.N)
	return nil
}

// inputs are the jobs of the batch.
func inputs(yield func(stages.Job) bool) {
	p := new(big.Int).SetUint64(18446744073709551557)
	for part := range jobs {
		q := big.NewInt(int64(part) + 2)
		in := &Factors{P: p, Q: q, N: new(big.Int).Mul(p, q)}
		if !yield(stages.Job{Key: pipeline.Key{Job: "card", Part: part}, Input: in}) {
			return
		}
	}
}

// newProver is a prover on the CPU. Its keys are for development: whoever runs
// this set-up could forge proofs.
func newProver(ctx context.Context, host *cpu.Engine) (*stages.Prover, error) {
	ccs, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, &Factors{})
	if err != nil {
		return nil, err
	}
	matrices, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		return nil, err
	}
	pk, vk, err := groth16.UnsafeSetup(ctx, matrices, groth16.SetupOptions{Folded: true})
	if err != nil {
		return nil, err
	}
	circuit, err := gnark.NewCircuit(ccs)
	if err != nil {
		pk.Close()
		return nil, err
	}
	return &stages.Prover{Key: pk, VK: vk, Circuit: circuit, Arith: host}, nil
}
