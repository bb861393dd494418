package bls12381

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/cpu/internal/par"
	"github.com/snarkline/snarkline/curve"
)

// Evaluate writes m·w to the first m.NumRows() places of out and zeroes the rest.
func (e *Engine) Evaluate(ctx context.Context, m curve.Matrix, w, out []curve.Scalar) error {
	rows := m.NumRows()
	if rows > len(out) {
		return fmt.Errorf("evaluate a matrix: %d rows do not fit in %d places", rows, len(out))
	}
	v, o, coeffs := elements(w), elements(out), elements(m.Coeffs)
	one := fr.One()
	var minusOne fr.Element
	minusOne.Neg(&one)
	err := par.Blocks(ctx, e.Workers, len(out), blockLen, func(_, from, to int) error {
		for i := from; i < min(to, rows); i++ {
			first, end := m.Rows[i], m.Rows[i+1]
			if first > end || int(end) > len(m.Terms) {
				return fmt.Errorf("row %d: terms %d to %d of %d", i, first, end, len(m.Terms))
			}
			var sum, t fr.Element
			for _, term := range m.Terms[first:end] {
				if int(term.Wire) >= len(v) || int(term.Coeff) >= len(coeffs) {
					return fmt.Errorf("row %d: wire %d of %d, coefficient %d of %d",
						i, term.Wire, len(v), term.Coeff, len(coeffs))
				}
				x, c := &v[term.Wire], &coeffs[term.Coeff]
				switch {
				case x.IsZero():
				case *c == one:
					sum.Add(&sum, x)
				case *c == minusOne:
					sum.Sub(&sum, x)
				default:
					t.Mul(x, c)
					sum.Add(&sum, &t)
				}
			}
			o[i] = sum
		}
		if to > rows {
			clear(out[max(from, rows):to])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("evaluate a matrix: %w", err)
	}
	return nil
}

// Hadamard writes a∘b, element by element, to out, which may be a or b.
func (e *Engine) Hadamard(ctx context.Context, a, b, out []curve.Scalar) error {
	if len(a) != len(b) || len(a) != len(out) {
		return fmt.Errorf("multiply vectors: lengths %d, %d and %d", len(a), len(b), len(out))
	}
	x, y, z := elements(a), elements(b), elements(out)
	return par.Blocks(ctx, e.Workers, len(z), blockLen, func(_, from, to int) error {
		v := z[from:to]
		v.Mul(x[from:to], y[from:to])
		return nil
	})
}

// Unsatisfied returns the first i with a[i]·b[i] ≠ c[i], or −1.
func (e *Engine) Unsatisfied(ctx context.Context, a, b, c []curve.Scalar) (int, error) {
	if len(a) != len(b) || len(a) != len(c) {
		return -1, fmt.Errorf("check constraints: lengths %d, %d and %d", len(a), len(b), len(c))
	}
	x, y, z := elements(a), elements(b), elements(c)
	var first atomic.Int64
	first.Store(int64(len(a)))
	err := par.Blocks(ctx, e.Workers, len(a), blockLen, func(_, from, to int) error {
		if int64(from) >= first.Load() {
			return nil
		}
		var t fr.Element
		for i := from; i < to; i++ {
			t.Mul(&x[i], &y[i])
			if t != z[i] {
				for {
					old := first.Load()
					if old <= int64(i) || first.CompareAndSwap(old, int64(i)) {
						return nil
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return -1, err
	}
	if i := first.Load(); i < int64(len(a)) {
		return int(i), nil
	}
	return -1, nil
}

// Classify writes the class of each scalar of w to out, which has len(w).
func (e *Engine) Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error) {
	var counts curve.Counts
	if len(w) != len(out) {
		return counts, fmt.Errorf("classify scalars: %d classes for %d scalars", len(out), len(w))
	}
	one := curve.Scalar(fr.One())
	var sums [3]atomic.Int64
	err := par.Blocks(ctx, e.Workers, len(w), blockLen, func(_, from, to int) error {
		var n curve.Counts
		for i := from; i < to; i++ {
			c := curve.Other
			if w[i].IsZero() {
				c = curve.Zero
			} else if w[i] == one {
				c = curve.One
			}
			out[i] = c
			n[c]++
		}
		for c, v := range n {
			sums[c].Add(int64(v))
		}
		return nil
	})
	for c := range sums {
		counts[c] = int(sums[c].Load())
	}
	return counts, err
}

// Tail writes to out the indices in q of the points whose wire is of class
// Other, ascending, and returns how many there are.
func (e *Engine) Tail(ctx context.Context, q curve.Query, classes []curve.Class, out []uint32) (int, error) {
	n := q.Len()
	if err := checkWires(q, len(classes)); err != nil {
		return 0, fmt.Errorf("list the tail: %w", err)
	}
	out = out[:cap(out)]
	if len(out) < n {
		return 0, fmt.Errorf("list the tail: room for %d of %d points", len(out), n)
	}
	// Each worker lists its own range at the range's place; then the lists
	// are moved together.
	workers := max(1, min(e.Workers, n/blockLen))
	lens := make([]int, workers)
	err := par.Ranges(workers, n, func(worker, from, to int) error {
		at := from
		for start := from; start < to; start += blockLen {
			if err := ctx.Err(); err != nil {
				return err
			}
			for j := start; j < min(start+blockLen, to); j++ {
				if classes[q.Wire(j)] == curve.Other {
					out[at] = uint32(j)
					at++
				}
			}
		}
		lens[worker] = at - from
		return nil
	})
	if err != nil {
		return 0, err
	}
	total := 0
	for i, l := range lens {
		from := i * n / workers
		total += copy(out[total:], out[from:from+l])
	}
	return total, nil
}

// checkWires is an error if q names a wire that a witness of n does not have.
func checkWires(q curve.Query, n int) error {
	if q.Wires == nil {
		if l := q.Len(); l > 0 && int64(q.First)+int64(l) > int64(n) {
			return fmt.Errorf("wires %d to %d of a witness of %d", q.First, int(q.First)+l-1, n)
		}
		return nil
	}
	if len(q.Wires) != q.Len() {
		return fmt.Errorf("%d wires for %d points", len(q.Wires), q.Len())
	}
	for j, wire := range q.Wires {
		if int(wire) >= n {
			return fmt.Errorf("point %d: wire %d of a witness of %d", j, wire, n)
		}
	}
	return nil
}
