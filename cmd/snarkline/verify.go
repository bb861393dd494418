package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/groth16"
)

// verifyCmd checks a proof.
type verifyCmd struct {
	Key    string `required:"" placeholder:"FILE" help:"Verification key: verification_key.json, a gnark verifying key, or a .zkey or .slk that holds one."`
	Proof  string `required:"" placeholder:"FILE" help:"Proof: proof.json or gnark's."`
	Public string `required:"" placeholder:"FILE" help:"Public inputs: public.json or a gnark witness."`
}

// verifyResult is the result for --json.
type verifyResult struct {
	OK     bool   `json:"ok"`
	Code   int    `json:"code"`
	Curve  string `json:"curve"`
	Public int    `json:"public"`
	Reason string `json:"reason,omitempty"`
}

// Run prints OK or INVALID.
func (c *verifyCmd) Run(a *app) error {
	ctx := a.scope("key")
	vk, err := readVerifyingKey(ctx, c.Key)
	if err != nil {
		return inputError(err)
	}
	proof, _, err := readProof(ctx, c.Proof)
	if err != nil {
		return inputError(err)
	}
	if proof.Curve != vk.Curve {
		return inputErrorf("the proof %s is on %v, the key %s on %v", c.Proof, proof.Curve, c.Key, vk.Curve)
	}
	public, err := readPublic(ctx, c.Public, vk.Curve, vk.NbPublic())
	if err != nil {
		return inputError(err)
	}
	err = vk.Verify(proof, public)
	if err != nil && !errors.Is(err, groth16.ErrInvalidProof) {
		return inputError(err)
	}
	res := verifyResult{OK: err == nil, Curve: vk.Curve.String(), Public: len(public)}
	word := "OK"
	if err != nil {
		word, res.Code, res.Reason = "INVALID", codeInvalid, err.Error()
	}
	if e := a.result(res, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, word)
		return err
	}); e != nil {
		return e
	}
	if err != nil {
		a.notef("%v", err)
		return &toldError{&codedError{codeInvalid, err}}
	}
	return nil
}
