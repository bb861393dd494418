package democircuit

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
)

// Keys are the circuit with a key of its own, ready to prove on a CPU.
type Keys struct {
	Key     *groth16.ProvingKey
	VK      *groth16.VerifyingKey
	Circuit *gnark.Circuit
	Arith   *cpu.Engine
}

// Setup makes the circuit's folded key of the coset basis on the spot: for
// development only, since whoever runs it could have kept the toxic waste. The
// caller closes Key. progress may be nil.
func (c *Circuit) Setup(ctx context.Context, progress func(done, total int)) (*Keys, error) {
	return c.SetupAs(ctx, groth16.SetupOptions{Basis: curve.Coset, Folded: true, Progress: progress})
}

// SetupAs is Setup for a key of any form.
func (c *Circuit) SetupAs(ctx context.Context, o groth16.SetupOptions) (*Keys, error) {
	r, err := gnark.R1CSFromGnark(c.CCS)
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", c.Name, err)
	}
	k := &Keys{}
	if k.Circuit, err = gnark.NewCircuit(c.CCS); err != nil {
		return nil, fmt.Errorf("set up %s: %w", c.Name, err)
	}
	if k.Arith, err = cpu.New(c.Curve); err != nil {
		return nil, fmt.Errorf("set up %s: %w", c.Name, err)
	}
	if k.Key, k.VK, err = groth16.UnsafeSetup(ctx, r, o); err != nil {
		return nil, fmt.Errorf("set up %s: %w", c.Name, err)
	}
	return k, nil
}
