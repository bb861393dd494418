package stages

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"

	"github.com/snarkline/snarkline/pipeline"
)

// StandardTOML is the standard pipeline as a description that pipeline.Load
// reads, with the source "jobs" and the sink "proofs": a text to start from.
//
//go:embed standard.toml
var StandardTOML string

// The names of the source and the sink of a description.
const (
	SourceName = "jobs"
	SinkName   = "proofs"
)

// Register makes the eight stages of p known to reg by their names. batch-add
// has the parameter min-ones, which is Prover.MinOnes for this stage alone.
func Register(reg *pipeline.Registry, p *Prover) error {
	if err := p.Check(); err != nil {
		return err
	}
	type batchAdd struct {
		MinOnes *float64 `toml:"min-ones"`
	}
	return errors.Join(
		reg.Add(NameSynthesize, pipeline.FactoryOf(Synthesize(p))),
		reg.Add(NamePrestage, pipeline.FactoryOf(Prestage(p))),
		reg.Add(NameNTT, pipeline.FactoryOf(NTT(p))),
		reg.Add(NameHMSM, pipeline.FactoryOf(HMSM(p))),
		reg.Add(NameBatchAdd, pipeline.NewFactory(func(o batchAdd) (batchAddStage, error) {
			q := *p
			if o.MinOnes != nil {
				q.MinOnes = *o.MinOnes
				if q.MinOnes == 0 {
					q.MinOnes = -1 // from 0 on, which is always
				}
			}
			return BatchAdd(&q), nil
		})),
		reg.Add(NameTailMSM, pipeline.FactoryOf(TailMSM(p))),
		reg.Add(NameBG2MSM, pipeline.FactoryOf(BG2MSM(p))),
		reg.Add(NameAssemble, pipeline.FactoryOf(Assemble(p))),
	)
}

// Load builds a proving pipeline from its description (see StandardTOML):
// stages by their names from p, jobs from the source "jobs", results to the
// sink "proofs", one at a time. own, which may be nil, adds the reader's own
// stages to the registry.
func Load(description string, p *Prover, own func(*pipeline.Registry) error, jobs iter.Seq[Job],
	sink func(context.Context, *Result) error, opts ...pipeline.Option) (*pipeline.Graph, error) {
	reg := pipeline.NewRegistry()
	if err := Register(reg, p); err != nil {
		return nil, fmt.Errorf("load a proving pipeline: %w", err)
	}
	if own != nil {
		if err := own(reg); err != nil {
			return nil, fmt.Errorf("load a proving pipeline: %w", err)
		}
	}
	b := pipeline.NewBindings()
	pipeline.BindSource(b, SourceName, func(g *pipeline.Graph, o ...pipeline.NodeOption) *pipeline.Port[Job] {
		return pipeline.FromSeq(g, jobs, Job.key, append(o, pipeline.Restart(p.Restarts()))...)
	})
	pipeline.BindSink(b, SinkName, func(port *pipeline.Port[*Result], o ...pipeline.NodeOption) {
		pipeline.ToFunc(port, handOver(sink), o...)
	})
	return pipeline.Load(reg, description, b, opts...)
}
