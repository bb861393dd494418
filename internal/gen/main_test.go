package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommittedCopiesAreWhatIsGenerated(t *testing.T) {
	if err := run("", true); err != nil {
		t.Error(err)
	}
}

func TestCompareSeesEveryDifference(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := copying{From: "a/bls12381", To: "a/bn254", Renames: bn254}
	put("a/bls12381/x.go", "package bls12381\n\nconst Name = \"bls12-381\"\n")
	put("a/bls12381/y.go", "package bls12381\n")
	put("a/bn254/own.go", "package bn254\n")
	check := func(want bool, when string) {
		t.Helper()
		files, err := c.make(root)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.compare(root, files) == nil; got != want {
			t.Errorf("%s: up to date is %v", when, got)
		}
	}
	check(false, "before")
	files, err := c.make(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write(root, files); err != nil {
		t.Fatal(err)
	}
	check(true, "after writing")
	text, err := os.ReadFile(filepath.Join(root, "a/bn254/x.go"))
	if err != nil {
		t.Fatal(err)
	}
	want := header("a/bls12381/x.go") + "package bn254\n\nconst Name = \"bn254\"\n"
	if string(text) != want {
		t.Errorf("copy is\n%s\nwant\n%s", text, want)
	}
	put("a/bn254/x.go", want+"\n// edited\n")
	check(false, "after an edit")
	if err := c.write(root, files); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "a/bls12381/y.go")); err != nil {
		t.Fatal(err)
	}
	check(false, "with a copy whose source is gone")
}
