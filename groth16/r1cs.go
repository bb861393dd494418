package groth16

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// R1CS is a rank-1 constraint system A·w ∘ B·w = C·w. It is a Circuit whose
// input is a WitnessSource (or a []curve.Scalar). It is a view of its matrices,
// does not change, and is safe for concurrent use.
type R1CS struct {
	ID      curve.ID
	Public  int // public inputs, the leading one not included
	Wires   int // the leading one included
	A, B, C curve.Matrix
	// InputRows says that Public + 1 rows follow the constraints whose A is one
	// wire each, the leading one and the public inputs in order, and whose B and
	// C are zero: circom's convention, which makes their A_i independent.
	InputRows bool

	// Commitments are the Pedersen commitments of a gnark circuit, in the order
	// of their wires. Set-up honours them; Synthesize refuses such a circuit, for
	// only its own solver can compute the commitments' wires.
	Commitments []Commitment
}

// Commitment says what a gnark circuit commits to.
type Commitment struct {
	Wire    uint32   // the wire that holds the commitment's hash; public to the proof system
	Private []uint32 // private wires committed to, ascending
	Covered []int    // what else its hash covers: see VerifyingKey.Committed
}

// Curve is the curve of the scalars.
func (r *R1CS) Curve() curve.ID { return r.ID }

// NbWires is the length of a witness.
func (r *R1CS) NbWires() int { return r.Wires }

// NbPublic is the number of public inputs.
func (r *R1CS) NbPublic() int { return r.Public }

// rows is the number of constraints, identity rows not included.
func (r *R1CS) rows() int { return max(r.A.NumRows(), r.B.NumRows(), r.C.NumRows()) }

// NbConstraints is the number of rows, identity rows included.
func (r *R1CS) NbConstraints() int {
	if r.InputRows {
		return r.rows() + r.Public + 1
	}
	return r.rows()
}

// Validate checks the shape: counts, row bounds, wires and coefficients in range.
func (r *R1CS) Validate() error {
	f, err := backendOf(r.ID)
	if err != nil {
		return fmt.Errorf("r1cs: %w", err)
	}
	if r.Public < 0 || r.Wires < r.Public+1 {
		return fmt.Errorf("r1cs: %d wires cannot hold 1 and %d public inputs", r.Wires, r.Public)
	}
	for _, e := range []struct {
		name string
		m    curve.Matrix
	}{{"A", r.A}, {"B", r.B}, {"C", r.C}} {
		if err := checkMatrix(f, e.m, r.Wires); err != nil {
			return fmt.Errorf("r1cs: matrix %s: %w", e.name, err)
		}
	}
	last, committed := r.Public, make(map[uint32]bool)
	for i, c := range r.Commitments {
		if int(c.Wire) <= last || int(c.Wire) >= r.Wires {
			return fmt.Errorf("r1cs: commitment %d is on wire %d, out of order or of range", i, c.Wire)
		}
		last = int(c.Wire)
		prev := r.Public
		for _, w := range c.Private {
			if int(w) <= prev || int(w) >= r.Wires {
				return fmt.Errorf("r1cs: commitment %d is to wire %d, out of order or of range", i, w)
			}
			if committed[w] {
				return fmt.Errorf("r1cs: wire %d is in two commitments", w)
			}
			prev, committed[w] = int(w), true
		}
	}
	return nil
}

func checkMatrix(f backend, m curve.Matrix, wires int) error {
	if len(m.Rows) == 0 {
		if len(m.Terms) > 0 {
			return errors.New("terms without rows")
		}
		return nil
	}
	if m.Rows[0] != 0 || int64(m.Rows[len(m.Rows)-1]) != int64(len(m.Terms)) {
		return fmt.Errorf("rows span terms %d to %d of %d", m.Rows[0], m.Rows[len(m.Rows)-1], len(m.Terms))
	}
	for i := 1; i < len(m.Rows); i++ {
		if m.Rows[i] < m.Rows[i-1] {
			return fmt.Errorf("row %d ends before it begins", i-1)
		}
	}
	for i, t := range m.Terms {
		if int64(t.Wire) >= int64(wires) || int64(t.Coeff) >= int64(len(m.Coeffs)) {
			return fmt.Errorf("term %d names wire %d of %d, coefficient %d of %d", i, t.Wire, wires, t.Coeff, len(m.Coeffs))
		}
	}
	for i := range m.Coeffs {
		if !f.Reduced(m.Coeffs[i]) {
			return fmt.Errorf("coefficient %d is not reduced", i)
		}
	}
	return nil
}

// checked says whether Synthesize evaluates C to compare: a system without a C
// matrix (a .zkey's) defines c as a∘b, and only verification judges it.
func (r *R1CS) checked(want Want) bool { return want.Check && len(r.C.Rows) > 0 }

// System implements Linear. A system that commits gives none.
func (r *R1CS) System() (s System, ok bool) {
	s = System{A: r.A, B: r.B, C: r.C, Rows: r.rows(), Wires: r.Wires}
	if r.InputRows {
		s.Inputs = r.Public + 1
	}
	return s, len(r.Commitments) == 0
}

// Footprint is the scratch for C·w when it is only compared.
func (r *R1CS) Footprint(want Want) alloc.Amount {
	if r.checked(want) && !want.C && !want.WitnessOnly {
		return alloc.HostBytes(curve.ScalarBytes * int64(r.rows()))
	}
	return alloc.Amount{}
}

// Synthesize fills the witness from input, a WitnessSource or a
// []curve.Scalar, and evaluates A, B and, when wanted, C on it, unless only the
// witness is wanted.
func (r *R1CS) Synthesize(ctx context.Context, sc *alloc.Scope, input any, want Want) (*Assignment, error) {
	a := &Assignment{}
	if err := r.synthesize(ctx, sc, input, want, a); err != nil {
		a.Release()
		return nil, fmt.Errorf("synthesize: %w", err)
	}
	return a, nil
}

func (r *R1CS) synthesize(ctx context.Context, sc *alloc.Scope, input any, want Want, a *Assignment) error {
	f, err := backendOf(r.ID)
	if err != nil {
		return err
	}
	src, err := r.source(input)
	if err != nil {
		return err
	}
	if err := r.fits(want); err != nil {
		return err
	}
	if a.W, err = alloc.Make[curve.Scalar](sc, r.Wires, alloc.Witness, alloc.Secret|alloc.Dirty); err != nil {
		return err
	}
	w := a.W.Slice()
	if err := src.Fill(ctx, w); err != nil {
		return fmt.Errorf("fill the witness: %w", err)
	}
	if w[0] != f.One() {
		return errors.New("wire 0 of the witness is not 1")
	}

	if want.WitnessOnly {
		return nil
	}
	ar, n, rows := want.Arithmetic, want.Domain.Size(), r.rows()
	evaluate := func(m curve.Matrix, n int) (*alloc.Buffer[curve.Scalar], error) {
		out, err := alloc.Make[curve.Scalar](sc, n, alloc.Evaluation, alloc.Secret|alloc.Dirty)
		if err != nil {
			return nil, err
		}
		if err := ar.Evaluate(ctx, m, w, out.Slice()); err != nil {
			out.Release()
			return nil, err
		}
		return out, nil
	}
	if a.A, err = evaluate(r.A, n); err != nil {
		return fmt.Errorf("evaluate A·w: %w", err)
	}
	if a.B, err = evaluate(r.B, n); err != nil {
		return fmt.Errorf("evaluate B·w: %w", err)
	}
	switch {
	case len(r.C.Rows) == 0 && want.C:
		if a.C, err = alloc.Make[curve.Scalar](sc, n, alloc.Evaluation, alloc.Secret|alloc.Dirty); err != nil {
			return err
		}
		if err := ar.Hadamard(ctx, a.A.Slice(), a.B.Slice(), a.C.Slice()); err != nil {
			return fmt.Errorf("multiply A·w ∘ B·w: %w", err)
		}
	case want.C:
		if a.C, err = evaluate(r.C, n); err != nil {
			return fmt.Errorf("evaluate C·w: %w", err)
		}
		if r.checked(want) {
			if err := satisfied(ctx, ar, a, a.C.Slice()[:rows]); err != nil {
				return err
			}
		}
	case r.checked(want):
		c, err := evaluate(r.C, rows)
		if err != nil {
			return fmt.Errorf("evaluate C·w: %w", err)
		}
		err = satisfied(ctx, ar, a, c.Slice())
		c.Release()
		if err != nil {
			return err
		}
	}
	if r.InputRows {
		// B and C are zero in these rows, so the comparison above and a∘b are
		// the same with and without them.
		copy(a.A.Slice()[rows:rows+r.Public+1], w)
	}
	return nil
}

// source is input as a witness of the right length.
func (r *R1CS) source(input any) (WitnessSource, error) {
	var src WitnessSource
	switch v := input.(type) {
	case WitnessSource:
		src = v
	case []curve.Scalar:
		src = Witness(v)
	default:
		return nil, fmt.Errorf("the input is a %T, not a witness", input)
	}
	if src.Len() != r.Wires {
		return nil, fmt.Errorf("the witness has %d wires, the circuit %d", src.Len(), r.Wires)
	}
	return src, nil
}

// fits checks the circuit against what is wanted of it.
func (r *R1CS) fits(want Want) error {
	switch {
	case want.Arithmetic == nil:
		return errors.New("no arithmetic to evaluate with")
	case want.Arithmetic.Curve() != r.ID:
		return fmt.Errorf("the circuit is on %v, the arithmetic %s on %v", r.ID, want.Arithmetic.Name(), want.Arithmetic.Curve())
	case r.NbConstraints() > want.Domain.Size():
		return fmt.Errorf("%d constraints do not fit the domain of 2^%d", r.NbConstraints(), want.Domain.Log)
	case len(r.Commitments) > 0:
		return errors.New("the circuit commits to wires: only gnark's solver can give its witness")
	}
	return nil
}

// satisfied compares a∘b with c.
func satisfied(ctx context.Context, ar Arithmetic, a *Assignment, c []curve.Scalar) error {
	row, err := ar.Unsatisfied(ctx, a.A.Slice()[:len(c)], a.B.Slice()[:len(c)], c)
	if err != nil {
		return fmt.Errorf("compare A·w ∘ B·w with C·w: %w", err)
	}
	if row >= 0 {
		return &UnsatisfiedError{Row: row}
	}
	return nil
}
