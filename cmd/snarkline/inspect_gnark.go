package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark/backend/witness"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
)

// inspectGnarkPK needs the circuit of a key that makes commitments: the file
// does not say which wires they take.
func (c *inspectCmd) inspectGnarkPK(ctx context.Context, f *facts, path string, res sniff.Result) error {
	opt := gnark.KeyOptions{Options: gnark.Options{SkipSubgroup: true}}
	if c.Circuit != "" {
		ccs, err := readGnarkR1CS(ctx, c.Circuit)
		if err != nil {
			return err
		}
		opt.Circuit = ccs
	}
	key, err := gnark.OpenProvingKey(ctx, path, opt)
	if err != nil {
		return err
	}
	defer func() { _ = key.Close() }()
	f.add("encoding", "encoding", map[bool]string{true: "raw", false: "compressed"}[res.Raw])
	addKey(f, key)
	return nil
}

func inspectGnarkR1CS(ctx context.Context, f *facts, path string) error {
	ccs, err := readGnarkR1CS(ctx, path)
	if err != nil {
		return err
	}
	r, err := gnark.R1CSFromGnark(ccs)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.add("curve", "curve", r.ID.String())
	f.count("constraints", "constraints", r.NbConstraints())
	f.count("wires", "wires", r.Wires)
	f.count("public", "public inputs", r.Public)
	f.count("secret", "secret inputs", ccs.GetNbSecretVariables())
	addDomain(f, domainLog(r.NbConstraints()), r.NbConstraints())
	addMatrix(f, "a", "A", r.A, r.Wires)
	addMatrix(f, "b", "B", r.B, r.Wires)
	addMatrix(f, "c", "C", r.C, r.Wires)
	f.count("commitments", "commitments", len(r.Commitments))
	return nil
}

func (c *inspectCmd) inspectGnarkWitness(ctx context.Context, f *facts, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var head [2]uint32
	if err := binary.Read(file, binary.BigEndian, &head); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.count("public", "public inputs", int(head[0]))
	f.count("secret", "secret inputs", int(head[1]))
	if c.Curve == "" {
		return nil
	}
	id, err := parseCurve(c.Curve)
	if err != nil {
		return err
	}
	w, err := readGnarkWitness(ctx, path, id)
	if err != nil {
		return err
	}
	defer gnark.Wipe(w)
	f.add("curve", "curve", id.String(), id.String()+", as said; every value is below its modulus")
	values, err := witnessValues(ctx, w)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer values.Release()
	return addClasses(ctx, f, id, values.Slice())
}

// witnessValues are the values of a gnark witness, public ones first, in a
// buffer of their own that its release wipes.
func witnessValues(ctx context.Context, w witness.Witness) (*alloc.Buffer[curve.Scalar], error) {
	room := func(n int) (*alloc.Buffer[curve.Scalar], error) {
		return alloc.Make[curve.Scalar](alloc.ScopeOf(ctx), n, alloc.Witness, alloc.Secret|alloc.Dirty)
	}
	switch v := w.Vector().(type) {
	case bn254.Vector:
		b, err := room(len(v))
		if err == nil {
			for i := range v {
				b.Slice()[i] = curve.Scalar(v[i])
			}
		}
		return b, err
	case bls12381.Vector:
		b, err := room(len(v))
		if err == nil {
			for i := range v {
				b.Slice()[i] = curve.Scalar(v[i])
			}
		}
		return b, err
	}
	return nil, fmt.Errorf("a witness of %T", w.Vector())
}
