package circom

import (
	"context"
	"fmt"
	"math"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// Circuit is a constraint system read from a file, with the memory of its
// matrices. It is a groth16.Circuit whose input is a groth16.WitnessSource.
// Close gives the memory back; nothing may use the circuit then.
type Circuit struct {
	groth16.R1CS

	refs []alloc.Ref
}

// Close frees the matrices. It may be called more than once.
func (c *Circuit) Close() error {
	for _, r := range c.refs {
		r.Release()
	}
	c.refs = nil
	c.A, c.B, c.C = curve.Matrix{}, curve.Matrix{}, curve.Matrix{}
	return nil
}

// Bytes is the size of the matrices in memory.
func (c *Circuit) Bytes() int64 {
	var n int64
	for _, r := range c.refs {
		n += r.Bytes()
	}
	return n
}

// tick returns ctx's error every 4096th time.
func tick(ctx context.Context, i int) error {
	if i%4096 == 0 {
		return ctx.Err()
	}
	return nil
}

// makeMatrix allocates n zeroed elements for c, which frees them.
func makeMatrix[T any](c *Circuit, sc *alloc.Scope, n int) ([]T, error) {
	b, err := alloc.Make[T](sc, n, alloc.Matrix, 0)
	if err != nil {
		return nil, err
	}
	c.refs = append(c.refs, b)
	return b.Slice(), nil
}

// tooManyTerms is an error when a matrix has more terms than a row bound of 32
// bits can address.
func tooManyTerms(n uint64) error {
	if n > math.MaxUint32 {
		return fmt.Errorf("a matrix of %d terms (at most %d)", n, uint32(math.MaxUint32))
	}
	return nil
}
