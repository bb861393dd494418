package circom

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// WriteR1CS writes a constraint system as a .r1cs. A groth16.R1CS does not tell
// outputs from inputs, so all its public wires are written as public inputs and
// all others as internal wires; labels are the numbers of the wires. Rows that
// tie public inputs are not part of a .r1cs: snarkjs adds its own.
//
// A system without C (one read from a .zkey) and one that commits to wires
// cannot be written.
func WriteR1CS(w io.Writer, r *groth16.R1CS) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("write .r1cs: %w", err)
	}
	if len(r.C.Rows) == 0 && r.A.NumRows() > 0 {
		return errors.New("write .r1cs: the constraint system has no matrix C")
	}
	if len(r.Commitments) > 0 {
		return errors.New("write .r1cs: the circuit commits to wires")
	}
	field, err := arith.FieldOf(r.ID)
	if err != nil {
		return fmt.Errorf("write .r1cs: %w", err)
	}
	matrices := [3]curve.Matrix{r.A, r.B, r.C}
	rows := max(r.A.NumRows(), r.B.NumRows(), r.C.NumRows())
	if int64(r.Wires) > math.MaxUint32 || int64(rows) > math.MaxUint32 {
		return fmt.Errorf("write .r1cs: %d wires and %d constraints do not fit its counts", r.Wires, rows)
	}
	length := uint64(rows) * 12
	for _, m := range matrices {
		length += uint64(len(m.Terms)) * term
	}
	c := newContainerWriter(w, KindR1CS, 1, 3)
	c.section(r1csHeader, 4+curve.ScalarBytes+28)
	c.prime(scalarModulus(r.ID))
	c.u32(uint32(r.Wires))
	c.u32(0)
	c.u32(uint32(r.Public))
	c.u32(0)
	c.u64(uint64(r.Wires))
	c.u32(uint32(rows))
	c.section(r1csConstraints, length)
	plain, err := newPlainCoeffs(field, matrices[:])
	if err != nil {
		return fmt.Errorf("write .r1cs: %w", err)
	}
	defer plain.free()
	for row := range rows {
		for i, m := range matrices {
			terms := rowOf(m, row)
			c.u32(uint32(len(terms)))
			for _, t := range terms {
				c.u32(t.Wire)
				c.bytes(plain.of(i, t.Coeff))
			}
		}
	}
	c.section(r1csLabels, uint64(r.Wires)*8)
	for wire := range r.Wires {
		c.u64(uint64(wire))
	}
	if err := c.close(); err != nil {
		return fmt.Errorf("write .r1cs: %w", err)
	}
	return nil
}

// rowOf is the terms of a row, none past the last.
func rowOf(m curve.Matrix, row int) []curve.Term {
	if row >= m.NumRows() {
		return nil
	}
	return m.Terms[m.Rows[row]:m.Rows[row+1]]
}

// plainCoeffs holds the distinct coefficients of matrices in the file's form.
type plainCoeffs struct {
	bufs []*alloc.Buffer[curve.Scalar]
}

func newPlainCoeffs(f *arith.Field, matrices []curve.Matrix) (*plainCoeffs, error) {
	p := &plainCoeffs{}
	for _, m := range matrices {
		b, err := alloc.Make[curve.Scalar](nil, len(m.Coeffs), alloc.Matrix, alloc.Dirty)
		if err != nil {
			p.free()
			return nil, err
		}
		p.bufs = append(p.bufs, b)
		copy(b.Slice(), m.Coeffs)
		f.FromMontgomery(b.Slice())
	}
	return p, nil
}

// of is coefficient i of a matrix as 32 bytes, little-endian as memory is here.
func (p *plainCoeffs) of(matrix int, i uint32) []byte {
	return curve.Bytes(p.bufs[matrix].Slice()[i][:])
}

func (p *plainCoeffs) free() {
	for _, b := range p.bufs {
		b.Release()
	}
}
