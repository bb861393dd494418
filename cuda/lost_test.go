package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// manyProofs proves n witnesses of k, verifies each, and counts them by processor.
func manyProofs(t *testing.T, p *stages.Prover, k *keptKey, n int, o stages.BatchOptions) (map[int]*stages.Result, *pipeline.Report) {
	t.Helper()
	out := map[int]*stages.Result{}
	var mu sync.Mutex
	report, err := stages.Batch(ctx(), p, func(yield func(stages.Job) bool) {
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
	if err != nil || len(out) != n {
		t.Fatalf("%d proofs of %d: %v", len(out), n, err)
	}
	for i, r := range out {
		if err := k.vk.Verify(r.Proof, k.toy.witness(i)[1:2]); err != nil {
			t.Errorf("proof %d is refused: %v", i, err)
		}
	}
	return out, report
}

// strike makes a call, a copy or a kernel fail and end the context when stage
// begins with a part.
func strike(stage string, part int, fault string, code int) pipeline.Option {
	var once sync.Once
	return pipeline.Listen(pipeline.ListenerFunc(func(ev pipeline.Event) {
		if ev.Kind == pipeline.Begin && ev.Stage == stage && ev.Key.Part == part {
			once.Do(func() { emulator.Fault(fault, 1, code, true) })
		}
	}))
}

// TestStickyErrorInABatch: in the middle of each stage the card's context ends.
// Every proof is right. Where the driver makes another context the card goes on;
// where it does not, the rest is made on the CPU, without trying the card again.
func TestStickyErrorInABatch(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	const jobs, at = 12, 2
	for i, s := range []struct {
		stage, fault string
		code         int
	}{
		{stages.NamePrestage, "cuMemGetInfo", 700},
		{stages.NamePrestage, "copy", 719},
		{stages.NameNTT, "kernel", 700},
		{stages.NameHMSM, "kernel", 719},
		{stages.NameBatchAdd, "cuMemcpyHtoDAsync", 719},
		{stages.NameTailMSM, "kernel", 700},
		{stages.NameBG2MSM, "kernel", 719},
	} {
		for _, lost := range []bool{true, false} {
			if !lost && i%3 != 0 && !*long {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s%d/lost %v", s.stage, s.fault, s.code, lost), func(t *testing.T) {
				e := newEngine(t, id, emulator.Config{NoRevival: lost}, Streams(2))
				defer keep(t, e, k)()
				p := prover(k, e)
				p.Again, p.Elsewhere = 0, []groth16.Arithmetic{host(t, id)}
				need, err := stages.Need(p, stages.BatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				onHost := *p
				onHost.Arith = host(t, id)
				hostNeed, err := stages.Need(&onHost, stages.BatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				budget := alloc.NewBudget(need.Max(hostNeed).Scale(3))
				out, report := manyProofs(t, p, k, jobs, stages.BatchOptions{Options: []pipeline.Option{
					strike(s.stage, at, s.fault, s.code), pipeline.WithBudget(budget)}})
				if n := emulator.Clear(); n != 0 {
					t.Fatal("the context did not end: this test shows nothing")
				}
				if report.Restarted == 0 || report.Restarted > 2*report.PeakInFlight {
					t.Errorf("%d made again, %d in flight", report.Restarted, report.PeakInFlight)
				}
				settle(e)
				if b := budget.Stats(); !b.Charged.IsZero() {
					t.Errorf("%v stays reserved", b.Charged)
				}
				now := left(t, e)
				if now != (remains{}) {
					t.Errorf("left: %+v", now)
				}
				if !lost {
					if e.Lost() != nil || e.Stats().Resets == 0 || len(report.Notes) != 0 {
						t.Errorf("%v, %d resets, %q", e.Lost(), e.Stats().Resets, report.Notes)
					}
					if out, _ := manyProofs(t, p, k, 2, stages.BatchOptions{}); out[0].On != e.Name() {
						t.Errorf("the next proof is made on %s", out[0].On)
					}
					return
				}
				err = e.Lost()
				if err == nil || len(report.Notes) != 1 || report.Notes[0] != err.Error() || e.Stats().Lost != err.Error() || !strings.Contains(e.Stats().String(), err.Error()) {
					t.Fatalf("%v; the report says %q, the engine %+v", err, report.Notes, e.Stats())
				}
				for i, r := range out {
					late := i > at+int(report.PeakInFlight)+1
					if late && (r.On != "cpu" || r.Attempts != 1) || r.Attempts > 2 || r.Attempts == 2 && r.On != "cpu" {
						t.Errorf("proof %d: %d attempts, on %s: %v", i, r.Attempts, r.On, r.Again)
					}
				}
				calls := emulator.Calls()
				if _, report := manyProofs(t, p, k, 3, stages.BatchOptions{Options: []pipeline.Option{pipeline.WithBudget(alloc.NewBudget(hostNeed))}}); report.Restarted != 0 {
					t.Errorf("%d made again after the loss was known", report.Restarted)
				}
				if n := emulator.Calls() - calls; n != 0 {
					t.Errorf("%d calls to a driver that has given the card up", n)
				}
			})
		}
	}
}

// TestLostWithoutAnother: no processor is left. Every method says the same, at
// once, and so does a proof.
func TestLostWithoutAnother(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{NoRevival: true}, Streams(1))
	drop := keep(t, e, k)
	p := prover(k, e)
	p.Again = 0
	proveOne(t, p, k, 0)
	emulator.Fault("kernel", 1, 700, true)
	for i := range 3 {
		_, err := stages.ProveResult(ctx(), p, k.toy.witness(i))
		if !errors.Is(err, gpu.ErrLost) || strings.Count(err.Error(), "lost to this process") != 1 || !strings.HasSuffix(err.Error(), "there is no other processor to make the proof on") {
			t.Errorf("proof %d: %v", i, err)
		}
	}
	settle(e)
	calls := emulator.Calls()
	w := buffer(t, k.toy.witness(0))
	a, b := buffer(t, make([]curve.Scalar, k.pk.Domain.Size())), buffer(t, make([]curve.Scalar, k.pk.Domain.Size()))
	_, err := e.Prestage(ctx(), scope(), k.pk.Domain, k.pk.Basis, a, b, nil)
	_, _, split := e.Split(ctx(), scope(), w)
	_, b2 := e.SumB2(ctx(), scope(), k.pk.B2, w)
	_, msm := e.MSMG1(ctx(), scope(), k.pk.A, w.Slice(), nil)
	_, keeping := e.Keep(ctx(), k.pk.H)
	_, describe := e.Describe()
	_, second := New(e.card, id, host(t, id))
	for what, err := range map[string]error{
		"prestage": err, "split": split, "sum of b2": b2, "msm": msm, "keep": keeping, "describe": describe,
		"quotient": e.Quotient(ctx(), scope(), k.pk.Domain, k.pk.Basis, a.Slice(), b.Slice(), nil),
	} {
		if !errors.Is(err, gpu.ErrLost) || strings.Count(err.Error(), "lost to this process") != 1 {
			t.Errorf("%s: %v", what, err)
		}
		var at *Error
		if errors.As(err, &at) && (at.Temporary() || !at.FromStart()) {
			t.Errorf("%s is told to be tried again: %v", what, err)
		}
	}
	if second == nil {
		t.Error("an engine was made on a card that is lost")
	}
	for _, x := range []*alloc.Buffer[curve.Scalar]{w, a, b} {
		x.Release()
	}
	drop()
	settle(e)
	if now := left(t, e); now != (remains{}) {
		t.Errorf("left: %+v", now)
	}
	if n := emulator.Calls() - calls; n != 0 {
		t.Errorf("%d calls to a driver that has given the card up", n)
	}
}

// TestLostCardOfTwo: one card of two is lost; the other has all jobs then.
func TestLostCardOfTwo(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	leakFree(t)
	d, err := Open(emulator.Need(t, emulator.Config{NoRevival: true, Cards: []emulator.Card{{}, {}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		clean(t)
	}()
	var members []groth16.Arithmetic
	for _, c := range d.Cards() {
		e, err := New(c, id, host(t, id), small...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		members = append(members, e)
	}
	set, err := stages.Spread(nil, members...)
	if err != nil {
		t.Fatal(err)
	}
	p := prover(k, set)
	p.Again, p.B2, p.Elsewhere = 0, stages.Either(set, host(t, id)), []groth16.Arithmetic{host(t, id)}
	const jobs, at = 14, 3
	out, report := manyProofs(t, p, k, jobs, stages.BatchOptions{Options: []pipeline.Option{strike(stages.NameHMSM, at, "kernel", 700)}})
	if emulator.Clear() != 0 || len(report.Notes) != 1 {
		t.Fatalf("lost: %q", report.Notes)
	}
	name := "cuda:0"
	if strings.HasPrefix(report.Notes[0], name) {
		name = "cuda:1"
	}
	for i, r := range out {
		if i > at+int(report.PeakInFlight)+1 && (r.On != name || r.Attempts != 1) {
			t.Errorf("proof %d is made on %s, in %d attempts", i, r.On, r.Attempts)
		}
	}
}

// TestEveryCallLoses: whichever call ends the context for good, the proof is
// right, made elsewhere, and nothing stays behind, on the card or of it.
func TestEveryCallLoses(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	calls := 0
	try := func(n int) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := newEngine(t, id, emulator.Config{NoRevival: true}, Streams(1))
			defer keep(t, e, k)()
			p := prover(k, e)
			p.Again, p.Elsewhere = 0, []groth16.Arithmetic{host(t, id)}
			before := emulator.Calls()
			if n > 0 {
				emulator.Fault("", n, 719, true)
			}
			r := proveOne(t, p, k, n)
			settle(e)
			calls = max(calls, emulator.Calls()-before)
			emulator.Clear()
			if now := left(t, e); now != (remains{}) {
				t.Errorf("left: %+v", now)
			}
			if e.Lost() != nil && r.Attempts > 2 {
				t.Errorf("%d attempts: %v", r.Attempts, r.Again)
			}
		})
	}
	try(0)
	step := 1
	if !*long {
		step = max(calls/12, 1)
	}
	for n := 1; n <= calls; n += step {
		try(n)
	}
}
