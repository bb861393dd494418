package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
)

// TestEmulatedWrongResult: a proof that a card gets wrong is told, and made
// again on the CPU; or on the card, which does better the second time.
func TestEmulatedWrongResult(t *testing.T) {
	for _, elsewhere := range []bool{true, false} {
		emulate(t, emulator.Config{})
		emulator.Corrupt("ntt_small", 1)
		line, proof, public := proveVault(t, "bn128", "--device", "cuda:0", "--b2", "cpu", "--json")
		on := "cpu"
		if !elsewhere {
			line, on = append(line, "--no-elsewhere"), "cuda:0"
		}
		r := sl(t, codeOK, line...)
		accepted(t, "bn128", proof, public)
		const why = "the proof made on cuda:0 (b_g2_msm on cpu) does not verify"
		if !strings.Contains(r.stderr, "vault.wtns: attempt 1: "+why+"; it is made again\n") || !strings.Contains(r.stderr, "vault.wtns: made on "+on+" at attempt 2\n") {
			t.Errorf("%s", r.stderr)
		}
		res := decode[proveResult](t, r.stdout)
		if i := res.Items[0]; i.On != on || i.Attempts != 2 || len(i.Again) != 1 || i.Again[0] != why || res.Processors.MadeAgain != 1 || res.Processors.ProofsOn[on] != 1 {
			t.Errorf("%+v %+v", i, res.Processors)
		}
	}
}

// TestEmulatedWrongWitness: what no processor can prove is the witness's fault.
func TestEmulatedWrongWitness(t *testing.T) {
	emulate(t, emulator.Config{})
	w := copyFile(t, bundled("bn128/vault.wtns"), filepath.Join(t.TempDir(), "w.wtns"), spoilWitness)
	out := filepath.Join(t.TempDir(), "p.json")
	for _, elsewhere := range []string{"--no-elsewhere=false", "--no-elsewhere"} {
		r := sl(t, codeUnsatisfied, "prove", "--json", "--device", "cuda:0", "--b2", "device", elsewhere,
			"--key", bundled("bn128/vault.zkey"), "--witness", w, "--proof", out, "--public", out+".pub")
		res := decode[proveResult](t, r.stdout)
		if i := res.Items[0]; i.Code != codeUnsatisfied || i.Attempts != 2 || len(i.Again) != 1 || !strings.Contains(i.Again[0], "cuda:0 does not verify") || res.Processors.MadeAgain != 1 {
			t.Errorf("%+v", i)
		}
		if blamed := strings.Contains(r.stderr, "or cuda:0 computes wrongly"); blamed != (elsewhere == "--no-elsewhere") || !strings.Contains(r.stderr, "does not satisfy") {
			t.Errorf("%s: %s", elsewhere, r.stderr)
		}
	}
}

// TestEmulatedTooLittle: what a card has too little memory for goes to the CPU,
// and is an error where that may not be.
func TestEmulatedTooLittle(t *testing.T) {
	for _, elsewhere := range []bool{true, false} {
		emulate(t, emulator.Config{})
		for n := range 500 {
			emulator.Fault("cuMemAllocAsync", n+1, 2, false)
		}
		line, proof, public := proveVault(t, "bn128", "--device", "cuda:0", "--b2", "cpu")
		want := []string{"attempt 1: ", "of device memory asked, ", "cuMemAllocAsync(", "CUDA_ERROR_OUT_OF_MEMORY (2)", "--device cpu"}
		if elsewhere {
			want = append(want, "made on cpu at attempt 2")
		}
		code := codeOK
		if !elsewhere {
			line, code = append(line, "--no-elsewhere"), codeMemory
		}
		r := sl(t, code, line...)
		if elsewhere {
			accepted(t, "bn128", proof, public)
		}
		for _, w := range want {
			if !strings.Contains(r.stderr, w) {
				t.Errorf("no %q in\n%s", w, r.stderr)
			}
		}
		emulator.Clear()
	}
}

// TestEmulatedDeadCard: an error that ends the card's context is told in the
// driver's words.
func TestEmulatedDeadCard(t *testing.T) {
	emulate(t, emulator.Config{})
	emulator.Fault("kernel", 3, 700, true)
	line, proof, public := proveVault(t, "bn128", "--device", "cuda:0", "--json")
	r := sl(t, codeOK, line...)
	accepted(t, "bn128", proof, public)
	res := decode[proveResult](t, r.stdout)
	if i := res.Items[0]; i.Attempts != 2 || i.On != "cpu" || !strings.Contains(i.Again[0], "CUDA_ERROR_ILLEGAL_ADDRESS (700)") || !strings.Contains(r.stderr, i.Again[0]) {
		t.Errorf("%+v\n%s", i, r.stderr)
	}
}
