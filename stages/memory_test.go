package stages_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
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
// key, split and whole, on a small circuit and on one that is large enough for
// the arithmetic to need buckets: no stage overdraws, so nothing is unstated.
func TestNeeds(t *testing.T) {
	sizes := [][2]int{{64, 40}, {2500, 1500}}
	if alloc.Debug {
		sizes = sizes[:1]
	}
	for _, id := range curve.All() {
		for name, o := range map[string]groth16.SetupOptions{
			"coset folded": folded,
			"coset":        {Basis: curve.Coset},
			"monomial":     {Basis: curve.Monomial},
		} {
			for _, size := range sizes {
				if size[0] > 1000 && name == "coset" {
					continue // the set-up takes a while
				}
				for _, ones := range []float64{-1, 2} {
					t.Run(fmt.Sprintf("%v/%s/%d rows/ones from %v", id, name, size[0], ones), func(t *testing.T) {
						p, toy := newProver(t, id, size[0], size[1], o)
						p.MinOnes = ones
						exactly(t, p, toy)
					})
				}
			}
		}
	}
}

// TestNeedsOfPortableKernels is TestNeeds for processors without the vector
// instructions, by the number of workers.
func TestNeedsOfPortableKernels(t *testing.T) {
	rows, bits := 2500, 1500
	if alloc.Debug {
		rows, bits = 64, 40
	}
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			p, toy := newProver(t, curve.BN254, rows, bits, folded)
			var err error
			if p.Arith, err = cpu.New(curve.BN254, cpu.Vectors(false), cpu.Workers(workers)); err != nil {
				t.Fatal(err)
			}
			p.MinOnes = -1
			exactly(t, p, toy)
		})
	}
}

// exactly proves under a budget of what a job needs, and under one byte less.
func exactly(t *testing.T, p *stages.Prover, toy *toy) {
	leakFree(t)
	need := needOf(t, p)
	under := func(budget int64, jobs int) error {
		_, _, err := collect(t, context.Background(), p, toy.jobs(jobs), stages.BatchOptions{Options: []pipeline.Option{
			pipeline.Budget(alloc.Host, budget),
		}})
		return err
	}
	var err error
	if peak := peakOf(func() { err = under(need, 2) }); peak > need {
		t.Errorf("a budget of %d bytes for one job, %d were live", need, peak)
	}
	if err != nil {
		t.Fatal(err)
	}
	if never := new(pipeline.AdmitError); !errors.As(under(need-1, 1), &never) {
		t.Errorf("a budget of one byte less: %v", err)
	}
	if vectors := groth16.AssignmentBytes(p.Circuit, p.Key.Want(p.Arith))[alloc.Host]; need < vectors {
		t.Errorf("the job states %d bytes, its assignment alone has %d", need, vectors)
	}
}

// weightless is an arithmetic whose sums and quotients take time and no memory,
// and are wrong: what a job holds is then its vectors, as on a large circuit.
type weightless struct{ groth16.Arithmetic }

func (weightless) spend(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a weightless) Quotient(ctx context.Context, _ *alloc.Scope, _ curve.Domain, _ curve.Basis, _, _, _ []curve.Scalar) error {
	return a.spend(ctx, time.Millisecond)
}

func (a weightless) MSMG1(ctx context.Context, _ *alloc.Scope, _ curve.Query, _ []curve.Scalar, _ []uint32) (s curve.G1, err error) {
	return s, a.spend(ctx, 5*time.Millisecond)
}

func (a weightless) MSMG2(ctx context.Context, _ *alloc.Scope, _ curve.Query, _ []curve.Scalar, _ []uint32) (s curve.G2, err error) {
	return s, a.spend(ctx, 5*time.Millisecond)
}

func (weightless) SumG1(context.Context, *alloc.Scope, curve.Query, []curve.Class) (s curve.G1, err error) {
	return s, nil
}

func (weightless) QuotientScratch(int, curve.Basis, bool) (a alloc.Amount) { return a }
func (weightless) MSMScratch(curve.Group, int) (a alloc.Amount)            { return a }

// TestBudget is F7 in the proving pipeline: twelve partitions, twelve workers
// of synthesize, every queue of capacity 1, and stages behind them that are
// slower than they are. Without a budget finished partitions pile up; with one
// for four partitions no more than that is ever live, and all finish.
func TestBudget(t *testing.T) {
	shared, toy := newProver(t, curve.BN254, 500, 300, folded)
	leakFree(t)
	const n, k = 12, 4
	p := *shared
	p.Arith, p.NoVerify = weightless{p.Arith}, true
	need := needOf(t, &p)
	set := pipeline.Settings{Stages: map[string]pipeline.StageSetting{}}
	for _, name := range stages.Names() {
		set.Stages[name] = pipeline.StageSetting{Capacity: 1}
	}
	set.Stages[stages.NameSynthesize] = pipeline.StageSetting{Workers: n, Capacity: 1}
	jobs := toy.jobs(n)
	run := func(budget int64) (peak int64) {
		peak = peakOf(func() {
			out, _, err := collect(t, context.Background(), &p, jobs, stages.BatchOptions{
				Settings: set,
				Options:  []pipeline.Option{pipeline.Budget(alloc.Host, budget)},
			})
			if err != nil || len(out) != n {
				t.Errorf("budget %d: %d proofs, %v", budget, len(out), err)
			}
		})
		t.Logf("budget %d: peak %d (%.1f jobs)", budget, peak, float64(peak)/float64(need))
		return peak
	}
	if peak := run(0); peak <= k*need {
		t.Errorf("without a budget %d bytes were live, no more than the budget would allow, so this test shows nothing", peak)
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
	shared, toy := newProver(t, curve.BN254, 64, 40, groth16.SetupOptions{Basis: curve.Coset})
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
