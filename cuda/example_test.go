package cuda_test

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// A prover on the first card, or on the CPU where there is none.
func Example() {
	ctx := context.Background()
	var key *groth16.ProvingKey // from a file, or a set-up
	var vk *groth16.VerifyingKey
	var circuit groth16.Circuit
	if key == nil {
		return
	}
	host, err := cpu.New(curve.BLS12381)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &stages.Prover{Key: key, VK: vk, Circuit: circuit, Arith: host}
	if drv, err := cuda.Open(""); err != nil {
		fmt.Println("on the CPU:", err)
	} else {
		defer func() { _ = drv.Close() }()
		engine, err := cuda.New(drv.Cards()[0], curve.BLS12381, host)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = engine.Close() }()
		p.Arith, p.Elsewhere = engine, []groth16.Arithmetic{host}
		p.B2 = stages.Either(engine, host)
		if err := stages.Keep(ctx, p); err != nil {
			fmt.Println(err)
			return
		}
		defer func() { fmt.Println(engine.Stats()) }()
	}
	proof, err := stages.Prove(ctx, p, nil)
	fmt.Println(proof != nil, err)
}
