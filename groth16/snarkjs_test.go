package groth16_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/circom"
	"github.com/snarkline/snarkline/groth16"
)

// A key that snarkjs made folds: its roots of unity are not gnark's on
// BLS12-381, its .zkey has no C, and it has rows for the public inputs.
func TestFoldSnarkjsKey(t *testing.T) {
	for _, id := range curve.All() {
		for _, name := range []string{"vault", "silent"} {
			t.Run(id.String()+"/"+name, func(t *testing.T) {
				defer alloc.Marked().CheckLeaks(t)
				path := func(ext string) string {
					return filepath.Join("..", "formats", "circom", "testdata", id.Circom(), name+ext)
				}
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				z, err := circom.OpenZkey(path(".zkey"))
				must(err)
				key, err := z.ProvingKey(t.Context(), circom.KeyOptions{})
				must(err)
				r, err := circom.OpenR1CS(path(".r1cs"))
				must(err)
				c, err := r.Circuit(t.Context(), nil)
				must(err)
				w, err := circom.OpenWtns(path(".wtns"))
				must(err)
				public, err := w.Public(key.NbPublic)
				must(err)
				f, err := os.Open(path(".vkey.json"))
				must(err)
				vk, err := circom.ReadVerifyingKey("vkey", f)
				must(err)
				must(f.Close())
				ar, err := cpu.New(id)
				must(err)

				folded, err := groth16.Fold(t.Context(), key, &c.R1CS, groth16.FoldOptions{})
				must(err)
				for _, k := range []*groth16.ProvingKey{key, folded} {
					p, err := groth16.ProveDirect(t.Context(), k, c, ar, w, nil)
					must(err)
					must(vk.Verify(p, public))
				}
				must(folded.Close())
				must(key.Close())
				must(c.Close())
				must(r.Close())
				must(w.Close())
				must(z.Close())
			})
		}
	}
}
