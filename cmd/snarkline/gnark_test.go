package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/snarkline/snarkline/curve"
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
	g := &gnarkFiles{dir: t.TempDir()}
	ccs, err := frontend.Compile(id.ScalarModulus(), r1cs.NewBuilder, &product{commit: commit})
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
	for name, a := range map[string]*product{"w.wit": {X: 3, Y: 5, Z: 15}, "bad.wit": {X: 3, Y: 5, Z: 16}} {
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
				sl(t, codeUsage, json...)
				continue
			}
			sl(t, codeOK, json...)
			sl(t, codeOK, "export", "vkey", g.path("c.vk"), g.path("vk.json"))
			sl(t, codeOK, "verify", "--key", g.path("vk.json"), "--proof", proof, "--public", public)
		}
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
					"--format", "gnark", "--proof", g.path("p"), "--public", g.path("x")}
				if key == "own.pk" {
					sl(t, codeUsage, args...) // its file holds no verifying key
					args = append(args, "--vk", g.path("own.vk"))
				}
				sl(t, codeOK, args...)
				sl(t, codeOK, "verify", "--key", g.path("own.vk"), "--proof", g.path("p"), "--public", g.path("x"))
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
	for name, want := range map[string]string{"c.pk": "gnark proving key", "c.vk": "gnark verifying key", "c.r1cs": "gnark r1cs", "w.wit": "gnark witness"} {
		args := []string{"inspect", "--json", g.path(name)}
		if name == "w.wit" {
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
	}
	plain := makeGnark(t, curve.BN254, false)
	got := decode[map[string]any](t, sl(t, codeOK, "inspect", "--json", plain.path("c.pk")).stdout)
	if got["kind"] != "gnark proving key" || got["curve"] != "bn254" || got["basis"] != "monomial" {
		t.Errorf("%v", got)
	}
}
