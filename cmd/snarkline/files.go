package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

// withFile opens path for read, which gets its name for messages.
func withFile[T any](path string, read func(name string, r io.Reader) (T, error)) (v T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return v, err
	}
	defer func() { _ = f.Close() }()
	return read(path, bufio.NewReader(f))
}

// readVerifyingKey reads a verifying key of any kind, or the one inside a
// proving key's file.
func readVerifyingKey(ctx context.Context, path string) (*groth16.VerifyingKey, error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, fmt.Errorf("verifying key: %w", err)
	}
	switch res.Kind {
	case sniff.VKeyJSON:
		return withFile(path, circom.ReadVerifyingKey)
	case sniff.GnarkVK:
		return readGnarkVK(ctx, path, res)
	case sniff.Zkey:
		z, err := circom.OpenZkey(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = z.Close() }()
		return z.VerifyingKey(ctx, circom.KeyOptions{})
	case sniff.Native:
		return readNativeVK(ctx, path)
	}
	return nil, fmt.Errorf("%s: holds no verifying key (it looks like: %s)", path, res.Kind)
}

// readProof reads a proof of any kind.
func readProof(ctx context.Context, path string) (*groth16.Proof, sniff.Kind, error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, res.Kind, fmt.Errorf("proof: %w", err)
	}
	switch res.Kind {
	case sniff.ProofJSON:
		p, err := withFile(path, circom.ReadProof)
		return p, res.Kind, err
	case sniff.GnarkProof:
		p, err := readGnarkProof(ctx, path, res)
		return p, res.Kind, err
	}
	return nil, res.Kind, fmt.Errorf("%s: is no proof (it looks like: %s)", path, res.Kind)
}

// readPublic reads n public inputs for a curve: public.json, or the public part
// of a gnark witness.
func readPublic(ctx context.Context, path string, id curve.ID, n int) ([]curve.Scalar, error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, fmt.Errorf("public inputs: %w", err)
	}
	var public []curve.Scalar
	switch res.Kind {
	case sniff.PublicJSON:
		public, err = withFile(path, func(name string, r io.Reader) ([]curve.Scalar, error) {
			return circom.ReadPublic(name, r, id)
		})
	case sniff.GnarkWitness:
		public, err = readGnarkPublic(ctx, path, id)
	default:
		return nil, fmt.Errorf("%s: holds no public inputs (it looks like: %s)", path, res.Kind)
	}
	if err == nil && n >= 0 && len(public) != n {
		err = fmt.Errorf("%s: %d public inputs, the verifying key takes %d", path, len(public), n)
	}
	return public, err
}

// writeProof writes a proof in snarkjs's or gnark's format.
func writeProof(w io.Writer, p *groth16.Proof, gnark bool) error {
	if gnark {
		return writeGnarkProof(w, p)
	}
	return circom.WriteProof(w, p)
}

// writePublic writes public inputs likewise.
func writePublic(w io.Writer, id curve.ID, public []curve.Scalar, gnark bool) error {
	if gnark {
		return writeGnarkPublic(w, id, public)
	}
	return circom.WritePublic(w, id, public)
}

// writeVerifyingKey writes to path: snarkjs's format to .json, else gnark's.
func writeVerifyingKey(path string, vk *groth16.VerifyingKey) error {
	return outfile.Stream(path, func(w io.Writer) error {
		if filepath.Ext(path) == ".json" {
			if len(vk.Committed) > 0 {
				return usagef("snarkjs's format has no place for commitments; name a file that does not end in .json for gnark's")
			}
			return circom.WriteVerifyingKey(w, vk)
		}
		return writeGnarkVK(w, vk)
	})
}
