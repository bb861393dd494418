package stages_test

import (
	"context"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/std/rangecheck"

	"github.com/snarkline/snarkline/curve"
	gnarkformat "github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// plain proves knowledge of x with x³ + x + 5 = y.
type plain struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *plain) Define(api frontend.API) error {
	api.AssertIsEqual(c.Y, api.Add(api.Mul(c.X, c.X, c.X), c.X, 5))
	api.ToBinary(c.X, 40)
	return nil
}

// ranged commits: a range check is a lookup, for which gnark's groth16 commits
// to wires.
type ranged struct {
	X, Z frontend.Variable
	Y    frontend.Variable `gnark:",public"`
}

func (c *ranged) Define(api frontend.API) error {
	check := rangecheck.New(api)
	check.Check(c.X, 20)
	check.Check(c.Z, 9)
	api.AssertIsEqual(c.Y, api.Mul(c.X, c.Z))
	return nil
}

// TestGnark proves circuits of gnark with keys of gnark's own set-up and of
// ours; gnark's verifier judges with its own key.
func TestGnark(t *testing.T) {
	for name, c := range map[string]struct {
		circuit frontend.Circuit
		witness func(i int) frontend.Circuit
	}{
		"plain":       {&plain{}, func(i int) frontend.Circuit { return &plain{X: i, Y: i*i*i + i + 5} }},
		"commitments": {&ranged{}, func(i int) frontend.Circuit { return &ranged{X: 1000 + i, Z: i, Y: (1000 + i) * i} }},
	} {
		for id, field := range map[curve.ID]ecc.ID{curve.BN254: ecc.BN254, curve.BLS12381: ecc.BLS12_381} {
			t.Run(name+"/"+id.String(), func(t *testing.T) {
				ccs, err := frontend.Compile(field.ScalarField(), r1cs.NewBuilder, c.circuit)
				if err != nil {
					t.Fatal(err)
				}
				gpk, gvk, err := gnark.Setup(ccs)
				if err != nil {
					t.Fatal(err)
				}
				circuit, err := gnarkformat.NewCircuit(ccs)
				if err != nil {
					t.Fatal(err)
				}
				p := &stages.Prover{Circuit: circuit, Arith: engine(t, id)}
				prove := func(t *testing.T, gvk gnark.VerifyingKey) {
					leakFree(t)
					for i := range 3 {
						proof, err := stages.Prove(context.Background(), p, c.witness(i+2))
						if err != nil {
							t.Fatal(err)
						}
						public, err := frontend.NewWitness(c.witness(i+2), field.ScalarField(), frontend.PublicOnly())
						if err != nil {
							t.Fatal(err)
						}
						theirs, err := groth16.ToGnarkProof(proof)
						if err != nil {
							t.Fatal(err)
						}
						if err := gnark.Verify(theirs, gvk, public); err != nil {
							t.Errorf("gnark refuses proof %d: %v", i, err)
						}
					}
				}
				t.Run("key of gnark", func(t *testing.T) {
					if p.Key, err = gnarkformat.FromGnarkProvingKey(context.Background(), gpk, ccs); err != nil {
						t.Fatal(err)
					}
					defer p.Key.Close()
					if p.VK, err = groth16.FromGnarkVerifyingKey(gvk); err != nil {
						t.Fatal(err)
					}
					prove(t, gvk)
				})
				t.Run("key of our own", func(t *testing.T) {
					r, err := gnarkformat.R1CSFromGnark(ccs)
					if err != nil {
						t.Fatal(err)
					}
					if p.Key, p.VK, err = groth16.UnsafeSetup(context.Background(), r, folded); err != nil {
						t.Fatal(err)
					}
					defer p.Key.Close()
					gvk, err := groth16.ToGnarkVerifyingKey(p.VK)
					if err != nil {
						t.Fatal(err)
					}
					prove(t, gvk)
				})
			})
		}
	}
}
