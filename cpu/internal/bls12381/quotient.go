package bls12381

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/curve"
)

// shiftLen is how many powers of the shift a worker keeps at a time.
const shiftLen = 1024

// quotientWorkers is how many workers share a quotient on a domain of n.
func (e *Engine) quotientWorkers(n int) int { return max(1, min(e.Workers, n/4096)) }

// quotientLen is how many elements of scratch a quotient on a domain of n takes.
func (e *Engine) quotientLen(n int) int {
	workers := e.quotientWorkers(n)
	if log := bits.TrailingZeros(uint(n)); e.vectorNTT(log) {
		bytes := ifma.NTTScratch(log, workers)
		return (bytes + curve.ScalarBytes - 1) / curve.ScalarBytes
	}
	table := 0
	if n > 1<<maxKept {
		table = n / 2
	}
	return table + min(n, shiftLen) + workers*min(3*n, bufLen)
}

// vectorNTT says whether the vector kernels do transforms of 2^log.
func (e *Engine) vectorNTT(log int) bool {
	return e.VecG1 != nil && log >= ifma.MinNTT && log <= ifma.MaxNTT
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
	q.workers = e.quotientWorkers(q.n)
	ts, release, err := e.transforms(sc, q)
	if err != nil {
		return err
	}
	defer release()

	monomial := basis == curve.Monomial
	if c != nil && monomial {
		if err := ts.coefficients(ctx, c, false); err != nil {
			return err
		}
	}
	vectors := [][]curve.Scalar{a, b}
	if c != nil && !monomial {
		vectors = append(vectors, c)
	}
	if err := ts.toCoset(ctx, vectors...); err != nil {
		return err
	}
	x, y, z := elements(a), elements(b), elements(c)
	err = par.Blocks(ctx, q.workers, q.n, blockLen, func(_, from, to int) error {
		v := x[from:to]
		v.Mul(v, y[from:to])
		if c != nil && !monomial {
			v.Sub(v, z[from:to])
		}
		return nil
	})
	if err != nil || !monomial {
		return err
	}
	if err := ts.coefficients(ctx, a, true); err != nil {
		return err
	}
	return par.Blocks(ctx, q.workers, q.n, blockLen, func(_, from, to int) error {
		v := x[from:to]
		if c != nil {
			v.Sub(v, z[from:to])
		}
		v.ScalarMul(v, &q.vanishInv)
		return nil
	})
}

// transforms are the transforms that a quotient is made of.
type transforms interface {
	// toCoset takes values on the domain to values on the coset.
	toCoset(ctx context.Context, vectors ...[]curve.Scalar) error
	// coefficients takes values on the domain, or its coset, to coefficients
	// in bit-reversed order.
	coefficients(ctx context.Context, v []curve.Scalar, coset bool) error
	// one does a single transform of any kind.
	one(ctx context.Context, a []curve.Scalar, inverse, coset, reversed bool) error
}

// transforms draws the scratch of the transforms for q.
func (e *Engine) transforms(sc *alloc.Scope, q *quotient) (transforms, func(), error) {
	buf, err := alloc.Make[fr.Element](sc, e.quotientLen(q.n), alloc.Scratch, alloc.Secret|alloc.Dirty)
	if err != nil {
		return nil, nil, err
	}
	if !e.vectorNTT(q.domain.Log) {
		q.lay(buf.Slice(), q.domain.Log)
		q.kept = &e.Roots
		return q, buf.Release, nil
	}
	ntt, err := e.Tables.of(q.domain)
	if err != nil {
		buf.Release()
		return nil, nil, err
	}
	mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf.Slice()))), buf.Len()*curve.ScalarBytes)
	return &vectorNTT{ntt, q.workers, mem}, buf.Release, nil
}

// vectorNTT has the vector kernels do the transforms.
type vectorNTT struct {
	ntt     *ifma.NTT
	workers int
	scratch []byte
}

func (t *vectorNTT) toCoset(ctx context.Context, vectors ...[]curve.Scalar) error {
	for _, v := range vectors {
		if err := t.ntt.Inverse(ctx, v, ifma.Natural, false, t.workers, t.scratch); err != nil {
			return err
		}
		if err := t.ntt.Forward(ctx, v, ifma.Reversed, true, t.workers, t.scratch); err != nil {
			return err
		}
	}
	return nil
}

func (t *vectorNTT) coefficients(ctx context.Context, v []curve.Scalar, coset bool) error {
	return t.ntt.Inverse(ctx, v, ifma.Natural, coset, t.workers, t.scratch)
}

// quotient is the constants and the scratch of one call.
type quotient struct {
	transform
	domain          curve.Domain
	n               int
	built           fr.Element // the root that the table is for
	kept            *roots     // tables of domains up to 2^maxKept
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
	q := &quotient{domain: d, n: d.Size(), root: fr.Element(d.Generator), shift: fr.Element(d.Shift)}
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
	q.domain.Shift = curve.Scalar(q.shift)
	return q, nil
}

// lay cuts the scratch of the transforms in this package.
func (q *quotient) lay(buf fr.Vector, log int) {
	cut := func(n int) fr.Vector {
		v := buf[:n:n]
		buf = buf[n:]
		return v
	}
	q.log, q.buf = log, make([]fr.Vector, q.workers)
	if log > maxKept {
		q.table = cut(q.n / 2)
	}
	q.low = cut(min(q.n, shiftLen))
	for i := range q.buf {
		q.buf[i] = cut(min(3*q.n, bufLen))
	}
}

// use makes the table that of root.
func (q *quotient) use(root fr.Element) {
	switch {
	case q.built == root:
		return
	case q.log <= maxKept:
		q.table = q.kept.of(&q.transform, root)
	default:
		q.build(root)
	}
	q.built = root
}

func (q *quotient) toCoset(ctx context.Context, vectors ...[]curve.Scalar) error {
	vs := make([]fr.Vector, len(vectors))
	q.use(q.rootInv)
	for i, v := range vectors {
		vs[i] = elements(v)
		if err := q.scatter(ctx, vs[i]); err != nil {
			return err
		}
	}
	if err := q.shiftBy(ctx, q.shift, q.nInv, vs...); err != nil {
		return err
	}
	q.use(q.root)
	for _, v := range vs {
		if err := q.collect(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func (q *quotient) coefficients(ctx context.Context, v []curve.Scalar, coset bool) error {
	q.use(q.rootInv)
	x := elements(v)
	if err := q.scatter(ctx, x); err != nil {
		return err
	}
	if coset {
		return q.shiftBy(ctx, q.shiftInv, q.nInv, x)
	}
	return par.Blocks(ctx, q.workers, q.n, blockLen, func(_, from, to int) error {
		y := x[from:to]
		y.ScalarMul(y, &q.nInv)
		return nil
	})
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
