package bls12381

import (
	"context"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/curve"
)

// Transform replaces a by its number-theoretic transform over d, or over the
// coset of d, or by the inverse. The input is in natural order and the result
// in bit-reversed order, or the other way round when reversed.
func (e *Engine) Transform(ctx context.Context, sc *alloc.Scope, d curve.Domain, a []curve.Scalar, inverse, coset, reversed bool) error {
	if err := e.doTransform(ctx, sc, d, a, inverse, coset, reversed); err != nil {
		return fmt.Errorf("transform: %w", err)
	}
	return nil
}

func (e *Engine) doTransform(ctx context.Context, sc *alloc.Scope, d curve.Domain, a []curve.Scalar, inverse, coset, reversed bool) error {
	q, err := newQuotient(d, curve.Monomial)
	if err != nil {
		return err
	}
	if len(a) != q.n {
		return fmt.Errorf("%d elements for a domain of %d", len(a), q.n)
	}
	end, err := e.turn(ctx, q.n)
	if err != nil {
		return err
	}
	defer end()
	q.workers = e.quotientWorkers(q.n)
	ts, release, err := e.transforms(sc, q)
	if err != nil {
		return err
	}
	defer release()
	return ts.one(ctx, a, inverse, coset, reversed)
}

func (t *vectorNTT) one(ctx context.Context, a []curve.Scalar, inverse, coset, reversed bool) error {
	order, f := ifma.Natural, t.ntt.Forward
	if reversed {
		order = ifma.Reversed
	}
	if inverse {
		f = t.ntt.Inverse
	}
	return f(ctx, a, order, coset, t.workers, t.scratch)
}

func (q *quotient) one(ctx context.Context, a []curve.Scalar, inverse, coset, reversed bool) error {
	v := elements(a)
	one := fr.One()
	if coset && !inverse {
		if err := q.shiftInput(ctx, q.shift, one, v, reversed); err != nil {
			return err
		}
	}
	root := q.root
	if inverse {
		root = q.rootInv
	}
	q.use(root)
	pass := q.scatter
	if reversed {
		pass = q.collect
	}
	if err := pass(ctx, v); err != nil || !inverse {
		return err
	}
	if coset {
		return q.shiftInput(ctx, q.shiftInv, q.nInv, v, !reversed)
	}
	return par.Blocks(ctx, q.workers, q.n, blockLen, func(_, from, to int) error {
		x := v[from:to]
		x.ScalarMul(x, &q.nInv)
		return nil
	})
}

// shiftInput multiplies the coefficient of X^i by scale·base^i.
func (q *quotient) shiftInput(ctx context.Context, base, scale fr.Element, v fr.Vector, reversed bool) error {
	if reversed {
		return q.shiftBy(ctx, base, scale, v)
	}
	return par.Blocks(ctx, q.workers, q.n, blockLen, func(_, from, to int) error {
		var f fr.Element
		f.Exp(base, big.NewInt(int64(from)))
		f.Mul(&f, &scale)
		for i := from; i < to; i++ {
			v[i].Mul(&v[i], &f)
			f.Mul(&f, &base)
		}
		return nil
	})
}
