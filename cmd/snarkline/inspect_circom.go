package main

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

func inspectR1CS(ctx context.Context, f *facts, path string) error {
	file, err := circom.OpenR1CS(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	c, err := file.Circuit(ctx, alloc.ScopeOf(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	f.add("curve", "curve", file.Curve.String())
	f.count("constraints", "constraints", file.Constraints)
	f.count("wires", "wires", file.Wires)
	f.count("public_outputs", "public outputs", file.PublicOutputs)
	f.count("public_inputs", "public inputs", file.PublicInputs)
	f.count("private_inputs", "private inputs", file.PrivateInputs)
	addDomain(f, domainLog(c.NbConstraints()), c.NbConstraints())
	addMatrix(f, "a", "A", c.A, c.Wires)
	addMatrix(f, "b", "B", c.B, c.Wires)
	addMatrix(f, "c", "C", c.C, c.Wires)
	return nil
}

func inspectWtns(ctx context.Context, f *facts, path string) error {
	w, err := circom.OpenWtns(path)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	f.add("curve", "curve", w.Curve().String())
	return addWitness(ctx, f, w.Curve(), w)
}

// addWitness counts the classes of a witness's values.
func addWitness(ctx context.Context, f *facts, id curve.ID, src groth16.WitnessSource) error {
	values, err := alloc.Make[curve.Scalar](alloc.ScopeOf(ctx), src.Len(), alloc.Witness, alloc.Secret|alloc.Dirty)
	if err != nil {
		return err
	}
	defer values.Release()
	if err := src.Fill(ctx, values.Slice()); err != nil {
		return err
	}
	return addClasses(ctx, f, id, values.Slice())
}

func addClasses(ctx context.Context, f *facts, id curve.ID, values []curve.Scalar) error {
	engine, err := cpu.New(id)
	if err != nil {
		return err
	}
	classes, err := alloc.Make[curve.Class](alloc.ScopeOf(ctx), len(values), alloc.Scratch, alloc.Secret)
	if err != nil {
		return err
	}
	defer classes.Release()
	n, err := engine.Classify(ctx, values, classes.Slice())
	if err != nil {
		return err
	}
	f.count("values", "values", len(values))
	f.count("zeros", "zeros", n[curve.Zero], ", "+percent(n[curve.Zero], len(values)))
	f.count("ones", "ones", n[curve.One], ", "+percent(n[curve.One], len(values)))
	f.count("others", "others", n[curve.Other], ", "+percent(n[curve.Other], len(values)))
	return nil
}

func inspectZkey(ctx context.Context, f *facts, path string) error {
	c, err := circom.Open(path)
	if err != nil {
		return err
	}
	z, err := c.Zkey()
	if err != nil {
		_ = c.Close()
		return err
	}
	defer func() { _ = z.Close() }()
	circuit, err := z.Circuit(ctx, alloc.ScopeOf(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = circuit.Close() }()
	// Whoever looks does not prove: the points are not checked in full here.
	key, err := z.ProvingKey(ctx, circom.KeyOptions{SkipSubgroup: true})
	if err != nil {
		return err
	}
	defer func() { _ = key.Close() }()
	addKey(f, key)
	f.count("coefficients", "coefficients", z.Coefficients)
	addMatrix(f, "a_matrix", "matrix A", circuit.A, circuit.Wires)
	addMatrix(f, "b_matrix", "matrix B", circuit.B, circuit.Wires)
	var list sections
	for _, s := range c.Sections() {
		list = append(list, section{c.SectionName(s.ID), s.Length})
	}
	list.add(f)
	return nil
}

func inspectWasm(ctx context.Context, f *facts, path string) error {
	c, err := circom.OpenCalculator(ctx, path, circom.CalculatorOptions{Interpret: true}) // not run, so not worth compiling
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	f.add("curve", "curve", c.Curve().String())
	f.count("wires", "wires", c.Len())
	f.count("inputs", "input values", c.NbInputs())
	f.size("memory_bytes", "memory", c.Scratch()[alloc.Host])
	return nil
}

func inspectInput(f *facts, path string) error {
	in, err := readInput(path)
	if err != nil {
		return err
	}
	defer wipeInputs(in)
	n := 0
	for _, v := range in {
		n += len(v)
	}
	f.count("signals", "signals", len(in))
	f.count("values", "values", n)
	return nil
}
