package circom_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

// A proof from the files of circom and snarkjs, by the reference prover: the
// key's points and the witness are used where they lie in the mapped files.
func Example() {
	ctx := context.Background()
	zkey, err := circom.OpenZkey("testdata/bls12381/vault.zkey")
	if err != nil {
		log.Fatal(err)
	}
	defer zkey.Close()
	key, err := zkey.ProvingKey(ctx, circom.KeyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer key.Close()
	circuit, err := zkey.Circuit(ctx, alloc.ScopeOf(ctx))
	if err != nil {
		log.Fatal(err)
	}
	defer circuit.Close()
	witness, err := circom.OpenWtns("testdata/bls12381/vault.wtns")
	if err != nil {
		log.Fatal(err)
	}
	defer witness.Close()

	arithmetic, err := cpu.New(key.Curve)
	if err != nil {
		log.Fatal(err)
	}
	proof, err := groth16.ProveDirect(ctx, key, circuit, arithmetic, witness, nil)
	if err != nil {
		log.Fatal(err)
	}

	vk, err := zkey.VerifyingKey(ctx, circom.KeyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	public, err := witness.Public(key.NbPublic)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(public), "public values:", vk.Verify(proof, public))
	// Output: 2 public values: <nil>
}

// A witness calculated from inputs, written as circom's own tool writes it.
func ExampleOpenCalculator() {
	ctx := context.Background()
	calculator, err := circom.OpenCalculator(ctx, "testdata/bn128/vault.wasm", circom.CalculatorOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer calculator.Close()
	file, err := os.Open("testdata/vault.json")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	inputs, err := circom.ReadInput("vault.json", file)
	if err != nil {
		log.Fatal(err)
	}
	var wtns bytes.Buffer
	if err := circom.WriteWtns(ctx, &wtns, calculator.Curve(), calculator.Witness(inputs)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(calculator.NbInputs(), "inputs,", calculator.Len(), "wires,", wtns.Len(), "bytes")
	// Output: 11 inputs, 244 wires, 7884 bytes
}

// A key of a set-up of one's own as a .zkey that snarkjs proves with.
func ExampleWriteZkey() {
	ctx := context.Background()
	r1cs, err := circom.OpenR1CS("testdata/bn128/silent.r1cs")
	if err != nil {
		log.Fatal(err)
	}
	defer r1cs.Close()
	circuit, err := r1cs.Circuit(ctx, alloc.ScopeOf(ctx))
	if err != nil {
		log.Fatal(err)
	}
	defer circuit.Close()
	key, vk, err := groth16.UnsafeSetup(ctx, &circuit.R1CS, groth16.SetupOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer key.Close()
	var zkey bytes.Buffer
	if err := circom.WriteZkey(&zkey, key, vk, &circuit.R1CS); err != nil {
		log.Fatal(err)
	}
	fmt.Println(zkey.Len() > 0)
	// Output: true
}
