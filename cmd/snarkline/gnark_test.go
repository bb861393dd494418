package main

import (
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
)

// product is X·Y = Z, with a commitment to X or without.
type product struct {
	X, Y   frontend.Variable
	Z      frontend.Variable `gnark:",public"`
	commit bool
}

func (c *product) Define(api frontend.API) error {
	api.AssertIsEqual(api.Mul(c.X, c.Y), c.Z)
	if c.commit {
		v, err := api.(frontend.Committer).Commit(c.X)
		if err != nil {
			return err
		}
		api.AssertIsDifferent(v, 0)
	}
	return nil
}

// gnarkFiles are the files of a gnark circuit in a folder.
type gnarkFiles struct {
	dir string
	ccs constraint.ConstraintSystem
	vk  groth16.VerifyingKey
}

func (g *gnarkFiles) path(name string) string { return filepath.Join(g.dir, name) }

func (g *gnarkFiles) write(t *testing.T, name string, w func(io.Writer) (int64, error)) {
	t.Helper()
	f, err := os.Create(g.path(name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func makeGnark(t *testing.T, id curve.ID, commit bool) *gnarkFiles {
	t.Helper()
	return makeGnarkOf(t, id, &product{commit: commit}, map[string]frontend.Circuit{
		"w.wit": &product{X: 3, Y: 5, Z: 15}, "one.wit": &product{X: 1, Y: 5, Z: 5}, "bad.wit": &product{X: 3, Y: 5, Z: 16}})
}

// makeGnarkOf has gnark make the files of a circuit, with witnesses by name.
func makeGnarkOf(t *testing.T, id curve.ID, circuit frontend.Circuit, witnesses map[string]frontend.Circuit) *gnarkFiles {
	t.Helper()
	g := &gnarkFiles{dir: t.TempDir()}
	ccs, err := frontend.Compile(id.ScalarModulus(), r1cs.NewBuilder, circuit)
	if err != nil {
		t.Fatal(err)
	}
	pk, vk, err := groth16.Setup(ccs)
	if err != nil {
		t.Fatal(err)
	}
	g.ccs, g.vk = ccs, vk
	g.write(t, "c.r1cs", ccs.WriteTo)
	g.write(t, "c.pk", pk.WriteTo)
	g.write(t, "c.vk", vk.WriteTo)
	for name, a := range witnesses {
		w, err := frontend.NewWitness(a, id.ScalarModulus())
		if err != nil {
			t.Fatal(err)
		}
		g.write(t, name, w.WriteTo)
	}
	return g
}

func TestGnarkFiles(t *testing.T) {
	for _, id := range curve.All() {
		for _, commit := range []bool{false, true} {
			g := makeGnark(t, id, commit)
			proof, public := g.path("proof.bin"), g.path("public.bin")
			args := []string{"prove", "-q", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"), "--proof", proof, "--public", public}
			sl(t, codeOK, append(args, "--witness", g.path("w.wit"))...)
			sl(t, codeOK, "verify", "--key", g.path("c.vk"), "--proof", proof, "--public", public)
			gnarkAccepts(t, id, g.vk, proof, public)
			if r := sl(t, codeOK, "inspect", proof); !strings.Contains(r.stdout, "gnark proof") || !strings.Contains(r.stdout, id.String()) {
				t.Errorf("%s", r.stdout)
			}

			r := sl(t, codeUnsatisfied, append(args, "--witness", g.path("bad.wit"))...)
			if !strings.Contains(r.stderr, "not satisfied") {
				t.Errorf("got %s", r.stderr)
			}
			json := append(args, "--format", "snarkjs", "--witness", g.path("w.wit"))
			if commit {
				if r := sl(t, codeUsage, json...); !strings.Contains(r.stderr, "--format gnark") {
					t.Errorf("no way out is named: %s", r.stderr)
				}
				continue
			}
			sl(t, codeOK, json...)
			sl(t, codeOK, "export", "vkey", g.path("c.vk"), g.path("vk.json"))
			sl(t, codeOK, "verify", "--key", g.path("vk.json"), "--proof", proof, "--public", public)
		}
	}
}

// TestGnarkWrongVerifyingKey: the key of another set-up is told from the one
// that goes with the proving key; one of another circuit with the same α, β and
// δ is not, and then no proof verifies.
func TestGnarkWrongVerifyingKey(t *testing.T) {
	for _, commit := range []bool{false, true} {
		g, h, other := makeGnark(t, curve.BN254, commit), makeGnark(t, curve.BN254, commit), makeGnark(t, curve.BN254, !commit)
		prove := func(code int, vk string) result {
			t.Helper()
			return sl(t, code, "prove", "-q", "--key", g.path("c.pk"), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit"),
				"--vk", vk, "--proof", g.path("p"), "--public", g.path("x"))
		}
		if r := prove(codeInput, h.path("c.vk")); !strings.Contains(r.stderr, g.path("c.pk")) || !strings.Contains(r.stderr, h.path("c.vk")) {
			t.Errorf("the files are not named: %s", r.stderr)
		}
		if r := prove(codeInput, other.path("c.vk")); !strings.Contains(r.stderr, "commitment") {
			t.Errorf("%s", r.stderr)
		}
		vk, err := readVerifyingKey(t.Context(), g.path("c.vk"))
		if err != nil {
			t.Fatal(err)
		}
		vk.IC[0], vk.IC[1] = vk.IC[1], vk.IC[0]
		if err := writeVerifyingKey(g.path("swapped.vk"), vk); err != nil {
			t.Fatal(err)
		}
		if r := prove(codeInvalid, g.path("swapped.vk")); !strings.Contains(r.stderr, "does not verify") {
			t.Errorf("%s", r.stderr)
		}
		if _, err := os.Stat(g.path("p")); err == nil {
			t.Error("a proof that does not verify was written")
		}
	}
}

// TestWitnessesAreWiped: what the command reads of secrets is gone when it has
// been used.
func TestWitnessesAreWiped(t *testing.T) {
	g := makeGnark(t, curve.BN254, false)
	ccs, err := readGnarkR1CS(t.Context(), g.path("c.r1cs"))
	if err != nil {
		t.Fatal(err)
	}
	var m material
	if err := m.gnarkCircuit("c.r1cs", ccs); err != nil {
		t.Fatal(err)
	}
	in, done, err := m.load(t.Context(), g.path("w.wit"))
	if err != nil {
		t.Fatal(err)
	}
	values := in.(witness.Witness).Vector().(fr.Vector)
	if values[0].IsZero() || values[1].IsZero() {
		t.Fatalf("the witness is %v", values)
	}
	done()
	for i := range values {
		if !values[i].IsZero() {
			t.Errorf("value %d is still there", i)
		}
	}

	in, done, err = loadInput(t.Context(), bundled("vault.json"))
	if err != nil {
		t.Fatal(err)
	}
	var words [][]big.Word
	some := false
	for _, list := range in.(circom.Inputs) {
		for _, v := range list {
			words = append(words, v.Bits())
			some = some || v.Sign() != 0
		}
	}
	done()
	for _, w := range words {
		if slices.ContainsFunc(w, func(x big.Word) bool { return x != 0 }) {
			t.Error("a value of the input is still there")
		}
	}
	if !some {
		t.Error("the input is all zero, so this test shows nothing")
	}
}

// gnarkAccepts has gnark itself read and verify what the command wrote.
func gnarkAccepts(t *testing.T, id curve.ID, vk groth16.VerifyingKey, proofPath, publicPath string) {
	t.Helper()
	proof := groth16.NewProof(map[curve.ID]ecc.ID{curve.BN254: ecc.BN254, curve.BLS12381: ecc.BLS12_381}[id])
	w, err := witness.New(id.ScalarModulus())
	if err != nil {
		t.Fatal(err)
	}
	for path, to := range map[string]io.ReaderFrom{proofPath: proof, publicPath: w} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.ReadFrom(f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := groth16.Verify(proof, vk, w); err != nil {
		t.Errorf("gnark refuses the proof: %v", err)
	}
}

func TestGnarkSetup(t *testing.T) {
	for _, id := range curve.All() {
		for _, commit := range []bool{false, true} {
			g := makeGnark(t, id, commit)
			for _, key := range []string{"own.pk", "own.slk"} {
				sl(t, codeOK, "setup", "-q", "--unsafe", "--circuit", g.path("c.r1cs"), "--key", g.path(key), "--vk", g.path("own.vk"))
				args := []string{"prove", "-q", "--key", g.path(key), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit"),
					"--proof", g.path("p"), "--public", g.path("x")} // the format is gnark's, with either key
				if key == "own.pk" {
					sl(t, codeUsage, args...) // its file holds no verifying key
					args = append(args, "--vk", g.path("own.vk"))
				}
				sl(t, codeOK, args...)
				sl(t, codeOK, "verify", "--key", g.path("own.vk"), "--proof", g.path("p"), "--public", g.path("x"))
				if r := sl(t, codeOK, "inspect", g.path("p")); !strings.Contains(r.stdout, "gnark proof") {
					t.Errorf("%s: %s", key, r.stdout)
				}
			}
		}
	}
}

func TestGnarkDamaged(t *testing.T) {
	g := makeGnark(t, curve.BN254, false)
	h := makeGnark(t, curve.BLS12381, false)
	base := []string{"prove", "-q", "--proof", g.path("p"), "--public", g.path("x")}
	cut := copyFile(t, g.path("c.pk"), g.path("cut.pk"), func(b []byte) []byte { return b[:len(b)-20] })
	for _, args := range [][]string{
		{"--key", cut, "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit")},
		{"--key", g.path("c.pk"), "--vk", h.path("c.vk"), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit")},
		{"--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", h.path("c.r1cs"), "--witness", g.path("w.wit")},
		{"--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.vk"), "--witness", g.path("w.wit")},
		{"--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"), "--witness", g.path("c.vk")},
		{"--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"), "--witness", "none"},
	} {
		sl(t, codeInput, append(base, args...)...)
	}
	sl(t, codeUsage, append(base, "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--witness", g.path("w.wit"))...)
	for _, name := range []string{"p", "x"} {
		if _, err := os.Stat(g.path(name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

func TestInspectGnark(t *testing.T) {
	g := makeGnark(t, curve.BLS12381, true)
	for name, want := range map[string]string{"c.pk": "gnark proving key", "c.vk": "gnark verifying key", "c.r1cs": "gnark r1cs", "one.wit": "gnark witness"} {
		args := []string{"inspect", "--json", g.path(name)}
		if name == "one.wit" {
			args = append(args, "--curve", "bls12-381")
		}
		if name == "c.pk" {
			sl(t, codeInput, args...) // it makes commitments: only with its circuit can it be read
			args = append(args, "--circuit", g.path("c.r1cs"))
		}
		got := decode[map[string]any](t, sl(t, codeOK, args...).stdout)
		if got["kind"] != want || got["curve"] != "bls12-381" {
			t.Errorf("%s: %v", name, got)
		}
		if name == "one.wit" && (got["values"] != 3.0 || got["zeros"] != 0.0 || got["ones"] != 1.0 || got["others"] != 2.0) {
			t.Errorf("%s: %v", name, got)
		}
	}
	plain := makeGnark(t, curve.BN254, false)
	got := decode[map[string]any](t, sl(t, codeOK, "inspect", "--json", plain.path("c.pk")).stdout)
	if got["kind"] != "gnark proving key" || got["curve"] != "bn254" || got["basis"] != "monomial" {
		t.Errorf("%v", got)
	}
}
