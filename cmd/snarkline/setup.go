package main

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"path/filepath"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

// setupCmd makes keys for development.
type setupCmd struct {
	Circuit string `required:"" placeholder:"FILE" help:"Constraint system (.r1cs of circom or gnark)."`
	Unsafe  bool   `help:"Yes, I know: whoever runs this set-up can forge proofs for its keys."`
	Key     string `default:"circuit.slk" placeholder:"FILE" help:"Where the proving key goes (default: circuit.slk). The ending says the format: .slk, .zkey, or .pk for gnark's."`
	VK      string `name:"vk" default:"verification_key.json" placeholder:"FILE" help:"Where the verifying key goes (default: verification_key.json); a name that does not end in .json means gnark's format."`
	Basis   string `enum:"auto,coset,monomial" default:"auto" placeholder:"auto|coset|monomial" help:"Basis of the quotient: coset saves a transform (auto: coset, but for gnark's format)."`
	NoFold  bool   `name:"no-fold" help:"Do not fold the C matrix into the key; folding saves three transforms."`
}

// Help is the longer text of `snarkline setup --help`.
func (*setupCmd) Help() string {
	return `The set-up knows the secrets that the keys are made of (the "toxic waste") and
wipes them when it is done, but nobody else can know that it did: use its keys
for development and tests. For real use, run a ceremony of several parties and
prove with its .zkey.`
}

// setupResult is the result for --json.
type setupResult struct {
	OK     bool   `json:"ok"`
	Code   int    `json:"code"`
	Key    string `json:"key"`
	VK     string `json:"vk"`
	Curve  string `json:"curve"`
	Domain int    `json:"domain"`
	Basis  string `json:"basis"`
	Folded bool   `json:"folded"`
	Unsafe bool   `json:"unsafe"`
}

// Run makes and writes the keys.
func (c *setupCmd) Run(a *app) error {
	if !c.Unsafe {
		return usagef("set-up by one party is unsafe: it knows the secrets with which proofs can be forged (give --unsafe to make keys for development)")
	}
	form, err := c.form()
	if err != nil {
		return err
	}
	claims, err := a.claims(file{"--circuit", c.Circuit})
	if err == nil {
		err = claimWrites(claims, file{"--key", c.Key}, file{"--vk", c.VK})
	}
	if err != nil {
		return err
	}
	if err := a.writable(file{"--key", c.Key}, file{"--vk", c.VK}); err != nil {
		return err
	}
	a.messagef("warning: this set-up knows its toxic waste; use these keys for development only")
	ctx := a.scope("setup")
	circuit, done, err := openSystem(ctx, c.Circuit)
	if err != nil {
		return inputError(err)
	}
	defer done()
	if filepath.Ext(c.Key) == extZkey {
		if form.Domain, err = circom.SnarkjsDomain(circuit.ID, bits.Len(uint(circuit.NbConstraints()-1))); err != nil {
			return inputErrorf("%s: %w", c.Circuit, err)
		}
	}
	key, vk, err := a.unsafeSetup(ctx, circuit, form)
	if err != nil {
		return err
	}
	defer func() { _ = key.Close() }()
	if err := writeKey(ctx, c.Key, key, vk, circuit); err != nil {
		return err
	}
	if err := writeVerifyingKey(c.VK, vk); err != nil {
		return err
	}
	res := setupResult{
		OK: true, Key: c.Key, VK: c.VK, Curve: key.Curve.String(), Domain: key.Domain.Size(),
		Basis: key.Basis.String(), Folded: key.Folded, Unsafe: true,
	}
	return a.result(res, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%s\n", c.Key, c.VK)
		return err
	})
}

// form is the kind of key that the flags ask for.
func (c *setupCmd) form() (groth16.SetupOptions, error) {
	o := groth16.SetupOptions{Basis: curve.Coset, Folded: !c.NoFold}
	switch ext := filepath.Ext(c.Key); ext {
	case extNative:
		if c.Basis == "monomial" {
			o.Basis = curve.Monomial
		}
	case extZkey:
		if c.Basis == "monomial" {
			return o, usagef("--basis monomial: a .zkey is of the coset basis")
		}
		o.Folded = false
	case extGnarkPK:
		if c.Basis == "coset" {
			return o, usagef("--basis coset: gnark's keys are of the monomial basis")
		}
		o.Basis, o.Folded = curve.Monomial, false
	default:
		return o, usagef("--key %s: the ending must be .slk, .zkey or .pk", c.Key)
	}
	return o, nil
}

// unsafeSetup runs the set-up with progress.
func (a *app) unsafeSetup(ctx context.Context, r *groth16.R1CS, o groth16.SetupOptions) (*groth16.ProvingKey, *groth16.VerifyingKey, error) {
	step, done := a.stepper("points of the key")
	defer done()
	o.Progress = step
	return groth16.UnsafeSetup(ctx, r, o)
}
