package democircuit

import (
	"context"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

func TestSetup(t *testing.T) {
	for _, make := range []func() (*Circuit, error){
		func() (*Circuit, error) { return BitHeavy(curve.BLS12381, MinLog) },
		func() (*Circuit, error) { return Dense(curve.BN254, 7) },
	} {
		c, err := make()
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Setup(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Witness(3)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := groth16.ProveDirect(context.Background(), k.Key, k.Circuit, k.Arith, w, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := k.Circuit.Synthesize(context.Background(), nil, w, k.Key.Want(k.Arith))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.VK.Verify(proof, a.W.Slice()[1:1+k.Key.NbPublic]); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		a.Release()
		if err := k.Key.Close(); err != nil {
			t.Error(err)
		}
	}
}
