package stages_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// noMemory is what a processor says that has run out of memory.
func noMemory(stage string) error {
	return &alloc.NoMemoryError{Stage: alloc.StageOf(stage), Purpose: alloc.Bucket, Asked: 1 << 30, Err: errors.New("injected")}
}

// TestOutOfMemory is F13: an MSM without memory gave an invalid proof and no
// error. It must be an error; if nobody looked at the status, verification
// still refuses the proof; without that too, the wrong proof gets out, which
// shows that each protection matters.
func TestOutOfMemory(t *testing.T) {
	p, toy := small(t)
	for _, o := range ops {
		if o.op == "Evaluate" || o.op == "Classify" {
			continue // these allocate nothing
		}
		t.Run(o.stage+" "+o.op, func(t *testing.T) {
			leakFree(t)
			fault := &faulty{Arithmetic: p.Arith, before: func(_ context.Context, stage, op string, _ int) error {
				if stage == o.stage && op == o.op {
					return noMemory(stage)
				}
				return nil
			}}
			q := *p
			q.Arith, q.MinOnes = fault, -1

			proof, err := stages.Prove(context.Background(), &q, toy.witness(0))
			var memory *alloc.NoMemoryError
			var at *pipeline.StageError
			if proof != nil || !errors.As(err, &memory) || !errors.As(err, &at) || at.Stage != o.stage {
				t.Errorf("out of memory gives proof %v, error %v", proof != nil, err)
			}

			fault.lie = true
			proof, err = stages.Prove(context.Background(), &q, toy.witness(0))
			var refused *stages.VerifyError
			if proof != nil || !errors.As(err, &refused) {
				t.Errorf("a status that nobody looked at gives proof %v, error %v", proof != nil, err)
			}

			q.NoVerify = true
			proof, err = stages.Prove(context.Background(), &q, toy.witness(0))
			if err != nil {
				t.Fatalf("without verification: %v", err)
			}
			if p.VK.Verify(proof, toy.witness(0)[1:2]) == nil {
				t.Error("the fault did not spoil the proof, so this test shows nothing")
			}
		})
	}
}

// TestWrongSum injects wrong results that are points of the curve, and one that
// is none.
func TestWrongSum(t *testing.T) {
	for _, id := range curve.All() {
		p, toy := newProver(t, id, 64, 40, folded)
		for _, o := range ops {
			if o.op == "Evaluate" || o.op == "Classify" {
				continue
			}
			for _, kind := range []string{"another point", "no point"} {
				if o.op == "Quotient" && kind == "no point" {
					continue
				}
				t.Run(id.String()+"/"+o.stage+" "+o.op+"/"+kind, func(t *testing.T) {
					leakFree(t)
					q := *p
					q.MinOnes = -1
					q.Arith = &faulty{Arithmetic: p.Arith, after: func(stage, op string, sum any) {
						if stage != o.stage || op != o.op {
							return
						}
						switch s := sum.(type) {
						case *curve.G1:
							*s = p.Key.Alpha1
							if kind == "no point" {
								s[0] ^= 1
							}
						case *curve.G2:
							*s = p.Key.Beta2
							if kind == "no point" {
								s[0] ^= 1
							}
						case []curve.Scalar:
							s[7][0] ^= 1
						}
					}}
					out, _, err := collect(t, context.Background(), &q, toy.jobs(1), stages.BatchOptions{})
					var refused *stages.VerifyError
					if !errors.As(err, &refused) {
						t.Fatalf("a wrong sum: %v", err)
					}
					if len(out) != 0 {
						t.Error("the wrong proof was handed over")
					}
					if refused.Key != (pipeline.Key{Job: "toy"}) || !slices.Contains(refused.Suspects, o.stage) {
						t.Errorf("the error does not name key and stage: %v", refused)
					}
					if kind == "no point" && slices.Contains(refused.Suspects, stages.NameNTT) {
						t.Errorf("a sum that is no point convicts its stages, suspects are %v", refused.Suspects)
					}
				})
			}
		}
	}
}

// passing is a failure that says that it will pass.
type passing struct{}

func (passing) Error() string   { return "injected: try again" }
func (passing) Temporary() bool { return true }

// TestRetry: a stage that read its input is tried again; ntt, which overwrites
// it, is not.
func TestRetry(t *testing.T) {
	p, toy := small(t)
	for _, o := range ops {
		t.Run(o.stage+" "+o.op, func(t *testing.T) {
			leakFree(t)
			var calls atomic.Int32
			q := *p
			q.MinOnes = -1
			q.Arith = &faulty{Arithmetic: p.Arith, before: func(_ context.Context, stage, op string, _ int) error {
				if stage == o.stage && op == o.op && calls.Add(1) <= 2 {
					return passing{}
				}
				return nil
			}}
			out, report, err := collect(t, context.Background(), &q, toy.jobs(1), stages.BatchOptions{Retry: 3})
			if o.op == "Quotient" {
				if !errors.Is(err, passing{}) || calls.Load() != 1 {
					t.Errorf("ntt failed %d times: %v", calls.Load(), err)
				}
				return
			}
			if err != nil || out[0] == nil {
				t.Fatalf("two temporary failures, three retries: %v", err)
			}
			if got := stageReport(t, report, o.stage).Retries; got != 2 {
				t.Errorf("the report counts %d retries, want 2", got)
			}
		})
	}
}

// TestFailure: a failing stage ends the run, or its job alone.
func TestFailure(t *testing.T) {
	p, toy := small(t)
	broken := errors.New("injected: broken")
	const n, bad = 6, 2
	for _, o := range ops {
		t.Run(o.stage+" "+o.op, func(t *testing.T) {
			leakFree(t)
			q := *p
			q.MinOnes = -1
			q.Arith = &faulty{Arithmetic: p.Arith, before: func(_ context.Context, stage, op string, part int) error {
				if stage == o.stage && op == o.op && part == bad {
					return broken
				}
				return nil
			}}
			check := func(err error) {
				t.Helper()
				var at *pipeline.StageError
				if !errors.Is(err, broken) || !errors.As(err, &at) || at.Stage != o.stage || at.Key.Part != bad {
					t.Errorf("the failure is told as %v", err)
				}
			}
			out, _, err := collect(t, context.Background(), &q, toy.jobs(n), stages.BatchOptions{})
			check(err)
			if out[bad] != nil {
				t.Error("the failed job has a proof")
			}

			var failed []pipeline.Key
			out, _, err = collect(t, context.Background(), &q, toy.jobs(n), stages.BatchOptions{Options: []pipeline.Option{
				pipeline.OnError(pipeline.FailKey),
				pipeline.OnFail(func(k pipeline.Key, err error) {
					failed = append(failed, k)
					check(err)
				}),
			}})
			if err != nil {
				t.Fatalf("one job fails, the run says %v", err)
			}
			if len(failed) != 1 || failed[0].Part != bad || len(out) != n-1 || out[bad] != nil {
				t.Errorf("%d proofs, failed %v; want %d and part %d", len(out), failed, n-1, bad)
			}
		})
	}
}

// TestCancel cancels in the middle of each stage.
func TestCancel(t *testing.T) {
	p, toy := small(t)
	for _, name := range stages.Names() {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			q := *p
			q.MinOnes = -1
			q.Arith = &faulty{Arithmetic: p.Arith, before: func(ctx context.Context, stage, _ string, part int) error {
				if stage == name && part == 3 {
					cancel()
					<-ctx.Done()
				}
				return nil // the arithmetic is to see for itself that it is over
			}}
			var begun atomic.Bool
			out, _, err := collect(t, ctx, &q, toy.jobs(8), stages.BatchOptions{Options: []pipeline.Option{
				pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
					if e.Kind == pipeline.Begin && e.Stage == name && e.Key.Part == 3 {
						begun.Store(true)
						if name == stages.NamePrestage || name == stages.NameAssemble {
							cancel()
						}
					}
				})),
			}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled run says %v", err)
			}
			if !begun.Load() || out[3] != nil {
				t.Errorf("stage begun: %v; a proof of the cancelled job: %v", begun.Load(), out[3] != nil)
			}
		})
	}
}
