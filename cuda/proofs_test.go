package cuda

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// prover proves the toy of k on e.
func prover(k *keptKey, ar groth16.Arithmetic) *stages.Prover {
	return &stages.Prover{Key: k.pk, VK: k.vk, Circuit: k.toy.r1cs, Arith: ar, MinOnes: -1, Again: -1}
}

// proveOne makes a proof and has it verified.
func proveOne(t *testing.T, p *stages.Prover, k *keptKey, seed int) *stages.Result {
	t.Helper()
	w := k.toy.witness(seed)
	r, err := stages.ProveResult(ctx(), p, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.vk.Verify(r.Proof, w[1:2]); err != nil {
		t.Errorf("the proof is refused: %v", err)
	}
	return r
}

// batch proves n witnesses and verifies each.
func batch(t *testing.T, p *stages.Prover, k *keptKey, n int, o stages.BatchOptions) {
	t.Helper()
	if err := tryBatch(p, k, n, o); err != nil {
		t.Error(err)
	}
}

func tryBatch(p *stages.Prover, k *keptKey, n int, o stages.BatchOptions) error {
	out := map[int]*stages.Result{}
	var mu sync.Mutex
	_, err := stages.Batch(ctx(), p, func(yield func(stages.Job) bool) {
		for i := range n {
			if !yield(stages.Job{Key: pipeline.Key{Job: "toy", Part: i}, Input: k.toy.witness(i)}) {
				return
			}
		}
	}, func(_ context.Context, r *stages.Result) error {
		mu.Lock()
		defer mu.Unlock()
		out[r.Key.Part] = r
		return nil
	}, o)
	if err != nil {
		return err
	}
	if len(out) != n {
		return fmt.Errorf("%d proofs, want %d", len(out), n)
	}
	for i, r := range out {
		if err := k.vk.Verify(r.Proof, k.toy.witness(i)[1:2]); err != nil {
			return fmt.Errorf("proof %d is refused: %w", i, err)
		}
	}
	return nil
}

var keyKinds = map[string]groth16.SetupOptions{
	"coset folded":    {Basis: curve.Coset, Folded: true},
	"coset":           {Basis: curve.Coset},
	"monomial":        {Basis: curve.Monomial},
	"monomial folded": {Basis: curve.Monomial, Folded: true},
}

// TestProofs makes whole proofs through the stages: every form of key, both
// curves, key on the card and streamed, split and whole.
func TestProofs(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		keys := map[string]*keptKey{}
		for name, o := range keyKinds {
			keys[name] = key(t, id, 60, 40, o)
		}
		e := newEngine(t, id, emulator.Config{})
		for name, k := range keys {
			for _, kept := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s kept %v", name, kept), func(t *testing.T) {
					p := prover(k, e)
					if kept {
						defer keep(t, e, k)()
					}
					proveOne(t, p, k, 1)
					p.MinOnes = 2
					proveOne(t, p, k, 2)
				})
			}
		}
	})
}

// keep keeps the points of k on e, and the matrices of its circuit.
func keep(t *testing.T, e *Engine, k *keptKey) func() {
	t.Helper()
	end := keepSystem(t, e, k)
	drop, err := e.Keep(ctx(), k.pk.H, k.pk.L.Points, k.pk.A.Points, k.pk.B1.Points, k.pk.B2.Points)
	if err != nil {
		t.Fatal(err)
	}
	return func() { drop(); end() }
}

// TestBatch proves several jobs at once, with vectors in pageable and pinned memory.
func TestBatch(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	for _, transfer := range []Transfer{Bounced, Registered} {
		t.Run(transfer.String(), func(t *testing.T) {
			e := newEngine(t, id, emulator.Config{}, Transfers(transfer))
			defer keep(t, e, k)()
			set, err := pipeline.ParseSettings("synthesize.workers=3", "prestage.workers=2", "ntt.workers=2", "tail-msm.workers=2")
			if err != nil {
				t.Fatal(err)
			}
			batch(t, prover(k, e), k, 10, stages.BatchOptions{Settings: set})
			if s := e.Stats(); s.Up == 0 || len(s.Methods) < 5 {
				t.Errorf("the statistics are %v", s)
			}
		})
	}
}

// TestNeeds: a job never draws more of the card than it is stated to need.
func TestNeeds(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		keys := map[string]*keptKey{}
		for name, o := range keyKinds {
			keys[name] = key(t, id, 60, 40, o)
		}
		e := newEngine(t, id, emulator.Config{})
		for name, k := range keys {
			for _, kept := range []bool{false, true} {
				if kept != (id == curve.BN254) && !*long {
					continue
				}
				t.Run(fmt.Sprintf("%s kept %v", name, kept), func(t *testing.T) {
					if kept {
						defer keep(t, e, k)()
					}
					p := prover(k, e)
					need, err := stages.Need(p, stages.BatchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for s, n := range need {
						if n == 0 {
							need[s] = 1 // 0 would be no limit
						}
					}
					budget := alloc.NewBudget(need)
					batch(t, p, k, 2, stages.BatchOptions{Options: []pipeline.Option{pipeline.WithBudget(budget)}})
					peak := budget.Stats().Peak
					if !peak.Fits(need) || peak[e.card.space] == 0 {
						t.Errorf("jobs reserved %v, stated is %v", peak, need)
					}
				})
			}
		}
	})
}
