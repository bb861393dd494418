package stages_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// TestRandomFaults runs batches on devices that fail and lie at random, with
// sets, elsewheres, budgets, retries, both policies, orders, open sources and
// cancellations: every job is answered once, by a proof that verifies or by an
// error, in its order; no budget is passed, nothing hangs and nothing is left.
func TestRandomFaults(t *testing.T) {
	shared, toy := small(t)
	inputs := toy.jobs(8)
	cards := []*card{newCard(t, curve.BN254, 0), newCard(t, curve.BN254, 1)}
	var again, failed, proofs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		mark, ignore := alloc.Marked(), goleak.IgnoreCurrent()
		var dice sync.Mutex
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		roll := func() int {
			dice.Lock()
			defer dice.Unlock()
			return rnd.IntN(10_000)
		}
		pct := func(label string, most int) int { return 10 * rapid.IntRange(0, most).Draw(t, label) }
		pass, sticky, broken, lie := pct("pass", 30), pct("sticky", 20), pct("broken", 10), pct("lie", 20)
		for _, c := range cards {
			c.tier = rapid.IntRange(1, 3).Draw(t, "tier")
			c.slow = time.Duration(rapid.IntRange(0, 300).Draw(t, "slow")) * time.Microsecond
			c.before = func(ctx context.Context, _ *card, op string) error {
				switch x := roll(); {
				case x < pass:
					return errPass
				case x < pass+sticky:
					return errSticky
				case x < pass+sticky+broken:
					return errBroken
				}
				return nil
			}
			c.after = func(_ context.Context, _ string, sum any) {
				if roll() >= lie {
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
		}
		p := *shared
		p.MinOnes = rapid.SampledFrom([]float64{-1, 2}).Draw(t, "ones")
		sel := newCounted(2)
		p.Arith = cards[0]
		if rapid.Bool().Draw(t, "set") {
			set, err := stages.Spread(sel.choose, cards[0], cards[1])
			if err != nil {
				t.Fatal(err)
			}
			p.Arith = set
		}
		switch rapid.IntRange(0, 3).Draw(t, "elsewhere") {
		case 0:
			p.Elsewhere = []groth16.Arithmetic{shared.Arith}
		case 1:
			p.Elsewhere = []groth16.Arithmetic{cards[1], shared.Arith}
		}
		switch rapid.IntRange(0, 3).Draw(t, "b2") {
		case 0:
			p.B2 = shared.Arith
		case 1:
			p.B2 = stages.Either(p.Arith, shared.Arith)
		case 2:
			p.B2 = cards[1]
		}
		p.Again = rapid.SampledFrom([]int{0, 0, -1, 1, 4}).Draw(t, "again")

		o := stages.BatchOptions{
			Ordered: rapid.Bool().Draw(t, "ordered"),
			Retry:   rapid.IntRange(0, 2).Draw(t, "retry"),
		}
		if rapid.IntRange(0, 3).Draw(t, "description") == 0 {
			o.Description, o.Ordered = stages.StandardTOML, false
		}
		policy := pipeline.Policy(rapid.IntRange(0, 1).Draw(t, "policy"))
		if o.Description != "" {
			policy = pipeline.StopAll // the description says so
		}
		answers := map[int]int{}
		var order []int
		var mu sync.Mutex
		o.Options = []pipeline.Option{pipeline.OnError(policy), pipeline.OnFail(func(k pipeline.Key, err error) {
			mu.Lock()
			defer mu.Unlock()
			answers[k.Part]++
			failed.Add(1)
		})}
		if o.Description != "" {
			o.Options = o.Options[1:]
		}
		var limit alloc.Amount
		if rapid.Bool().Draw(t, "budget") {
			// Of any processor that the job may come to.
			for _, ar := range []groth16.Arithmetic{cards[0], cards[1], shared.Arith} {
				q := p
				q.Arith = ar
				need, err := stages.Need(&q, stages.BatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				limit = limit.Max(need)
			}
			// b_g2_msm on another card than the rest.
			limit = limit.Scale(int64(rapid.IntRange(2, 4).Draw(t, "jobs at once")))
			o.Options = append(o.Options, budgets(limit)...)
		}
		var set pipeline.Settings
		for _, s := range []string{"synthesize.workers", "ntt.workers", "tail-msm.workers", "batch-add.capacity", "b_g2_msm.workers"} {
			if err := set.Set(fmt.Sprintf("%s=%d", s, rapid.IntRange(1, 3).Draw(t, s))); err != nil {
				t.Fatal(err)
			}
		}
		o.Settings = set

		n := rapid.IntRange(1, len(inputs)).Draw(t, "jobs")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		canceled := rapid.IntRange(0, 5).Draw(t, "cancel") == 0
		if canceled {
			timer := time.AfterFunc(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "after"))*time.Microsecond, cancel)
			defer timer.Stop()
		}
		// An open source gives its last job when all before are answered.
		waits := rapid.Bool().Draw(t, "open") && !canceled && policy == pipeline.FailKey
		jobs := func(yield func(stages.Job) bool) {
			for i := range n {
				for waits && i == n-1 {
					mu.Lock()
					all := len(answers) == i
					mu.Unlock()
					if all {
						break
					}
					time.Sleep(100 * time.Microsecond)
				}
				if !yield(inputs[i]) {
					return
				}
			}
		}
		alloc.Default().ResetPeaks()
		base := alloc.Amount{}
		for i := range base {
			base[i] = alloc.Default().Live(alloc.Space(i))
		}
		var report *pipeline.Report
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			report, err = stages.Batch(ctx, &p, jobs, func(_ context.Context, r *stages.Result) error {
				mu.Lock()
				defer mu.Unlock()
				answers[r.Key.Part]++
				order = append(order, r.Key.Part)
				again.Add(int64(r.Attempts - 1))
				proofs.Add(1)
				if r.Attempts != len(r.Again)+1 {
					t.Errorf("%d attempts, %d errors", r.Attempts, len(r.Again))
				}
				return p.VK.Verify(r.Proof, r.Public)
			}, o)
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("the batch hangs")
		}
		for _, c := range cards {
			c.copies.Wait()
		}
		for part, n := range answers {
			if n != 1 {
				t.Errorf("job %d was answered %d times", part, n)
			}
		}
		switch {
		case err == nil:
			if len(answers) != n {
				t.Errorf("%d of %d jobs were answered", len(answers), n)
			}
		case canceled && errors.Is(err, context.Canceled):
		case policy == pipeline.FailKey:
			t.Errorf("the run failed: %v", err)
		default:
			var dev *devError
			var refused *stages.VerifyError
			if !errors.As(err, &dev) && !errors.As(err, &refused) && !errors.Is(err, errBroken) {
				t.Errorf("an error that nobody made: %v", err)
			}
		}
		for i := 1; i < len(order) && o.Ordered; i++ {
			if order[i] < order[i-1] {
				t.Errorf("the results came as %v", order)
			}
		}
		for i, most := range limit {
			if peak := alloc.Default().Peak(alloc.Space(i)) - base[i]; most > 0 && peak > most {
				t.Errorf("%d bytes of %v, the budget is %d", peak, alloc.Space(i), most)
			}
		}
		if report.InFlight != 0 {
			t.Errorf("%d jobs are in flight", report.InFlight)
		}
		sel.check(t)
		mark.CheckLeaks(t)
		if err := goleak.Find(ignore); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d proofs, %d jobs made again, %d failed", proofs.Load(), again.Load(), failed.Load())
}
