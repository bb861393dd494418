package stages

import (
	"context"
	"errors"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// stage is a pipeline.Stage with what the engine may ask of one.
type stage[In, Out any] struct {
	p     *Prover
	name  string
	run   func(ctx context.Context, in In) (Out, error)
	uses  func(in In) []alloc.Ref // the buffers of the input that run reads
	needs func(ctx context.Context) pipeline.Need
}

// Name implements pipeline.Stage.
func (s *stage[In, Out]) Name() string { return s.name }

// Run implements pipeline.Stage.
func (s *stage[In, Out]) Run(ctx context.Context, in In) (Out, error) {
	end, err := s.p.begin(ctx, s.name)
	if err != nil {
		var none Out
		return none, err
	}
	s.p.tellDevice(ctx, s.name)
	ended := errUnwound
	defer func() { end(ended) }()
	out, err := s.run(ctx, in)
	ended = err
	if err != nil {
		err = s.p.verdict(err)
	}
	return out, err
}

// Uses says which buffers of the input the stage reads: the engine holds
// references for it to these alone.
func (s *stage[In, Out]) Uses(in In) []alloc.Ref {
	if s.uses == nil {
		return nil
	}
	return s.uses(in)
}

// NeedsIn says what the stage allocates for a job and which parts end with it.
// It is the same for every job of a key on one processor.
func (s *stage[In, Out]) NeedsIn(ctx context.Context, _ any) pipeline.Need {
	if s.needs == nil {
		return pipeline.Need{}
	}
	return s.needs(ctx)
}

// Needs is NeedsIn for a job of which nothing is known: the most on any
// processor that may be chosen for it.
func (s *stage[In, Out]) Needs(job any) pipeline.Need { return s.NeedsIn(context.Background(), job) }

// spoiled is the failure of a stage that had begun to overwrite its input.
// Whatever the cause says, running the stage again cannot help; if the cause
// will pass, making the job again from its input can.
type spoiled struct{ error }

// Temporary hides what the cause says of itself.
func (spoiled) Temporary() bool { return false }

// FromStart reports whether the cause will pass.
func (s spoiled) FromStart() bool {
	var again interface{ FromStart() bool }
	if errors.As(s.error, &again) && again.FromStart() {
		return true
	}
	var passing interface{ Temporary() bool }
	return errors.As(s.error, &passing) && passing.Temporary()
}

// Unwrap gives the cause.
func (s spoiled) Unwrap() error { return s.error }

// errUnwound is what a stage that did not return has failed with.
var errUnwound = errors.New("the stage did not return")

var errNoInput = errors.New("the input lacks a vector that this stage reads")
