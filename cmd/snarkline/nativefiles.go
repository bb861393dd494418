package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/formats/native"
	"github.com/snarkline/snarkline/groth16"
)

// native takes keys and circuit of a .slk.
func (m *material) native(ctx context.Context, f *keyFlags, check func(done, total int)) error {
	file, err := native.Open(ctx, f.Key, native.Options{SkipSubgroup: f.SkipSubgroupCheck, Progress: check})
	if err != nil {
		return err
	}
	m.onClose(file.Close)
	m.key, m.vk = file.Key, file.VK
	if file.Circuit != nil {
		m.matrices, m.circuit, m.load = given(file.Circuit), file.Circuit, m.loadFull
		m.hasC = len(file.Circuit.C.Rows) > 0
	}
	if f.Circuit == "" {
		return nil
	}
	res, err := sniff.File(f.Circuit)
	if err != nil {
		return fmt.Errorf("circuit: %w", err)
	}
	if res.Kind != sniff.GnarkR1CS {
		return m.circomCircuit(ctx, f.Circuit)
	}
	ccs, err := readGnarkR1CS(ctx, f.Circuit)
	if err != nil {
		return err
	}
	if err := m.gnarkCircuit(f.Circuit, ccs); err != nil {
		return err
	}
	return sameCircuit(f.Circuit, m.circuit, m.path, m.key)
}

// loadFull is loadWtns for a circuit that may be gnark's: of those a witness
// file holds the inputs alone.
func (m *material) loadFull(ctx context.Context, path string) (any, func(), error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, nil, err
	}
	if res.Kind == sniff.GnarkWitness {
		return nil, nil, usagef("%s: a gnark witness holds the inputs alone; give the circuit that computes the rest with --circuit", path)
	}
	return loadWtns(ctx, path)
}

// readNativeVK reads the verifying key in a .slk. It is copied: the parts of
// the file end with it.
func readNativeVK(ctx context.Context, path string) (*groth16.VerifyingKey, error) {
	f, err := native.Open(ctx, path, native.Options{SkipPoints: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if f.VK == nil {
		return nil, fmt.Errorf("%s: holds no verifying key", path)
	}
	vk := &groth16.VerifyingKey{
		Curve:  f.VK.Curve,
		Alpha1: f.VK.Alpha1, Beta1: f.VK.Beta1, Delta1: f.VK.Delta1,
		Beta2: f.VK.Beta2, Gamma2: f.VK.Gamma2, Delta2: f.VK.Delta2,
		IC:          slices.Clone(f.VK.IC),
		Commitments: slices.Clone(f.VK.Commitments),
	}
	for _, c := range f.VK.Committed {
		vk.Committed = append(vk.Committed, slices.Clone(c))
	}
	return vk, vk.Check()
}

func inspectNative(ctx context.Context, f *facts, path string) error {
	file, err := native.Open(ctx, path, native.Options{SkipPoints: true})
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	addKey(f, file.Key)
	f.add("verifying_key", "verifying key", file.VK != nil, yesNo(file.VK != nil))
	f.add("circuit", "circuit", file.Circuit != nil, yesNo(file.Circuit != nil))
	if c := file.Circuit; c != nil {
		addMatrix(f, "a_matrix", "matrix A", c.A, c.Wires)
		addMatrix(f, "b_matrix", "matrix B", c.B, c.Wires)
		addMatrix(f, "c_matrix", "matrix C", c.C, c.Wires)
	}
	return nil
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
