package stages_test

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// cubic is a circuit of the reader's: knowledge of x with x³ + x + 5 = y.
type cubic struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *cubic) Define(api frontend.API) error {
	api.AssertIsEqual(c.Y, api.Add(api.Mul(c.X, c.X, c.X), c.X, 5))
	return nil
}

// cubicProver compiles the circuit and sets up a key, for development.
func cubicProver() (*stages.Prover, error) {
	ccs, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, &cubic{})
	if err != nil {
		return nil, err
	}
	circuit, err := gnark.NewCircuit(ccs)
	if err != nil {
		return nil, err
	}
	matrices, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		return nil, err
	}
	pk, vk, err := groth16.UnsafeSetup(context.Background(), matrices, groth16.SetupOptions{Folded: true})
	if err != nil {
		return nil, err
	}
	engine, err := cpu.New(curve.BN254)
	if err != nil {
		return nil, err
	}
	return &stages.Prover{Key: pk, VK: vk, Circuit: circuit, Arith: engine}, nil
}

// One proof of a circuit.
func ExampleProve() {
	p, err := cubicProver()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Key.Close()
	r, err := stages.ProveResult(context.Background(), p, &cubic{X: 3, Y: 35})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("valid:", p.VK.Verify(r.Proof, r.Public) == nil)
	// Output: valid: true
}

// A proving pipeline composed by hand, under a budget.
func ExampleAssemble() {
	p, err := cubicProver()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Key.Close()

	g := pipeline.New("cubes", pipeline.Budget(alloc.Host, 64*alloc.MiB))
	jobs := []stages.Job{
		{Key: pipeline.Key{Part: 0}, Input: &cubic{X: 3, Y: 35}},
		{Key: pipeline.Key{Part: 1}, Input: &cubic{X: 4, Y: 73}},
	}
	in := pipeline.FromSlice(g, jobs, func(j stages.Job) pipeline.Key { return j.Key })
	w := pipeline.Via(in, stages.Synthesize(p), pipeline.Workers(2))
	h := pipeline.Via(pipeline.Via(pipeline.Via(w, stages.Prestage(p)), stages.NTT(p)), stages.HMSM(p))
	sums := pipeline.Via(pipeline.Via(w, stages.BatchAdd(p)), stages.TailMSM(p))
	b2 := pipeline.Via(w, stages.BG2MSM(p), pipeline.Capacity(pipeline.Unbounded))
	proofs := pipeline.Via(pipeline.Join3(h, sums, b2), stages.Assemble(p), pipeline.Ordered())
	pipeline.ToFunc(proofs, func(_ context.Context, k pipeline.Key, r *stages.Result) error {
		fmt.Printf("proof %v, valid: %v\n", k, p.VK.Verify(r.Proof, r.Public) == nil)
		return nil
	})
	report, err := g.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Items, "proofs")
	// Output:
	// proof 0, valid: true
	// proof 1, valid: true
	// 2 proofs
}
