package main

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"os"

	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
)

// gnark takes a proving key of gnark's, with its circuit.
func (m *material) gnark(ctx context.Context, f *keyFlags, check func(done, total int), temp gnark.Temp) error {
	opt := gnark.KeyOptions{Progress: check, Temp: temp}
	opt.SkipSubgroup = f.SkipSubgroupCheck
	if f.Circuit != "" {
		ccs, err := readGnarkR1CS(ctx, f.Circuit)
		if err != nil {
			return err
		}
		opt.Circuit = ccs
		if err := m.gnarkCircuit(f.Circuit, ccs); err != nil {
			return err
		}
	}
	var err error
	if m.key, err = gnark.OpenProvingKey(ctx, f.Key, opt); err != nil {
		return err
	}
	m.onClose(m.key.Close)
	return nil
}

// keyTemp is what --key-temp asks for. It tells where the points went; a folder
// that was asked for by name and is not used is told of also where --quiet is.
func (a *app) keyTemp(where string) gnark.Temp {
	var t gnark.Temp
	missed := a.notef
	switch where {
	case "", "none":
		return t
	case "auto":
		t = gnark.AutoTemp()
	default:
		t.Folders, missed = []string{where}, a.messagef
	}
	t.Told = func(folder string, size int64, err error) {
		if err != nil {
			missed("the key's points stay in memory (--key-temp %s): %v", where, err)
			return
		}
		a.notef("the key's points are mapped from a temporary file of %s in %s, which goes with this process (--key-temp)", sizeText(size), folder)
	}
	return t
}

// gnarkCircuit makes a compiled circuit of gnark's the circuit.
func (m *material) gnarkCircuit(path string, ccs constraint.ConstraintSystem) error {
	c, err := gnark.NewCircuit(ccs)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.matrices = func() (*groth16.R1CS, error) {
		r, err := gnark.R1CSFromGnark(ccs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return r, nil
	}
	m.circuit, m.hasC, m.ofGnark = c, true, true
	m.load = func(ctx context.Context, path string) (any, func(), error) {
		w, err := readGnarkWitness(ctx, path, c.Curve())
		return w, func() { gnark.Wipe(w) }, err
	}
	return nil
}

// withGnarkFile opens path for one of the readers of package gnark, which end
// with ctx.
func withGnarkFile[T any](ctx context.Context, path string, read func(r io.ReaderAt, size int64, o gnark.Options) (T, error), id curve.ID) (v T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return v, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return v, err
	}
	return read(readerAt{ctx, f}, st.Size(), gnark.Options{Name: path, Curve: id})
}

func readGnarkR1CS(ctx context.Context, path string) (constraint.ConstraintSystem, error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, fmt.Errorf("circuit: %w", err)
	}
	if res.Kind != sniff.GnarkR1CS {
		return nil, fmt.Errorf("%s: is no constraint system of gnark (it looks like: %s)", path, res.Kind)
	}
	return withGnarkFile(ctx, path, gnark.ReadR1CS, 0)
}

func readGnarkWitness(ctx context.Context, path string, id curve.ID) (witness.Witness, error) {
	return withGnarkFile(ctx, path, gnark.ReadWitness, id)
}

func readGnarkVK(ctx context.Context, path string, res sniff.Result) (*groth16.VerifyingKey, error) {
	return withGnarkFile(ctx, path, gnark.ReadVerifyingKey, res.Curve)
}

func readGnarkProof(ctx context.Context, path string, res sniff.Result) (*groth16.Proof, error) {
	return withGnarkFile(ctx, path, gnark.ReadProof, res.Curve)
}

func readGnarkPublic(ctx context.Context, path string, id curve.ID) ([]curve.Scalar, error) {
	w, err := readGnarkWitness(ctx, path, id)
	if err != nil {
		return nil, err
	}
	defer gnark.Wipe(w) // it may be a full one
	return gnark.PublicInputs(w, id)
}

func writeGnarkProof(w io.Writer, p *groth16.Proof) error { return gnark.WriteProof(w, p, false) }

func writeGnarkVK(w io.Writer, vk *groth16.VerifyingKey) error {
	return gnark.WriteVerifyingKey(w, vk, false)
}

// writeGnarkPublic writes public inputs as a gnark witness without a secret part.
func writeGnarkPublic(w io.Writer, id curve.ID, public []curve.Scalar) error {
	out, err := witness.New(id.ScalarModulus())
	if err != nil {
		return fmt.Errorf("write the public inputs: %w", err)
	}
	values := make(chan any, len(public))
	for i := range public {
		values <- integer(id, &public[i])
	}
	close(values)
	if err := out.Fill(len(public), 0, values); err != nil {
		return fmt.Errorf("write the public inputs: %w", err)
	}
	return gnark.WriteWitness(w, out)
}

// integer is the value of a scalar, which is kept as v·2^256 mod r.
func integer(id curve.ID, s *curve.Scalar) *big.Int {
	v, r := new(big.Int), id.ScalarModulus()
	for i := len(s) - 1; i >= 0; i-- {
		v.Or(v.Lsh(v, 64), new(big.Int).SetUint64(s[i]))
	}
	montgomery := new(big.Int).Lsh(big.NewInt(1), 256)
	return v.Mod(v.Mul(v, montgomery.ModInverse(montgomery, r)), r)
}
