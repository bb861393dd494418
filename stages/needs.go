package stages

import (
	"context"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// The parts of a job's memory, by the names in Need. A stage of a reader's own
// that takes the place of one of ours ends the same parts. w, a, b and c are the
// buffers that synthesize makes, in host memory; the others are what a processor
// has beside them.
const (
	PartW     = "w"
	PartA     = "a"
	PartB     = "b"
	PartC     = "c"
	PartPicks = "picks" // from batch-add to tail-msm

	PartStagedA  = "staged a"  // from prestage to h-msm
	PartStagedBC = "staged bc" // from prestage to ntt
)

func part(name string, bytes int64) pipeline.Part {
	return pipeline.Part{Name: name, Bytes: alloc.HostBytes(bytes)}
}

func (p *Prover) needSynthesize(ctx context.Context) pipeline.Need {
	vector := int64(p.Key.Domain.Size()) * curve.ScalarBytes
	n := pipeline.Need{
		Scratch: p.Circuit.Footprint(p.want(ctx)),
		Makes:   []pipeline.Part{part(PartW, int64(p.Key.NbWires)*curve.ScalarBytes)},
	}
	if p.evaluation(ctx) != nil {
		return n
	}
	n.Makes = append(n.Makes, part(PartA, vector), part(PartB, vector))
	if !p.Key.Folded {
		n.Makes = append(n.Makes, part(PartC, vector))
	}
	return n
}

func (p *Prover) needPrestage(ctx context.Context) pipeline.Need {
	n := p.needs(ctx)
	need := pipeline.Need{Scratch: n.Prestage, Makes: []pipeline.Part{
		{Name: PartStagedA, Bytes: n.A},
		{Name: PartStagedBC, Bytes: n.BC},
	}}
	if p.evaluation(ctx) != nil {
		need.Ends = []string{PartW}
	} else if n.CopiesABC {
		// The copies may outlast the stage, but not ntt, which names them too.
		need.Ends = []string{PartA, PartB, PartC}
	}
	return need
}

func (p *Prover) needNTT(ctx context.Context) pipeline.Need {
	n := p.needs(ctx)
	need := pipeline.Need{Scratch: n.NTT, Ends: []string{PartB, PartC, PartStagedBC}}
	if n.CopiesABC {
		need.Ends = append(need.Ends, PartA)
	}
	return need
}

func (p *Prover) needHMSM(ctx context.Context) pipeline.Need {
	n := p.needs(ctx)
	need := pipeline.Need{Scratch: n.HMSM, Ends: []string{PartStagedA}}
	if !n.CopiesABC {
		need.Ends = append(need.Ends, PartA)
	}
	return need
}

func (p *Prover) needBatchAdd(ctx context.Context) pipeline.Need {
	n := p.needs(ctx)
	need := pipeline.Need{Scratch: n.BatchAdd, Makes: []pipeline.Part{{Name: PartPicks, Bytes: n.Wires}}}
	if n.CopiesW {
		need.Ends = []string{PartW}
	}
	return need
}

func (p *Prover) needTailMSM(ctx context.Context) pipeline.Need {
	n := p.needs(ctx)
	need := pipeline.Need{Scratch: n.TailMSM, Ends: []string{PartPicks}}
	if !n.CopiesW {
		need.Ends = append(need.Ends, PartW)
	}
	return need
}

// needBG2MSM is what the sum takes wherever it may be made.
func (p *Prover) needBG2MSM(ctx context.Context) pipeline.Need {
	need := pipeline.Need{Ends: []string{PartW}}
	one, two := p.forB2(ctx)
	if two == nil {
		need.Scratch = needsOf(one, p.Key.Load()).BG2MSM
		return need
	}
	for _, ar := range []groth16.Arithmetic{two.device, two.host} {
		if m := memberOf(ctx, ar); lost(m) == nil {
			need.Scratch = need.Scratch.Max(needsOf(m, p.Key.Load()).BG2MSM)
		}
	}
	return need
}

func (p *Prover) want(ctx context.Context) groth16.Want {
	ar, _ := p.turn(ctx)
	w := p.Key.Want(ar)
	w.Check = !p.NoCheck
	w.WitnessOnly = p.evaluation(ctx) != nil
	return w
}
