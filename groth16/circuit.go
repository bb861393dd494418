package groth16

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// Circuit turns an input into an assignment of a circuit's wires. It is safe
// for concurrent use and does not change.
type Circuit interface {
	Curve() curve.ID
	NbConstraints() int // rows, identity rows for public inputs included
	NbWires() int       // length of the witness, the leading one included
	NbPublic() int      // public inputs, the leading one not included

	// Synthesize computes the witness of input and evaluates the constraints on
	// it, in buffers drawn from sc that the caller then owns. What input may be
	// is the circuit's to say. A witness that does not satisfy the circuit gives
	// an *UnsatisfiedError.
	Synthesize(ctx context.Context, sc *alloc.Scope, input any, want Want) (*Assignment, error)
	// Footprint bounds what Synthesize draws from its scope besides the
	// assignment itself, which AssignmentBytes gives.
	Footprint(want Want) alloc.Amount
}

// System is what a processor needs to know of a constraint system to evaluate it
// on a witness. It is a view, and an alias to a literal, so that packages agree on
// it without importing each other.
type System = struct {
	A, B, C curve.Matrix // C has no rows where it is not known, or not needed
	Rows    int          // constraints: the most that a matrix has
	Inputs  int          // rows that follow them, whose A is one wire each, wire 0 first, and B and C zero
	Wires   int          // of the witness
}

// Linear is a Circuit whose a, b and c are matrices times its witness, which it
// can leave to the prover: see Want.WitnessOnly.
type Linear interface {
	Circuit
	// System is the matrices; ok is false where they are not all there is to it.
	// They stay as they are for as long as the circuit is in use.
	System() (s System, ok bool)
}

// SystemOf is the matrices of c, if it is Linear and gives them.
func SystemOf(c Circuit) (s System, ok bool) {
	if l, is := c.(Linear); is {
		return l.System()
	}
	return s, false
}

// Want says what of an assignment a prover needs.
type Want struct {
	Domain      curve.Domain
	C           bool // evaluate C too: the key is not folded
	Check       bool // find the first unsatisfied constraint
	Arithmetic  Arithmetic
	Commitments []CommitmentKey // of the key, for a circuit that commits

	// WitnessOnly says that the prover evaluates the matrices of a Linear circuit
	// itself: the assignment has w, and nothing was checked. Other circuits pay no
	// heed to it.
	WitnessOnly bool
}

// Want is what a prover with this key needs of a circuit, with the check on.
func (k *ProvingKey) Want(ar Arithmetic) Want {
	return Want{Domain: k.Domain, C: !k.Folded, Check: true, Arithmetic: ar, Commitments: k.Commitments}
}

// AssignmentBytes is the size of the buffers of an assignment.
func AssignmentBytes(c Circuit, want Want) alloc.Amount {
	vectors := 2
	if want.WitnessOnly {
		vectors = 0
	} else if want.C {
		vectors = 3
	}
	return alloc.HostBytes(curve.ScalarBytes * (int64(c.NbWires()) + int64(vectors)*int64(want.Domain.Size())))
}

// Assignment is a circuit's wires and constraints evaluated on one input. The
// buffers are flagged secret.
type Assignment struct {
	W       *alloc.Buffer[curve.Scalar] // the witness; W[0] is 1, public inputs follow
	A, B, C *alloc.Buffer[curve.Scalar] // on the domain, natural order; C nil when it was not wanted, all of them with Want.WitnessOnly

	// Commitments and CommitmentPok are those of a gnark circuit that commits.
	Commitments   []curve.G1
	CommitmentPok curve.G1
}

// Buffers are the assignment's buffers, for an engine that frees them.
func (a *Assignment) Buffers() []alloc.Ref {
	var refs []alloc.Ref
	for _, b := range []*alloc.Buffer[curve.Scalar]{a.W, a.A, a.B, a.C} {
		if b != nil {
			refs = append(refs, b)
		}
	}
	return refs
}

// Release drops one reference on each buffer.
func (a *Assignment) Release() {
	for _, r := range a.Buffers() {
		r.Release()
	}
}

// WitnessSource gives the full witness of a circuit: the leading 1, outputs and
// public inputs, then the private wires.
type WitnessSource interface {
	// Len is the number of wires.
	Len() int
	// Fill writes all of them to dst, which has Len places, reduced and in
	// Montgomery form.
	Fill(ctx context.Context, dst []curve.Scalar) error
}

// Witness is a WitnessSource of scalars in memory.
type Witness []curve.Scalar

// Len is the number of wires.
func (w Witness) Len() int { return len(w) }

// Fill copies the witness.
func (w Witness) Fill(_ context.Context, dst []curve.Scalar) error {
	if len(dst) != len(w) {
		return fmt.Errorf("witness of %d wires does not fill %d places", len(w), len(dst))
	}
	copy(dst, w)
	return nil
}

// ErrUnsatisfied is what every *UnsatisfiedError is.
var ErrUnsatisfied = errors.New("the witness does not satisfy the circuit")

// UnsatisfiedError says that a witness does not satisfy its circuit.
type UnsatisfiedError struct {
	// Row is the first constraint that does not hold, counted from 0. It is −1 when a
	// circuit's solver stopped before it came to one: a hint refused its inputs.
	Row int
	Err error // what the solver said, if it said more; it may quote values of the witness
}

// Error names the constraint.
func (e *UnsatisfiedError) Error() string {
	if e.Row < 0 {
		return fmt.Sprintf("the witness cannot be completed: %v", e.Err)
	}
	if e.Err != nil {
		return fmt.Sprintf("constraint %d (counted from 0) is not satisfied: %v", e.Row, e.Err)
	}
	return fmt.Sprintf("constraint %d (counted from 0) is not satisfied", e.Row)
}

// Is makes errors.Is(err, ErrUnsatisfied) true.
func (e *UnsatisfiedError) Is(target error) bool { return target == ErrUnsatisfied }

// Unwrap is the solver's error.
func (e *UnsatisfiedError) Unwrap() error { return e.Err }
