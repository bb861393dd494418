// Package synthetic makes circuits of any size with a given share of scalars
// that are 0 or 1, without a front end: the matrices are written straight away.
// Its rows are what bit-heavy circuits are made of, exclusive ors of two bits,
// and products of two field elements for the rest.
package synthetic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"golang.org/x/sync/errgroup"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// inputs is how many bits, and how many elements, a witness begins with.
const inputs = 64

// reach is how far back a row looks for its operands.
const reach = 4096

// Circuit is a circuit of 2^log rows, one wire each after the inputs.
type Circuit struct {
	groth16.R1CS
	left, right []uint32 // the operands of row i
	bit         []bool   // whether row i is an exclusive or
}

// the indices of the coefficients
const (
	coeffOne = iota
	coeffTwo
	coeffMinusOne
)

// New makes a circuit that fills a domain of 2^log, with about the given share
// of its scalars 0 or 1. One public input, the last product.
func New(id curve.ID, log int, bits float64) (*Circuit, error) {
	if log < 10 || log > 28 {
		return nil, fmt.Errorf("a synthetic circuit of 2^%d rows: want 2^10 to 2^28", log)
	}
	rows := 1<<log - 2
	first := uint32(2 + 2*inputs) // wires: 1, public, bits, elements, then one a row
	c := &Circuit{left: make([]uint32, rows), right: make([]uint32, rows), bit: make([]bool, rows)}
	c.R1CS = groth16.R1CS{ID: id, Public: 1, Wires: int(first) + rows}
	coeffs, err := coefficients(id)
	if err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(1, uint64(log)))
	// The latest wires of each sort, to pick operands from.
	var latest [2][]uint32
	for i := range inputs {
		latest[0] = append(latest[0], uint32(2+i))
		latest[1] = append(latest[1], uint32(2+inputs+i))
	}
	a, b, cc := matrix(coeffs, rows+1, 1), matrix(coeffs, rows+1, 1), matrix(coeffs, rows+1, 3)
	for i := range rows {
		sort := 1
		if rnd.Float64() < bits {
			sort = 0
		}
		from := latest[sort]
		l, r := from[rnd.IntN(len(from))], from[rnd.IntN(len(from))]
		k := first + uint32(i)
		c.left[i], c.right[i], c.bit[i] = l, r, sort == 0
		if sort == 0 { // 2l·r = l + r − k
			row(&a, curve.Term{Wire: l, Coeff: coeffTwo})
			row(&b, curve.Term{Wire: r, Coeff: coeffOne})
			row(&cc, curve.Term{Wire: l, Coeff: coeffOne}, curve.Term{Wire: r, Coeff: coeffOne}, curve.Term{Wire: k, Coeff: coeffMinusOne})
		} else {
			row(&a, curve.Term{Wire: l, Coeff: coeffOne})
			row(&b, curve.Term{Wire: r, Coeff: coeffOne})
			row(&cc, curve.Term{Wire: k, Coeff: coeffOne})
		}
		if len(from) < reach {
			latest[sort] = append(from, k)
		} else {
			from[rnd.IntN(reach)] = k
		}
	}
	// The public input is the last element.
	last := latest[1][len(latest[1])-1]
	c.left, c.right = append(c.left, last), append(c.right, 0)
	row(&a, curve.Term{Wire: last, Coeff: coeffOne})
	row(&b, curve.Term{Wire: 0, Coeff: coeffOne})
	row(&cc, curve.Term{Wire: 1, Coeff: coeffOne})
	c.A, c.B, c.C = a, b, cc
	return c, nil
}

func matrix(coeffs []curve.Scalar, rows, terms int) curve.Matrix {
	return curve.Matrix{Rows: append(make([]uint32, 0, rows+1), 0), Terms: make([]curve.Term, 0, rows*terms), Coeffs: coeffs}
}

func row(m *curve.Matrix, t ...curve.Term) {
	m.Terms = append(m.Terms, t...)
	m.Rows = append(m.Rows, uint32(len(m.Terms)))
}

func coefficients(id curve.ID) ([]curve.Scalar, error) {
	switch id {
	case curve.BLS12381:
		one, two := bls.One(), bls.NewElement(2)
		var minus bls.Element
		minus.Neg(&one)
		return []curve.Scalar{curve.Scalar(one), curve.Scalar(two), curve.Scalar(minus)}, nil
	case curve.BN254:
		one, two := bn.One(), bn.NewElement(2)
		var minus bn.Element
		minus.Neg(&one)
		return []curve.Scalar{curve.Scalar(one), curve.Scalar(two), curve.Scalar(minus)}, nil
	}
	return nil, fmt.Errorf("a synthetic circuit on %v", id)
}

// Witness is a satisfying witness; another seed gives another one.
func (c *Circuit) Witness(seed uint64) (groth16.Witness, error) {
	w := make([]curve.Scalar, c.Wires)
	one := c.A.Coeffs[coeffOne]
	w[0] = one
	rnd := rand.New(rand.NewPCG(2, seed))
	for i := range inputs {
		if rnd.Uint64()&1 == 1 {
			w[2+i] = one
		}
		// Any value below 2^252 is a reduced Montgomery form of something.
		w[2+inputs+i] = curve.Scalar{rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64() >> 12}
	}
	out := w[2+2*inputs:]
	for i := range out {
		l, r := &w[c.left[i]], &w[c.right[i]]
		if c.bit[i] {
			if *l != *r {
				out[i] = one
			}
			continue
		}
		if c.ID == curve.BLS12381 {
			(*bls.Element)(&out[i]).Mul((*bls.Element)(l), (*bls.Element)(r))
		} else {
			(*bn.Element)(&out[i]).Mul((*bn.Element)(l), (*bn.Element)(r))
		}
	}
	w[1] = w[c.left[len(c.left)-1]]
	return w, nil
}

// Copied is a witness that any number of items may copy from, faster than
// groth16.Witness checks one: a pipeline's benchmark is not to wait for it.
type Copied []curve.Scalar

// Len is the number of wires.
func (w Copied) Len() int { return len(w) }

// Fill copies the witness.
func (w Copied) Fill(ctx context.Context, dst []curve.Scalar) error {
	if len(dst) != len(w) {
		return errors.New("a witness of another length")
	}
	// One core does not fill the memory's bandwidth.
	var g errgroup.Group
	g.SetLimit(min(4, runtime.GOMAXPROCS(0)))
	const piece = 1 << 20
	for from := 0; from < len(w); from += piece {
		g.Go(func() error {
			copy(dst[from:min(from+piece, len(dst))], w[from:])
			return ctx.Err()
		})
	}
	return g.Wait()
}

// Bytes is the size of the matrices in memory.
func (c *Circuit) Bytes() (n int64) {
	for _, m := range []curve.Matrix{c.A, c.B, c.C} {
		n += int64(len(m.Rows))*4 + int64(len(m.Terms))*int64(unsafe.Sizeof(curve.Term{}))
	}
	return n
}
