package groth16_test

import (
	"context"
	"fmt"
	"log"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"

	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
)

type cubic struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *cubic) Define(api frontend.API) error {
	api.AssertIsEqual(c.Y, api.Add(api.Mul(c.X, c.X, c.X), c.X, 5))
	return nil
}

// A key for development, a proof without a pipeline, and its verification.
func Example() {
	ctx, id := context.Background(), curve.BN254
	ccs, err := frontend.Compile(id.ScalarModulus(), r1cs.NewBuilder, &cubic{})
	if err != nil {
		log.Fatal(err)
	}
	matrices, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		log.Fatal(err)
	}
	key, vk, err := groth16.UnsafeSetup(ctx, matrices, groth16.SetupOptions{Folded: true})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = key.Close() }()

	circuit, err := gnark.NewCircuit(ccs)
	if err != nil {
		log.Fatal(err)
	}
	engine, err := cpu.New(id)
	if err != nil {
		log.Fatal(err)
	}
	proof, err := groth16.ProveDirect(ctx, key, circuit, engine, &cubic{X: 3, Y: 35}, nil)
	if err != nil {
		log.Fatal(err)
	}
	w, err := frontend.NewWitness(&cubic{X: 3, Y: 35}, id.ScalarModulus())
	if err != nil {
		log.Fatal(err)
	}
	public, err := gnark.PublicInputs(w, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key.Basis, "key, verified:", vk.Verify(proof, public) == nil)
	// Output: coset key, verified: true
}
