package circom

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// chain is a circuit of any size: x₀ is private, xᵢ₊₁ = xᵢ·(xᵢ + pᵢ) with the
// public inputs p in turn.
type chain struct {
	groth16.R1CS
	field *arith.Field
}

// newChain has n constraints and the given number of public inputs.
func newChain(t testing.TB, id curve.ID, n, public int) *chain {
	t.Helper()
	c := &chain{field: must[*arith.Field](t)(arith.FieldOf(id))}
	c.ID, c.Public, c.Wires, c.InputRows = id, public, 1+public+n+1, true
	one := []curve.Scalar{c.field.One()}
	x := func(i int) curve.Term { return curve.Term{Wire: uint32(1 + public + i)} }
	for _, m := range []*curve.Matrix{&c.A, &c.B, &c.C} {
		m.Rows, m.Coeffs = []uint32{0}, one
	}
	for i := range n {
		c.A.Terms = append(c.A.Terms, x(i))
		c.B.Terms = append(c.B.Terms, x(i))
		if public > 0 {
			c.B.Terms = append(c.B.Terms, curve.Term{Wire: uint32(1 + i%public)})
		}
		c.C.Terms = append(c.C.Terms, x(i+1))
		for _, m := range []*curve.Matrix{&c.A, &c.B, &c.C} {
			m.Rows = append(m.Rows, uint32(len(m.Terms)))
		}
	}
	check(t, c.Validate())
	return c
}

// witness runs the chain from x0 with all public inputs the same.
func (c *chain) witness(x0, public int64) groth16.Witness {
	w := groth16.Witness{c.field.One()}
	p, r := big.NewInt(public), c.ID.ScalarModulus()
	for range c.Public {
		w = append(w, c.field.FromBig(p))
	}
	if c.Public == 0 {
		p.SetInt64(0)
	}
	x := big.NewInt(x0)
	for len(w) < c.Wires {
		w = append(w, c.field.FromBig(x))
		x.Mul(x, new(big.Int).Add(x, p)).Mod(x, r)
	}
	return w
}

// borders are circuits around a power of two, without and with public inputs.
func borders(t *testing.T, id curve.ID, f func(name string, c *chain)) {
	t.Helper()
	for _, public := range []int{0, 3} {
		for _, rows := range []int{15, 16, 17} { // identity rows included
			f(fmt.Sprintf("%d rows, %d public", rows, public), newChain(t, id, rows-public-1, public))
		}
	}
}

// TestZkeyAroundPowersOfTwo proves circuits just under, at and over a power of
// two through our own .zkey, .r1cs and .wtns: a witness of zeros, and one whose
// public values are all the same.
func TestZkeyAroundPowersOfTwo(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		ctx := context.Background()
		borders(t, id, func(name string, c *chain) {
			var file bytes.Buffer
			check(t, WriteR1CS(&file, &c.R1CS))
			r := must[*Circuit](t)(readCircuit(file.Bytes()))
			defer r.Close()
			key, vk, err := groth16.UnsafeSetup(ctx, &r.R1CS, groth16.SetupOptions{})
			check(t, err)
			defer key.Close()
			file.Reset()
			check(t, WriteZkey(&file, key, vk, &r.R1CS))
			o := must[*opened](t)(readZkey(file.Bytes(), KeyOptions{}))
			defer o.close()
			for _, w := range []groth16.Witness{c.witness(0, 0), c.witness(3, 5)} {
				if err := o.vk.Verify(prove(t, o.key, o.circuit, w), w[1:1+c.Public]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	})
}
