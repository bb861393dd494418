package stages

import (
	"github.com/snarkline/snarkline/pipeline"
)

// Standard puts the eight stages behind jobs, as in the package's diagram, and
// gives the port of finished proofs.
//
// Every stage has one worker and a queue of one job, but for b_g2_msm, whose
// queue has no bound so that it never holds up the next job: each heavy stage
// uses all cores by itself, and more workers mostly cost memory. opts go to
// every stage (pipeline.Retry, say); workers, capacities and budgets of single
// stages are best given to the graph, by pipeline.WithSettings, under the
// names of Names.
//
// The source that jobs come from is the caller's: with pipeline.Restart(p.Restarts())
// as its option, jobs are made again as Prover.Again says, which is for devices.
//
// Without a budget, jobs pile up before b_g2_msm if it is the slowest stage:
// up to the capacities of the other branches plus what waits in its queue. A
// budget bounds them.
func Standard(p *Prover, jobs *pipeline.Port[Job], opts ...pipeline.NodeOption) (*pipeline.Port[*Result], error) {
	return standard(p, jobs, nil, opts...)
}

// standard is Standard with further options of the last stage.
func standard(p *Prover, jobs *pipeline.Port[Job], last []pipeline.NodeOption, opts ...pipeline.NodeOption) (*pipeline.Port[*Result], error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	off := append([]pipeline.NodeOption{pipeline.Capacity(pipeline.Unbounded)}, p.setOptions(NameBG2MSM, opts)...)

	w := pipeline.Via(jobs, Synthesize(p), opts...)
	evaluations := pipeline.Via(w, Prestage(p), p.setOptions(NamePrestage, opts)...)
	quotient := pipeline.Via(evaluations, NTT(p), p.setOptions(NameNTT, opts)...)
	h := pipeline.Via(quotient, HMSM(p), p.setOptions(NameHMSM, opts)...)
	split := pipeline.Via(w, BatchAdd(p), p.setOptions(NameBatchAdd, opts)...)
	sums := pipeline.Via(split, TailMSM(p), p.setOptions(NameTailMSM, opts)...)
	b2 := pipeline.Via(w, BG2MSM(p), off...)
	joined := pipeline.Join3(h, sums, b2, pipeline.Name("sums"))
	return pipeline.Via(joined, Assemble(p), append(last, opts...)...), nil
}
