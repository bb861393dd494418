package bls12381

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/curve"
)

// shiftLen is how many powers of the shift a worker keeps at a time.
const shiftLen = 1024

// quotientLayout is the number of workers and of scratch elements of a
// quotient on a domain of n.
func (e *Engine) quotientLayout(n int) (workers, size int) {
	workers = max(1, min(e.Workers, n/4096))
	return workers, max(n/2, 1) + min(n, shiftLen) + workers*min(3*n, bufLen)
}

// Quotient computes h from the evaluations a, b, c on d. For a coset key that
// is a·b − c (a·b when c is nil) on the coset. For a monomial key it is the
// coefficients, bit-reversed, of (a·b − c)/(Xⁿ − 1): since Xⁿ is gⁿ on the
// coset of g, a·b reduced there is c + h·(gⁿ − 1), and c, whose degree is below
// n, needs no transform to the coset. With c nil, a monomial quotient is taken
// as if c were 0, which is what a folded key needs.
func (e *Engine) Quotient(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) error {
	if err := e.quotient(ctx, sc, d, basis, a, b, c); err != nil {
		return fmt.Errorf("quotient: %w", err)
	}
	return nil
}

func (e *Engine) quotient(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) error {
	q, err := newQuotient(d, basis)
	if err != nil {
		return err
	}
	if len(a) != q.n || len(b) != q.n || (c != nil && len(c) != q.n) {
		return fmt.Errorf("vectors of %d, %d and %d for a domain of %d", len(a), len(b), len(c), q.n)
	}
	end, err := e.turn(ctx, q.n)
	if err != nil {
		return err
	}
	defer end()
	workers, size := e.quotientLayout(q.n)
	buf, err := alloc.Make[fr.Element](sc, size, alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return err
	}
	defer buf.Release()
	q.lay(buf.Slice(), d.Log, workers)

	x, y, z := elements(a), elements(b), elements(c)
	vectors := []fr.Vector{x, y}
	if c != nil {
		vectors = append(vectors, z)
	}
	q.build(q.rootInv)
	for _, v := range vectors {
		if err := q.scatter(ctx, v); err != nil {
			return err
		}
	}
	if basis == curve.Monomial {
		vectors = vectors[:2]
	}
	if err := q.shiftBy(ctx, q.shift, q.nInv, vectors...); err != nil {
		return err
	}
	q.build(q.root)
	for _, v := range vectors {
		if err := q.collect(ctx, v); err != nil {
			return err
		}
	}
	minus := z
	if basis == curve.Monomial {
		minus = nil
	}
	err = par.Blocks(ctx, workers, q.n, blockLen, func(_, from, to int) error {
		v := x[from:to]
		v.Mul(v, y[from:to])
		if minus != nil {
			v.Sub(v, minus[from:to])
		}
		return nil
	})
	if err != nil || basis == curve.Coset {
		return err
	}

	q.build(q.rootInv)
	if err := q.scatter(ctx, x); err != nil {
		return err
	}
	// 1/n and 1/(gⁿ − 1) go with the powers of 1/g
	var scale fr.Element
	scale.Mul(&q.nInv, &q.vanishInv)
	if err := q.shiftBy(ctx, q.shiftInv, scale, x); err != nil {
		return err
	}
	if z == nil {
		return nil
	}
	return par.Blocks(ctx, workers, q.n, blockLen, func(_, from, to int) error {
		v, w := x[from:to], z[from:to]
		w.ScalarMul(w, &scale)
		v.Sub(v, w)
		return nil
	})
}

// quotient is the constants and the scratch of one call.
type quotient struct {
	transform
	n               int
	root, rootInv   fr.Element
	shift, shiftInv fr.Element
	nInv            fr.Element
	vanishInv       fr.Element // 1/(shiftⁿ − 1); monomial only
	low             fr.Vector
}

func newQuotient(d curve.Domain, basis curve.Basis) (*quotient, error) {
	if d.Log < 0 || d.Log > id.TwoAdicity() {
		return nil, fmt.Errorf("no domain of 2^%d on %v", d.Log, id)
	}
	q := &quotient{n: d.Size(), root: fr.Element(d.Generator), shift: fr.Element(d.Shift)}
	order := q.root
	for range d.Log - 1 {
		order.Square(&order)
	}
	var minusOne fr.Element
	minusOne.SetInt64(-1)
	if d.Log == 0 && !q.root.IsOne() || d.Log > 0 && order != minusOne {
		return nil, fmt.Errorf("the generator of the domain is not a primitive 2^%d-th root of unity", d.Log)
	}
	q.rootInv.Inverse(&q.root)
	q.nInv.SetUint64(uint64(q.n))
	q.nInv.Inverse(&q.nInv)
	switch basis {
	case curve.Coset:
		if q.shift.IsZero() {
			return nil, errors.New("the domain has no shift")
		}
	case curve.Monomial:
		if q.shift.IsZero() {
			q.shift = fft.GeneratorFullMultiplicativeGroup()
		}
		one := fr.One()
		q.vanishInv.Exp(q.shift, big.NewInt(int64(q.n)))
		q.vanishInv.Sub(&q.vanishInv, &one)
		if q.vanishInv.IsZero() {
			return nil, errors.New("the shift of the domain lies in the domain")
		}
		q.vanishInv.Inverse(&q.vanishInv)
	default:
		return nil, fmt.Errorf("%v", basis)
	}
	q.shiftInv.Inverse(&q.shift)
	return q, nil
}

// lay cuts the scratch.
func (q *quotient) lay(buf fr.Vector, log, workers int) {
	cut := func(n int) fr.Vector {
		v := buf[:n:n]
		buf = buf[n:]
		return v
	}
	q.transform = transform{log: log, workers: workers, table: cut(max(q.n/2, 1)), buf: make([]fr.Vector, workers)}
	q.low = cut(min(q.n, shiftLen))
	for i := range q.buf {
		q.buf[i] = cut(min(3*q.n, bufLen))
	}
}

// shiftBy multiplies the coefficient of X^i in each of the vectors, which are
// in bit-reversed order, by scale·base^i.
func (q *quotient) shiftBy(ctx context.Context, base, scale fr.Element, vectors ...fr.Vector) error {
	// bit b of a place weighs n/2^(b+1) in the exponent
	weights := make([]fr.Element, q.log)
	for b := q.log - 1; b >= 0; b-- {
		weights[b] = base
		base.Square(&base)
	}
	one := fr.One()
	powersReversed(q.low, weights, one)
	block := len(q.low)
	lowBits := 0
	for 1<<lowBits < block {
		lowBits++
	}
	return par.Blocks(ctx, q.workers, q.n, block, func(worker, from, to int) error {
		f := scale
		for b := lowBits; b < q.log; b++ {
			if from>>b&1 == 1 {
				f.Mul(&f, &weights[b])
			}
		}
		powers := q.buf[worker][:block]
		powers.ScalarMul(q.low, &f)
		for _, v := range vectors {
			p := v[from:to]
			p.Mul(p, powers)
		}
		return nil
	})
}
