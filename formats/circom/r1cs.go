package circom

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

// Sections of a .r1cs.
const (
	r1csHeader      = 1
	r1csConstraints = 2
	r1csLabels      = 3
	r1csGates       = 4
	r1csGateUses    = 5
)

// R1CSHeader is what a .r1cs says of its circuit. The witness is 1, the public
// outputs, the public and the private inputs, and the wires in between.
type R1CSHeader struct {
	Curve         curve.ID
	Wires         int
	PublicOutputs int
	PublicInputs  int
	PrivateInputs int
	Labels        uint64
	Constraints   int
}

// R1CSFile is an open .r1cs. Its header has been checked; the constraints are
// read by Circuit. Close gives the mapping back.
type R1CSFile struct {
	R1CSHeader
	c *Container
}

// OpenR1CS maps a .r1cs and checks its header.
func OpenR1CS(path string) (*R1CSFile, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	f, err := c.R1CS()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return f, nil
}

// R1CS sees the container as a .r1cs and checks its header. The result owns
// the container.
func (c *Container) R1CS() (*R1CSFile, error) {
	if err := c.expect(KindR1CS, 1); err != nil {
		return nil, err
	}
	s, err := c.need(r1csHeader)
	if err != nil {
		return nil, err
	}
	r := c.cursor(s)
	id, err := r.prime("scalar field", scalarModulus)
	if err != nil {
		return nil, err
	}
	wires, outputs, public, private := r.u32(), r.u32(), r.u32(), r.u32()
	labels, constraints := r.u64(), r.u32()
	if err := r.end(); err != nil {
		return nil, err
	}
	if need := 1 + uint64(outputs) + uint64(public) + uint64(private); need > uint64(wires) {
		return nil, c.in(s, s.Offset+36, fmt.Errorf("%d wires cannot hold 1 and %d outputs, %d public and %d private inputs", wires, outputs, public, private))
	}
	if rows := uint64(constraints) + uint64(outputs) + uint64(public) + 1; bits.Len64(rows-1) > id.TwoAdicity() {
		return nil, c.in(s, s.Offset+36, fmt.Errorf("%d constraints and public inputs are more than a domain of %v can hold", rows, id))
	}
	for _, gates := range []uint32{r1csGates, r1csGateUses} {
		if g, ok := c.find(gates); ok {
			if q := c.cursor(g); q.u32() != 0 || q.err != nil {
				return nil, c.in(g, g.Offset, errors.New("the circuit uses custom gates, which Groth16 cannot prove"))
			}
		}
	}
	body, err := c.need(r1csConstraints)
	if err != nil {
		return nil, err
	}
	if body.Length/12 < int64(constraints) {
		return nil, c.in(body, body.Offset, fmt.Errorf("%w: %d bytes cannot hold %d constraints", ErrTruncated, body.Length, constraints))
	}
	// The labels are of no use here, but there is one a wire, so that they
	// bound the number of wires by the size of the file.
	l, err := c.need(r1csLabels)
	if err != nil {
		return nil, err
	}
	if l.Length != 8*int64(wires) {
		return nil, c.in(l, l.Offset, fmt.Errorf("%d bytes are not %d labels of 8", l.Length, wires))
	}
	return &R1CSFile{c: c, R1CSHeader: R1CSHeader{
		Curve: id, Wires: int(wires), PublicOutputs: int(outputs), PublicInputs: int(public), PrivateInputs: int(private),
		Labels: labels, Constraints: int(constraints),
	}}, nil
}

// Close gives the mapping back. Circuits made of the file stay.
func (f *R1CSFile) Close() error { return f.c.Close() }

// term is the size of a term in the file: wire and coefficient.
const term = 4 + curve.ScalarBytes

// Circuit reads the constraints: values are checked to be below r and wires to
// exist, coefficients are kept once each. The matrices lie in memory of sc.
func (f *R1CSFile) Circuit(ctx context.Context, sc *alloc.Scope) (*Circuit, error) {
	c := &Circuit{}
	c.ID, c.Wires, c.Public, c.InputRows = f.Curve, f.Wires, f.PublicOutputs+f.PublicInputs, true
	if err := f.read(ctx, sc, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (f *R1CSFile) read(ctx context.Context, sc *alloc.Scope, c *Circuit) error {
	body, err := f.c.need(r1csConstraints)
	if err != nil {
		return err
	}
	field, err := arith.FieldOf(f.Curve)
	if err != nil {
		return err
	}
	counts, err := f.count(ctx, body)
	if err != nil {
		return err
	}
	table, err := newInterner(sc)
	if err != nil {
		return err
	}
	defer table.free()
	matrices := [3]*curve.Matrix{&c.A, &c.B, &c.C}
	for i, m := range matrices {
		if m.Rows, err = makeMatrix[uint32](c, sc, f.Constraints+1); err != nil {
			return err
		}
		if m.Terms, err = makeMatrix[curve.Term](c, sc, int(counts[i])); err != nil {
			return err
		}
	}
	r := f.c.cursor(body)
	var filled [3]int
	for row := range f.Constraints {
		if err := tick(ctx, row); err != nil {
			return err
		}
		for i, m := range matrices {
			n := r.u32()
			for range n {
				t, err := f.term(r, field, table)
				if err != nil {
					return err
				}
				if filled[i] == len(m.Terms) {
					return r.fail(term, "the file changed while it was read")
				}
				m.Terms[filled[i]] = t
				filled[i]++
			}
			m.Rows[row+1] = uint32(filled[i])
		}
	}
	if err := r.end(); err != nil {
		return err
	}
	for i, m := range matrices {
		if filled[i] != len(m.Terms) {
			return r.fail(0, "the file changed while it was read")
		}
	}
	coeffs, err := table.finish()
	if err != nil {
		return err
	}
	c.refs = append(c.refs, coeffs)
	field.ToMontgomery(coeffs.Slice())
	for _, m := range matrices {
		m.Coeffs = coeffs.Slice()
	}
	return nil
}

// count is the first pass: the number of terms of A, B and C, with every row
// found to lie in the section.
func (f *R1CSFile) count(ctx context.Context, body Section) (counts [3]uint64, err error) {
	r := f.c.cursor(body)
	for row := range f.Constraints {
		if err := tick(ctx, row); err != nil {
			return counts, err
		}
		for i := range counts {
			n := r.u32()
			counts[i] += uint64(n)
			if r.take(int64(n) * term); r.err != nil {
				return counts, fmt.Errorf("constraint %d: %w", row, r.err)
			}
		}
	}
	for _, n := range counts {
		if err := tooManyTerms(n); err != nil {
			return counts, f.c.in(body, body.Offset, err)
		}
	}
	return counts, r.end()
}

func (f *R1CSFile) term(r *cursor, field *arith.Field, table *interner) (curve.Term, error) {
	wire := r.u32()
	value := r.take(curve.ScalarBytes)
	if r.err != nil {
		return curve.Term{}, r.err
	}
	if uint64(wire) >= uint64(f.Wires) {
		return curve.Term{}, r.fail(term, "wire %d of %d", wire, f.Wires)
	}
	var v [1]curve.Scalar
	if field.Load(v[:], value) >= 0 {
		return curve.Term{}, r.fail(curve.ScalarBytes, "%w: coefficient of wire %d", ErrValue, wire)
	}
	n, err := table.add(&v[0])
	return curve.Term{Wire: wire, Coeff: n}, err
}
