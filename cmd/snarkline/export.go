package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// exportCmd converts between formats.
type exportCmd struct {
	Vkey     exportVkeyCmd     `cmd:"" name:"vkey" help:"Take the verifying key out of a key, or convert one."`
	Key      exportKeyCmd      `cmd:"" name:"key" help:"Convert a proving key; fold the circuit's C matrix into it."`
	Proof    exportProofCmd    `cmd:"" name:"proof" help:"Convert a proof between snarkjs's and gnark's format."`
	Public   exportPublicCmd   `cmd:"" name:"public" help:"Convert public inputs between snarkjs's and gnark's format."`
	Calldata exportCalldataCmd `cmd:"" name:"calldata" help:"Print a proof and its public inputs as arguments of a Solidity verifier."`
	Pipeline exportPipelineCmd `cmd:"" name:"pipeline" help:"Print the standard pipeline as TOML, for prove --pipeline."`
	Witness  exportWitnessCmd  `cmd:"" name:"witness" help:"Compute a witness from an input by circom's calculator."`
}

// exportResult is the result of the exports that write a file, for --json.
type exportResult struct {
	OK    bool   `json:"ok"`
	Code  int    `json:"code"`
	From  string `json:"from"`
	To    string `json:"to"`
	Curve string `json:"curve"`
}

// exported says which file was written.
func (a *app) exported(from, to, curve string) error {
	return a.result(exportResult{OK: true, From: from, To: to, Curve: curve}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, to)
		return err
	})
}

type exportVkeyCmd struct {
	From string `arg:"" help:"A .zkey, .slk, verification_key.json or gnark verifying key."`
	To   string `arg:"" help:"File to write; .json is snarkjs's format, anything else gnark's."`
}

// Run writes the verifying key.
func (c *exportVkeyCmd) Run(a *app) error {
	vk, err := readVerifyingKey(a.scope("key"), c.From)
	if err != nil {
		return inputError(err)
	}
	if err := writeVerifyingKey(c.To, vk); err != nil {
		return err
	}
	return a.exported(c.From, c.To, vk.Curve.String())
}

type exportKeyCmd struct {
	From              string `arg:"" help:"A .zkey, .slk or gnark proving key."`
	To                string `arg:"" help:"File to write; the ending says the format: .slk, .zkey, or .pk for gnark's."`
	VK                string `name:"vk" placeholder:"FILE" help:"Verifying key that goes into the .slk, where the key's file holds none (gnark's)."`
	Circuit           string `placeholder:"FILE" help:"Constraint system (.r1cs of circom or gnark); --fold needs it."`
	Fold              bool   `help:"Fold the C matrix into the key: 4 transforms a proof instead of 7, and a vector less."`
	SkipSubgroupCheck bool   `help:"Trust that the key's points are in the subgroup."`
}

// Run converts the key.
func (c *exportKeyCmd) Run(a *app) error {
	if c.Fold && c.Circuit == "" {
		return usagef("--fold needs --circuit, the constraint system: the C matrix is in no key")
	}
	if c.Fold && filepath.Ext(c.To) != extNative {
		return usagef("--fold: only a .slk can hold a folded key")
	}
	if err := a.writable(file{path: c.To}); err != nil {
		return err
	}
	m, err := a.openKey(&keyFlags{Key: c.From, VK: c.VK, Circuit: c.Circuit, SkipSubgroupCheck: c.SkipSubgroupCheck})
	if err != nil {
		return err
	}
	defer m.close()
	var matrices *groth16.R1CS
	if m.matrices != nil {
		if matrices, err = m.matrices(); err != nil {
			return inputError(err)
		}
	}
	ctx := a.scope("export")
	key := m.key
	if c.Fold {
		if key, err = a.fold(ctx, m, matrices); err != nil {
			return err
		}
		defer func() { _ = key.Close() }()
	}
	if err := writeKey(ctx, c.To, key, m.vk, matrices); err != nil {
		return err
	}
	return a.exported(c.From, c.To, key.Curve.String())
}

// fold folds the C matrix into the key, with progress.
func (a *app) fold(ctx context.Context, m *material, r *groth16.R1CS) (*groth16.ProvingKey, error) {
	if r == nil || len(r.C.Rows) == 0 {
		return nil, inputErrorf("%s: holds no C matrix to fold", m.path)
	}
	step, done := a.stepper("steps of folding")
	defer done()
	key, err := groth16.Fold(ctx, m.key, r, groth16.FoldOptions{Progress: step})
	return key, inputError(err)
}

type exportProofCmd struct {
	From string `arg:"" help:"proof.json or a gnark proof."`
	To   string `arg:"" help:"File to write; .json is snarkjs's format, anything else gnark's."`
}

// Run converts the proof.
func (c *exportProofCmd) Run(a *app) error {
	p, _, err := readProof(a.ctx, c.From)
	if err != nil {
		return inputError(err)
	}
	gnark := filepath.Ext(c.To) != ".json"
	if !gnark && len(p.Commitments) > 0 {
		return usagef("snarkjs's format has no place for the proof's commitments")
	}
	if err := outfile.Stream(c.To, func(w io.Writer) error { return writeProof(w, p, gnark) }); err != nil {
		return err
	}
	return a.exported(c.From, c.To, p.Curve.String())
}

type exportPublicCmd struct {
	From  string `arg:"" help:"public.json or a gnark witness."`
	To    string `arg:"" help:"File to write; .json is snarkjs's format, anything else gnark's."`
	Curve string `required:"" placeholder:"NAME" help:"bn254 or bls12-381; the files do not say."`
}

// Run converts the public inputs.
func (c *exportPublicCmd) Run(a *app) error {
	id, err := parseCurve(c.Curve)
	if err != nil {
		return err
	}
	public, err := readPublic(a.ctx, c.From, id, -1)
	if err != nil {
		return inputError(err)
	}
	err = outfile.Stream(c.To, func(w io.Writer) error {
		return writePublic(w, id, public, filepath.Ext(c.To) != ".json")
	})
	if err != nil {
		return err
	}
	return a.exported(c.From, c.To, id.String())
}

type exportCalldataCmd struct {
	Proof  string `required:"" placeholder:"FILE" help:"Proof."`
	Public string `required:"" placeholder:"FILE" help:"Public inputs."`
}

// Run prints the calldata.
func (c *exportCalldataCmd) Run(a *app) error {
	p, _, err := readProof(a.ctx, c.Proof)
	if err != nil {
		return inputError(err)
	}
	public, err := readPublic(a.ctx, c.Public, p.Curve, -1)
	if err != nil {
		return inputError(err)
	}
	text, err := circom.SolidityCalldata(p, public)
	if err != nil {
		return inputErrorf("%s: %w", c.Proof, err)
	}
	res := struct {
		OK       bool   `json:"ok"`
		Code     int    `json:"code"`
		Calldata string `json:"calldata"`
	}{OK: true, Calldata: text}
	return a.result(res, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

type exportPipelineCmd struct{}

// Run prints the description.
func (*exportPipelineCmd) Run(a *app) error {
	res := struct {
		OK       bool   `json:"ok"`
		Code     int    `json:"code"`
		Pipeline string `json:"pipeline"`
	}{OK: true, Pipeline: stages.StandardTOML}
	return a.result(res, func(w io.Writer) error {
		_, err := io.WriteString(w, stages.StandardTOML)
		return err
	})
}

type exportWitnessCmd struct {
	Wasm  string `required:"" placeholder:"FILE" help:"circom's witness calculator."`
	Input string `required:"" placeholder:"FILE" help:"Input, as JSON."`
	To    string `arg:"" help:"File to write (.wtns)."`
}

// Run computes the witness.
func (c *exportWitnessCmd) Run(a *app) error {
	ctx := a.scope("witness")
	calc, err := circom.OpenCalculator(ctx, c.Wasm, circom.CalculatorOptions{})
	if err != nil {
		return inputError(err)
	}
	defer func() { _ = calc.Close() }()
	in, err := readInput(c.Input)
	if err != nil {
		return inputError(err)
	}
	defer wipeInputs(in)
	err = outfile.Stream(c.To, func(w io.Writer) error {
		return circom.WriteWtns(ctx, writer{ctx, w}, calc.Curve(), calc.Witness(in))
	})
	if err != nil {
		return err
	}
	return a.exported(c.Input, c.To, calc.Curve().String())
}
