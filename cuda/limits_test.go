package cuda

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// The cards of these tests are those of partitions at a thousandth: a vector has
// 4 MiB, tables 8. A card also keeps room for one operation, a vector at least.
const (
	vectorLog  = 17
	vectorSize = 32 << vectorLog
)

func smallCard(total int64) emulator.Config {
	return emulator.Config{Cards: []emulator.Card{{Total: total}}}
}

// vectors are host buffers for a, b and c of a domain of 2^17.
func vectors(t *testing.T, id curve.ID) (d curve.Domain, a, b, c *alloc.Buffer[curve.Scalar]) {
	t.Helper()
	d, err := groth16.NewDomain(id, 1<<vectorLog, curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	s := scalars(id, 1<<10, 3, 3, 1)
	var all []curve.Scalar
	for len(all) < 1<<vectorLog {
		all = append(all, s...)
	}
	a, b, c = buffer(t, all), buffer(t, all), buffer(t, all)
	t.Cleanup(func() { a.Release(); b.Release(); c.Release() })
	return d, a, b, c
}

// TestTwoPrestage is F1: several workers bring 12 MiB each at the same time, to a
// card that has room for one of them. Each is told what is free as if the others
// had taken their part already. Without the ledger all count on the same bytes.
func TestTwoPrestage(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	for _, naive := range []bool{false, true} {
		t.Run(fmt.Sprintf("protected %v", !naive), func(t *testing.T) {
			e := newEngine(t, id, smallCard(26*alloc.MiB), Margin(alloc.MiB/2))
			d, a, b, c := vectors(t, id)
			e.card.mem.naive = naive
			var wg sync.WaitGroup
			var mu sync.Mutex
			var failed error
			tiers := map[int]int{}
			for range 3 {
				wg.Go(func() {
					v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, c)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed = err
						return
					}
					tiers[v.(*evaluations).tier.Tier]++
					t.Cleanup(func() { releaseAll(v); e.Flush() })
				})
			}
			wg.Wait()
			if naive {
				if !errors.Is(failed, gpu.ErrNoMemory) {
					t.Errorf("without the ledger: %v, so this test shows nothing", failed)
				}
				return
			}
			if failed != nil || tiers[0] != 1 || tiers[2] != 2 {
				t.Errorf("tiers %v, error %v", tiers, failed)
			}
		})
	}
}

// TestDeadVectors is F2: b and c leave the card when the quotient is done, though
// the job's Held is still there, so that the next job's vectors find room.
func TestDeadVectors(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("protected %v", !late), func(t *testing.T) {
			e := newEngine(t, id, smallCard(30*alloc.MiB))
			d, a, b, c := vectors(t, id)
			e.o.unguarded.late = late
			v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, c)
			if err != nil {
				t.Fatal(err)
			}
			q, err := e.QuotientOf(ctx(), scope(), v)
			if err != nil {
				t.Fatal(err)
			}
			next, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, c)
			if err != nil {
				t.Fatal(err)
			}
			tier := next.(*evaluations).tier
			for _, x := range []held{v, q, next} {
				releaseAll(x)
			}
			e.Flush()
			if (tier.Tier == 0) == late {
				t.Errorf("the next job has %v", tier)
			}
		})
	}
}

// TestTwoPools is F3: memory that one pool keeps, the other cannot see. Where an
// allocation fails with it free, both are trimmed. An allocation that goes
// around that fails.
func TestTwoPools(t *testing.T) {
	onlyEmulated(t)
	const size = 10 * alloc.MiB
	e := newEngine(t, curve.BN254, smallCard(16*alloc.MiB))
	alloc.Default().SetPoolLimitOf(e.card.space, size)
	vector := func() error {
		b, err := e.tryBlock(scope(), standing, size, alloc.Evaluation, alloc.Dirty)
		if err == nil && b == nil {
			t.Fatal("the ledger has no room")
		}
		b.free() // to the pool of package alloc
		return err
	}
	scratch := func() error {
		err := e.run(ctx(), scope(), &op{name: "test", least: size, most: size, body: func(t *task) error {
			_, err := t.take(size, alloc.Scratch)
			return err
		}}) // and then it is in the stream-ordered pool
		e.card.mem.floor = 0
		return err
	}
	for range 2 {
		if err := vector(); err != nil {
			t.Fatal("plain memory:", err)
		}
		if n := alloc.Default().Pooled(e.card.space); n < size {
			t.Fatalf("the pool keeps %d bytes, so this test shows nothing", n)
		}
		if err := scratch(); err != nil {
			t.Fatal("scratch:", err)
		}
		if used, reserved, err := e.card.Pooled(); err != nil || used != 0 || reserved < size {
			t.Fatalf("the stream-ordered pool has %d bytes, %d in use (%v), so this test shows nothing", reserved, used, err)
		}
	}
	if _, err := e.card.Alloc(size); !errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("without a trim: %v, so this test shows nothing", err)
	}
}

// leaveStanding leaves so much of a card to what stands.
func leaveStanding(t *testing.T, e *Engine, n int64) {
	t.Helper()
	l := e.card.mem
	l.mu.Lock()
	defer l.mu.Unlock()
	l.margin = 0
	c, err := l.capacity()
	if err != nil {
		t.Fatal(err)
	}
	l.patience = 100 * time.Millisecond
	l.margin = c - l.sum() - max(l.floor-l.granted[working], 0) - n
}

// TestTiers is F4: what does not fit is brought later. Proofs are right in all
// three tiers, and the report says which it was.
func TestTiers(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		for kind, vectors := range map[string]int64{"coset": 3, "coset folded": 2} {
			// The witness, which may come before, is half a vector.
			k := key(t, id, 129, 100, keyKinds[kind])
			t.Run(kind, func(t *testing.T) {
				e := newEngine(t, id, emulator.Config{Cards: []emulator.Card{{}}, Granule: 256})
				alloc.Default().SetPoolLimitOf(e.card.space, 0) // blocks of a pool are rounded up
				p := prover(k, e)
				proveOne(t, p, k, 0)
				size := int64(k.pk.Domain.Size()) * curve.ScalarBytes
				for tier, room := range []int64{(vectors + 1) * size, size + size*3/4, size * 3 / 4} {
					t.Run(fmt.Sprintf("tier %d", tier+1), func(t *testing.T) {
						leaveStanding(t, e, room)
						want := fmt.Sprintf("%s, tier %d of 3", e.Name(), tier+1)
						if got := tierOf(t, e, k); !strings.HasPrefix(got, want) {
							t.Errorf("the vectors were put %q, want %q", got, want)
						}
						// Operations that run meanwhile may leave less than that.
						r := proveOne(t, p, k, tier)
						if r.Staged < want {
							t.Errorf("the vectors were put %q, want %q", r.Staged, want)
						}
						if d, err := e.Describe(); err != nil || d.Tier != r.Staged {
							t.Errorf("the engine says %v, %v", d, err)
						}
					})
				}
			})
		}
	})
}

// tierOf is where the vectors of a job are put that is alone on the card.
func tierOf(t *testing.T, e *Engine, k *keptKey) string {
	t.Helper()
	d := k.pk.Domain
	a := buffer(t, make([]curve.Scalar, d.Size()))
	defer a.Release()
	c := a
	if k.pk.Folded {
		c = nil
	}
	v, err := e.Prestage(ctx(), scope(), d, k.pk.Basis, a, a, c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Flush()
	defer releaseAll(v)
	return v.String()
}

// TestSmallCard proves on cards that hold less and less of what a proof would
// like to have, down to where it cannot be made at all, which must be said.
func TestSmallCard(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 200, 150, keyKinds["coset folded"])
	made := false
	for total := 4 * alloc.MiB; ; total = total * 3 / 4 {
		var err error
		t.Run(fmt.Sprintf("%d KiB", total>>10), func(t *testing.T) {
			e := newEngine(t, id, smallCard(total))
			e.card.mem.patience = 100 * time.Millisecond
			_, err = stages.ProveResult(ctx(), prover(k, e), k.toy.witness(1))
			if err == nil {
				err = tryBatch(prover(k, e), k, 2, stages.BatchOptions{})
			}
			e.Flush()
			var known *Error
			if err != nil && (!errors.As(err, &known) || known.Asked == 0) {
				t.Errorf("a card that is too small: %v", err)
			}
			t.Log(err)
		})
		if err != nil {
			break
		}
		made = true
	}
	if !made {
		t.Error("no card was large enough")
	}
}

// TestShared is F5: several jobs bring the same buffers by registering them.
// Drivers refuse to register pages twice, so registrations are counted.
func TestShared(t *testing.T) {
	onlyEmulated(t)
	if !registrable {
		t.Skip("nothing is registered in this build")
	}
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{}, Transfers(Registered))
	d, a, b, _ := vectors(t, id)
	first, err := e.card.Registry.PinBuffer(e.card, scope(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.card.Register(first.Ptr(), first.Bytes()); err == nil || !strings.Contains(err.Error(), "712") {
		t.Errorf("pages registered twice: %v, so this test shows nothing", err)
	}
	var jobs []held
	for range 3 {
		v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, v)
	}
	for _, v := range jobs {
		if err := wait(e, v.(*evaluations).a); err != nil {
			t.Error("copies of the same pages:", err)
		}
		releaseAll(v)
	}
	e.Flush()
	first.Release()
	if s := e.card.Registry.Stats(); s.Bytes != 0 || s.Failures > 0 {
		t.Errorf("registrations are left: %+v", s)
	}
	if n := e.Stats().Refused; n > 0 {
		t.Errorf("%d registrations were refused", n)
	}
}

// wait waits for a vector, in an operation of its own.
func wait(e *Engine, v *vector) error {
	return e.run(ctx(), scope(), &op{name: "wait", body: func(t *task) error {
		_, err := v.ready(t.ctx, t.st)
		return err
	}})
}
