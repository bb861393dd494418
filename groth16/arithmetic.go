package groth16

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// Arithmetic is what the stages ask of a processor. It is bound to one curve,
// safe for concurrent use, and bounded in memory: scratch comes from the scope
// of the call, is counted there, and is released before the call returns.
//
// Slices are borrowed for the length of the call. Every method returns ctx's
// error soon after ctx is done.
type Arithmetic interface {
	// Name says which processor this is: "cpu", "cuda:0".
	Name() string
	// Curve is the curve whose arithmetic this is.
	Curve() curve.ID

	// Evaluate writes m·w to the first m.NumRows() places of out and zeroes the rest.
	Evaluate(ctx context.Context, m curve.Matrix, w, out []curve.Scalar) error
	// Hadamard writes a∘b, element by element, to out, which may be a or b.
	Hadamard(ctx context.Context, a, b, out []curve.Scalar) error
	// Unsatisfied returns the first i with a[i]·b[i] ≠ c[i], or −1.
	Unsatisfied(ctx context.Context, a, b, c []curve.Scalar) (int, error)

	// Quotient computes the vector h that goes with a key of the given basis
	// from the evaluations a, b, c of the three polynomials on d, natural
	// order, d.Size() each. c is nil for a folded key. The result is in a; b
	// and c are left in no particular state.
	Quotient(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) error

	// Classify writes the class of each scalar of w to out, which has len(w).
	Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error)
	// SumG1 is the plain sum of the points of q whose wire is of class One.
	SumG1(ctx context.Context, sc *alloc.Scope, q curve.Query, classes []curve.Class) (curve.G1, error)
	// Tail writes to out (cap ≥ q.Len()) the indices in q of the points whose
	// wire is of class Other, ascending, and returns how many there are.
	Tail(ctx context.Context, q curve.Query, classes []curve.Class, out []uint32) (int, error)

	// MSMG1 is Σ w[q.Wire(j)]·q.Points[j] over the j in pick, or over all j
	// when pick is nil. Points at infinity and repeated and opposite points
	// are allowed.
	MSMG1(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G1, error)
	// MSMG2 is the same in G2.
	MSMG2(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G2, error)

	// QuotientScratch bounds, for reservations, the bytes that Quotient draws
	// from its scope over a domain of n.
	QuotientScratch(n int, basis curve.Basis, folded bool) alloc.Amount
	// MSMScratch bounds what a sum over a query of n points in g draws, however
	// many of them are picked; in G1 it bounds SumG1 too.
	MSMScratch(g curve.Group, n int) alloc.Amount
}
