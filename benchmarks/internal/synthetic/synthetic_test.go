package synthetic

import (
	"context"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

func TestProvable(t *testing.T) {
	for _, id := range curve.All() {
		c, err := New(id, 11, 0.8)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		w, err := c.Witness(7)
		if err != nil {
			t.Fatal(err)
		}
		small := 0
		for _, s := range w {
			if s.IsZero() || s == w[0] {
				small++
			}
		}
		if share := float64(small) / float64(len(w)); share < 0.7 || share > 0.9 {
			t.Errorf("%v: a share of %.2f is 0 or 1", id, share)
		}
		pk, vk, err := groth16.UnsafeSetup(context.Background(), &c.R1CS, groth16.SetupOptions{Folded: true})
		if err != nil {
			t.Fatal(err)
		}
		if pk.Domain.Log != 11 {
			t.Errorf("%v: a domain of 2^%d", id, pk.Domain.Log)
		}
		engine, err := cpu.New(id)
		if err != nil {
			t.Fatal(err)
		}
		mark := alloc.Default().Live(alloc.Host)
		p := &stages.Prover{Key: pk, VK: vk, Circuit: c, Arith: engine}
		if _, err := stages.Prove(context.Background(), p, Copied(w)); err != nil {
			t.Errorf("%v: %v", id, err)
		}
		w[200][0] ^= 1
		if _, err := stages.Prove(context.Background(), p, Copied(w)); err == nil {
			t.Errorf("%v: a wrong witness was proved", id)
		}
		if alloc.Default().Live(alloc.Host) != mark {
			t.Error("memory stayed")
		}
		_ = pk.Close()
	}
	if _, err := New(curve.BN254, 3, 0.5); err == nil {
		t.Error("2^3 rows passed")
	}
}
