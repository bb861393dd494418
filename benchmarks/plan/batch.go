package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/internal/democircuit"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
	"github.com/snarkline/snarkline/trace"
)

// batch is what every run proves.
type batch struct {
	prover *stages.Prover
	jobs   []stages.Job
	need   int64 // host bytes
	close  func()
}

func prepare(ctx context.Context, id curve.ID, log, items int) (*batch, error) {
	c, err := democircuit.BitHeavy(id, log)
	if err != nil {
		return nil, err
	}
	keys, err := c.Setup(ctx, nil)
	if err != nil {
		return nil, err
	}
	b := &batch{
		prover: &stages.Prover{Key: keys.Key, VK: keys.VK, Circuit: keys.Circuit, Arith: keys.Arith},
		close:  func() { _ = keys.Key.Close() },
	}
	for i := range items {
		w, err := c.Witness(i)
		if err != nil {
			return nil, errors.Join(err, keys.Key.Close())
		}
		b.jobs = append(b.jobs, stages.Job{Key: pipeline.Key{Job: "plan", Part: i}, Input: w})
	}
	need, err := stages.Need(b.prover, stages.BatchOptions{})
	if err != nil {
		return nil, errors.Join(err, keys.Key.Close())
	}
	b.need = need[alloc.Host]
	return b, nil
}

// once is one real run. Every proof is verified in it.
func (b *batch) once(ctx context.Context, s pipeline.Settings, opts ...pipeline.Option) (outcome, *pipeline.Report, error) {
	done := 0
	debug.FreeOSMemory()
	tr := alloc.Default()
	tr.ResetPeaks()
	base := tr.Live(alloc.Host)
	report, err := stages.Batch(ctx, b.prover, slices.Values(b.jobs), func(context.Context, *stages.Result) error {
		done++
		return nil
	}, stages.BatchOptions{Settings: s, Options: opts})
	if err != nil {
		return outcome{}, report, err
	}
	if done != len(b.jobs) {
		return outcome{}, report, fmt.Errorf("%d of %d partitions were proved", done, len(b.jobs))
	}
	return outcome{Wall: report.Wall, Peak: tr.Peak(alloc.Host) - base, InFlight: report.PeakInFlight}, report, nil
}

// record is once with a recording, of the pipeline as it stands.
func (b *batch) record(ctx context.Context, path string) (outcome, error) {
	rec, err := trace.Create(path)
	if err != nil {
		return outcome{}, err
	}
	r, report, err := b.once(ctx, pipeline.Settings{}, rec.Option())
	return r, errors.Join(err, rec.Close(report))
}
