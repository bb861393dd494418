package gnark

import (
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

func BenchmarkSynthesize(b *testing.B) {
	id := curve.BLS12381
	circuit, value := chainOf(1<<16-1, 1)
	c := newCircuit(b, compile(b, id, circuit))
	d, err := groth16.NewDomain(id, c.NbConstraints(), curve.Coset)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		a, err := c.Synthesize(b.Context(), nil, value, groth16.Want{Domain: d})
		if err != nil {
			b.Fatal(err)
		}
		a.Release()
	}
}
