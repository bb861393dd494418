package main

import (
	"context"
	"fmt"
	"os"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/inputs"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

// loader opens an input of a circuit; done ends it.
type loader func(ctx context.Context, path string) (input any, done func(), err error)

// deferred is an input that is opened when its turn has come, so that a batch
// of any length holds few files open, and a bad one fails alone.
type deferred struct {
	item inputs.Item
	fail error // known before: the item cannot be proved
}

// loading is a circuit whose input is a *deferred.
type loading struct {
	groth16.Circuit
	load loader
}

// Synthesize opens the input and hands it to the circuit.
func (c *loading) Synthesize(ctx context.Context, sc *alloc.Scope, input any, want groth16.Want) (*groth16.Assignment, error) {
	d, ok := input.(*deferred)
	if !ok {
		return nil, fmt.Errorf("the input is a %T, not a file", input)
	}
	if d.fail != nil {
		return nil, d.fail
	}
	in, done, err := c.load(ctx, d.item.Path)
	if err != nil {
		return nil, inputError(err)
	}
	defer done()
	if w, ok := in.(interface{ Curve() curve.ID }); ok && w.Curve() != c.Curve() {
		return nil, inputErrorf("the witness is of %v, the circuit on %v", w.Curve(), c.Curve())
	}
	a, err := c.Circuit.Synthesize(ctx, sc, in, want)
	return a, inputError(err)
}

// System is the circuit's, if it has one.
func (c *loading) System() (groth16.System, bool) { return groth16.SystemOf(c.Circuit) }

// loadWtns opens a witness of circom.
func loadWtns(_ context.Context, path string) (any, func(), error) {
	w, err := circom.OpenWtns(path)
	if err != nil {
		return nil, nil, err
	}
	return w, func() { _ = w.Close() }, nil
}

// loadInput reads an input.json. Its values are wiped when they have been used;
// the text that the parser made them of, it keeps on Go's heap until that is
// collected.
func loadInput(_ context.Context, path string) (any, func(), error) {
	in, err := readInput(path)
	return in, func() { wipeInputs(in) }, err
}

func readInput(path string) (circom.Inputs, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return circom.ReadInput(path, f)
}

// wipeInputs clears the values of an input.
func wipeInputs(in circom.Inputs) {
	for _, values := range in {
		for _, v := range values {
			words := v.Bits()
			clear(words[:cap(words)])
			v.SetInt64(0)
		}
	}
}
