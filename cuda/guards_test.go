package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// TestReset is F6: an error that ends the context is answered by a reset, what
// failed frees what it had, and the next proof is right. Without the reset every
// later one fails; without the freeing the memory stays.
func TestReset(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	for _, protected := range []bool{true, false} {
		t.Run(fmt.Sprintf("protected %v", protected), func(t *testing.T) {
			faultsAllowed.Store(true)
			e := newEngine(t, id, emulator.Config{})
			p := prover(k, e)
			defer keep(t, e, k)()
			proveOne(t, p, k, 0)
			base := left(t, e)
			e.o.unguarded.reset = !protected
			emulator.Fault("cuLaunchKernel", 3, codeAddress, true)
			if _, err := stages.ProveResult(ctx(), p, k.toy.witness(1)); err == nil {
				t.Fatal("a proof although the device failed")
			} else if again := new(Error); protected && (!errors.As(err, &again) || !again.Temporary()) {
				t.Errorf("the error does not say that it can be done again: %v", err)
			}
			e.Flush()
			if protected {
				if now := left(t, e); now != base {
					t.Errorf("what is left changes from %+v to %+v", base, now)
				}
				proveOne(t, p, k, 2)
				if n := e.Stats().Resets; n != 1 {
					t.Errorf("the card was reset %d times", n)
				}
				return
			}
			if _, err := stages.ProveResult(ctx(), p, k.toy.witness(2)); err == nil {
				t.Error("a proof without a reset, so this test shows nothing")
			}
			e.o.unguarded.reset = false
			_, _ = stages.ProveResult(ctx(), p, k.toy.witness(2)) // it fails, and resets
			proveOne(t, p, k, 2)
		})
	}
}

// TestResetWithOthers: jobs that are under way when the context ends are all made
// again, and are right.
func TestResetWithOthers(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	faultsAllowed.Store(true)
	e := newEngine(t, id, emulator.Config{})
	defer keep(t, e, k)()
	p := prover(k, e)
	p.Again = 5
	proveOne(t, p, k, 0)
	for i := range 4 {
		emulator.Fault("cuLaunchKernel", 40*(i+1), codeAddress, true)
		batch(t, p, k, 6, stages.BatchOptions{})
		emulator.Clear()
	}
	if n := e.Stats().Resets; n == 0 {
		t.Error("the card was not reset, so this test shows nothing")
	}
}

// TestHeldUntilCopied: host buffers are held until their copies are done. Without
// that the emulator sees them go too early.
func TestHeldUntilCopied(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	for _, protected := range []bool{true, false} {
		t.Run(fmt.Sprintf("protected %v", protected), func(t *testing.T) {
			e := newEngine(t, id, emulator.Config{Mode: emulator.Late})
			e.o.unguarded.hold = !protected
			d, err := groth16.NewDomain(id, 1<<10, curve.Coset)
			if err != nil {
				t.Fatal(err)
			}
			s := scalars(id, 1<<10, 3, 3, 1)
			want := append([]curve.Scalar(nil), s...)
			a, b := buffer(t, s, alloc.Pinned), buffer(t, s, alloc.Pinned)
			copied := make(chan struct{})
			v, err := e.Prestage(ctx(), scope(), d, curve.Coset, a, b, nil)
			if err != nil {
				t.Fatal(err)
			}
			v.(interface{ WhenCopied(func()) }).WhenCopied(func() { close(copied) })
			a.Release() // wiped, and given back, with the last reference
			b.Release()
			<-copied
			err = wait(e, v.(*evaluations).a)
			var got []curve.Scalar
			if err == nil {
				got = fetchVector(t, e, v.(*evaluations).a)
			}
			same := err == nil && len(got) == len(want)
			for i := range got {
				same = same && got[i] == want[i]
			}
			releaseAll(v)
			e.Flush()
			if same != protected {
				t.Errorf("the copy is right: %v (%v)", same, err)
			}
			if !protected {
				forgetEarly(t, e)
			}
		})
	}
}

// forgetEarly closes an engine whose device has seen host memory go too early,
// and starts the emulator anew, which does not count it any more.
func forgetEarly(t *testing.T, e *Engine) {
	t.Helper()
	_ = e.card.revive()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	early = true
}

// early says that the emulator's count of host memory that went too early is no
// failure of this test.
var early bool

// TestNoWaitBetweenPieces is F11: the host waits for nothing between the pieces
// of a streamed key but for room in its own buffers.
func TestNoWaitBetweenPieces(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	const n = 1024
	for _, protected := range []bool{true, false} {
		t.Run(fmt.Sprintf("protected %v", protected), func(t *testing.T) {
			e := newEngine(t, id, emulator.Config{}, Streams(1), Chunk(4096))
			e.o.unguarded.sync = !protected
			q := curve.Query{Points: points(t, id, curve.InG1, n)}
			w := scalars(id, n, 8, 1, 1)
			waits := func(n int) int64 {
				before, err := emulator.Stats()
				if err != nil {
					t.Fatal(err)
				}
				q := q
				q.Points = q.Points.Slice(0, n)
				if _, err := e.MSMG1(ctx(), scope(), q, w[:n], nil); err != nil {
					t.Fatal(err)
				}
				after, err := emulator.Stats()
				if err != nil {
					t.Fatal(err)
				}
				return after.ByCall["cuStreamSynchronize"] - before.ByCall["cuStreamSynchronize"]
			}
			waits(64)
			few, many := waits(64), waits(n)
			if (few == many) != protected {
				t.Errorf("the host waits %d times for one piece and %d times for %d", few, many, n*64/4096)
			}
		})
	}
}

// deaf is a device whose launches report no failure, as if nobody looked.
type deaf struct{ gpu.Device }

type deafStream struct{ gpu.Stream }

func (d deaf) NewStream(high bool) (gpu.Stream, error) {
	s, err := d.Device.NewStream(high)
	return deafStream{s}, err
}

func (s deafStream) Launch(f gpu.Function, l gpu.Launch, a *gpu.Args) error {
	_ = s.Stream.Launch(f, l, a)
	return nil
}

// TestStatus is F13: a sum without memory gave a wrong proof and no error. Here
// it gives a right proof, after another try, or an error. If nobody looks at
// the status, verification refuses the proof.
func TestStatus(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 8, 4, keyKinds["coset folded"])
	for _, protected := range []bool{true, false} {
		t.Run(fmt.Sprintf("protected %v", protected), func(t *testing.T) {
			leakFree(t)
			dev := emulator.TestDevice(t)
			if !protected {
				dev = deaf{dev}
			}
			e, err := New(dev, id, host(t, id), small...)
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, e)
			p := prover(k, e)
			if protected {
				p.Again = 1
			}
			proveOne(t, p, k, 0)
			launches := func() int64 {
				s, err := emulator.Stats()
				if err != nil {
					t.Fatal(err)
				}
				return s.ByCall["cuLaunchKernel"]
			}
			before := launches()
			proveOne(t, p, k, 0)
			n := int(launches() - before)
			refused := 0
			for i := 1; i <= n; i += max(n/15, 1) {
				emulator.Fault("cuLaunchKernel", i, codeNoMemory, false)
				w := k.toy.witness(i)
				r, err := stages.ProveResult(ctx(), p, w)
				emulator.Clear()
				var wrong *stages.VerifyError
				switch {
				case errors.As(err, &wrong):
					refused++
				case err == nil:
					if err := k.vk.Verify(r.Proof, w[1:2]); err != nil {
						t.Errorf("launch %d: a wrong proof was handed over: %v", i, err)
					}
				case protected:
					t.Errorf("launch %d: %v", i, err)
				}
			}
			if (refused == 0) != protected {
				t.Errorf("%d proofs were refused by the verification", refused)
			}
		})
	}
}

// TestWrongKernel: a kernel that computes wrongly is caught by the verification,
// and the proof is made elsewhere.
func TestWrongKernel(t *testing.T) {
	onlyEmulated(t)
	both(t, func(t *testing.T, id curve.ID) {
		if id != curve.BN254 && !*long {
			t.Skip("with -long")
		}
		k := key(t, id, 60, 40, keyKinds["coset folded"])
		e := newEngine(t, id, emulator.Config{})
		for _, kernel := range []string{"g1_accumulate", "ntt_small", "g2_accumulate", "g1_segments"} {
			t.Run(kernel, func(t *testing.T) {
				p := prover(k, e)
				s, err := emulator.Stats()
				if err != nil {
					t.Fatal(err)
				}
				before := s.Corrupted
				caught := false
				for i := range 8 { // a bit of an empty bucket, say, does no harm
					emulator.Corrupt(kernel, 1)
					_, err := stages.ProveResult(ctx(), p, k.toy.witness(i))
					emulator.Clear()
					var wrong *stages.VerifyError
					if caught = errors.As(err, &wrong); caught {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if s, err := emulator.Stats(); err != nil || s.Corrupted == before {
					t.Fatalf("nothing was corrupted (%v), so this test shows nothing", err)
				}
				if !caught {
					t.Error("no wrong result was caught")
				}
				p.Again, p.Elsewhere = 1, []groth16.Arithmetic{host(t, id)}
				emulator.Corrupt(kernel, 1)
				proveOne(t, p, k, 2)
				emulator.Clear()
			})
		}
	})
}

// TestTwoProcesses has two processes prove on one card that is too small for
// both to have all they would like.
func TestTwoProcesses(t *testing.T) {
	onlyEmulated(t)
	id := curve.BN254
	k := key(t, id, 129, 100, keyKinds["coset folded"])
	const child = "SNARKLINE_TEST_CHILD"
	config := func(share string) emulator.Config {
		return emulator.Config{Cards: []emulator.Card{{Total: 5 * alloc.MiB}}, Share: share}
	}
	if share := os.Getenv(child); share != "" {
		e := newEngine(t, id, config(share))
		p := prover(k, e)
		p.Again = 8
		batch(t, p, k, 4, stages.BatchOptions{Retry: 8})
		return
	}
	share := filepath.Join(t.TempDir(), "card")
	e := newEngine(t, id, config(share))
	c, cancel := context.WithCancel(ctx())
	defer cancel()
	cmd := exec.CommandContext(c, os.Args[0], "-test.run=^TestTwoProcesses$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+share)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := prover(k, e)
	p.Again = 8
	err := tryBatch(p, k, 4, stages.BatchOptions{Retry: 8})
	if cerr := cmd.Wait(); cerr != nil {
		t.Errorf("the other process: %v\n%s", cerr, out.String())
	}
	if err != nil {
		t.Error(err)
	}
}

// TestTablesForgottenInUse: tables that an operation makes after a reset of
// somebody else's had them forgotten go with it.
func TestTablesForgottenInUse(t *testing.T) {
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	d, err := groth16.NewDomain(id, 8, curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	ntt, err := e.loadNTT()
	if err != nil {
		t.Fatal(err)
	}
	k := tableKey{d, curve.Coset}
	tab, missing := e.tables.hold(k, aligned(ntt.TableBytes(d, curve.Coset)))
	e.forget()
	err = e.run(ctx(), scope(), &op{name: "test", least: missing, most: missing, body: func(t *task) error {
		_, err := e.tables.use(t, ntt, k, tab)
		return err
	}})
	e.tables.letGo(k, tab)
	if err != nil {
		t.Fatal(err)
	}
	if now := left(t, e); now.Device != 0 || now.granted != 0 {
		t.Errorf("tables that nobody can find are left: %+v", now)
	}
}
