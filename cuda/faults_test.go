package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// Statuses that calls fail with.
const (
	codeNoMemory = 2
	codeUnknown  = 999
	codeAddress  = 700 // ends the context
)

// onlyEmulated skips a test on a real card.
func onlyEmulated(t *testing.T) {
	t.Helper()
	if emulator.Real() {
		t.Skip("faults are the emulator's")
	}
}

// settle waits for what ends by itself, and says what is left in use.
func settle(e *Engine) { e.Flush() }

// TestEveryCallFails: whichever call to the driver fails while a proof is made,
// and however, what comes is a right proof, after another try, or a clear error;
// nothing stays behind, and the next proof is right.
func TestEveryCallFails(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	for _, f := range []struct {
		name   string
		code   int
		sticky bool
	}{{"no memory", codeNoMemory, false}, {"unknown", codeUnknown, false}, {"ended", codeAddress, true}} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, key kept %v", f.name, kept), func(t *testing.T) {
				faultsAllowed.Store(true)
				e := newEngine(t, id, emulator.Config{}, Streams(1))
				p := prover(k, e)
				p.Again = 1
				if kept {
					defer keep(t, e, k)()
				}
				proveOne(t, p, k, 0)
				before := emulator.Calls()
				proveOne(t, p, k, 0)
				calls := emulator.Calls() - before
				step := 1
				if !*long {
					step = max(calls/12, 1)
				}
				base := left(t, e)
				right, wrong := 0, map[string]int{}
				for n := 1; n <= calls; n += step {
					emulator.Fault("", n, f.code, f.sticky)
					w := k.toy.witness(n)
					r, err := stages.ProveResult(ctx(), p, w)
					emulator.Clear()
					if err == nil {
						right++
						if err := k.vk.Verify(r.Proof, w[1:2]); err != nil {
							t.Errorf("call %d: the proof is refused: %v", n, err)
						}
					} else {
						wrong[clear(t, n, err)]++
					}
					settle(e)
					if now := left(t, e); now != base {
						t.Fatalf("call %d fails (%v): what is left changes from %+v to %+v", n, err, base, now)
					}
				}
				proveOne(t, p, k, 1)
				t.Logf("%d calls: %d proofs right, errors %v", calls, right, wrong)
				if right == 0 {
					t.Error("no proof came through")
				}
			})
		}
	}
}

// clear checks that an error says what happened, and gives its end.
func clear(t *testing.T, n int, err error) string {
	t.Helper()
	var at *pipeline.StageError
	if !errors.As(err, &at) {
		t.Errorf("call %d: the error names no stage: %v", n, err)
	}
	if !strings.Contains(err.Error(), "cu") {
		t.Errorf("call %d: the error names no call: %v", n, err)
	}
	s := err.Error()
	return s[max(0, len(s)-60):]
}

// remains is what a card and a process have in use.
type remains struct {
	Classic, Pool, Streams, Events, Registrations int
	Device, Pinned                                int64
	taken, granted                                int64
}

// left is what is in use now, without what caches and lanes make anew.
func left(t *testing.T, e *Engine) remains {
	t.Helper()
	s, err := emulator.Stats()
	if err != nil {
		t.Fatal(err)
	}
	c := s.Cards[0]
	own := e.tables.bytes() + e.keys.bytes()
	e.card.mem.mu.Lock()
	defer e.card.mem.mu.Unlock()
	r := remains{
		Pool: c.PoolBlocks, Registrations: 0,
		Device:  alloc.Default().Live(e.card.space) - own,
		taken:   e.card.taken.Load() - own,
		granted: e.card.mem.sum() - own,
	}
	return r
}

// TestCancel: a proof that is cancelled in the middle of any stage ends soon, and
// leaves nothing.
func TestCancel(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset"])
	e := newEngine(t, id, emulator.Config{Mode: emulator.Late})
	p := prover(k, e)
	proveOne(t, p, k, 0)
	base := left(t, e)
	for _, stage := range []string{stages.NamePrestage, stages.NameNTT, stages.NameHMSM, stages.NameBatchAdd, stages.NameTailMSM, stages.NameBG2MSM} {
		for _, after := range []time.Duration{0, 3 * time.Millisecond, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s after %v", stage, after), func(t *testing.T) {
				c, cancel := context.WithCancel(ctx())
				defer cancel()
				var begun time.Time
				o := stages.BatchOptions{Options: []pipeline.Option{pipeline.Listen(pipeline.ListenerFunc(func(ev pipeline.Event) {
					if ev.Kind == pipeline.Begin && ev.Stage == stage {
						time.AfterFunc(after, func() { begun = time.Now(); cancel() })
					}
				}))}}
				_, err := stages.Batch(c, p, func(yield func(stages.Job) bool) {
					yield(stages.Job{Input: k.toy.witness(1)})
				}, func(context.Context, *stages.Result) error { return nil }, o)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled: %v", err)
				}
				if took := time.Since(begun); err != nil && took > 2*time.Second {
					t.Errorf("it took %v to end", took)
				}
				settle(e)
				if now := left(t, e); now != base {
					t.Errorf("what is left changes from %+v to %+v", base, now)
				}
			})
		}
	}
	proveOne(t, p, k, 2)
}
