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

func (p *Prover) needSynthesize() pipeline.Need {
	vector := int64(p.Key.Domain.Size()) * curve.ScalarBytes
	n := pipeline.Need{
		Scratch: p.Circuit.Footprint(p.want()),
		Makes: []pipeline.Part{
			part(PartW, int64(p.Key.NbWires)*curve.ScalarBytes),
			part(PartA, vector),
			part(PartB, vector),
		},
	}
	if !p.Key.Folded {
		n.Makes = append(n.Makes, part(PartC, vector))
	}
	return n
}

// processor is what the job takes of its processor.
func (p *Prover) processor() groth16.Needs {
	return p.staging(context.Background()).Needs(p.Key.Load())
}

func (p *Prover) needPrestage() pipeline.Need {
	n := p.processor()
	return pipeline.Need{Scratch: n.Prestage, Makes: []pipeline.Part{
		{Name: PartStagedA, Bytes: n.A},
		{Name: PartStagedBC, Bytes: n.BC},
	}}
}

func (p *Prover) needNTT() pipeline.Need {
	n := p.processor()
	need := pipeline.Need{Scratch: n.NTT, Ends: []string{PartB, PartC, PartStagedBC}}
	if n.CopiesABC {
		need.Ends = append(need.Ends, PartA)
	}
	return need
}

func (p *Prover) needHMSM() pipeline.Need {
	n := p.processor()
	need := pipeline.Need{Scratch: n.HMSM, Ends: []string{PartStagedA}}
	if !n.CopiesABC {
		need.Ends = append(need.Ends, PartA)
	}
	return need
}

func (p *Prover) needBatchAdd() pipeline.Need {
	n := p.processor()
	need := pipeline.Need{Scratch: n.BatchAdd, Makes: []pipeline.Part{{Name: PartPicks, Bytes: n.Wires}}}
	if n.CopiesW {
		need.Ends = []string{PartW}
	}
	return need
}

func (p *Prover) needTailMSM() pipeline.Need {
	n := p.processor()
	need := pipeline.Need{Scratch: n.TailMSM, Ends: []string{PartPicks}}
	if !n.CopiesW {
		need.Ends = append(need.Ends, PartW)
	}
	return need
}

func (p *Prover) needBG2MSM() pipeline.Need {
	return pipeline.Need{Scratch: p.processor().BG2MSM, Ends: []string{PartW}}
}

func (p *Prover) want() groth16.Want {
	w := p.Key.Want(p.Arith)
	w.Check = !p.NoCheck
	return w
}
