package main

import (
	"errors"
	"testing"

	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// The circuit and assign agree, and another end has no proof.
func TestChain(t *testing.T) {
	p, err := newProver(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Key.Close()
	c := assign(5, 2)
	if _, err := stages.Prove(t.Context(), p, c); err != nil {
		t.Error(err)
	}
	c.Seed = 6
	if _, err := stages.Prove(t.Context(), p, c); !errors.Is(err, groth16.ErrUnsatisfied) {
		t.Errorf("another seed: %v", err)
	}
	if _, err := newProver(t.Context(), 0); err == nil {
		t.Error("a chain without a link")
	}
}
