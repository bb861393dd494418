package stages_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// budgets are options for a budget in each space that need names.
func budgets(need alloc.Amount) (o []pipeline.Option) {
	for i, n := range need {
		if n > 0 {
			o = append(o, pipeline.Budget(alloc.Space(i), n))
		}
	}
	return o
}

// TestCardProofs: a device makes the proofs that the methods of a CPU make,
// whatever is staged when, with exactly what it states in each space.
func TestCardProofs(t *testing.T) {
	for name, o := range map[string]groth16.SetupOptions{"coset folded": folded, "monomial": {Basis: curve.Monomial}} {
		for tier := 1; tier <= 3; tier++ {
			for _, ones := range []float64{-1, 2} {
				t.Run(fmt.Sprintf("%s/tier %d/ones from %v", name, tier, ones), func(t *testing.T) {
					shared, toy := newProver(t, curve.BN254, 64, 40, o)
					want, err := groth16.ProveDirect(context.Background(), shared.Key, shared.Circuit, shared.Arith, toy.witness(0), stream("r and s"))
					if err != nil {
						t.Fatal(err)
					}
					leakFree(t)
					c := newCard(t, curve.BN254, 0)
					c.tier, c.slow = tier, time.Millisecond
					p := *shared
					p.Arith, p.MinOnes, p.Rand = c, ones, stream("r and s")
					need, err := stages.Need(&p, stages.BatchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					if need[alloc.Host] == 0 || need[alloc.Pinned] == 0 || need[c.space] == 0 {
						t.Fatalf("a job needs %v", need)
					}
					alloc.Default().ResetPeaks()
					out, _, err := collect(t, context.Background(), &p, toy.jobs(3), stages.BatchOptions{Options: budgets(need)})
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(out[0].Proof, want) {
						t.Error("another proof than that of the methods called directly")
					}
					for i, r := range out {
						if r.Staged != fmt.Sprintf("card:0, tier %d", tier) || r.On != "card:0" || r.B2On != "card:0" || r.Attempts != 1 || r.Again != nil {
							t.Errorf("part %d: %+v", i, r)
						}
					}
					for _, s := range []alloc.Space{alloc.Pinned, c.space} {
						if peak := alloc.Default().Peak(s); peak > need[s] || peak == 0 {
							t.Errorf("%d bytes of %v were live, a job needs %d", peak, s, need[s])
						}
						less := need
						less[s]--
						_, _, err := collect(t, context.Background(), &p, toy.jobs(1), stages.BatchOptions{Options: budgets(less)})
						if never := new(pipeline.AdmitError); !errors.As(err, &never) {
							t.Errorf("a byte less of %v: %v", s, err)
						}
					}
				})
			}
		}
	}
}

// TestHostVectorsEndWithTheCopies: once a, b and c are on the device, their room
// on the host is another job's, although ntt has not run.
func TestHostVectorsEndWithTheCopies(t *testing.T) {
	shared, toy := small(t)
	leakFree(t)
	c := newCard(t, curve.BN254, 0)
	c.slow = 5 * time.Millisecond
	second := make(chan struct{})
	c.before = func(ctx context.Context, _ *card, op string) error {
		if op == "quotient" && partOf(ctx) == 0 {
			select {
			case <-second:
			case <-time.After(10 * time.Second):
				return errors.New("the next job waits for host memory that nobody uses")
			}
		}
		return nil
	}
	p := *shared
	p.Arith = c
	need, err := stages.Need(&p, stages.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host := need[alloc.Host]
	vectors := 2 * int64(p.Key.Domain.Size()) * curve.ScalarBytes
	out, _, err := collect(t, context.Background(), &p, toy.jobs(2), stages.BatchOptions{Options: []pipeline.Option{
		pipeline.Budget(alloc.Host, 2*host-vectors),
		pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
			if e.Kind == pipeline.Begin && e.Stage == stages.NameSynthesize && e.Key.Part == 1 {
				close(second)
			}
		})),
	}})
	if err != nil || len(out) != 2 {
		t.Errorf("%d proofs, %v", len(out), err)
	}
}

// TestCardCancel cancels in the middle of each operation.
func TestCardCancel(t *testing.T) {
	shared, toy := small(t)
	for _, o := range cardOps {
		t.Run(o.op, func(t *testing.T) {
			leakFree(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := newCard(t, curve.BN254, 0)
			var reached atomic.Bool
			c.before = func(ctx context.Context, _ *card, op string) error {
				if op == o.op && partOf(ctx) == 2 {
					reached.Store(true)
					cancel()
				}
				return nil
			}
			p := *shared
			p.Arith, p.MinOnes = c, -1
			need, err := stages.Need(&p, stages.BatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out, _, err := collect(t, ctx, &p, toy.jobs(6), stages.BatchOptions{Options: budgets(need.Scale(3))})
			if !errors.Is(err, context.Canceled) || !reached.Load() || out[2] != nil {
				t.Errorf("%v; reached %v", err, reached.Load())
			}
		})
	}
}

// TestCardFaults fails every call that a proof makes of a device, one after
// another, in each way: what passes and what ends the device's context gives the
// right proof after the job was made again, what is broken for good a clear
// error. Nothing is left, and the next proof is right.
func TestCardFaults(t *testing.T) {
	shared, toy := newProver(t, curve.BN254, 64, 40, groth16.SetupOptions{Basis: curve.Coset})
	for _, kind := range []error{errPass, errSticky, errBroken} {
		t.Run(kind.Error(), func(t *testing.T) {
			leakFree(t)
			c := newCard(t, curve.BN254, 0)
			p := *shared
			p.Arith, p.MinOnes = c, -1
			need, err := stages.Need(&p, stages.BatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var calls, at atomic.Int64
			c.before = func(context.Context, *card, string) error {
				if calls.Add(1) == at.Load() {
					return fmt.Errorf("call %d: %w", at.Load(), kind)
				}
				return nil
			}
			prove := func() (*stages.Result, error) {
				calls.Store(0)
				out, _, err := collect(t, context.Background(), &p, toy.jobs(1), stages.BatchOptions{Options: budgets(need)})
				return out[0], err
			}
			if _, err := prove(); err != nil {
				t.Fatal(err)
			}
			n := calls.Load()
			if n < 25 {
				t.Fatalf("a proof makes %d calls", n)
			}
			for i := range n {
				at.Store(i + 1)
				r, err := prove()
				switch {
				case errors.Is(kind, errBroken):
					var stage *pipeline.StageError
					if !errors.Is(err, errBroken) || !errors.As(err, &stage) || r != nil {
						t.Errorf("call %d: %v", i+1, err)
					}
				case err != nil:
					t.Errorf("call %d: %v", i+1, err)
				default:
					// A stage beside the one that fails may be quicker to tell of the reset.
					told := len(r.Again) == 1 && (errors.Is(r.Again[0], kind) || errors.Is(kind, errSticky) && errors.Is(r.Again[0], errReset))
					if r.Attempts != 2 || !told {
						t.Errorf("call %d: %d attempts, %v", i+1, r.Attempts, r.Again)
					}
					if err := p.VK.Verify(r.Proof, r.Public); err != nil {
						t.Error(err)
					}
				}
				at.Store(0)
				if _, err := prove(); err != nil {
					t.Fatalf("after call %d failed: %v", i+1, err)
				}
			}
			if errors.Is(kind, errSticky) && c.resets.Load() != n {
				t.Errorf("%d resets of %d failures", c.resets.Load(), n)
			}
		})
	}
}

// TestStickyErrorOfOthers: one job's error ends the device's context under all
// jobs in flight. Each is made again, once, and comes out in its order.
func TestStickyErrorOfOthers(t *testing.T) {
	shared, toy := small(t)
	for _, policy := range []pipeline.Policy{pipeline.StopAll, pipeline.FailKey} {
		t.Run(policy.String(), func(t *testing.T) {
			leakFree(t)
			c := newCard(t, curve.BN254, 0)
			var fired atomic.Bool
			c.before = func(ctx context.Context, _ *card, op string) error {
				if op == "sum of h" && partOf(ctx) == 1 && !fired.Swap(true) {
					return errSticky
				}
				return nil
			}
			p := *shared
			p.Arith = c
			var order []int
			var again int
			report, err := stages.Batch(context.Background(), &p, func(yield func(stages.Job) bool) {
				for _, j := range toy.jobs(8) {
					if !yield(j) {
						return
					}
				}
			}, func(_ context.Context, r *stages.Result) error {
				order = append(order, r.Key.Part)
				again += r.Attempts - 1
				return p.VK.Verify(r.Proof, r.Public)
			}, stages.BatchOptions{Ordered: true, Options: []pipeline.Option{pipeline.OnError(policy)}})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(order, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
				t.Errorf("the results came as %v", order)
			}
			if again == 0 || int64(again) != report.Restarted || report.Items != 8 {
				t.Errorf("%d jobs made again, the report says %d of %d", again, report.Restarted, report.Items)
			}

			// Without the protection the first error is the answer.
			fired.Store(false)
			p.Again = -1
			var failed int
			_, report, err = collect(t, context.Background(), &p, toy.jobs(8), stages.BatchOptions{Options: []pipeline.Option{
				pipeline.OnError(policy), pipeline.OnFail(func(pipeline.Key, error) { failed++ }),
			}})
			if (policy == pipeline.StopAll) != errors.Is(err, errSticky) || (policy == pipeline.FailKey) != (failed > 0) || report.Restarted != 0 {
				t.Errorf("never again: %v, %d failed", err, failed)
			}
		})
	}
}

// TestWrongResult: a wrong result of a device is caught by the verification and
// the job made elsewhere, or on the device again; where it comes out wrong twice
// that is the answer.
func TestWrongResult(t *testing.T) {
	shared, toy := small(t)
	for _, o := range cardOps {
		if o.op == "prestage" || o.op == "copy" || o.op == "split" || o.op == "others" {
			continue
		}
		t.Run(o.op, func(t *testing.T) {
			leakFree(t)
			c := newCard(t, curve.BN254, 0)
			var wrong atomic.Int64 // how many results are still to be wrong
			c.after = func(_ context.Context, op string, sum any) {
				if op != o.op || wrong.Add(-1) < 0 {
					return
				}
				switch s := sum.(type) {
				case *curve.G1:
					*s = shared.Key.Alpha1
				case *curve.G2:
					*s = shared.Key.Beta2
				case []curve.Scalar:
					s[3][0] ^= 1
				}
			}
			p := *shared
			p.Arith, p.MinOnes = c, -1
			prove := func(n int64) (*stages.Result, error) {
				wrong.Store(n)
				return stages.ProveResult(context.Background(), &p, toy.witness(0))
			}
			var refused *stages.VerifyError
			r, err := prove(1)
			if err != nil || r.Attempts != 2 || r.On != "card:0" || !errors.As(r.Again[0], &refused) || refused.On != "card:0" {
				t.Errorf("once: %v, %+v", err, r)
			}
			var all *pipeline.AttemptsError
			r, err = prove(1 << 40)
			if r != nil || !errors.As(err, &all) || len(all.Errs) != 2 || !errors.As(err, &refused) || strings.Count(err.Error(), "does not verify") != 2 {
				t.Errorf("always: %v", err)
			}
			p.Elsewhere = []groth16.Arithmetic{shared.Arith}
			r, err = prove(1 << 40)
			if err != nil || r.Attempts != 2 || r.On != shared.Arith.Name() || r.B2On != shared.Arith.Name() || !errors.As(r.Again[0], &refused) {
				t.Errorf("elsewhere: %v, %+v", err, r)
			}
			p.Again = -1
			if _, err = prove(1); !errors.As(err, &refused) || errors.As(err, &all) {
				t.Errorf("never again: %v", err)
			}
		})
	}
}

// TestElsewhere: the processors are tried in turn, each with its own needs.
func TestElsewhere(t *testing.T) {
	shared, toy := small(t)
	leakFree(t)
	one, two := newCard(t, curve.BN254, 0), newCard(t, curve.BN254, 1)
	dead := func(_ context.Context, c *card, op string) error {
		if op == "sum of others" {
			return fmt.Errorf("%s: %w", c.name, errSticky)
		}
		return nil
	}
	one.before, two.before = dead, dead
	p := *shared
	p.Arith, p.Elsewhere = one, []groth16.Arithmetic{two, shared.Arith}
	need, err := stages.Need(&p, stages.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var most alloc.Amount
	for _, ar := range []groth16.Arithmetic{one, two, shared.Arith} {
		q := *shared
		q.Arith = ar
		n, err := stages.Need(&q, stages.BatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		most = most.Max(n)
	}
	if need[two.space] != 0 {
		t.Errorf("a job on the first card needs %v", need)
	}
	out, report, err := collect(t, context.Background(), &p, toy.jobs(5), stages.BatchOptions{Options: budgets(most)})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range out {
		if r.On != shared.Arith.Name() || r.Attempts != 3 || !strings.Contains(r.Again[0].Error(), "card:0") || !strings.Contains(r.Again[1].Error(), "card:1") {
			t.Errorf("part %d: %+v", i, r)
		}
	}
	if report.Restarted != 10 || one.resets.Load() != 5 || two.resets.Load() != 5 {
		t.Errorf("%d restarts, %d and %d resets", report.Restarted, one.resets.Load(), two.resets.Load())
	}

	// All of them fail: each attempt is told.
	p.Elsewhere = []groth16.Arithmetic{two}
	_, err = stages.Prove(context.Background(), &p, toy.witness(0))
	var all *pipeline.AttemptsError
	if !errors.As(err, &all) || len(all.Errs) != 3 || strings.Count(err.Error(), "card:0: injected") != 2 || strings.Count(err.Error(), "card:1: injected") != 1 {
		t.Errorf("nowhere: %v", err)
	}
}
