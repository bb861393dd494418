package layers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLayers(t *testing.T) {
	rules, err := Read("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"alloc", "pipeline", "curve", "cpu", "groth16", "formats", "stages", "cmd/snarkline"} {
		if _, ok := rules[room]; !ok {
			t.Errorf("ARCHITECTURE.md has no row for %s", room)
		}
	}
	broken, err := rules.Check("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range broken {
		t.Error(line)
	}
}

func TestCheckFindsABrokenLayer(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("page.md", "| package | is | may import |\n|---|---|---|\n| `low` | x | nothing of ours |\n| `high` | x | low |\n")
	write("low/a.go", "package low\n\nimport _ \"github.com/snarkline/snarkline/high\"\n")
	write("high/internal/b.go", "package b\n\nimport _ \"github.com/snarkline/snarkline/low\"\n")
	write("stray/c.go", "package c\n")
	rules, err := Read(filepath.Join(dir, "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	broken, err := rules.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(broken, "\n")
	want := "low/a.go: low may not import high\nstray/c.go: its folder is not in the table"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
