package stages_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/internal/democircuit"
	"github.com/snarkline/snarkline/stages"
)

// BenchmarkSplit is batch-add and tail-msm on a witness with so many ones, the
// rest dense: split, and whole. It is what DefaultMinOnes comes from.
func BenchmarkSplit(b *testing.B) {
	const log = 14
	for _, id := range curve.All() {
		c, err := democircuit.Dense(id, log)
		if err != nil {
			b.Fatal(err)
		}
		k, err := c.Setup(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer k.Key.Close()
		for _, percent := range []float64{0, 0.5, 1, 2, 5, 10, 25, 50} {
			w := randomWitness(b, id, k.Key.NbWires, percent/100)
			for name, from := range map[string]float64{"split": -1, "whole": 2} {
				b.Run(fmt.Sprintf("%v/%v%%/%s", id, percent, name), func(b *testing.B) {
					p := &stages.Prover{Key: k.Key, VK: k.VK, Circuit: k.Circuit, Arith: k.Arith, MinOnes: from}
					first, second := stages.BatchAdd(p), stages.TailMSM(p)
					for b.Loop() {
						s, err := first.Run(context.Background(), &groth16.Assignment{W: w})
						if err != nil {
							b.Fatal(err)
						}
						if _, err := second.Run(context.Background(), s); err != nil {
							b.Fatal(err)
						}
						for _, r := range s.Buffers() {
							r.Release()
						}
					}
				})
			}
			w.Release()
		}
	}
}

// randomWitness has a share of ones at random places; the others are random.
func randomWitness(tb testing.TB, id curve.ID, n int, ones float64) *alloc.Buffer[curve.Scalar] {
	w, err := alloc.Make[curve.Scalar](nil, n, alloc.Witness, 0)
	if err != nil {
		tb.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	one := scalar(id, big.NewInt(1))
	for i := range w.Slice() {
		if rnd.Float64() < ones {
			w.Slice()[i] = one
			continue
		}
		w.Slice()[i] = curve.Scalar{rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64() >> 4}
	}
	return w
}
