package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// asked is a context that ends when somebody has asked it left times whether it
// has ended: each is a place where Ctrl-C can hit.
type asked struct {
	context.Context
	left atomic.Int64
	end  func()
}

func (c *asked) Err() error {
	if c.left.Add(-1) == 0 {
		c.end()
	}
	return c.Context.Err()
}

// TestInterruptedAnywhere interrupts commands at the 1st, 2nd, 4th, … place
// where they look, until one gets through: each ends with 130, leaves no
// half-written file, and gives all memory back.
func TestInterruptedAnywhere(t *testing.T) {
	g := makeGnark(t, curve.BN254, true)
	at := bundled("bn128/vault")
	for _, c := range []struct {
		name   string
		places int64 // it looks at least so often
		args   []string
	}{
		{"set-up", 8, []string{"setup", "--unsafe", "--circuit", at + ".r1cs", "--key", "OUT/k.slk", "--vk", "OUT/vk.json"}},
		{"set-up of a .zkey", 8, []string{"setup", "--unsafe", "--circuit", at + ".r1cs", "--key", "OUT/k.zkey", "--vk", "OUT/vk.json"}},
		{"set-up for gnark", 8, []string{"setup", "--unsafe", "--circuit", g.path("c.r1cs"), "--key", "OUT/k.pk", "--vk", "OUT/vk"}},
		{"folding", 8, []string{"export", "key", at + ".zkey", "OUT/k.slk", "--fold", "--circuit", at + ".r1cs"}},
		{"key of gnark", 4, []string{"prove", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit"), "--proof", "OUT/p", "--public", "OUT/x"}},
		{"gnark's constraint system", 1, []string{"inspect", g.path("c.r1cs")}},
		{"verify", 2, []string{"verify", "--key", g.path("c.vk"), "--proof", "PROOF", "--public", "PUBLIC"}},
		{"calculator", 1, []string{"export", "witness", "--wasm", at + ".wasm", "--input", bundled("vault.json"), "OUT/w.wtns"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sl(t, codeOK, "prove", "-q", "--key", g.path("c.pk"), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit"),
				"--proof", g.path("proof"), "--public", g.path("public"))
			for after := int64(1); ; after *= 2 {
				out := t.TempDir()
				args := make([]string, len(c.args))
				for i := range args {
					args[i] = strings.NewReplacer("OUT", out, "PROOF", g.path("proof"), "PUBLIC", g.path("public")).Replace(c.args[i])
				}
				parent, cancel := context.WithCancelCause(t.Context())
				ctx := &asked{Context: parent, end: func() { cancel(errInterrupted) }}
				ctx.left.Store(after)
				mark := alloc.Marked()
				r := invoke(ctx, nil, args...)
				cancel(nil)
				mark.CheckLeaks(t)
				if parts, _ := filepath.Glob(out + "/.*"); len(parts) > 0 {
					t.Errorf("interrupted at place %d it leaves %v", after, parts)
				}
				if r.code == codeOK {
					if after <= c.places {
						t.Errorf("interrupted at place %d it goes on to the end", after)
					}
					return
				}
				if r.code != codeInterrupted || !strings.Contains(r.stderr, "interrupted") {
					t.Fatalf("interrupted at place %d: code %d, %s", after, r.code, r.stderr)
				}
			}
		})
	}
}

// TestInterruptedWhileAKeyIsWritten: also in the formats whose writers take no
// context.
func TestInterruptedWhileAKeyIsWritten(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	r, done, err := openSystem(ctx, bundled("bn128/vault.r1cs"))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for ext, o := range map[string]groth16.SetupOptions{
		extZkey: {Basis: curve.Coset}, extGnarkPK: {Basis: curve.Monomial}, extNative: {Basis: curve.Coset, Folded: true},
	} {
		key, vk, err := groth16.UnsafeSetup(ctx, r, o)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "key"+ext)
		ended, end := context.WithCancel(ctx)
		end()
		if err := writeKey(ended, path, key, vk, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", ext, err)
		}
		if got := files(t, dir); len(got) > 0 {
			t.Errorf("%s: left %v", ext, got)
		}
		if err := writeKey(ctx, path, key, vk, r); err != nil {
			t.Errorf("%s: %v", ext, err)
		}
		if err := errors.Join(os.Remove(path), key.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestInterruptedWhileReadingAndDrawing: commands that prove nothing end too.
func TestInterruptedWhileReadingAndDrawing(t *testing.T) {
	model, dir := write(t, "m.toml", testModel), t.TempDir()
	path := filepath.Join(dir, "run.trace")
	sl(t, codeOK, "plan", model, "--items", "20", "--record", path)
	for _, args := range [][]string{
		{"report", path}, {"trace", "info", path}, {"trace", "export", path, "--perfetto", filepath.Join(dir, "p.json")},
		{"plan", path, "--record", filepath.Join(dir, "again.trace")}, {"plan", model, "--items", "1000000"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		if r := invoke(ctx, nil, args...); r.code != codeInterrupted || r.stdout != "" {
			t.Errorf("%v: code %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("left %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := (&app{ctx: ctx}).until(func(w io.Writer) error {
		if _, err := io.WriteString(w, "before"); err != nil {
			t.Error(err)
		}
		cancel()
		_, err := io.WriteString(w, "after")
		return err
	})(io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
