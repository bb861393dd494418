package cpu

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// Transform is a kind of number-theoretic transform. The zero value takes
// coefficients in natural order to values on the domain in bit-reversed order.
type Transform struct {
	Inverse  bool // from values to coefficients
	Coset    bool // values are on the coset of the domain
	Reversed bool // the input is in bit-reversed order, the result in natural order
}

// Transform replaces a, d.Size() elements in Montgomery form, by its transform
// over d, all workers taking part. It draws no more scratch from sc than
// QuotientScratch states. Quotient does the transforms of a proof by itself.
func (e *Engine) Transform(ctx context.Context, sc *alloc.Scope, d curve.Domain, t Transform, a []curve.Scalar) error {
	return e.kernels.Transform(ctx, sc, d, a, t.Inverse, t.Coset, t.Reversed)
}
