package stages

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Job is one proof to make.
type Job struct {
	Key   pipeline.Key // identifies the job in the graph, in errors and in the result
	Input any          // what the circuit's Synthesize takes
}

// Evaluations are the vectors a, b, c of a job over the key's domain, where the
// processor wants them, from prestage to ntt. ntt overwrites them: nothing else
// may read them once ntt has begun.
type Evaluations struct {
	Held   groth16.Held
	Staged string // where prestage put them, for the report
}

// Buffers implements pipeline.Holder.
func (e *Evaluations) Buffers() []alloc.Ref { return buffers(e.Held) }

// Quotient is the vector h in the key's basis, from ntt to h-msm.
type Quotient struct {
	Held   groth16.Held
	Staged string // of Evaluations
}

// Buffers implements pipeline.Holder.
func (q *Quotient) Buffers() []alloc.Ref { return buffers(q.Held) }

// HSum is Σ hᵢ·Hᵢ.
type HSum struct {
	H      curve.G1
	Staged string // of Evaluations
}

// B2Sum is Σ wᵢ·Bᵢ(τ) in G2.
type B2Sum struct {
	B2 curve.G2
	On string // the processor that made it
}

// Small is what of an assignment travels to assemble by value: the public
// inputs, for the verification, and the Pedersen commitments of a circuit that
// commits.
type Small struct {
	Public        []curve.Scalar
	Commitments   []curve.G1
	CommitmentPok curve.G1
}

// Split is a witness with its ones taken out, from batch-add to tail-msm.
// When Whole is set the witness had too few ones: the sums are zero, and
// tail-msm takes every wire.
type Split struct {
	Small
	Held   groth16.Held // the points whose scalar is neither 0 nor 1, or all
	Counts curve.Counts // of the witness: zeros, ones, others
	Whole  bool

	LOnes, AOnes, B1Ones curve.G1 // sums of the points whose scalar is 1
}

// Buffers implements pipeline.Holder.
func (s *Split) Buffers() []alloc.Ref { return buffers(s.Held) }

// WireSums are the three sums over the witness in G1.
type WireSums struct {
	Small
	L, A, B1 curve.G1
	Counts   curve.Counts
}

// Result is a finished proof.
type Result struct {
	Key    pipeline.Key
	Proof  *groth16.Proof
	Public []curve.Scalar // the public inputs, the leading one not included
	Counts curve.Counts   // the witness: how many zeros, ones, others
	Staged string         // where prestage put a, b and c
	On     string         // the processor of its stages: "cpu", "cuda:0"
	B2On   string         // that of the sum in b_g2_msm

	// Attempts is how often the job was made, 1 for most; Again is why it was
	// made again each time.
	Attempts int
	Again    []error
}

// refs are the buffers of b that are there.
func refs[T any](b ...*alloc.Buffer[T]) []alloc.Ref {
	out := make([]alloc.Ref, 0, len(b))
	for _, x := range b {
		if x != nil {
			out = append(out, x)
		}
	}
	return out
}

// buffers are what a processor holds; nil if it holds nothing.
func buffers(v groth16.Held) []alloc.Ref {
	if v == nil {
		return nil
	}
	return v.Buffers()
}

// release ends a reference on each buffer of v.
func release(v groth16.Held) {
	for _, r := range v.Buffers() {
		r.Release()
	}
}
