package stages

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Prove makes one proof, through the same graph as a batch. Any number of
// goroutines may do so with one prover at once.
func Prove(ctx context.Context, p *Prover, input any) (*groth16.Proof, error) {
	r, err := ProveResult(ctx, p, input)
	if err != nil {
		return nil, err
	}
	return r.Proof, nil
}

// ProveResult is Prove with the public inputs and the witness's counts.
func ProveResult(ctx context.Context, p *Prover, input any) (*Result, error) {
	var result *Result
	_, err := Batch(ctx, p, func(yield func(Job) bool) { yield(Job{Input: input}) },
		func(_ context.Context, r *Result) error {
			result = r
			return nil
		}, BatchOptions{})
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, errors.New("prove: the pipeline ended without a proof")
	}
	return result, nil
}

// BatchOptions are the options of Batch. The zero value runs the standard
// pipeline, stops at the first failure, retries no stage and sets no budget.
type BatchOptions struct {
	Name        string                         // of the graph; "groth16" if empty; a Description has its own
	Description string                         // of another pipeline, as Load reads it; Retry and Ordered do not apply then
	Own         func(*pipeline.Registry) error // adds the reader's own stages for a Description; may be nil
	Settings    pipeline.Settings              // workers, capacities, budgets
	Retry       int                            // how often a stage is tried again after a temporary error
	Ordered     bool                           // results in the order of the jobs
	Options     []pipeline.Option              // of the graph: policy, OnFail, listeners
	Ready       func(*pipeline.Graph)          // called with the graph before it runs: to watch, draw or tune it
}

// Batch proves jobs, as many as there are, and gives each result to sink, one
// at a time. The keys of jobs that are in flight together must differ. With
// the policy FailKey a failed job goes to OnFail and the others go on. A job
// that has to be made again from its input (Prover.Again) is answered once, when
// it has come to an end; its Input must be good for another use. The report says
// what each stage did and held, and which processors are lost; it is there after
// an error too, if the graph ran at all.
func Batch(ctx context.Context, p *Prover, jobs iter.Seq[Job],
	sink func(context.Context, *Result) error, o BatchOptions) (*pipeline.Report, error) {
	g, err := o.graph(p, jobs, sink)
	if err != nil {
		return nil, err
	}
	if o.Ready != nil {
		o.Ready(g)
	}
	report, err := g.Run(ctx)
	if report != nil {
		for _, lost := range Lost(p) {
			report.Notes = append(report.Notes, lost.Error())
		}
	}
	return report, err
}

// Need is the most that one job of p can hold at one moment in the pipeline
// that o describes, by what its stages state: a budget of k times as much lets
// k jobs in at least. It runs nothing.
func Need(p *Prover, o BatchOptions) (alloc.Amount, error) {
	var tooLittle alloc.Amount
	for i := range tooLittle {
		tooLittle[i] = 1
	}
	o.Settings = pipeline.Settings{Stages: o.Settings.Stages}
	o.Options = []pipeline.Option{pipeline.WithBudget(alloc.NewBudget(tooLittle))}
	g, err := o.graph(p, func(yield func(Job) bool) { yield(Job{}) },
		func(context.Context, *Result) error { return nil })
	if err != nil {
		return alloc.Amount{}, err
	}
	_, err = g.Run(context.WithValue(context.Background(), needKey{}, true))
	var refused *pipeline.AdmitError
	if !errors.As(err, &refused) {
		return alloc.Amount{}, fmt.Errorf("state the need of a job: %w", err)
	}
	return refused.Need, nil
}

func (o *BatchOptions) graph(p *Prover, jobs iter.Seq[Job], sink func(context.Context, *Result) error) (*pipeline.Graph, error) {
	opts := append([]pipeline.Option{pipeline.WithSettings(o.Settings)}, o.Options...)
	if o.Description != "" {
		return Load(o.Description, p, o.Own, jobs, sink, opts...)
	}
	name := o.Name
	if name == "" {
		name = "groth16"
	}
	g := pipeline.New(name, opts...)
	source := pipeline.FromSeq(g, jobs, Job.key, pipeline.Name(SourceName), pipeline.Restart(p.Restarts()))
	var last []pipeline.NodeOption
	if o.Ordered {
		last = append(last, pipeline.Ordered())
	}
	proofs, err := standard(p, source, last, pipeline.Retry(o.Retry))
	if err != nil {
		return nil, err
	}
	pipeline.ToFunc(proofs, handOver(sink), pipeline.Name(SinkName))
	return g, nil
}

func (j Job) key() pipeline.Key { return j.Key }

func handOver(sink func(context.Context, *Result) error) func(context.Context, pipeline.Key, *Result) error {
	return func(ctx context.Context, _ pipeline.Key, r *Result) error { return sink(ctx, r) }
}
