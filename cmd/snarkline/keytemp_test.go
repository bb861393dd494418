package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark/frontend"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// squares is a chain of squarings: 1 stays 1.
type squares struct {
	X     frontend.Variable
	Y     frontend.Variable `gnark:",public"`
	steps int
}

func (c *squares) Define(api frontend.API) error {
	x := c.X
	for range c.steps {
		x = api.Mul(x, x)
	}
	api.AssertIsEqual(x, c.Y)
	return nil
}

// TestKeyTemp: a gnark key of some size goes to a temporary file, or stays in
// memory where it is told to or cannot, and the command says which.
func TestKeyTemp(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a key of some MB")
	}
	g := makeGnarkOf(t, curve.BN254, &squares{steps: 1<<14 - 3}, map[string]frontend.Circuit{"w.wit": &squares{X: 1, Y: 1}})
	folder := t.TempDir()
	config := func(text string) string {
		path := filepath.Join(t.TempDir(), "snarkline.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := func(out string, more ...string) []string {
		return append(more, "prove", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"),
			"--witness", g.path("w.wit"), "--proof", filepath.Join(out, "proof"), "--public", filepath.Join(out, "public"))
	}
	const inFile, inMemory = "mapped from a temporary file of", "stay in memory"
	missing := filepath.Join(folder, "missing")
	first := sl(t, codeOK, append(args(t.TempDir()), "--key-temp", folder)...)
	if strings.Contains(first.stderr, "itself is memory") {
		t.Skipf("the tests' folder is memory: %s", first.stderr)
	}
	for _, c := range []struct {
		name string
		env  string // TMPDIR
		args []string
		pre  []string
		want string // empty: nothing is said
		of   string
	}{
		{"a folder", "", []string{"--key-temp", folder}, nil, inFile, folder},
		{"a folder, quiet", "", []string{"-q", "--key-temp", folder}, nil, "", ""},
		{"none", "", []string{"--key-temp", "none"}, nil, "", ""},
		{"a folder that is not there", "", []string{"--key-temp", missing}, nil, inMemory, missing},
		{"a folder that is not there, quiet", "", []string{"-q", "--key-temp", missing}, nil, inMemory, missing},
		{"auto without a folder", missing, nil, nil, inMemory, missing},
		{"auto without a folder, quiet", missing, []string{"-q"}, nil, "", ""},
		{"settings", "", nil, []string{"--config", config("[prove]\nkey-temp = \"none\"\n")}, "", ""},
		{"settings with a folder", "", nil, []string{"--config", config("[prove]\nkey-temp = \"" + folder + "\"\n")}, inFile, folder},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("TMPDIR", c.env)
			}
			out := filepath.Dir(g.path("x"))
			r := sl(t, codeOK, append(args(out, c.pre...), c.args...)...)
			if c.want == "" {
				if strings.Contains(r.stderr, inFile) || strings.Contains(r.stderr, inMemory) {
					t.Errorf("says %s", r.stderr)
				}
			} else if !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, c.of) {
				t.Errorf("does not say %q of %s: %s", c.want, c.of, r.stderr)
			}
			gnarkAccepts(t, curve.BN254, g.vk, filepath.Join(out, "proof"), filepath.Join(out, "public"))
			if left := files(t, folder); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		for _, after := range []int64{3, 30, 100} {
			parent, cancel := context.WithCancelCause(t.Context())
			ctx := &asked{Context: parent, end: func() { cancel(errInterrupted) }}
			ctx.left.Store(after)
			mark, mapped := alloc.Marked(), alloc.Default().Mapped()
			r := invoke(ctx, bytes.NewReader(nil), append(args(t.TempDir()), "--key-temp", folder)...)
			cancel(nil)
			mark.CheckLeaks(t)
			if r.code != codeInterrupted || !errors.Is(context.Cause(parent), errInterrupted) {
				t.Errorf("interrupted at place %d: code %d, %s", after, r.code, r.stderr)
			}
			if left := files(t, folder); len(left) > 0 || alloc.Default().Mapped() != mapped {
				t.Errorf("interrupted at place %d it leaves %v, %d bytes mapped", after, left, alloc.Default().Mapped()-mapped)
			}
		}
	})
}
