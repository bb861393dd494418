package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCommitted checks that the committed assembly is what the generator writes.
func TestCommitted(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "gen")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, k := range []string{"g1_381", "g2_381", "g1_254", "g2_254", "fr_381", "fr_254",
		"vec_fp381", "vec_fp254", "vec_fr381", "vec_fr254", "sort"} {
		asm, stubs := filepath.Join(dir, k+".s"), filepath.Join(dir, k+".go")
		if out, err := exec.Command(bin, "-kernel", k, "-out", asm, "-stubs", stubs, "-pkg", "ifma").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", k, err, out)
		}
		for got, want := range map[string]string{asm: "../" + k + "_amd64.s", stubs: "../" + k + "_amd64.go"} {
			if !bytes.Equal(body(t, got), body(t, want)) {
				t.Errorf("%s is not what the generator writes", want)
			}
		}
	}
}

// body is a file without its first line, which names the command.
func body(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	return rest
}
