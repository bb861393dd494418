package groth16

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// Held is what a processor keeps of a job between two stages, in memory of its
// own choice. Whoever is given one has one reference on each of its Buffers and
// ends it by releasing them; the call that takes a Held borrows it and ends
// nothing. String says where it is, for the report: "cuda:0, tier 1: a, b and c
// in device memory". It is an alias to a literal, so that packages agree on it
// without importing each other.
type Held = interface {
	Buffers() []alloc.Ref
	String() string
}

// Load says how large the jobs of a key are. It does not change from job to job.
type Load = struct {
	Domain          curve.Domain
	Basis           curve.Basis
	Folded          bool // there is no c
	Wires           int  // scalars of the witness
	Evaluates       bool // by PrestageOf: a, b and c are in no host memory
	H, L, A, B1, B2 int  // points of the queries
}

// Needs is what a job of a Load takes of a processor, by space (host, pinned,
// device). All of it is drawn from the scope of the call that takes it. A bound
// too low makes the draw fail with an *alloc.OverdrawError; one too high lets
// fewer jobs in at once. Calls for one job may run side by side wherever the
// stages do: ntt and h-msm beside batch-add and tail-msm beside b_g2_msm.
type Needs = struct {
	// What each stage draws and has given back when its calls have returned.
	// batch-add is Split, three SumOnes and Others, one after another, and
	// counts what only Split's Held holds; tail-msm is three SumOthers.
	Prestage, NTT, HMSM, BatchAdd, TailMSM, BG2MSM alloc.Amount

	// What the Helds hold besides the vectors a, b, c and w that they were made
	// from. Where there is little room A and BC may be taken as late as in
	// QuotientOf: the bound is the same.
	A     alloc.Amount // for a and h: from Prestage to the end of SumH
	BC    alloc.Amount // for b and c: from Prestage to the end of QuotientOf
	Wires alloc.Amount // for what Others hands on: from Split to the last SumOthers

	// CopiesABC says that the vectors a, b, c are let go of soon after Prestage
	// has returned, once they are copied, and at the latest when QuotientOf
	// returns. Otherwise h takes the place of a, and b and c end with QuotientOf.
	CopiesABC bool
	// CopiesW says that w is let go of when Others returns. Otherwise the Held of
	// Others keeps it.
	CopiesW bool
}

// Staging is an Arithmetic that keeps the vectors of a job where it wants them
// from stage to stage: in host memory, or on a device. It is what the stages of
// a pipeline call.
//
// A Staging is safe for concurrent use by many jobs and by the branches of one.
// Every call frees on an error, and when ctx ends, whatever it drew, and leaves
// the references on its arguments as they were. A Held is given only to the
// Staging that made it.
//
// An error may say, by a method Temporary() bool, that the same call can be made
// again; and, by a method FromStart() bool, that the job's Helds are lost (the
// device was reset) or spoiled, and that the job can be made again from its
// input, on this processor or another.
type Staging interface {
	Arithmetic

	// Needs bounds what a job takes. It gives the same answer for the same load
	// at all times, and never fails: what cannot fit fails when it is drawn.
	Needs(l Load) Needs

	// Prestage begins to bring a, b and c (nil for a folded key), the
	// evaluations on d in natural order, to where QuotientOf wants them. On a
	// device it returns before they are there and keeps references of its own on
	// the buffers until they are; an error of a copy then is QuotientOf's. If the
	// Held has a method WhenCopied(f func()), it calls f once, from any goroutine,
	// when the buffers have been let go of (at once if they have been), whatever
	// comes of the copies; f does not wait.
	Prestage(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c *alloc.Buffer[curve.Scalar]) (Held, error)
	// QuotientOf is Quotient of what Prestage holds. It spoils v, also on an
	// error; v's memory for b and c may be given back before it returns.
	QuotientOf(ctx context.Context, sc *alloc.Scope, v Held) (Held, error)
	// SumH is Σ h[j]·points[j] over the points, of which there may be fewer than
	// places of h. v is QuotientOf's.
	SumH(ctx context.Context, sc *alloc.Scope, points curve.Points, v Held) (curve.G1, error)

	// Split classifies w, once for all queries.
	Split(ctx context.Context, sc *alloc.Scope, w *alloc.Buffer[curve.Scalar]) (Held, curve.Counts, error)
	// SumOnes is the plain sum of the points of q whose scalar is 1. v is Split's.
	SumOnes(ctx context.Context, sc *alloc.Scope, q curve.Query, v Held) (curve.G1, error)
	// Others makes of Split's v what SumOthers reads, for the queries qs: the
	// points whose scalar is neither 0 nor 1 or, when whole is set, all of them.
	// What it makes outlives v.
	Others(ctx context.Context, sc *alloc.Scope, v Held, whole bool, qs ...curve.Query) (Held, error)
	// SumOthers is Σ w[q.Wire(j)]·q.Points[j] over what Others took of q, which
	// is one of its queries. v is Others'.
	SumOthers(ctx context.Context, sc *alloc.Scope, q curve.Query, v Held) (curve.G1, error)

	// SumB2 is Σ w[q.Wire(j)]·q.Points[j] over all points of q, in G2. It may
	// run before, beside or after the other calls for the same w, of which it
	// may make use.
	SumB2(ctx context.Context, sc *alloc.Scope, q curve.Query, w *alloc.Buffer[curve.Scalar]) (curve.G2, error)
}

// Evaluator is a Staging that can evaluate a circuit's matrices where it keeps
// vectors, so that a job brings it w alone.
type Evaluator interface {
	Staging

	// KeepSystem makes the matrices of s ready to be evaluated, as far as there
	// is room, until drop is called; they neither change nor go before. What is
	// given up meanwhile to make room is brought back when there is some.
	KeepSystem(ctx context.Context, s System) (drop func(), err error)
	// HoldSystem says whether PrestageOf can be called for a job with the
	// matrices of s, which KeepSystem was told of; they then stay ready until end
	// is called. It does not wait.
	HoldSystem(l Load, s System) (end func(), ok bool)

	// PrestageOf is Prestage of A·w, B·w and, unless folded is set, C·w, or a∘b
	// where s has no C. With check it compares a∘b with C·w: row is the first
	// row that differs, and then there is no Held; it is −1 otherwise. It has
	// read w when it returns. The matrices are held. Where there is no room for
	// the vectors after all, the error's FromStart is true, and the job is made
	// again with the host's evaluations.
	PrestageOf(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, s System, folded, check bool, w *alloc.Buffer[curve.Scalar]) (v Held, row int, err error)
}

// StagingOf is a itself if it is a Staging, and otherwise a Staging that keeps
// everything in the buffers it is given and works on them in place by a's
// methods.
func StagingOf(a Arithmetic) Staging {
	if s, ok := a.(Staging); ok {
		return s
	}
	return hostStaging{a}
}

// Load is how large the jobs of this key are.
func (k *ProvingKey) Load() Load {
	return Load{
		Domain: k.Domain, Basis: k.Basis, Folded: k.Folded, Wires: k.NbWires,
		H: k.H.Len(), L: k.L.Len(), A: k.A.Len(), B1: k.B1.Len(), B2: k.B2.Len(),
	}
}
