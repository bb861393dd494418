package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/consensys/gnark/backend/witness"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/formats/native"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/internal/democircuit"
)

// The files of a setting.
const (
	fileCircuit = "circuit.ccs"
	fileWitness = "witness.bin"
	fileGnark   = "gnark.pk"
	fileGnarkVK = "gnark.vk"
	fileSame    = "same.slk" // gnark's key, mapped
	fileNative  = "folded.slk"
	fileZkey    = "circuit.zkey"
	fileWtns    = "witness.wtns"
	fileVK      = "verification_key.json"
	fileDone    = "done"
)

// prepare makes the files of s unless they are there. All keys are of one toxic
// waste, which the seed makes known: they are for measuring only.
func prepare(ctx context.Context, s setting) error {
	if _, err := os.Stat(filepath.Join(s.dir, fileDone)); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	c, err := circuitOf(s)
	if err != nil {
		return err
	}
	w, err := c.Witness(0)
	if err != nil {
		return err
	}
	if err := write(s, fileCircuit, func(f io.Writer) error { _, err := c.CCS.WriteTo(f); return err }); err != nil {
		return err
	}
	if err := write(s, fileWitness, func(f io.Writer) error { _, err := w.WriteTo(f); return err }); err != nil {
		return err
	}
	r, err := gnark.R1CSFromGnark(c.CCS)
	if err != nil {
		return err
	}
	if err := gnarkKey(ctx, s, r); err != nil {
		return err
	}
	if err := foldedKey(ctx, s, r); err != nil {
		return err
	}
	if err := zkey(ctx, s, r, c, w); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, fileDone), nil, 0o644)
}

func circuitOf(s setting) (*democircuit.Circuit, error) {
	if s.kind == "dense" {
		return democircuit.Dense(s.id, s.log)
	}
	return democircuit.BitHeavy(s.id, s.log)
}

func seeded() io.Reader { return rand.NewChaCha8([32]byte{1}) }

func gnarkKey(ctx context.Context, s setting, r *groth16.R1CS) error {
	key, vk, err := groth16.UnsafeSetup(ctx, r, groth16.SetupOptions{Basis: curve.Monomial, Rand: seeded()})
	if err != nil {
		return err
	}
	defer func() { _ = key.Close() }()
	if err := native.WriteFile(ctx, filepath.Join(s.dir, fileSame), native.Content{Key: key, VK: vk}); err != nil {
		return err
	}
	pk, err := gnark.ToGnarkProvingKey(key)
	if err != nil {
		return err
	}
	if err := write(s, fileGnark, func(f io.Writer) error { _, err := pk.WriteRawTo(f); return err }); err != nil {
		return err
	}
	gvk, err := groth16.ToGnarkVerifyingKey(vk)
	if err != nil {
		return err
	}
	return write(s, fileGnarkVK, func(f io.Writer) error { _, err := gvk.WriteTo(f); return err })
}

func foldedKey(ctx context.Context, s setting, r *groth16.R1CS) error {
	key, vk, err := groth16.UnsafeSetup(ctx, r, groth16.SetupOptions{Folded: true, Rand: seeded()})
	if err != nil {
		return err
	}
	defer func() { _ = key.Close() }()
	return native.WriteFile(ctx, filepath.Join(s.dir, fileNative), native.Content{Key: key, VK: vk})
}

// zkey makes the circom side: the same rows with circom's identity rows, which
// may need the next domain; the witness is the same.
func zkey(ctx context.Context, s setting, r *groth16.R1CS, c *democircuit.Circuit, w witness.Witness) error {
	rows := *r
	rows.InputRows = true
	d, err := groth16.NewDomain(s.id, rows.NbConstraints(), curve.Coset)
	if err != nil {
		return err
	}
	if d, err = circom.SnarkjsDomain(s.id, d.Log); err != nil {
		return err
	}
	key, vk, err := groth16.UnsafeSetup(ctx, &rows, groth16.SetupOptions{Rand: seeded(), Domain: d})
	if err != nil {
		return err
	}
	defer func() { _ = key.Close() }()
	if err := write(s, fileZkey, func(f io.Writer) error { return circom.WriteZkey(f, key, vk, &rows) }); err != nil {
		return err
	}
	if err := write(s, fileVK, func(f io.Writer) error { return circom.WriteVerifyingKey(f, vk) }); err != nil {
		return err
	}
	gc, err := gnark.NewCircuit(c.CCS)
	if err != nil {
		return err
	}
	ar, err := cpu.New(s.id)
	if err != nil {
		return err
	}
	full, err := groth16.NewDomain(s.id, gc.NbConstraints(), curve.Coset)
	if err != nil {
		return err
	}
	a, err := gc.Synthesize(ctx, alloc.ScopeOf(ctx), w, groth16.Want{Domain: full, Arithmetic: ar})
	if err != nil {
		return err
	}
	defer a.Release()
	return write(s, fileWtns, func(f io.Writer) error {
		return circom.WriteWtns(ctx, f, s.id, wires(a.W.Slice()))
	})
}

// wires is a full witness as a source.
type wires []curve.Scalar

func (w wires) Len() int { return len(w) }

func (w wires) Fill(_ context.Context, dst []curve.Scalar) error {
	copy(dst, w)
	return nil
}

func write(s setting, name string, body func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	err = body(b)
	if err == nil {
		err = b.Flush()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
