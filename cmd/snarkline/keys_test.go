package main

import (
	"path/filepath"
	"strings"
	"testing"

	"os"
)

// proveWith makes a proof with a key and verifies it with vk.
func proveWith(t *testing.T, key, vk string, more ...string) {
	t.Helper()
	dir := t.TempDir()
	proof, public := filepath.Join(dir, "proof.json"), filepath.Join(dir, "public.json")
	sl(t, codeOK, append([]string{"prove", "-q", "--key", key, "--proof", proof, "--public", public}, more...)...)
	sl(t, codeOK, "verify", "--key", vk, "--proof", proof, "--public", public)
}

func TestSetup(t *testing.T) {
	for _, circuit := range []string{"bn128/vault", "bls12381/silent"} {
		at := bundled(circuit)
		for _, c := range []struct {
			key  string
			args []string
			more []string
			want string
		}{
			{"k.slk", nil, nil, `"folded": true`},
			{"k.slk", []string{"--no-fold"}, nil, `"folded": false`},
			{"k.slk", []string{"--basis", "monomial"}, nil, `"basis": "monomial"`},
			{"k.zkey", nil, nil, `"basis": "coset"`},
		} {
			dir := t.TempDir()
			key, vk := filepath.Join(dir, c.key), filepath.Join(dir, "vk.json")
			r := sl(t, codeOK, append([]string{"setup", "--unsafe", "--json", "--circuit", at + ".r1cs", "--key", key, "--vk", vk}, c.args...)...)
			if !strings.Contains(r.stderr, "toxic waste") || !strings.Contains(r.stdout, c.want) {
				t.Errorf("%v: %s %s", c, r.stdout, r.stderr)
			}
			proveWith(t, key, vk, append([]string{"--witness", at + ".wtns"}, c.more...)...)
		}
	}
}

func TestSetupRefuses(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	key, vk := filepath.Join(dir, "k.slk"), filepath.Join(dir, "vk.json")
	sl(t, codeUsage, "setup", "--circuit", at+".r1cs", "--key", key, "--vk", vk)
	sl(t, codeUsage, "setup", "--unsafe", "--circuit", at+".r1cs", "--key", filepath.Join(dir, "k.key"), "--vk", vk)
	sl(t, codeUsage, "setup", "--unsafe", "--circuit", at+".r1cs", "--key", filepath.Join(dir, "k.zkey"), "--basis", "monomial", "--vk", vk)
	sl(t, codeUsage, "setup", "--unsafe", "--circuit", at+".r1cs", "--key", filepath.Join(dir, "k.pk"), "--basis", "coset", "--vk", vk)
	sl(t, codeInput, "setup", "--unsafe", "--circuit", at+".wtns", "--key", key, "--vk", vk)
	sl(t, codeInput, "setup", "--unsafe", "--circuit", "none.r1cs", "--key", key, "--vk", vk)
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

func TestFold(t *testing.T) {
	at := bundled("bls12381/vault")
	dir := t.TempDir()
	plain, folded := filepath.Join(dir, "plain.slk"), filepath.Join(dir, "folded.slk")
	sl(t, codeOK, "export", "key", at+".zkey", plain)
	sl(t, codeOK, "export", "key", at+".zkey", folded, "--fold", "--circuit", at+".r1cs")
	for key, want := range map[string]string{plain: "no, 7 transforms", folded: "yes, 4 transforms"} {
		if r := sl(t, codeOK, "inspect", key); !strings.Contains(r.stdout, want) {
			t.Errorf("%s: %s", key, r.stdout)
		}
		proveWith(t, key, at+".vkey.json", "--witness", at+".wtns")
	}
	sl(t, codeInput, "export", "key", at+".zkey", folded, "--fold", "--circuit", bundled("bls12381/silent.r1cs"))
	sl(t, codeUsage, "export", "key", at+".zkey", filepath.Join(dir, "f.zkey"), "--fold", "--circuit", at+".r1cs")
}

func TestExport(t *testing.T) {
	for _, curve := range []string{"bn128", "bls12381"} {
		at := bundled(curve + "/vault")
		dir := t.TempDir()
		path := func(name string) string { return filepath.Join(dir, name) }

		sl(t, codeOK, "export", "vkey", at+".zkey", path("vk.json"))
		same(t, path("vk.json"), at+".vkey.json")
		sl(t, codeOK, "export", "vkey", at+".vkey.json", path("vk.gnark"))
		sl(t, codeOK, "export", "proof", at+".proof.json", path("proof.gnark"))
		sl(t, codeOK, "export", "public", at+".public.json", path("public.gnark"), "--curve", curve)
		sl(t, codeOK, "verify", "--key", path("vk.gnark"), "--proof", path("proof.gnark"), "--public", path("public.gnark"))
		sl(t, codeOK, "verify", "--key", at+".vkey.json", "--proof", path("proof.gnark"), "--public", at+".public.json")
		sl(t, codeOK, "export", "proof", path("proof.gnark"), path("proof.json"))
		same(t, path("proof.json"), at+".proof.json")
		sl(t, codeOK, "export", "public", path("public.gnark"), path("public.json"), "--curve", curve)
		same(t, path("public.json"), at+".public.json")
		sl(t, codeOK, "export", "witness", "--wasm", at+".wasm", "--input", bundled("vault.json"), path("w.wtns"))
		same(t, path("w.wtns"), at+".wtns")
		r := sl(t, codeOK, "export", "calldata", "--proof", at+".proof.json", "--public", at+".public.json")
		if want, err := os.ReadFile(at + ".calldata"); err != nil || strings.TrimSpace(r.stdout) != strings.TrimSpace(string(want)) {
			t.Errorf("%s: calldata is not snarkjs's: %v\n%s", curve, err, r.stdout)
		}
	}
}

// same fails the test unless two files have the same bytes but for line ends.
func same(t *testing.T, got, want string) {
	t.Helper()
	a, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(a)) != strings.TrimSpace(string(b)) {
		t.Errorf("%s is not %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	at := bundled("bn128/vault")
	dir := t.TempDir()
	args := func(key, proof, public string) []string {
		return []string{"verify", "--json", "--key", key, "--proof", proof, "--public", public}
	}
	r := sl(t, codeOK, args(at+".vkey.json", at+".proof.json", at+".public.json")...)
	if v := decode[verifyResult](t, r.stdout); !v.OK || v.Curve != "bn254" || v.Public != 2 {
		t.Errorf("%+v", v)
	}
	// Another statement: the first number of the public inputs is changed.
	other := copyFile(t, at+".public.json", filepath.Join(dir, "other.json"), func(b []byte) []byte {
		i := strings.IndexByte(string(b), '"') + 1
		b[i+1] = '0' + (b[i+1]-'0'+1)%10
		return b
	})
	r = sl(t, codeInvalid, args(at+".vkey.json", at+".proof.json", other)...)
	if v := decode[verifyResult](t, r.stdout); v.OK || v.Code != codeInvalid || v.Reason == "" {
		t.Errorf("%+v", v)
	}
	// A point that is not on the curve makes a damaged file, not a wrong proof.
	off := copyFile(t, at+".proof.json", filepath.Join(dir, "off.json"), func(b []byte) []byte {
		i := strings.Index(string(b), `"pi_a"`) + 15
		b[i] = '0' + (b[i]-'0'+1)%10
		return b
	})
	r = sl(t, codeInput, args(at+".vkey.json", off, at+".public.json")...)
	if !strings.Contains(r.stderr, "pi_a") || !strings.Contains(r.stderr, "off.json") {
		t.Errorf("got %s", r.stderr)
	}
	for _, a := range [][]string{
		args("none.json", at+".proof.json", at+".public.json"),
		args(at+".proof.json", at+".proof.json", at+".public.json"),
		args(at+".vkey.json", at+".vkey.json", at+".public.json"),
		args(at+".vkey.json", at+".proof.json", at+".proof.json"),
		args(at+".vkey.json", at+".proof.json", bundled("bn128/silent.public.json")),
		args(at+".vkey.json", bundled("bls12381/vault.proof.json"), at+".public.json"),
	} {
		sl(t, codeInput, a...)
	}
}
