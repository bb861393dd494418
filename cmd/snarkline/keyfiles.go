package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/formats/native"
	"github.com/snarkline/snarkline/groth16"
)

// The endings of the files that proving keys are written to.
const (
	extNative  = native.Extension
	extZkey    = ".zkey"
	extGnarkPK = ".pk"
)

// writeKey writes a proving key in the format that the path's ending names.
// Only gnark's format does without a verifying key; matrices may be nil but for
// a .zkey.
func writeKey(ctx context.Context, path string, key *groth16.ProvingKey, vk *groth16.VerifyingKey, matrices *groth16.R1CS) error {
	var write func(w io.Writer) error
	switch ext := filepath.Ext(path); ext {
	case extNative:
		write = func(w io.Writer) error {
			return native.Write(ctx, w, native.Content{Key: key, VK: vk, Circuit: matrices})
		}
	case extZkey:
		if matrices == nil || vk == nil {
			return usagef("%s: a .zkey holds the circuit and the verifying key; give --circuit and --vk", path)
		}
		write = func(w io.Writer) error { return inputError(circom.WriteZkey(w, key, vk, matrices)) }
	case extGnarkPK:
		write = func(w io.Writer) error { return inputError(gnark.WriteProvingKey(w, key, gnark.Raw)) }
	default:
		return usagef("%s: the ending must be .slk, .zkey or .pk, for the format", path)
	}
	return outfile.Stream(path, func(w io.Writer) error { return write(writer{ctx, w}) })
}

// openSystem reads the matrices of a constraint system of circom or gnark.
func openSystem(ctx context.Context, path string) (r *groth16.R1CS, done func(), err error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, nil, fmt.Errorf("circuit: %w", err)
	}
	switch res.Kind {
	case sniff.R1CS:
		c, err := openR1CS(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		return &c.R1CS, func() { _ = c.Close() }, nil
	case sniff.GnarkR1CS:
		ccs, err := readGnarkR1CS(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		r, err := gnark.R1CSFromGnark(ccs)
		return r, func() {}, err
	}
	return nil, nil, fmt.Errorf("%s: is no constraint system (it looks like: %s)", path, res.Kind)
}
