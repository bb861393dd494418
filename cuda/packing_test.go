package cuda

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"pgregory.net/rapid"
)

// mixture are n scalars: of 100, sparse are 0, 1, 2 and −1, in runs of one sort
// or all of them, and of the others some are no residues.
func mixture(id curve.ID, n, sparse int, seed uint64) []curve.Scalar {
	r := rand.New(rand.NewPCG(seed, 2))
	small := scalars(id, 1, 0, 10, 0) // 1
	small = append(small, curve.Scalar{}, montgomery(id, big.NewInt(2)), montgomery(id, big.NewInt(-1)))
	out := make([]curve.Scalar, n)
	for i := range out {
		if r.IntN(100) < sparse {
			out[i] = small[r.IntN(len(small))]
			continue
		}
		out[i] = curve.Scalar{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()} // often ≥ r
		if r.IntN(4) == 0 {
			out[i] = small[r.IntN(len(small))]
			out[i][r.IntN(4)] ^= 1 << r.IntN(64)
		}
	}
	return out
}

// TestUploads: what comes to the card packed is what was given, bit by bit.
func TestUploads(t *testing.T) {
	both(t, func(t *testing.T, id curve.ID) {
		for _, chunk := range []int64{4096, 64 << 10, 1 << 20} {
			t.Run(fmt.Sprint(chunk), func(t *testing.T) {
				e := newEngine(t, id, emulator.Config{}, Chunk(chunk))
				rapid.Check(t, func(rt *rapid.T) {
					n := rapid.OneOf(rapid.SampledFrom([]int{0, 1, 7, 64, 127, 128, 129, 511, 4096}), rapid.IntRange(0, 9000)).Draw(rt, "scalars")
					sparse := rapid.SampledFrom([]int{0, 20, 41, 60, 90, 100}).Draw(rt, "share of small ones")
					s := mixture(id, n, sparse, rapid.Uint64().Draw(rt, "seed"))
					if n > 200 && rapid.Bool().Draw(rt, "a sample that is unlike") {
						copy(s[n/3:], mixture(id, n/3, 100-sparse, 1))
					}
					w := buffer(t, s)
					v, err := e.wits.share(scope(), w)
					if err != nil || v == nil {
						rt.Fatal(v, err)
					}
					got := fetchVector(t, e, v)
					v.Release()
					w.Release()
					if !slices.Equal(got, s) {
						rt.Fatal("the vector on the card differs")
					}
				})
				st := e.Stats()
				if st.Unpacked == 0 || st.Packed == 0 || st.Packed >= st.Unpacked {
					t.Errorf("%d bytes were packed to %d", st.Unpacked, st.Packed)
				}
				if !strings.Contains(st.String(), "of scalars packed to") {
					t.Errorf("the statistics do not say so: %v", st)
				}
			})
		}
	})
}

// TestUploadSize: a sparse vector takes a fraction of its bytes, with its last
// pieces and all, a dense one its bytes, and none is packed where it is not wanted.
func TestUploadSize(t *testing.T) {
	id := curve.BLS12381
	for _, c := range []struct {
		packing bool
		sparse  int
		least   float64
		most    float64
	}{{true, 100, 0, 0.2}, {true, 80, 0.2, 0.4}, {true, 0, 1, 1}, {false, 100, 1, 1}} {
		t.Run(fmt.Sprintf("packing %v, %d%% small", c.packing, c.sparse), func(t *testing.T) {
			const n = 1 << 15
			e := newEngine(t, id, emulator.Config{}, Packing(c.packing), func(o *options) { o.packFrom = min(o.packFrom, 64) })
			s := mixture(id, n, 0, 1)
			for i := range s {
				if i%100 < c.sparse {
					s[i] = scalars(id, 1, 0, 10*(i%2), 0)[0]
					if i%2 == 0 {
						s[i] = curve.Scalar{}
					}
				}
			}
			w := buffer(t, s)
			defer w.Release()
			v, err := e.wits.share(scope(), w)
			if err != nil {
				t.Fatal(err)
			}
			if got := fetchVector(t, e, v); !slices.Equal(got, s) {
				t.Error("the vector on the card differs")
			}
			v.Release()
			if up := float64(e.Stats().Up) / (n * curve.ScalarBytes); up < c.least || up > c.most {
				t.Errorf("%.2f of the bytes went up", up)
			}
		})
	}
}

// TestUploadFails: whichever call of a packed copy fails, the vector is right or
// there is an error, and nothing is left.
func TestUploadFails(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	faultsAllowed.Store(true)
	d, err := groth16.NewDomain(id, 1<<13, curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	s := mixture(id, d.Size(), 80, 3)
	a := buffer(t, s)
	defer a.Release()
	bring := func() (held, error) { return e.Prestage(ctx(), scope(), d, curve.Coset, a, a, nil) }
	v, err := bring()
	if err != nil {
		t.Fatal(err)
	}
	e.Flush()
	releaseAll(v)
	base := left(t, e)
	failed, right := 0, 0
	for _, call := range []string{"cuMemcpyHtoDAsync", "cuLaunchKernel", "cuEventRecord"} {
		for n := 1; n < 30; n += 4 {
			emulator.Fault(call, n, codeUnknown, false)
			v, err := bring()
			if err == nil {
				err = v.(*evaluations).b.arrived(ctx())
				if err == nil {
					err = v.(*evaluations).a.arrived(ctx())
				}
				emulator.Clear()
				if err == nil {
					right++
					if !slices.Equal(fetchVector(t, e, v.(*evaluations).b), s) || !slices.Equal(fetchVector(t, e, v.(*evaluations).a), s) {
						t.Errorf("%s %d fails: the vector differs", call, n)
					}
				}
				e.Flush()
				releaseAll(v)
			}
			emulator.Clear()
			if err != nil {
				failed++
			}
			if now := left(t, e); now != base {
				t.Fatalf("%s %d fails: what is left changes from %+v to %+v", call, n, base, now)
			}
		}
	}
	if failed == 0 || right == 0 {
		t.Errorf("%d copies failed and %d were right, so this test shows nothing", failed, right)
	}
}

// TestUploadAbandoned: a copy whose job has ended ends too, and Split gives
// back what it took before it returns.
func TestUploadAbandoned(t *testing.T) {
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{Mode: emulator.Late}, Chunk(4096))
	w := buffer(t, mixture(id, 1<<15, 80, 4))
	defer w.Release()
	base := alloc.Default().Live(e.card.space)
	cancelled := 0
	for i := range 12 {
		c, cancel := context.WithTimeout(ctx(), time.Duration(i)*500*time.Microsecond)
		if i == 0 {
			cancel()
		}
		v, _, err := e.Split(c, scope(), w)
		if err == nil {
			releaseAll(v)
			e.Flush()
		} else {
			cancelled++
		}
		cancel()
		if now := alloc.Default().Live(e.card.space); now != base {
			t.Fatalf("%d bytes are left on the card (%v)", now-base, err)
		}
	}
	if cancelled == 0 {
		t.Error("nothing was cancelled, so this test shows nothing")
	}
	v, _, err := e.Split(ctx(), scope(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseAll(v)
	if got := fetchVector(t, e, v.(*split).x.w); !slices.Equal(got, w.Slice()) {
		t.Error("the vector differs")
	}
}

// TestWitnessOnce: Split and SumB2 bring the witness of a job once, in whatever
// order they come; it goes with the last user; and another buffer is another one.
func TestWitnessOnce(t *testing.T) {
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{}, Packing(false))
	h := host(t, id)
	const n = 3000
	q := curve.Query{Points: points(t, id, curve.InG2, 40), First: 7}
	drop, err := e.Keep(ctx(), q.Points)
	if err != nil {
		t.Fatal(err)
	}
	defer drop()
	for seed, order := range []string{"before", "beside", "after", "alone"} {
		t.Run(order, func(t *testing.T) {
			w := buffer(t, scalars(id, n, 3, 3, uint64(seed)))
			want, err := h.MSMG2(ctx(), scope(), q, w.Slice(), nil)
			if err != nil {
				t.Fatal(err)
			}
			live, up := alloc.Default().Live(e.card.space), e.Stats().Up
			sum := func() {
				if got, err := e.SumB2(ctx(), scope(), q, w); err != nil || got != want {
					t.Errorf("the sum differs (%v)", err)
				}
			}
			var s held
			classify := func() {
				var err error
				if s, _, err = e.Split(ctx(), scope(), w); err != nil {
					t.Error(err)
				}
			}
			var wg sync.WaitGroup
			block := make(chan struct{})
			switch order {
			case "before":
				// The copy is kept from ending until both ask for it.
				wg.Go(func() {
					_ = e.wup.workers.Do(ctx(), func(*gpu.Worker) error { <-block; return nil })
				})
				wg.Go(sum)
				for known := 0; known == 0; time.Sleep(time.Millisecond) {
					e.wits.mu.Lock()
					known = len(e.wits.m)
					e.wits.mu.Unlock()
				}
				wg.Go(classify)
				time.Sleep(5 * time.Millisecond)
				close(block)
			case "beside":
				wg.Go(classify)
				wg.Go(sum)
			case "after":
				classify()
				sum()
			case "alone":
				sum()
			}
			wg.Wait()
			if s != nil {
				if order != "beside" { // there one may be through before the other comes
					if got := e.Stats().Up - up; got < n*curve.ScalarBytes || got >= 2*n*curve.ScalarBytes {
						t.Errorf("%d bytes went up, the witness has %d", got, n*curve.ScalarBytes)
					}
				}
				releaseAll(s)
			}
			e.Flush()
			w.Release()
			if now := alloc.Default().Live(e.card.space); now != live {
				t.Errorf("%d bytes are left on the card", now-live)
			}
			if len(e.wits.m)+len(e.wits.of) != 0 {
				t.Error("the witness is still known")
			}
		})
	}
}

// TestWitnessNeeds: SumB2 before Split draws what is stated for b_g2_msm, and
// Split and what follows what is stated for batch-add and the wires.
func TestWitnessNeeds(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{})
	need := e.Needs(k.pk.Load())
	w := buffer(t, k.toy.witness(1))
	defer w.Release()
	for _, first := range []bool{true, false} {
		within := func(a alloc.Amount) (*alloc.Scope, *alloc.Reservation) {
			b := alloc.NewBudget(alloc.Amount{})
			r, err := b.Reserve(ctx(), a)
			if err != nil {
				t.Fatal(err)
			}
			return alloc.NewScope(alloc.StageOf("test"), alloc.Host, r), r
		}
		two, r2 := within(need.BG2MSM)
		rest, r := within(need.BatchAdd.Add(need.Wires))
		sum := func() {
			if _, err := e.SumB2(ctx(), two, k.pk.B2, w); err != nil {
				t.Error(err)
			}
		}
		if first {
			sum()
		}
		s, _, err := e.Split(ctx(), rest, w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.SumOnes(ctx(), rest, k.pk.A, s); err != nil {
			t.Error(err)
		}
		if !first {
			sum()
		}
		releaseAll(s)
		e.Flush()
		r.Close()
		r2.Close()
	}
}

// TestWipingDelaysNobody: host buffers are wiped when they are let go of, which
// takes its time. Neither the vector's users nor the next vector wait for that.
func TestWipingDelaysNobody(t *testing.T) {
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	block := make(chan struct{})
	var all []*vector
	for i := range 2 {
		w := buffer(t, scalars(id, 500, 3, 3, uint64(i)))
		v := newVector(e, w.Len(), w, func() { <-block })
		w.Release()
		b, err := e.tryBlock(scope(), standing, v.bytes(), alloc.Evaluation, alloc.Secret|alloc.Dirty)
		if err != nil || b == nil {
			t.Fatal(b, err)
		}
		v.place(b)
		e.up.bring(v)
		all = append(all, v)
	}
	c, cancel := context.WithTimeout(ctx(), 20*time.Second)
	defer cancel()
	for _, v := range all {
		if err := v.arrived(c); err != nil {
			t.Error(err)
		}
	}
	close(block)
	e.Flush()
	for _, v := range all {
		if v.onHost() != nil {
			t.Error("a host buffer is held after Flush")
		}
		v.Release()
	}
}

// TestWaitingHoldsNoWorker: a quotient whose vectors are on their way keeps the
// only stream from nobody.
func TestWaitingHoldsNoWorker(t *testing.T) {
	id := curve.BN254
	k := key(t, id, 60, 40, keyKinds["coset folded"])
	e := newEngine(t, id, emulator.Config{}, Streams(1))
	defer keep(t, e, k)()
	proveOne(t, prover(k, e), k, 1)
	d := k.pk.Domain
	a := buffer(t, scalars(id, d.Size(), 3, 3, 1))
	defer a.Release()
	block, begun := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = e.up.workers.Do(ctx(), func(*gpu.Worker) error { close(begun); <-block; return nil })
	})
	<-begun
	v, err := e.Prestage(ctx(), scope(), d, k.pk.Basis, a, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		q, err := e.QuotientOf(ctx(), scope(), v)
		if err != nil {
			t.Error(err)
			return
		}
		releaseAll(q)
	})
	time.Sleep(5 * time.Millisecond)
	c, cancel := context.WithTimeout(ctx(), 20*time.Second)
	defer cancel()
	if _, err := e.MSMG1(c, scope(), k.pk.A, k.toy.witness(1), nil); err != nil {
		t.Error(err)
	}
	close(block)
	wg.Wait()
	releaseAll(v)
	e.Flush()
}
