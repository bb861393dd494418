package stages

import (
	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// The parts of a job's memory, by the names in Need. A stage of a reader's own
// that takes the place of one of ours ends the same parts.
const (
	PartW     = "w"
	PartA     = "a"
	PartB     = "b"
	PartC     = "c"
	PartPicks = "picks"
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

func (p *Prover) needNTT() pipeline.Need {
	return pipeline.Need{
		Scratch: p.Arith.QuotientScratch(p.Key.Domain.Size(), p.Key.Basis, p.Key.Folded),
		Ends:    []string{PartB, PartC},
	}
}

func (p *Prover) needHMSM() pipeline.Need {
	return pipeline.Need{
		Scratch: p.Arith.MSMScratch(curve.InG1, p.Key.H.Len()),
		Ends:    []string{PartA},
	}
}

// needBatchAdd: the classes of all wires, the picks of one query before they
// are cut to length, and what a sum of ones takes; the picks are cut, so that
// what they make is at most this.
func (p *Prover) needBatchAdd() pipeline.Need {
	l, a, b1 := int64(p.Key.L.Len()), int64(p.Key.A.Len()), int64(p.Key.B1.Len())
	return pipeline.Need{
		Scratch: alloc.HostBytes(int64(p.Key.NbWires) + 4*max(l, a, b1)).Add(p.wireScratch()),
		Makes:   []pipeline.Part{part(PartPicks, 4*(l+a+b1))},
	}
}

func (p *Prover) needTailMSM() pipeline.Need {
	return pipeline.Need{Scratch: p.wireScratch(), Ends: []string{PartW, PartPicks}}
}

// wireScratch is what one MSM over the wires takes; the three run one after
// another. MSMScratch of all points bounds the sums of fewer, of which there may
// be any number: a witness decides how many are picked.
func (p *Prover) wireScratch() alloc.Amount {
	var most alloc.Amount
	for _, q := range []curve.Query{p.Key.L, p.Key.A, p.Key.B1} {
		most = most.Max(p.Arith.MSMScratch(curve.InG1, q.Len()))
	}
	return most
}

func (p *Prover) needBG2MSM() pipeline.Need {
	return pipeline.Need{
		Scratch: p.Arith.MSMScratch(curve.InG2, p.Key.B2.Len()),
		Ends:    []string{PartW},
	}
}

func (p *Prover) want() groth16.Want {
	w := p.Key.Want(p.Arith)
	w.Check = !p.NoCheck
	return w
}
