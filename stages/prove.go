package stages

import (
	"context"
	"errors"
	"iter"

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

// BatchOptions are the options of Batch. The zero value stops at the first
// failure, retries nothing and sets no budget.
type BatchOptions struct {
	Name     string            // of the graph; "groth16" if empty
	Settings pipeline.Settings // workers, capacities, budgets
	Retry    int               // how often a stage is tried again after a temporary error
	Ordered  bool              // results in the order of the jobs
	Options  []pipeline.Option // of the graph: policy, OnFail, listeners
}

// Batch proves jobs, as many as there are, and gives each result to sink, one
// at a time. The keys of jobs that are in flight together must differ. With
// the policy FailKey a failed job goes to OnFail and the others go on. The
// report says what each stage did and held; it is there after an error too, if
// the graph ran at all.
func Batch(ctx context.Context, p *Prover, jobs iter.Seq[Job],
	sink func(context.Context, *Result) error, o BatchOptions) (*pipeline.Report, error) {
	if o.Name == "" {
		o.Name = "groth16"
	}
	g := pipeline.New(o.Name, append([]pipeline.Option{pipeline.WithSettings(o.Settings)}, o.Options...)...)
	source := pipeline.FromSeq(g, jobs, func(j Job) pipeline.Key { return j.Key }, pipeline.Name("jobs"))
	proofs, err := Standard(p, source, pipeline.Retry(o.Retry))
	if err != nil {
		return nil, err
	}
	pipeline.ToFunc(proofs, func(ctx context.Context, _ pipeline.Key, r *Result) error { return sink(ctx, r) },
		pipeline.Name("proofs"))
	return g.Run(ctx)
}
