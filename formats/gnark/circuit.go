package gnark

import (
	"context"
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync"

	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/constraint/solver"
	"github.com/consensys/gnark/frontend"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark/internal/parts"
	"github.com/snarkline/snarkline/groth16"
)

// Circuit is a compiled gnark circuit as a groth16.Circuit. Its input is a full
// gnark witness.Witness, or an assignment of the circuit (a frontend.Circuit).
//
// It is safe for concurrent use. gnark keeps the tables of lookup gadgets in the
// compiled circuit while it solves, so circuits that hold such are solved one at
// a time; several Circuits of one constraint system must not be solved at once
// then, whoever made them.
type Circuit struct {
	ccs     constraint.ConstraintSystem
	sys     *system
	f       backend
	opts    []solver.Option
	oneShot sync.Mutex
	serial  bool
}

var _ groth16.Circuit = (*Circuit)(nil)

// NewCircuit wraps a constraint system that gnark compiled with its r1cs builder
// over the scalar field of BN254 or BLS12-381. The options go to gnark's solver
// at every run: hints, number of tasks.
func NewCircuit(ccs constraint.ConstraintSystem, opts ...solver.Option) (*Circuit, error) {
	sys, err := systemOf(ccs)
	if err != nil {
		return nil, fmt.Errorf("gnark circuit: %w", err)
	}
	f, err := backendOf(sys.curve)
	if err != nil {
		return nil, fmt.Errorf("gnark circuit: %w", err)
	}
	sys.coeffs = nil // only the conversion to matrices needs the copy
	c := &Circuit{ccs: ccs, sys: sys, f: f, opts: opts}
	for _, b := range sys.Blueprints {
		if _, ok := b.(constraint.BlueprintStateful[constraint.U64]); ok {
			c.serial = true
		}
	}
	return c, nil
}

// Curve is the curve of the circuit's scalar field.
func (c *Circuit) Curve() curve.ID { return c.sys.curve }

// NbConstraints is the number of rows.
func (c *Circuit) NbConstraints() int { return c.sys.NbConstraints }

// NbWires is the length of the full witness, the leading one included.
func (c *Circuit) NbWires() int { return c.sys.wires() }

// NbPublic is the number of public inputs.
func (c *Circuit) NbPublic() int { return c.sys.GetNbPublicVariables() - 1 }

// Commitments is the number of Pedersen commitments that the circuit makes.
func (c *Circuit) Commitments() int {
	info, _ := c.sys.CommitmentInfo.(constraint.Groth16Commitments)
	return len(info)
}

// Serial reports whether the circuit is solved one input at a time.
func (c *Circuit) Serial() bool { return c.serial }

// heap is what gnark's solver allocates on Go's heap: the wires with a flag
// each, and three vectors with room for a power of two.
func (c *Circuit) heap() int64 {
	rows := int64(1)
	if n := c.sys.NbConstraints; n > 1 {
		rows = 1 << bits.Len(uint(n-1))
	}
	return int64(c.sys.wires())*(curve.ScalarBytes+1) + 3*curve.ScalarBytes*rows
}

// Footprint is the solver's share of Go's heap, which Synthesize counts as
// foreign memory of its scope while it needs it.
func (c *Circuit) Footprint(groth16.Want) alloc.Amount { return alloc.HostBytes(c.heap()) }

// giveBack is the size from which the solver's garbage is collected and given
// back to the system at once, so that memory that is no longer counted is no
// longer held. All else of size lies outside Go's heap, so a collection is short.
const (
	giveBack      = 4 << 20
	giveBackEarly = 16 << 20 // from which also between the copies
)

// Synthesize solves the circuit on input and copies the solution out of Go's
// heap. gnark's solver checks every constraint and cannot be told not to, nor be
// cancelled: ctx is looked at before and after it. Its panics come back as
// errors where they happen in the calling goroutine, and those of hints wherever
// they happen.
func (c *Circuit) Synthesize(ctx context.Context, sc *alloc.Scope, input any, want groth16.Want) (*groth16.Assignment, error) {
	a := &groth16.Assignment{}
	if err := c.synthesize(ctx, sc, input, want, a); err != nil {
		a.Release()
		return nil, fmt.Errorf("synthesize: %w", err)
	}
	return a, nil
}

func (c *Circuit) synthesize(ctx context.Context, sc *alloc.Scope, input any, want groth16.Want, a *groth16.Assignment) error {
	n := want.Domain.Size()
	if c.NbConstraints() > n {
		return fmt.Errorf("%d constraints do not fit the domain of 2^%d", c.NbConstraints(), want.Domain.Log)
	}
	w, wipe, err := c.witness(input)
	if err != nil {
		return err
	}
	defer wipe()
	charge, err := alloc.Foreign(sc, alloc.External, c.heap())
	if err != nil {
		return err
	}
	defer charge.Release()
	solved, err := c.solve(ctx, w, want.Commitments)
	if c.heap() >= giveBack {
		defer debug.FreeOSMemory()
	}
	if err != nil {
		return err
	}
	defer solved.Wipe()
	if !want.C {
		clear(solved.C)
		solved.C = nil
	}
	if len(solved.W) != c.NbWires() || len(solved.A) != c.NbConstraints() {
		return fmt.Errorf("gnark's solver gave %d wires and %d rows, the circuit has %d and %d", len(solved.W), len(solved.A), c.NbWires(), c.NbConstraints())
	}
	vectors := []struct {
		to   **alloc.Buffer[curve.Scalar]
		from *[]curve.Scalar
		n    int
		p    alloc.Purpose
	}{{&a.W, &solved.W, c.NbWires(), alloc.Witness}, {&a.A, &solved.A, n, alloc.Evaluation}, {&a.B, &solved.B, n, alloc.Evaluation}}
	if want.C {
		vectors = append(vectors, struct {
			to   **alloc.Buffer[curve.Scalar]
			from *[]curve.Scalar
			n    int
			p    alloc.Purpose
		}{&a.C, &solved.C, n, alloc.Evaluation})
	}
	for i, v := range vectors {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Half-way, so that Go's copy and ours are not there in full together.
		if i == len(vectors)/2 && c.heap() >= giveBackEarly {
			debug.FreeOSMemory()
		}
		if *v.to, err = alloc.Make[curve.Scalar](sc, v.n, v.p, alloc.Secret|alloc.Dirty); err != nil {
			return err
		}
		out := (*v.to).Slice()
		clear(out[copy(out, *v.from):])
		clear(*v.from)
		*v.from = nil
	}
	a.Commitments, a.CommitmentPok = solved.Commitments, solved.CommitmentPok
	return nil
}

// witness is input as gnark's witness, with what wipes it if it was made here.
func (c *Circuit) witness(input any) (witness.Witness, func(), error) {
	switch v := input.(type) {
	case witness.Witness:
		if !c.f.IsWitness(v) {
			return nil, nil, fmt.Errorf("the witness is not of %v", c.Curve())
		}
		return v, func() {}, nil
	case frontend.Circuit:
		w, err := newWitness(v, c.Curve())
		if err != nil {
			return nil, nil, err
		}
		return w, func() { c.f.Wipe(w) }, nil
	}
	return nil, nil, fmt.Errorf("the input is a %T, neither a gnark witness nor an assignment of the circuit", input)
}

func newWitness(assignment frontend.Circuit, id curve.ID) (w witness.Witness, err error) {
	defer recovered(&err, "witness of the assignment")
	if w, err = frontend.NewWitness(assignment, id.ScalarModulus()); err != nil {
		return nil, fmt.Errorf("witness of the assignment: %w", err)
	}
	return w, nil
}

func (c *Circuit) solve(ctx context.Context, w witness.Witness, keys []groth16.CommitmentKey) (s *parts.Solved, err error) {
	if c.serial {
		c.oneShot.Lock()
		defer c.oneShot.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer recovered(&err, "gnark's solver")
	if s, err = c.f.Solve(c.ccs, w, keys, c.opts); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		s.Wipe()
		return nil, err
	}
	return s, nil
}

// recovered turns a panic of gnark's code into an error.
func recovered(err *error, doing string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: %w: %v", doing, parts.ErrPanic, r)
	}
}
