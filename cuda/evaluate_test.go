package cuda

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

var _ groth16.Evaluator = (*Engine)(nil)

// keepSystem keeps the matrices of k's circuit on e.
func keepSystem(t *testing.T, e *Engine, k *keptKey) func() {
	t.Helper()
	s, ok := k.toy.r1cs.System()
	if !ok {
		t.Fatal("the toy gives no matrices")
	}
	drop, err := e.KeepSystem(ctx(), s)
	if err != nil {
		t.Fatal(err)
	}
	return drop
}

// TestEvaluated: where the matrices are on the card, proofs of every form of key
// come from the witness alone, which crosses once; without them, or if it is
// switched off, as before.
func TestEvaluated(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		keys := map[string]*keptKey{}
		for name, o := range keyKinds {
			keys[name] = key(t, id, 8, 4, o) // TestEvaluations has larger ones
		}
		e := newEngine(t, id, emulator.Config{}, Packing(false))
		for name, k := range keys {
			if id == curve.BLS12381 && name != "coset" && !*long {
				continue
			}
			t.Run(name, func(t *testing.T) {
				p := prover(k, e)
				drop := keep(t, e, k)
				defer func() { drop() }()
				proveOne(t, p, k, 0) // wires of the queries are brought
				up := e.Stats().Up
				r := proveOne(t, p, k, 1)
				if !strings.Contains(r.Staged, "evaluated there") {
					t.Errorf("staged as %q", r.Staged)
				}
				if brought := e.Stats().Up - up; brought != int64(curve.ScalarBytes*k.toy.r1cs.Wires) {
					t.Errorf("%d bytes went to the card for a witness of %d", brought, curve.ScalarBytes*k.toy.r1cs.Wires)
				}
				p.HostEvaluation = true
				if r := proveOne(t, p, k, 2); strings.Contains(r.Staged, "evaluated there") {
					t.Errorf("switched off, and staged as %q", r.Staged)
				}
				p.HostEvaluation = false
				drop()
				if r := proveOne(t, p, k, 3); strings.Contains(r.Staged, "evaluated there") {
					t.Errorf("without matrices, and staged as %q", r.Staged)
				}
				drop = keep(t, e, k)
				batch(t, p, k, 4, stages.BatchOptions{})
			})
		}
	})
}

// TestEvaluations compares what the card makes of a witness with what the host
// does, through the quotient: rows for the inputs, a C that is not there, a C that
// is, all of it with long rows.
func TestEvaluations(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		e := newEngine(t, id, emulator.Config{})
		for _, s := range []struct {
			inputs, c, folded bool
		}{{false, true, true}, {true, true, false}, {true, false, true}, {true, false, false}} {
			t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
				toy := newToy(id, 90, 50)
				r := *toy.r1cs
				r.InputRows = s.inputs
				// One row more, of all wires many times, times 0.
				long := func(m *curve.Matrix) {
					m.Terms = slices.Clone(m.Terms)
					for i := range 2500 {
						m.Terms = append(m.Terms, curve.Term{Wire: uint32(i % r.Wires)})
					}
					m.Rows = append(slices.Clone(m.Rows), uint32(len(m.Terms)))
				}
				long(&r.A)
				r.B.Rows = append(slices.Clone(r.B.Rows), uint32(len(r.B.Terms)))
				r.C.Rows = append(slices.Clone(r.C.Rows), uint32(len(r.C.Terms)))
				if !s.c {
					r.C = curve.Matrix{}
				}
				d, err := groth16.NewDomain(id, r.NbConstraints(), curve.Coset)
				if err != nil {
					t.Fatal(err)
				}
				w := toy.witness(4)
				want, err := r.Synthesize(ctx(), scope(), w, groth16.Want{Domain: d, C: !s.folded, Check: true, Arithmetic: host(t, id)})
				if err != nil {
					t.Fatal(err)
				}
				defer want.Release()
				sys, _ := r.System()
				drop, err := e.KeepSystem(ctx(), sys)
				if err != nil {
					t.Fatal(err)
				}
				defer drop()
				end, ok := e.HoldSystem(load{Domain: d, Folded: s.folded, Wires: r.Wires, Evaluates: true}, sys)
				if !ok {
					t.Fatal("the matrices are not held")
				}
				defer end()
				v, row, err := e.PrestageOf(ctx(), scope(), d, curve.Coset, sys, s.folded, true, want.W)
				if err != nil || row >= 0 {
					t.Fatal(row, err)
				}
				defer releaseAll(v)
				x := v.(*evaluations)
				for i, b := range []*alloc.Buffer[curve.Scalar]{want.A, want.B, want.C} {
					if b == nil {
						if x.c != nil {
							t.Error("there is a c")
						}
						continue
					}
					if got := fetchVector(t, e, x.vectors()[i]); !slices.Equal(got, b.Slice()) {
						t.Errorf("vector %d is not the host's", i)
					}
				}
			})
		}
	})
}

// TestUnsatisfied: a wrong witness is refused with the row that the host finds,
// on every form of key, and without the check by the verification.
func TestUnsatisfied(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		keys := map[string]*keptKey{}
		for name, o := range keyKinds {
			keys[name] = key(t, id, 60, 40, o)
		}
		e := newEngine(t, id, emulator.Config{})
		for name, k := range keys {
			if id == curve.BLS12381 && name != "coset" && !*long {
				continue
			}
			t.Run(name, func(t *testing.T) {
				defer keep(t, e, k)()
				for _, wire := range []int{1, 2, 5, 30, k.toy.r1cs.Wires - 1} {
					w := k.toy.witness(wire)
					w[wire] = montgomery(id, big.NewInt(77))
					var rows [2]int
					for i, host := range []bool{true, false} {
						p := prover(k, e)
						p.HostEvaluation = host
						_, err := stages.ProveResult(ctx(), p, w)
						var bad *groth16.UnsatisfiedError
						if !errors.As(err, &bad) {
							t.Fatalf("wire %d, host %v: %v", wire, host, err)
						}
						rows[i] = bad.Row
					}
					if rows[0] != rows[1] {
						t.Errorf("wire %d: the host finds row %d, the card %d", wire, rows[0], rows[1])
					}
				}
			})
		}
	})
}

// TestWrongEvaluation: what the card evaluates wrongly is caught by verification,
// and made again with the host's evaluations.
func TestWrongEvaluation(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{})
	defer keep(t, e, k)()
	p := prover(k, e)
	p.Again, p.NoCheck = 1, true
	proveOne(t, p, k, 0)
	emulator.Corrupt("matrix_rows", 1)
	r := proveOne(t, p, k, 1)
	emulator.Clear()
	if r.Attempts != 2 || strings.Contains(r.Staged, "evaluated there") {
		t.Errorf("made at attempt %d, staged as %q", r.Attempts, r.Staged)
	}
}

// TestEvaluatedInLittleRoom: matrices go where jobs need the room, jobs then have
// the host's evaluations, and nothing is lost.
func TestEvaluatedInLittleRoom(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{})
	defer keep(t, e, k)()
	p := prover(k, e)
	p.Again = 2
	proveOne(t, p, k, 0)
	e.giveUp(1 << 60)
	if r := proveOne(t, p, k, 1); strings.Contains(r.Staged, "evaluated there") {
		t.Errorf("the matrices were given up, and staged as %q", r.Staged)
	}
	// That job has brought them back.
	if r := proveOne(t, p, k, 2); !strings.Contains(r.Staged, "evaluated there") {
		t.Errorf("there is room again, and staged as %q", r.Staged)
	}
	left, err := e.card.mem.leftFor(standing)
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.tryBlock(e.card.own, standing, left-(1<<20), alloc.Scratch, alloc.Dirty)
	if err != nil || b == nil {
		t.Fatal(b, err)
	}
	if r := proveOne(t, p, k, 3); strings.Contains(r.Staged, "evaluated there") {
		t.Errorf("without room staged as %q", r.Staged)
	}
	b.free()
	// The room goes between the decision, in synthesize, and the evaluation:
	// made again. It goes while nothing else of the job is on the card, which would
	// give back what it has there in between.
	var got *block
	o := stages.BatchOptions{Options: []pipeline.Option{pipeline.Listen(pipeline.ListenerFunc(func(ev pipeline.Event) {
		if ev.Kind == pipeline.End && ev.Stage == stages.NameSynthesize && got == nil {
			left, _ := e.card.mem.leftFor(standing)
			got, _ = e.tryBlock(e.card.own, standing, left-4096, alloc.Scratch, alloc.Dirty)
		}
		if ev.Kind == pipeline.Restarted {
			got.free()
		}
	}))}}
	out, _ := manyProofs(t, p, k, 1, o)
	got.free()
	if r := out[0]; r.Attempts != 2 {
		t.Errorf("made at attempt %d: %v", r.Attempts, r.Again)
	}
}
