// Circom: from the files of circom and snarkjs (.zkey, .wasm, input.json) to a
// proof.json that snarkjs accepts. The key is used where it lies in the file.
//
//	go run ./examples/circom -dir formats/circom/testdata/bn128
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/consensys/gnark/logger"
	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/stages"
)

func main() {
	dir := flag.String("dir", "formats/circom/testdata/bn128", "folder with vault.zkey and vault.wasm, and vault.json above it")
	flag.Parse()
	logger.Disable()
	if err := run(context.Background(), os.Stdout, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "circom:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, dir string) (err error) {
	// The key, the verifying key and the matrices all come from the .zkey.
	zkey, err := circom.OpenZkey(filepath.Join(dir, "vault.zkey"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, zkey.Close()) }()
	fmt.Fprintf(w, "vault.zkey: %v (%s to circom), %d wires, %d of them public, domain 2^%d\n",
		zkey.Curve, zkey.Curve.Circom(), zkey.Wires, zkey.Public, zkey.DomainLog)
	key, err := zkey.ProvingKey(ctx, circom.KeyOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, key.Close()) }()
	vk, err := zkey.VerifyingKey(ctx, circom.KeyOptions{})
	if err != nil {
		return err
	}
	matrices, err := zkey.Circuit(ctx, alloc.ScopeOf(ctx))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, matrices.Close()) }()

	// The witness is calculated by circom's own program, in a sandbox, as a
	// part of synthesis: its memory counts as the stage's.
	calculator, err := circom.OpenCalculator(ctx, filepath.Join(dir, "vault.wasm"), circom.CalculatorOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, calculator.Close()) }()
	circuit, err := calculator.Circuit(matrices)
	if err != nil {
		return err
	}
	engine, err := cpu.New(key.Curve)
	if err != nil {
		return err
	}
	prover := &stages.Prover{Key: key, VK: vk, Circuit: circuit, Arith: engine}

	input, err := os.Open(filepath.Join(dir, "..", "vault.json"))
	if err != nil {
		return err
	}
	defer input.Close()
	inputs, err := circom.ReadInput("vault.json", input)
	if err != nil {
		return err
	}
	result, err := stages.ProveResult(ctx, prover, inputs)
	if err != nil {
		return err
	}

	fmt.Fprintf(w, "proof.json, as `snarkjs groth16 verify` takes it:\n")
	if err := circom.WriteProof(w, result.Proof); err != nil {
		return err
	}
	fmt.Fprintf(w, "\npublic.json:\n")
	if err := circom.WritePublic(w, key.Curve, result.Public); err != nil {
		return err
	}

	// Inputs that break the circuit's own rules have no proof.
	for _, coin := range inputs["total"] {
		coin.SetInt64(299)
	}
	_, err = stages.Prove(ctx, prover, inputs)
	var broken *circom.CircuitError
	if !errors.As(err, &broken) {
		return fmt.Errorf("a total that is wrong: %w", err)
	}
	host := alloc.Default().Snapshot().Space(alloc.Host)
	fmt.Fprintf(w, "\nwith a total of 299: %v\n\nmemory: %s at its peak; the key is %s of the mapped file\n",
		err, humanize.IBytes(uint64(host.Peak)), humanize.IBytes(uint64(key.Bytes())))
	return nil
}
