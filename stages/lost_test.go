package stages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// mortal is a card that its driver does not revive.
type mortal struct {
	*card
	gone atomic.Pointer[gpu.LostError]

	mu    sync.Mutex
	tried map[int]bool // parts that asked it for something when it was lost
}

// newMortal is lost when op begins for part; never with an empty op.
func newMortal(t testing.TB, n int, op string, part int) *mortal {
	c := &mortal{card: newCard(t, curve.BN254, n), tried: map[int]bool{}}
	c.before = func(ctx context.Context, _ *card, at string) error {
		if c.Lost() == nil && at == op && partOf(ctx) == part {
			c.lose()
			return c.Lost()
		}
		if err := c.Lost(); err != nil {
			c.mu.Lock()
			c.tried[partOf(ctx)] = true
			c.mu.Unlock()
			return err
		}
		return nil
	}
	return c
}

func (c *mortal) lose() {
	c.gone.Store(&gpu.LostError{Device: c.name, Cause: &gpu.Error{Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Kind: gpu.ErrSticky}})
}

func (c *mortal) Lost() error {
	if e := c.gone.Load(); e != nil {
		return e
	}
	return nil
}

// admissions counts how often each part came in.
func admissions() (pipeline.Option, func(part int) int) {
	var mu sync.Mutex
	n := map[int]int{}
	return pipeline.Listen(pipeline.ListenerFunc(func(e pipeline.Event) {
			if e.Kind == pipeline.Admitted {
				mu.Lock()
				n[e.Key.Part]++
				mu.Unlock()
			}
		})), func(part int) int {
			mu.Lock()
			defer mu.Unlock()
			return n[part]
		}
}

// TestLostCard loses the card in each operation of a job in the middle: what was
// on it is made on the CPU, and what comes later does not try it.
func TestLostCard(t *testing.T) {
	shared, toy := small(t)
	const jobs, at = 24, 5
	for _, o := range cardOps {
		for _, policy := range []pipeline.Policy{pipeline.StopAll, pipeline.FailKey} {
			t.Run(fmt.Sprintf("%s/%v", o.op, policy), func(t *testing.T) {
				leakFree(t)
				c := newMortal(t, 0, o.op, at)
				p := *shared
				p.Arith, p.MinOnes, p.Elsewhere = c, -1, []groth16.Arithmetic{shared.Arith}
				cardNeed, err := stages.Need(&p, stages.BatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				hostNeed, err := stages.Need(shared, stages.BatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				budget := alloc.NewBudget(cardNeed.Max(hostNeed).Scale(2))
				listen, admitted := admissions()
				out, report, err := collect(t, context.Background(), &p, toy.jobs(jobs), stages.BatchOptions{
					Options: []pipeline.Option{pipeline.WithBudget(budget), pipeline.OnError(policy), listen}})
				if err != nil || len(out) != jobs {
					t.Fatalf("%d proofs, %v", len(out), err)
				}
				for i, r := range out {
					if err := p.VK.Verify(r.Proof, r.Public); err != nil {
						t.Errorf("part %d: %v", i, err)
					}
					if r.Attempts != admitted(i) || r.Attempts > 2 || r.Attempts == 2 && (r.On != shared.Arith.Name() || !errors.Is(r.Again[0], gpu.ErrLost)) {
						t.Errorf("part %d: %d attempts, admitted %d times, on %s: %v", i, r.Attempts, admitted(i), r.On, r.Again)
					}
				}
				if out[at].Attempts != 2 || out[0].On != c.name {
					t.Errorf("the first was on %s, that in the middle was made %d times", out[0].On, out[at].Attempts)
				}
				for i := at + int(report.PeakInFlight) + 1; i < jobs; i++ {
					if out[i].Attempts != 1 || out[i].On != shared.Arith.Name() || c.tried[i] {
						t.Errorf("part %d came after the loss: %d attempts, on %s", i, out[i].Attempts, out[i].On)
					}
				}
				if report.Restarted == 0 || report.Restarted > report.PeakInFlight+1 {
					t.Errorf("%d made again, %d were in flight", report.Restarted, report.PeakInFlight)
				}
				if s := budget.Stats(); !s.Charged.IsZero() {
					t.Errorf("%v stays reserved", s.Charged)
				}
				if len(report.Notes) != 1 || report.Notes[0] != c.Lost().Error() {
					t.Errorf("the report's notes: %q", report.Notes)
				}
				var table bytes.Buffer
				if err := report.WriteTable(&table); err != nil || !strings.Contains(strings.Join(strings.Fields(table.String()), " "), "note card:0 is lost to this process: ") {
					t.Errorf("%v\n%s", err, &table)
				}
				// A batch of its own, later: none of the card's memory is asked for.
				need, err := stages.Need(&p, stages.BatchOptions{})
				if err != nil || need[c.space] != 0 || need != hostNeed {
					t.Errorf("a job needs %v, %v", need, err)
				}
				if errs := stages.Lost(&p); len(errs) != 1 || !errors.Is(errs[0], gpu.ErrLost) {
					t.Errorf("lost: %v", errs)
				}
			})
		}
	}
}

// TestLostMember: of two cards one is lost. The other takes its jobs, also by a
// chooser that does not look; when it is lost too, the CPU does.
func TestLostMember(t *testing.T) {
	shared, toy := small(t)
	for name, choose := range map[string]stages.Chooser{
		"fewest": nil,
		"blind":  func([]bool) (int, func()) { return 0, func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			one, two := newMortal(t, 0, "sum of h", 2), newMortal(t, 1, "", 0)
			set, err := stages.Spread(choose, one, two)
			if err != nil {
				t.Fatal(err)
			}
			p := *shared
			p.Arith, p.Elsewhere = set, []groth16.Arithmetic{shared.Arith}
			if name == "fewest" { // both parities, since jobs take turns
				one.before = loses(one, "sum of h", 2, 3)
			}
			out, report, err := collect(t, context.Background(), &p, toy.jobs(20), stages.BatchOptions{})
			if err != nil || len(out) != 20 {
				t.Fatalf("%d proofs, %v", len(out), err)
			}
			for i, r := range out {
				if i > 3+int(report.PeakInFlight) && (r.On != two.name || r.Attempts != 1) {
					t.Errorf("part %d is made on %s, in %d attempts", i, r.On, r.Attempts)
				}
			}
			if one.Lost() == nil || len(report.Notes) != 1 {
				t.Fatalf("%v; %q", one.Lost(), report.Notes)
			}
			two.lose()
			out, report, err = collect(t, context.Background(), &p, toy.jobs(3), stages.BatchOptions{})
			if err != nil || report.Restarted != 0 || len(report.Notes) != 2 {
				t.Fatalf("%v, %d made again, %q", err, report.Restarted, report.Notes)
			}
			for i, r := range out {
				if r.On != shared.Arith.Name() {
					t.Errorf("part %d is made on %s", i, r.On)
				}
			}
		})
	}
}

// loses loses c when op begins for one of parts.
func loses(c *mortal, op string, parts ...int) func(context.Context, *card, string) error {
	return func(ctx context.Context, _ *card, at string) error {
		for _, part := range parts {
			if at == op && partOf(ctx) == part && c.Lost() == nil {
				c.lose()
			}
		}
		return c.Lost()
	}
}

// TestLostEverywhere: no processor is left. The error says that, nothing is tried
// again, and jobs that come later are not even synthesized.
func TestLostEverywhere(t *testing.T) {
	shared, toy := small(t)
	leakFree(t)
	c := newMortal(t, 0, "sum of others", 2)
	p := *shared
	p.Arith = c
	const want = "card:0 is lost to this process: the driver allows no new context after CUDA_ERROR_ILLEGAL_ADDRESS; start the program again to use the card; there is no other processor to make the proof on"
	var mu sync.Mutex
	failed := map[int]error{}
	out, report, err := collect(t, context.Background(), &p, toy.jobs(12), stages.BatchOptions{Options: []pipeline.Option{
		pipeline.OnError(pipeline.FailKey), pipeline.OnFail(func(k pipeline.Key, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed[k.Part] = err
		})}})
	if err != nil || report.Restarted != 0 || len(out)+len(failed) != 12 || failed[2] == nil || failed[11] == nil {
		t.Errorf("%d proofs, %d failures, %d made again: %v", len(out), len(failed), report.Restarted, err)
	}
	for i, err := range failed {
		var all *pipeline.AttemptsError
		if !errors.Is(err, gpu.ErrLost) || errors.As(err, &all) || !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), "lost to this process") != 1 {
			t.Errorf("part %d: %v", i, err)
		}
	}
	var at *pipeline.StageError
	if !errors.As(failed[11], &at) || at.Stage != stages.NameSynthesize || c.tried[11] {
		t.Errorf("a job that came later: %v", failed[11])
	}
	_, err = stages.Prove(context.Background(), &p, toy.witness(0))
	if !errors.Is(err, gpu.ErrLost) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("one proof: %v", err)
	}
}

// TestLostForB2: the card of the sum in G2 alone is lost.
func TestLostForB2(t *testing.T) {
	shared, toy := small(t)
	for name, two := range map[string]func(c groth16.Arithmetic) groth16.Arithmetic{
		"always": func(c groth16.Arithmetic) groth16.Arithmetic { return c },
		"either": func(c groth16.Arithmetic) groth16.Arithmetic { return stages.Either(c, shared.Arith) },
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			c := newMortal(t, 0, "", 0)
			c.before = loses(c, "sum of b2", 3, 4, 5) // either begins on the host
			p := *shared
			p.B2 = two(c)
			need, err := stages.Need(&p, stages.BatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out, report, err := collect(t, context.Background(), &p, toy.jobs(16), stages.BatchOptions{Options: budgets(need.Scale(2))})
			if err != nil || len(out) != 16 {
				t.Fatalf("%d proofs, %v", len(out), err)
			}
			if c.Lost() == nil {
				t.Skip("the sum was never on the card when it was to be lost")
			}
			for i := 6 + int(report.PeakInFlight); i < 16; i++ {
				if out[i].B2On != shared.Arith.Name() || out[i].Attempts != 1 {
					t.Errorf("part %d: %s, %d attempts", i, out[i].B2On, out[i].Attempts)
				}
			}
			if need, err := stages.Need(&p, stages.BatchOptions{}); err != nil || need[c.space] != 0 {
				t.Errorf("a job needs %v, %v", need, err)
			}
		})
	}
}

// TestKeepOnALostCard: there is nowhere to keep a key, and that is no error.
func TestKeepOnALostCard(t *testing.T) {
	shared, _ := small(t)
	c := &lostKeeper{mortal: newMortal(t, 0, "", 0)}
	p := *shared
	p.Arith = c
	if err := stages.Keep(context.Background(), &p); err != nil || c.asked != 1 {
		t.Errorf("lost while it is asked: %v, asked %d times", err, c.asked)
	}
	if err := stages.Keep(context.Background(), &p); err != nil || c.asked != 1 {
		t.Errorf("lost before: %v, asked %d times", err, c.asked)
	}
}

type lostKeeper struct {
	*mortal
	asked int
}

func (c *lostKeeper) Keep(context.Context, ...curve.Points) (func(), error) {
	c.asked++
	c.lose()
	return nil, c.Lost()
}
