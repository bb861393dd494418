package stages_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// needOf is what one job of p needs at most at one moment, as the engine
// computes it from what the stages state.
func needOf(t *testing.T, p *stages.Prover) int64 {
	t.Helper()
	need, err := stages.Need(p, stages.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return need[alloc.Host]
}

// peakOf runs f and gives the most host memory that was live at once while it
// ran, over what was live before.
func peakOf(f func()) int64 {
	before := alloc.Default().Live(alloc.Host)
	alloc.Default().ResetPeaks()
	f()
	return alloc.Default().Peak(alloc.Host) - before
}

// TestNeeds: a job gets through with exactly what it states, in every form of
// key, split and whole: no stage overdraws, so nothing is left unstated.
func TestNeeds(t *testing.T) {
	for _, id := range curve.All() {
		for name, o := range map[string]groth16.SetupOptions{
			"coset folded": folded,
			"coset":        {Basis: curve.Coset},
			"monomial":     {Basis: curve.Monomial},
		} {
			for _, ones := range []float64{-1, 2} {
				t.Run(fmt.Sprintf("%v/%s/ones from %v", id, name, ones), func(t *testing.T) {
					shared, toy := newProver(t, id, 256, 200, o)
					leakFree(t)
					p := *shared
					p.MinOnes = ones
					need := needOf(t, &p)
					var err error
					peak := peakOf(func() {
						_, _, err = collect(t, context.Background(), &p, toy.jobs(3), stages.BatchOptions{Options: []pipeline.Option{
							pipeline.Budget(alloc.Host, need),
						}})
					})
					if err != nil {
						t.Fatal(err)
					}
					_, _, err = collect(t, context.Background(), &p, toy.jobs(1), stages.BatchOptions{Options: []pipeline.Option{
						pipeline.Budget(alloc.Host, need-1),
					}})
					if never := new(pipeline.AdmitError); !errors.As(err, &never) {
						t.Errorf("a budget of one byte less: %v", err)
					}
					if peak > need {
						t.Errorf("a budget of %d bytes for one job, %d were live", need, peak)
					}
					vectors := groth16.AssignmentBytes(p.Circuit, p.Key.Want(p.Arith))[alloc.Host]
					if need < vectors {
						t.Errorf("the job states %d bytes, its assignment alone has %d", need, vectors)
					}
				})
			}
		}
	}
}

// TestBudget is F7 in the proving pipeline: twelve partitions, twelve workers
// of synthesize, every queue of capacity 1, and a stage behind them that is
// slower than they are. Without a budget finished partitions pile up before it;
// with one for four partitions there are never more than four, and all finish.
func TestBudget(t *testing.T) {
	shared, toy := small(t)
	leakFree(t)
	const n, k = 12, 4
	p := *shared
	p.Arith = &faulty{Arithmetic: p.Arith, before: func(_ context.Context, stage, op string, _ int) error {
		if stage == stages.NameHMSM {
			time.Sleep(3 * time.Millisecond)
		}
		return nil
	}}
	need := needOf(t, &p)
	set := pipeline.Settings{Stages: map[string]pipeline.StageSetting{}}
	for _, name := range stages.Names() {
		set.Stages[name] = pipeline.StageSetting{Capacity: 1}
	}
	set.Stages[stages.NameSynthesize] = pipeline.StageSetting{Workers: n, Capacity: 1}
	run := func(budget int64) (peak int64) {
		var flying, most atomic.Int64
		peak = peakOf(func() {
			out, _, err := collect(t, context.Background(), &p, toy.jobs(n), stages.BatchOptions{
				Settings: set,
				Options: []pipeline.Option{pipeline.Budget(alloc.Host, budget), pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
					switch e.Kind {
					case pipeline.Begin:
						if e.Stage == stages.NameSynthesize {
							most.Store(max(most.Load(), flying.Add(1)))
						}
					case pipeline.End:
						if e.Stage == stages.NameHMSM {
							flying.Add(-1)
						}
					}
				}))},
			})
			if err != nil || len(out) != n {
				t.Errorf("budget %d: %d proofs, %v", budget, len(out), err)
			}
		})
		t.Logf("budget %d: peak %d (%.1f jobs), %d partitions held vectors at once", budget, peak, float64(peak)/float64(need), most.Load())
		return peak
	}
	vectors := groth16.AssignmentBytes(p.Circuit, p.Key.Want(p.Arith))[alloc.Host]
	if peak := run(0); peak < 8*vectors {
		t.Errorf("without a budget %d bytes were live, fewer than 8 assignments (%d): nothing piles up, so this test shows nothing", peak, 8*vectors)
	}
	if peak := run(k * need); peak > k*need {
		t.Errorf("%d bytes were live, the budget is %d", peak, k*need)
	}
}

// TestPendingHoldsOnlyWitness is F8: a job whose b_g2_msm is pending keeps its
// witness alive and nothing else. With the protection taken away, in that the
// stage is said to use the whole assignment, a, b and c stay as well.
func TestPendingHoldsOnlyWitness(t *testing.T) {
	for _, protected := range []bool{true, false} {
		t.Run(fmt.Sprintf("protected %v", protected), func(t *testing.T) {
			shared, toy := small(t)
			leakFree(t)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			const n = 5
			release := make(chan struct{})
			p := *shared
			p.Arith = &faulty{Arithmetic: p.Arith, before: func(ctx context.Context, stage, _ string, _ int) error {
				if stage == stages.NameBG2MSM {
					select {
					case <-release:
					case <-ctx.Done():
					}
				}
				return nil
			}}
			b2 := stages.BG2MSM(&p)
			if !protected {
				b2 = pipeline.WithUses(b2, func(a *groth16.Assignment) []alloc.Ref { return a.Buffers() })
			}

			// The rest of the graph gets through all jobs while b_g2_msm waits.
			var arrived atomic.Int32
			done := make(chan struct{})
			g := pipeline.New("pending", pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
				if e.Kind == pipeline.Queued && e.Stage == "sums" && arrived.Add(1) == 2*n {
					close(done)
				}
			})))
			jobs := pipeline.FromSlice(g, toy.jobs(n), func(j stages.Job) pipeline.Key { return j.Key })
			w := pipeline.Via(jobs, stages.Synthesize(&p))
			h := pipeline.Via(pipeline.Via(pipeline.Via(w, stages.Prestage(&p)), stages.NTT(&p)), stages.HMSM(&p))
			sums := pipeline.Via(pipeline.Via(w, stages.BatchAdd(&p)), stages.TailMSM(&p))
			off := pipeline.Via(w, b2, pipeline.Capacity(pipeline.Unbounded))
			proofs := pipeline.Via(pipeline.Join3(h, sums, off, pipeline.Name("sums")), stages.Assemble(&p))
			var proved atomic.Int32
			pipeline.ToFunc(proofs, func(context.Context, pipeline.Key, *stages.Result) error { proved.Add(1); return nil })

			live := alloc.Default().Live(alloc.Host)
			go func() {
				defer close(release)
				select {
				case <-done:
				case <-ctx.Done():
				}
				witness := int64(n * p.Key.NbWires * curve.ScalarBytes)
				// What ended with the last h-msm is released just after it.
				for range 200 {
					if alloc.Default().Live(alloc.Host)-live <= witness {
						break
					}
					time.Sleep(time.Millisecond)
				}
				held := alloc.Default().Live(alloc.Host) - live
				if protected && held != witness {
					t.Errorf("pending jobs hold %d bytes, their witnesses have %d", held, witness)
				}
				if !protected && held <= witness {
					t.Error("without the protection nothing more is held, so this test shows nothing")
				}
			}()
			if _, err := g.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if proved.Load() != n {
				t.Errorf("%d proofs, want %d", proved.Load(), n)
			}
		})
	}
}

// TestEarlyRelease: b (and c) are gone when h-msm runs, a when only the witness
// is still read.
func TestEarlyRelease(t *testing.T) {
	shared, toy := newProver(t, curve.BN254, 256, 200, groth16.SetupOptions{Basis: curve.Coset})
	leakFree(t)
	p := *shared
	vector := int64(p.Key.Domain.Size() * curve.ScalarBytes)
	var seen atomic.Int64
	p.Arith = &faulty{Arithmetic: p.Arith, before: func(_ context.Context, stage, _ string, _ int) error {
		if stage == stages.NameHMSM {
			seen.Store(evaluations() + 1)
		}
		return nil
	}}
	before := evaluations()
	if _, err := stages.Prove(context.Background(), &p, toy.witness(0)); err != nil {
		t.Fatal(err)
	}
	if got := seen.Load() - 1 - before; got != vector {
		t.Errorf("%d bytes of evaluations are live in h-msm, want the %d of a", got, vector)
	}
}

// evaluations is how many bytes of vectors over a domain are live.
func evaluations() (n int64) {
	for _, r := range alloc.Default().Snapshot().Rows {
		if r.Purpose == alloc.Evaluation.String() {
			n += r.Live
		}
	}
	return n
}

// TestOffTheCriticalPath: a b_g2_msm that does not end holds up no other job.
func TestOffTheCriticalPath(t *testing.T) {
	shared, toy := small(t)
	leakFree(t)
	const n = 20
	var others atomic.Int32
	all := make(chan struct{})
	p := *shared
	p.Arith = &faulty{Arithmetic: p.Arith, before: func(ctx context.Context, stage, _ string, part int) error {
		if stage == stages.NameBG2MSM && part == 0 {
			select {
			case <-all:
			case <-time.After(20 * time.Second):
				return errors.New("the other jobs wait for b_g2_msm")
			}
		}
		return nil
	}}
	out, _, err := collect(t, context.Background(), &p, toy.jobs(n), stages.BatchOptions{Options: []pipeline.Option{
		pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
			if e.Kind == pipeline.End && (e.Stage == stages.NameHMSM || e.Stage == stages.NameTailMSM) && others.Add(1) == 2*n {
				close(all)
			}
		})),
	}})
	if err != nil || len(out) != n {
		t.Errorf("%d proofs, %v", len(out), err)
	}
}
