package stages_test

import (
	"context"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// TestKeyRests: after a sum over a query of the key its pages are given back,
// so that a mapped key is resident one query at a time.
func TestKeyRests(t *testing.T) {
	toy := newToy(curve.BN254, 64, 40)
	key, vk, err := groth16.UnsafeSetup(context.Background(), toy.r1cs, folded)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = key.Close() }()
	var mu sync.Mutex
	rested := map[*byte]int{}
	key.OnRest(func(p curve.Points) {
		mu.Lock()
		defer mu.Unlock()
		rested[&p.Data[0]]++
	})
	p := &stages.Prover{Key: key, VK: vk, Circuit: toy.r1cs, Arith: engine(t, curve.BN254), MinOnes: 2}
	if _, err := stages.Prove(context.Background(), p, toy.witness(1)); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]curve.Points{
		"A": key.A.Points, "B1": key.B1.Points, "B2": key.B2.Points, "L": key.L.Points, "H": key.H,
	} {
		if rested[&v.Data[0]] != 1 {
			t.Errorf("%s rested %d times, want once, after its sum", name, rested[&v.Data[0]])
		}
	}
}
