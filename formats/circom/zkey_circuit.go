package circom

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

// rows is the number of rows of A and B: one more than the last that has a
// coefficient. The identity rows of the public wires come last, so that none
// is missed.
func (z *Zkey) rows(ctx context.Context) (int, error) {
	s, err := z.c.need(zkeyCoeffs)
	if err != nil {
		return 0, err
	}
	last := -1
	b := z.c.bytes(s)[4:]
	for i := range z.Coefficients {
		if err := tick(ctx, i); err != nil {
			return 0, err
		}
		e, err := z.entry(s, b, i)
		if err != nil {
			return 0, err
		}
		last = max(last, int(e.row))
	}
	return last + 1, nil
}

// entry is a coefficient of section 4 without its value.
type entry struct{ matrix, row, wire uint32 }

// entry reads entry i of the section's body b and checks its indices.
func (z *Zkey) entry(s Section, b []byte, i int) (entry, error) {
	at := coefficient * i
	e := entry{
		matrix: binary.LittleEndian.Uint32(b[at:]),
		row:    binary.LittleEndian.Uint32(b[at+4:]),
		wire:   binary.LittleEndian.Uint32(b[at+8:]),
	}
	r := cursor{c: z.c, s: s, pos: 4 + int64(at)}
	switch {
	case e.matrix > 1:
		return e, r.fail(0, "coefficient %d: matrix %d (0 is A, 1 is B)", i, e.matrix)
	case uint64(e.row) >= 1<<z.DomainLog:
		return e, r.fail(-4, "coefficient %d: constraint %d of a domain of %d", i, e.row, 1<<z.DomainLog)
	case uint64(e.wire) >= uint64(z.Wires):
		return e, r.fail(-8, "coefficient %d: wire %d of %d", i, e.wire, z.Wires)
	}
	return e, nil
}

// Circuit is the matrices A and B of the file, in memory of sc. There is no C
// in a .zkey: c is a∘b, so that a witness that does not satisfy the circuit
// shows only when its proof does not verify. The identity rows of the public
// wires are rows of A already.
func (z *Zkey) Circuit(ctx context.Context, sc *alloc.Scope) (*Circuit, error) {
	c := &Circuit{}
	c.ID, c.Wires, c.Public = z.Curve, z.Wires, z.Public
	if err := z.read(ctx, sc, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// read builds both matrices in two passes over the list, which may be in any
// order: the first counts the terms of each row, the second puts them in place.
func (z *Zkey) read(ctx context.Context, sc *alloc.Scope, c *Circuit) error {
	rows, err := z.rows(ctx)
	if err != nil {
		return err
	}
	s, err := z.c.need(zkeyCoeffs)
	if err != nil {
		return err
	}
	field, err := arith.FieldOf(z.Curve)
	if err != nil {
		return err
	}
	b := z.c.bytes(s)[4:]

	// next[m][i+1] is where the next term of row i goes. Once all are placed it
	// is where row i ends, which is what Matrix.Rows wants at i + 1.
	var next [2][]uint32
	var totals [2]int
	for m := range next {
		if next[m], err = makeMatrix[uint32](c, sc, rows+2); err != nil {
			return err
		}
	}
	for i := range z.Coefficients {
		if err := tick(ctx, i); err != nil {
			return err
		}
		e, err := z.entry(s, b, i)
		if err != nil {
			return err
		}
		if int(e.row) >= rows {
			return z.changed(s)
		}
		next[e.matrix][e.row+2]++
		totals[e.matrix]++
	}
	matrices := [2]*curve.Matrix{&c.A, &c.B}
	for m, matrix := range matrices {
		for i := 1; i < len(next[m]); i++ {
			next[m][i] += next[m][i-1]
		}
		matrix.Rows = next[m][:rows+1]
		if matrix.Terms, err = makeMatrix[curve.Term](c, sc, totals[m]); err != nil {
			return err
		}
	}
	table, err := newInterner(sc)
	if err != nil {
		return err
	}
	defer table.free()
	for i := range z.Coefficients {
		if err := tick(ctx, i); err != nil {
			return err
		}
		e, err := z.entry(s, b, i)
		if err != nil {
			return err
		}
		var v [1]curve.Scalar
		r := cursor{c: z.c, s: s, pos: 4 + int64(coefficient*i) + 12}
		if field.Load(v[:], b[coefficient*i+12:]) >= 0 {
			return r.fail(0, "%w: coefficient %d", ErrValue, i)
		}
		n, err := table.add(&v[0])
		if err != nil {
			return err
		}
		if int(e.row) >= rows {
			return z.changed(s)
		}
		to := &next[e.matrix][e.row+1]
		if int(*to) >= len(matrices[e.matrix].Terms) {
			return z.changed(s)
		}
		matrices[e.matrix].Terms[*to] = curve.Term{Wire: e.wire, Coeff: n}
		*to++
	}
	coeffs, err := table.finish()
	if err != nil {
		return err
	}
	c.refs = append(c.refs, coeffs)
	field.FromMontgomery(coeffs.Slice())
	c.A.Coeffs, c.B.Coeffs = coeffs.Slice(), coeffs.Slice()
	return nil
}

// changed is the error for a file that is not the same in a second pass. It is
// looked for so that such a file cannot make a matrix with wrong bounds.
func (z *Zkey) changed(s Section) error {
	return z.c.in(s, -1, errors.New("the file changed while it was read"))
}
