package cuda

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
)

// load and needs are groth16's Load and Needs, which are literals so that
// packages agree on them without importing each other.
type load = struct {
	Domain          curve.Domain
	Basis           curve.Basis
	Folded          bool
	Wires           int
	Evaluates       bool
	H, L, A, B1, B2 int
}

type needs = struct {
	Prestage, NTT, HMSM, BatchAdd, TailMSM, BG2MSM alloc.Amount

	A     alloc.Amount
	BC    alloc.Amount
	Wires alloc.Amount

	CopiesABC bool
	CopiesW   bool
}

// Needs bounds what a job takes of the card. Where the card has less the
// operations are cut smaller; so there is no more to be stated than this. What
// belongs to no job is not in it: points of keys, tables, and the page-locked
// buffers that copies go through.
func (e *Engine) Needs(l load) needs {
	in := func(n int64) alloc.Amount { return alloc.BytesIn(e.card.space, n) }
	vector := int64(curve.ScalarBytes) << l.Domain.Log
	bc := 2 * vector
	if l.Folded {
		bc = vector
	}
	longest := max(l.L, l.A, l.B1)
	n := needs{
		NTT:       in(aligned(new(kernels.NTT).ScratchBytes(l.Domain.Log, l.Basis, l.Folded))),
		HMSM:      in(e.sumBytes(curve.InG1, l.H)),
		BatchAdd:  in(max(aligned(12), e.onesBytes(longest))),
		TailMSM:   in(e.sumBytes(curve.InG1, longest)),
		BG2MSM:    in(e.sumBytes(curve.InG2, l.B2) + curve.ScalarBytes*int64(max(l.Wires, 1))), // with w, in case it comes before Split
		A:         in(vector),
		BC:        in(bc),
		Wires:     in((curve.ScalarBytes + 1) * int64(max(l.Wires, 1))),
		CopiesABC: true,
		CopiesW:   true,
	}
	if l.Evaluates {
		// w comes with a and b, and stays until h is summed: the sums over it find
		// it there.
		w := curve.ScalarBytes * int64(max(l.Wires, 1))
		n.Prestage, n.A = in(evaluateBytes(l.Domain.Size())), in(vector+w)
	}
	e.expect(vector, vector+bc, int64(l.Wires), max(l.H, longest), l.B2)
	return n
}

// expect makes the ledger keep room for the operations of a job with vectors of
// so many bytes, each and in all, and keys leave room for two jobs. Operations
// are cut to fit, so no more than an eighth of the card is kept for them if less
// would do.
func (e *Engine) expect(vector, vectors, wires int64, g1, g2 int) {
	var most int64
	// The quotient can be made with one vector on the card.
	least := vector + 4*min(e.o.chunk, vector)
	for g, n := range map[curve.Group]int{curve.InG1: g1, curve.InG2: g2} {
		if n > 0 {
			size := e.sizeOfPlan(g, n, e.card.share)
			most = max(most, size.most+e.mostLayout(g, n))
			least = max(least, size.least+e.mostLayout(g, min(n, minPiece)))
		}
	}
	e.card.mem.expect(max(min(most, e.card.share/2), least), 2*(vectors+(curve.ScalarBytes+1)*wires))
}

// expectJobs is expect for a key whose longest vector has n points.
func (e *Engine) expectJobs(n int) {
	vector := curve.ScalarBytes * int64(n)
	e.expect(vector, 3*vector, int64(n), n, 0)
}
