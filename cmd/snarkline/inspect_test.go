package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInspect(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"bn128/vault.r1cs":          {"kind": "circom r1cs", "curve": "bn254", "constraints": 238.0, "wires": 244.0, "domain": 256.0, "public_outputs": 1.0},
		"bls12381/vault.wtns":       {"kind": "circom witness", "curve": "bls12-381", "values": 244.0},
		"bls12381/vault.zkey":       {"kind": "snarkjs proving key", "curve": "bls12-381", "wires": 244.0, "public": 2.0, "domain": 256.0, "basis": "coset", "folded": false},
		"bn128/vault.wasm":          {"curve": "bn254", "wires": 244.0, "inputs": 11.0},
		"bn128/vault.vkey.json":     {"curve": "bn254", "public": 2.0, "ic": 3.0},
		"bls12381/vault.proof.json": {"curve": "bls12-381", "well_formed": true},
		"bn128/vault.public.json":   {"values": 2.0},
		"vault.json":                {"kind": "circuit input", "signals": 4.0, "values": 11.0},
	} {
		r := sl(t, codeOK, "inspect", "--json", bundled(name))
		got := decode[map[string]any](t, r.stdout)
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
			}
		}
		if r.stderr != "" {
			t.Errorf("%s: %s", name, r.stderr)
		}
	}
}

func TestInspectShares(t *testing.T) {
	got := decode[map[string]any](t, sl(t, codeOK, "inspect", "--json", bundled("bn128/vault.wtns")).stdout)
	n := func(name string) float64 { v, _ := got[name].(float64); return v }
	if n("zeros")+n("ones")+n("others") != n("values") || n("ones") < 1 {
		t.Errorf("%v", got)
	}
}

// TestInspectPublicNumbers: what verify takes as public inputs, inspect reads.
func TestInspectPublicNumbers(t *testing.T) {
	path := write(t, "public.json", `[1, "2", "0x3"]`)
	if got := decode[map[string]any](t, sl(t, codeOK, "inspect", "--json", path).stdout); got["values"] != 3.0 {
		t.Errorf("%v", got)
	}
	at := bundled("bn128/vault")
	text, err := os.ReadFile(at + ".public.json")
	if err != nil {
		t.Fatal(err)
	}
	sl(t, codeOK, "verify", "--key", at+".vkey.json", "--proof", at+".proof.json", "--public",
		write(t, "public.json", strings.ReplaceAll(string(text), `"`, "")))
	for _, text := range []string{`["one"]`, `[{}]`, `["` + strings.Repeat("9", 80) + `"]`} {
		sl(t, codeInput, "inspect", write(t, "public.json", text))
	}
}

func TestInspectSeveral(t *testing.T) {
	a, b := bundled("bn128/vault.wtns"), bundled("bn128/vault.r1cs")
	r := sl(t, codeOK, "inspect", a, b)
	if !strings.Contains(r.stdout, a+": circom witness\n") || !strings.Contains(r.stdout, "\n\n"+b+": circom r1cs\n") {
		t.Errorf("%s", r.stdout)
	}
	r = sl(t, codeInput, "inspect", "--json", a, "none", b)
	if got := decode[[]map[string]any](t, r.stdout); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if !strings.Contains(r.stderr, "none") {
		t.Errorf("%s", r.stderr)
	}
}

func TestInspectDamaged(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"vault.r1cs", "vault.wtns", "vault.zkey", "vault.wasm", "vault.vkey.json", "vault.proof.json"} {
		cut := copyFile(t, bundled("bn128/"+name), filepath.Join(dir, name), func(b []byte) []byte { return b[:len(b)*2/3] })
		r := sl(t, codeInput, "inspect", cut)
		if !strings.Contains(r.stderr, name) || r.stdout != "" {
			t.Errorf("%s: %q %q", name, r.stdout, r.stderr)
		}
	}
	sl(t, codeInput, "inspect", write(t, "text.txt", "hello"))
	sl(t, codeInput, "inspect", write(t, "empty", ""))
	sl(t, codeInput, "inspect", dir)
}

func TestVersion(t *testing.T) {
	if r := sl(t, codeOK, "version"); !strings.HasPrefix(r.stdout, "snarkline ") {
		t.Errorf("%q", r.stdout)
	}
	if v := decode[versionResult](t, sl(t, codeOK, "version", "--json").stdout); v.Go == "" {
		t.Errorf("%+v", v)
	}
}
