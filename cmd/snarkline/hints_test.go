package main

import (
	"math/big"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/std/lookup/logderivlookup"
	"github.com/consensys/gnark/std/math/bits"
	"github.com/consensys/gnark/std/math/cmp"
	"github.com/consensys/gnark/std/rangecheck"
	"github.com/consensys/gnark/std/selector"

	"github.com/snarkline/snarkline/curve"
)

// hinted uses parts of gnark's library whose solvers are hints.
type hinted struct {
	X, At frontend.Variable
	Y     frontend.Variable `gnark:",public"`
}

func (c *hinted) Define(api frontend.API) error {
	rangecheck.New(api).Check(c.X, 20)
	table := logderivlookup.New(api)
	for i := range 4 {
		table.Insert(i * i)
	}
	square := table.Lookup(c.At)[0]
	small := cmp.NewBoundedComparator(api, big.NewInt(1<<21), false).IsLess(c.At, c.X)
	low := bits.FromBinary(api, bits.ToBinary(api, c.X, bits.WithNbDigits(20))[:8])
	picked := selector.Mux(api, c.At, 0, 0, 0, low)
	api.AssertIsEqual(api.Add(square, small, picked), c.Y)
	return nil
}

// TestHints: a circuit that needs the hints of gnark's library is proved by the
// command as it is built. This test's own program would not do: it imports
// those packages to compile the circuit.
func TestHints(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	command := filepath.Join(t.TempDir(), "snarkline")
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const x = 0x1234
	g := makeGnarkOf(t, curve.BN254, &hinted{}, map[string]frontend.Circuit{"w.wit": &hinted{X: x, At: 3, Y: 9 + 1 + x&0xff}})
	proof, public := g.path("proof"), g.path("public")
	for _, key := range []string{"c.pk", "c.slk"} {
		args := []string{"prove", "-q", "--key", g.path(key), "--circuit", g.path("c.r1cs"), "--witness", g.path("w.wit"), "--proof", proof, "--public", public}
		if key == "c.slk" {
			sl(t, codeOK, "export", "key", g.path("c.pk"), g.path(key), "--vk", g.path("c.vk"), "--circuit", g.path("c.r1cs"))
		} else {
			args = append(args, "--vk", g.path("c.vk"))
		}
		if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", key, err, out)
		}
		gnarkAccepts(t, curve.BN254, g.vk, proof, public)
	}
}
