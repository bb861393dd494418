package cpu_test

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
)

// A call draws its scratch from its scope, at most what the engine said before,
// and gives it back.
func Example() {
	arith, err := cpu.New(curve.BN254, cpu.Workers(2), cpu.Vectors(false))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	const n = 100
	need := arith.MSMScratch(curve.InG1, n)
	res, err := alloc.NewBudget(need).Reserve(ctx, need)
	if err != nil {
		panic(err)
	}
	defer res.Close()
	sc := alloc.NewScope(alloc.StageOf("example"), alloc.Host, res)

	// a hundred points at infinity
	q := curve.Query{Points: curve.Points{Curve: curve.BN254, Group: curve.InG1, Data: make([]byte, n*curve.BN254.G1Bytes())}}
	sum, err := arith.MSMG1(ctx, sc, q, make([]curve.Scalar, n), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(arith.Name(), arith.Curve(), sum.IsInfinity(), res.Used().IsZero())
	// Output: cpu bn254 true true
}
