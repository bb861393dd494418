// Quickstart: a circuit of your own, written with gnark, from its source to a
// proof that gnark's verifier accepts, with the memory of every stage.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"os"

	"github.com/consensys/gnark-crypto/ecc"
	gnarkgroth16 "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// Factors is the statement: I know two numbers of at most 64 bits, neither of
// them 1, whose product is N.
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

func main() {
	logger.Disable() // gnark talks to standard output otherwise
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	// 1. Compile the circuit. This is gnark's own compiler.
	field := ecc.BLS12_381.ScalarField()
	ccs, err := frontend.Compile(field, r1cs.NewBuilder, &Factors{})
	if err != nil {
		return err
	}

	// 2. Keys. This set-up is for development: whoever runs it could forge
	// proofs. For real use, bring the keys of a ceremony (formats/gnark and
	// formats/circom read them).
	matrices, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		return err
	}
	pk, vk, err := groth16.UnsafeSetup(ctx, matrices, groth16.SetupOptions{Folded: true})
	if err != nil {
		return err
	}
	defer pk.Close()

	// 3. A prover: key, circuit, and the processor that does the arithmetic.
	circuit, err := gnark.NewCircuit(ccs)
	if err != nil {
		return err
	}
	engine, err := cpu.New(curve.BLS12381)
	if err != nil {
		return err
	}
	prover := &stages.Prover{Key: pk, VK: vk, Circuit: circuit, Arith: engine}

	// 4. Prove. The proof is verified before it is handed over.
	p, q := new(big.Int).SetUint64(18446744073709551557), new(big.Int).SetUint64(18446744073709551533)
	assignment := &Factors{P: p, Q: q, N: new(big.Int).Mul(p, q)}
	alloc.Default().ResetPeaks()
	result, err := stages.ProveResult(ctx, prover, assignment)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "proved: I know two factors of %v\n", assignment.N)
	fmt.Fprintf(w, "circuit: %d constraints on %v; witness: %d zeros, %d ones, %d others\n",
		ccs.GetNbConstraints(), curve.BLS12381, result.Counts[curve.Zero], result.Counts[curve.One], result.Counts[curve.Other])

	// 5. Verify again, with gnark, as a stranger would.
	theirProof, err := groth16.ToGnarkProof(result.Proof)
	if err != nil {
		return err
	}
	theirKey, err := groth16.ToGnarkVerifyingKey(vk)
	if err != nil {
		return err
	}
	public, err := frontend.NewWitness(&Factors{N: assignment.N}, field, frontend.PublicOnly())
	if err != nil {
		return err
	}
	if err := gnarkgroth16.Verify(theirProof, theirKey, public); err != nil {
		return fmt.Errorf("gnark refuses the proof: %w", err)
	}
	fmt.Fprintln(w, "gnark's verifier: valid")

	// 6. A wrong statement has no proof: the error names the constraint.
	_, err = stages.Prove(ctx, prover, &Factors{P: 6, Q: 7, N: 41})
	fmt.Fprintf(w, "and for 6 · 7 = 41: %v\n\n", err)

	// 7. Where the memory was.
	return alloc.Default().WriteTable(w)
}
