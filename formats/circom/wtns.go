package circom

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

// Sections of a .wtns.
const (
	wtnsHeader = 1
	wtnsValues = 2
)

// Wtns is an open .wtns: a witness that stays in its mapped file until it is
// wanted. It is a groth16.WitnessSource, and safe for concurrent use until Close.
type Wtns struct {
	c      *Container
	field  *arith.Field
	n      int
	values Section
}

// OpenWtns maps a .wtns and checks its header.
func OpenWtns(path string) (*Wtns, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	w, err := c.Wtns()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return w, nil
}

// Wtns sees the container as a .wtns and checks its header. The result owns
// the container.
func (c *Container) Wtns() (*Wtns, error) {
	if err := c.expect(KindWtns, 2); err != nil {
		return nil, err
	}
	s, err := c.need(wtnsHeader)
	if err != nil {
		return nil, err
	}
	r := c.cursor(s)
	id, err := r.prime("scalar field", scalarModulus)
	if err != nil {
		return nil, err
	}
	n := r.u32()
	if err := r.end(); err != nil {
		return nil, err
	}
	field, err := arith.FieldOf(id)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, c.in(s, r.offset()-4, errors.New("a witness without the leading 1"))
	}
	values, err := c.need(wtnsValues)
	if err != nil {
		return nil, err
	}
	if values.Length != curve.ScalarBytes*int64(n) {
		return nil, c.in(values, values.Offset, fmt.Errorf("%d bytes are not %d values of %d", values.Length, n, curve.ScalarBytes))
	}
	w := &Wtns{c: c, field: field, n: int(n), values: values}
	var first [1]curve.Scalar
	if err := w.read(first[:], 0); err != nil {
		return nil, err
	}
	if first[0] != field.One() {
		return nil, c.in(values, values.Offset, errors.New("the first value of a witness must be 1"))
	}
	return w, nil
}

// Curve is the curve whose scalar field the values are of.
func (w *Wtns) Curve() curve.ID { return w.field.Curve() }

// Len is the number of wires.
func (w *Wtns) Len() int { return w.n }

// Fill writes the witness to dst, which has Len places, in Montgomery form.
// A value that is not below r is an error.
func (w *Wtns) Fill(ctx context.Context, dst []curve.Scalar) error {
	if len(dst) != w.n {
		return fmt.Errorf("%s: a witness of %d wires does not fill %d places", w.c.name, w.n, len(dst))
	}
	const step = 4096
	for from := 0; from < w.n; from += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.read(dst[from:min(from+step, w.n)], from); err != nil {
			return err
		}
	}
	return nil
}

// Public is the values of the wires 1 to n, the public ones of a circuit with n.
func (w *Wtns) Public(n int) ([]curve.Scalar, error) {
	if n < 0 || n >= w.n {
		return nil, fmt.Errorf("%s: a witness of %d wires has no %d public ones", w.c.name, w.n, n)
	}
	out := make([]curve.Scalar, n)
	return out, w.read(out, 1)
}

// Close gives the mapping back.
func (w *Wtns) Close() error { return w.c.Close() }

// read fills dst with the values from the given one on, in Montgomery form.
func (w *Wtns) read(dst []curve.Scalar, from int) error {
	if w.c.data == nil {
		return w.c.closed()
	}
	b := w.c.bytes(w.values)[curve.ScalarBytes*from:]
	if bad := w.field.Load(dst, b[:curve.ScalarBytes*len(dst)]); bad >= 0 {
		at := w.values.Offset + curve.ScalarBytes*int64(from+bad)
		return w.c.in(w.values, at, fmt.Errorf("%w: wire %d", ErrValue, from+bad))
	}
	w.field.ToMontgomery(dst)
	return nil
}
