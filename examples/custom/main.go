// Custom: a proving pipeline in another order, with stages of your own.
//
// The standard pipeline runs the quotient branch beside the sums over the
// witness. Here the sums wait until the quotient is done (stage "gate"): a job
// needs less memory at any one moment, so more jobs fit in the same budget. A
// stage "census" counts each witness on the side, and a stage "seal" takes every
// finished proof before it is handed over. The circuit is in circuit.go.
//
//	go run ./examples/custom
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/consensys/gnark/logger"
	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

func main() {
	logger.Disable()
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "custom:", err)
		os.Exit(1)
	}
}

const (
	jobs  = 4
	links = 8 // of the chain that a job proves
)

func run(ctx context.Context, w io.Writer) error {
	prover, err := newProver(ctx, links)
	if err != nil {
		return err
	}
	defer prover.Key.Close()

	// What a job needs at most is known before anything runs.
	standard, err := stages.Need(prover, stages.BatchOptions{})
	if err != nil {
		return err
	}
	_, err = build(prover, 1, nil).Run(ctx) // no job fits in one byte
	var refused *pipeline.AdmitError
	if !errors.As(err, &refused) {
		return fmt.Errorf("a budget of one byte: %w", err)
	}
	need := refused.Need[alloc.Host]
	fmt.Fprintf(w, "a job needs at most %s in the standard order, %s in this one\n\n",
		humanize.IBytes(uint64(standard[alloc.Host])), humanize.IBytes(uint64(need)))

	alloc.Default().ResetPeaks()
	g := build(prover, 2*need, w)
	fmt.Fprintf(w, "%s\n", g.Mermaid())
	report, err := g.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	return report.WriteTable(w)
}

// build makes the graph. It prints the sealed proofs to w.
func build(p *stages.Prover, budget int64, w io.Writer) *pipeline.Graph {
	g := pipeline.New("sums after quotient", pipeline.Budget(alloc.Host, budget))
	in := pipeline.FromSeq(g, func(yield func(stages.Job) bool) {
		for part := range jobs {
			if !yield(stages.Job{Key: pipeline.Key{Job: "custom", Part: part}, Input: assign(int64(part), links)}) {
				return
			}
		}
	}, func(j stages.Job) pipeline.Key { return j.Key }, pipeline.Name("jobs"))

	assigned := pipeline.Via(in, stages.Synthesize(p))
	quotient := pipeline.Via(pipeline.Via(assigned, stages.Prestage(p)), stages.NTT(p))
	h := pipeline.Via(quotient, stages.HMSM(p))

	// The gate pairs each witness with its finished sum over the quotient. A
	// join keeps alive all that the values in it hold, so the witness is cut out
	// of the assignment before.
	witness := pipeline.Via(assigned, cut())
	gated := pipeline.Via(pipeline.Join2(witness, h, pipeline.Name("both")), gate())
	sums := pipeline.Via(pipeline.Via(gated, stages.BatchAdd(p)), stages.TailMSM(p))
	b2 := pipeline.Via(gated, stages.BG2MSM(p), pipeline.Capacity(pipeline.Unbounded))
	proofs := pipeline.Via(pipeline.Join3(h, sums, b2, pipeline.Name("sums")), stages.Assemble(p))

	// The census needs the witness only, for as long as it counts.
	counts := pipeline.Via(assigned, census())
	sealed := pipeline.Via(pipeline.Join2(proofs, counts, pipeline.Name("counted")), seal(), pipeline.Ordered())
	pipeline.ToFunc(sealed, func(_ context.Context, k pipeline.Key, line string) error {
		_, err := fmt.Fprintf(w, "%v  %s\n", k, line)
		return err
	}, pipeline.Name("print"))
	return g
}

// readsW says that a stage reads the witness of an assignment and nothing else,
// so that an assignment that waits for it does not keep a, b and c alive.
func readsW(a *groth16.Assignment) []alloc.Ref { return []alloc.Ref{a.W} }

// onlyW is an assignment's witness, to pass on. What is passed on is retained
// first, since the lease on the input ends when the stage returns.
func onlyW(a *groth16.Assignment) *groth16.Assignment {
	a.W.Retain()
	return &groth16.Assignment{W: a.W, Commitments: a.Commitments, CommitmentPok: a.CommitmentPok}
}

// cut takes the witness out of an assignment.
func cut() pipeline.Stage[*groth16.Assignment, *groth16.Assignment] {
	s := pipeline.NewStage("cut", func(_ context.Context, a *groth16.Assignment) (*groth16.Assignment, error) {
		return onlyW(a), nil
	})
	return pipeline.WithUses(s, readsW)
}

// gate lets a witness through once its job's quotient is done.
func gate() pipeline.Stage[pipeline.Pair[*groth16.Assignment, stages.HSum], *groth16.Assignment] {
	return pipeline.NewStage("gate", func(_ context.Context, v pipeline.Pair[*groth16.Assignment, stages.HSum]) (*groth16.Assignment, error) {
		return onlyW(v.A), nil
	})
}

// tally is what the census finds.
type tally struct{ wires, zeros, ones int }

// census counts zeros and ones. Wire 0 is the one to compare with.
func census() pipeline.Stage[*groth16.Assignment, tally] {
	s := pipeline.NewStage("census", func(ctx context.Context, a *groth16.Assignment) (tally, error) {
		w := a.W.Slice()
		n := tally{wires: len(w)}
		for i, v := range w {
			if i%4096 == 0 && ctx.Err() != nil {
				return n, ctx.Err()
			}
			switch {
			case v.IsZero():
				n.zeros++
			case v == w[0]:
				n.ones++
			}
		}
		return n, nil
	})
	// It is a last reader of w, beside tail-msm and b_g2_msm: the memory of w is
	// another job's only when all three have finished.
	return pipeline.WithNeeds(pipeline.WithUses(s, readsW), func(any) pipeline.Need {
		return pipeline.Need{Ends: []string{stages.PartW}}
	})
}

// seal makes a line of a proof: a digest of it, and what the census found.
func seal() pipeline.Stage[pipeline.Pair[*stages.Result, tally], string] {
	return pipeline.NewStage("seal", func(_ context.Context, v pipeline.Pair[*stages.Result, tally]) (string, error) {
		h := sha256.New()
		proof := v.A.Proof
		h.Write(curve.Bytes(proof.A[:]))
		h.Write(curve.Bytes(proof.B[:]))
		h.Write(curve.Bytes(proof.C[:]))
		return fmt.Sprintf("proof %x…  %d wires, %d of them 0, %d of them 1",
			h.Sum(nil)[:8], v.B.wires, v.B.zeros, v.B.ones), nil
	})
}
