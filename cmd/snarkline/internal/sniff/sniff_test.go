package sniff

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"github.com/snarkline/snarkline/curve"
)

func sniffBytes(t *testing.T, b []byte) Result {
	t.Helper()
	r, err := Reader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCircomFiles(t *testing.T) {
	dir := "../../../../formats/circom/testdata"
	for name, want := range map[string]Kind{
		"bn128/vault.r1cs": R1CS, "bn128/vault.wtns": Wtns, "bls12381/vault.zkey": Zkey,
		"bn128/vault.wasm": Wasm, "bls12381/vault.vkey.json": VKeyJSON, "bn128/vault.proof.json": ProofJSON,
		"bn128/vault.public.json": PublicJSON, "bn128/silent.public.json": PublicJSON, "vault.json": InputJSON,
		"vault.circom": Unknown, "bn128/vault.calldata": Unknown,
	} {
		if got, err := File(filepath.Join(dir, name)); err != nil || got.Kind != want {
			t.Errorf("%s: %v %v, want %v", name, got.Kind, err, want)
		}
	}
}

// TestDamagedJSON: a text that begins like JSON and is none is damaged, where
// it is.
func TestDamagedJSON(t *testing.T) {
	for text, want := range map[string]string{
		"{": "byte 1: it ends too early", `{"pi_a":1,"pi_b":2`: "byte 18", `["1",`: "byte 5", `["1"`: "byte 4",
		`{"a":[1,2}}`: "byte 9: ", `{"a" 1}`: "byte 5: ", `[nope]`: "byte 2: ",
	} {
		r, err := Reader(strings.NewReader(text), int64(len(text)))
		if err == nil || !strings.Contains(err.Error(), "damaged JSON at "+want) {
			t.Errorf("%s: %v %v, want %q", text, r.Kind, err, want)
		}
	}
	// A constraint system whose length begins like JSON.
	b := make([]byte, 0x17b)
	b[0], b[1] = '{', 1
	if r := sniffBytes(t, b[:0x17b]); r.Kind != Unknown {
		t.Errorf("cut: %v", r.Kind)
	}
	if r := sniffBytes(t, append(b, make([]byte, 32)...)); r.Kind != GnarkR1CS {
		t.Errorf("whole: %v", r.Kind)
	}
}

// square is x² = y, with a commitment or without.
type square struct {
	X      frontend.Variable
	Y      frontend.Variable `gnark:",public"`
	commit bool
}

func (c *square) Define(api frontend.API) error {
	api.AssertIsEqual(api.Mul(c.X, c.X), c.Y)
	if c.commit {
		v, err := api.(frontend.Committer).Commit(c.X)
		if err != nil {
			return err
		}
		api.AssertIsDifferent(v, 0)
	}
	return nil
}

func TestGnarkFiles(t *testing.T) {
	for _, id := range curve.All() {
		for _, commit := range []bool{false, true} {
			field := map[curve.ID]ecc.ID{curve.BN254: ecc.BN254, curve.BLS12381: ecc.BLS12_381}[id].ScalarField()
			ccs, err := frontend.Compile(field, r1cs.NewBuilder, &square{commit: commit})
			if err != nil {
				t.Fatal(err)
			}
			pk, vk, err := groth16.Setup(ccs)
			if err != nil {
				t.Fatal(err)
			}
			w, err := frontend.NewWitness(&square{X: 3, Y: 9}, field)
			if err != nil {
				t.Fatal(err)
			}
			p, err := groth16.Prove(ccs, pk, w)
			if err != nil {
				t.Fatal(err)
			}
			check := func(want Kind, raw bool, write func(io.Writer) (int64, error)) {
				t.Helper()
				var b bytes.Buffer
				if _, err := write(&b); err != nil {
					t.Fatal(err)
				}
				got := sniffBytes(t, b.Bytes())
				if got.Kind != want || got.Raw != raw || (got.Curve != id && want != GnarkWitness && want != GnarkR1CS) {
					t.Errorf("%v commit %v: %+v, want %v raw %v", id, commit, got, want, raw)
				}
				if cut := sniffBytes(t, b.Bytes()[:b.Len()-1]); cut.Kind == want {
					t.Errorf("%v: a truncated file is still taken for a %v", id, want)
				}
			}
			check(GnarkProof, false, p.WriteTo)
			check(GnarkProof, true, p.WriteRawTo)
			check(GnarkVK, false, vk.WriteTo)
			check(GnarkVK, true, vk.WriteRawTo)
			check(GnarkPK, false, pk.WriteTo)
			check(GnarkPK, true, pk.WriteRawTo)
			check(GnarkWitness, false, w.WriteTo)
			check(GnarkR1CS, false, ccs.WriteTo)
			var d bytes.Buffer
			if err := pk.WriteDump(&d); err != nil {
				t.Fatal(err)
			}
			if got := sniffBytes(t, d.Bytes()); got.Kind != GnarkPK || !got.Raw {
				t.Errorf("%v: dump is taken for %+v", id, got)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "{", `{"pi_a":1,"pi_b":2,"pi_c":3}`, `["1"]`, "r1cs", "zkey\x01", "\x00asm", "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := Reader(bytes.NewReader(b), int64(len(b))); err == nil && r.Kind == "" {
			t.Error("no kind")
		}
	})
}
