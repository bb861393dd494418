package groth16

import (
	"context"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// ProveDirect makes one proof by the arithmetic's methods one after another,
// without pipeline, split of the witness, or verification: the reference that
// the stages are held against, and a way to prove with nothing but this package
// and a processor. random is Assemble's.
func ProveDirect(ctx context.Context, key *ProvingKey, c Circuit, ar Arithmetic, input any, random io.Reader) (*Proof, error) {
	sc := alloc.ScopeOf(ctx)
	a, err := c.Synthesize(ctx, sc, input, key.Want(ar))
	if err != nil {
		return nil, err
	}
	defer a.Release()
	w := a.W.Slice()
	var sums Sums
	for _, e := range []struct {
		name string
		q    curve.Query
		to   *curve.G1
	}{{"A", key.A, &sums.A}, {"B1", key.B1, &sums.B1}, {"L", key.L, &sums.L}} {
		if *e.to, err = ar.MSMG1(ctx, sc, e.q, w, nil); err != nil {
			return nil, fmt.Errorf("sum of %s: %w", e.name, err)
		}
	}
	if sums.B2, err = ar.MSMG2(ctx, sc, key.B2, w, nil); err != nil {
		return nil, fmt.Errorf("sum of B2: %w", err)
	}
	var cs []curve.Scalar
	if a.C != nil {
		cs = a.C.Slice()
	}
	if err := ar.Quotient(ctx, sc, key.Domain, key.Basis, a.A.Slice(), a.B.Slice(), cs); err != nil {
		return nil, fmt.Errorf("quotient: %w", err)
	}
	if sums.H, err = ar.MSMG1(ctx, sc, curve.Query{Points: key.H}, a.A.Slice(), nil); err != nil {
		return nil, fmt.Errorf("sum of H: %w", err)
	}
	return Assemble(key, &sums, a, random)
}
