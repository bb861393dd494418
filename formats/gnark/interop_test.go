package gnark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	gnark "github.com/consensys/gnark/backend/groth16"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// With gnark's key and with ours of every kind: our proofs pass gnark's
// verifier, gnark's proofs pass ours, on both curves.
func TestProofsBothWays(t *testing.T) {
	for _, id := range curve.All() {
		for _, s := range samples() {
			t.Run(fmt.Sprintf("%v/%s", id, s.name), func(t *testing.T) {
				noLeak(t)
				ccs := compile(t, id, s.circuit)
				w, public := full(t, id, s.value)
				c := newCircuit(t, ccs)
				if c.Serial() != s.serial {
					t.Errorf("serial: %v", c.Serial())
				}
				both := func(key *groth16.ProvingKey, vk *groth16.VerifyingKey) *groth16.Proof {
					t.Helper()
					p, err := groth16.ProveDirect(t.Context(), key, c, engine(t, id), w, nil)
					if err != nil {
						t.Fatal(err)
					}
					if err := vk.Verify(p, public); err != nil {
						t.Fatalf("ours: %v", err)
					}
					if err := gnarkVerify(t, id, vk, p, w); err != nil {
						t.Fatalf("gnark: %v", err)
					}
					return p
				}

				gpk, gvk, err := gnark.Setup(ccs)
				if err != nil {
					t.Fatal(err)
				}
				key, err := FromGnarkProvingKey(t.Context(), gpk, ccs)
				if err != nil {
					t.Fatal(err)
				}
				closes(t, key)
				if err := key.Validate(t.Context(), groth16.CheckSubgroup); err != nil {
					t.Fatal(err)
				}
				vk, err := groth16.FromGnarkVerifyingKey(gvk)
				if err != nil {
					t.Fatal(err)
				}
				both(key, vk)
				theirs, err := gnark.Prove(ccs, gpk, w)
				if err != nil {
					t.Fatal(err)
				}
				p, err := groth16.FromGnarkProof(theirs)
				if err != nil {
					t.Fatal(err)
				}
				if err := vk.Verify(p, public); err != nil {
					t.Fatalf("gnark's proof: %v", err)
				}

				r, err := R1CSFromGnark(ccs)
				if err != nil {
					t.Fatal(err)
				}
				// Seconds for a large circuit, which would show nothing new.
				if r.NbConstraints() <= 64 {
					folded, err := groth16.Fold(t.Context(), key, r, groth16.FoldOptions{})
					if err != nil {
						t.Fatal(err)
					}
					both(folded, vk)
					if err := folded.Close(); err != nil {
						t.Error(err)
					}
				}

				for _, o := range []groth16.SetupOptions{
					{Basis: curve.Coset, Folded: true}, {Basis: curve.Coset}, {Basis: curve.Monomial, Folded: true}, {Basis: curve.Monomial},
				} {
					key, vk, err := groth16.UnsafeSetup(t.Context(), r, o)
					if err != nil {
						t.Fatal(err)
					}
					closes(t, key)
					both(key, vk)
					if o.Basis != curve.Monomial || o.Folded {
						if _, err := ToGnarkProvingKey(key); err == nil {
							t.Error("gnark has no such key")
						}
						continue
					}
					// Our key in gnark's prover.
					gpk, err := ToGnarkProvingKey(key)
					if err != nil {
						t.Fatal(err)
					}
					theirs, err := gnark.Prove(ccs, gpk, w)
					if err != nil {
						t.Fatal(err)
					}
					p, err := groth16.FromGnarkProof(theirs)
					if err != nil {
						t.Fatal(err)
					}
					if err := vk.Verify(p, public); err != nil {
						t.Fatalf("gnark's proof with our key: %v", err)
					}
				}
			})
		}
	}
}

func TestUnsatisfied(t *testing.T) {
	noLeak(t)
	for _, id := range curve.All() {
		for _, s := range samples() {
			if s.junk == nil {
				continue
			}
			ccs := compile(t, id, s.circuit)
			r, err := R1CSFromGnark(ccs)
			if err != nil {
				t.Fatal(err)
			}
			key, _, err := groth16.UnsafeSetup(t.Context(), r, groth16.SetupOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w, _ := full(t, id, s.junk)
			_, err = groth16.ProveDirect(t.Context(), key, newCircuit(t, ccs), engine(t, id), w, nil)
			var u *groth16.UnsatisfiedError
			if !errors.As(err, &u) || !errors.Is(err, groth16.ErrUnsatisfied) || (u.Row < 0) != s.refused || u.Row >= ccs.GetNbConstraints() {
				t.Errorf("%v/%s: %v", id, s.name, err)
			}
			_ = key.Close()
		}
	}
}

// Many goroutines prove with one key and one circuit, stateful or not.
func TestSolveAtOnce(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	for _, s := range samples()[4:7] {
		ccs := compile(t, id, s.circuit)
		r, err := R1CSFromGnark(ccs)
		if err != nil {
			t.Fatal(err)
		}
		key, vk, err := groth16.UnsafeSetup(t.Context(), r, groth16.SetupOptions{Folded: true})
		if err != nil {
			t.Fatal(err)
		}
		closes(t, key)
		c := newCircuit(t, ccs)
		_, public := full(t, id, s.value)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				p, err := groth16.ProveDirect(t.Context(), key, c, engine(t, id), s.value, nil)
				if err == nil {
					err = vk.Verify(p, public)
				}
				if err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
			})
		}
		wg.Wait()
	}
}

func TestSynthesizeRefuses(t *testing.T) {
	noLeak(t)
	id := curve.BLS12381
	ccs := compile(t, id, &ranged{})
	c := newCircuit(t, ccs)
	d, err := groth16.NewDomain(id, c.NbConstraints(), curve.Coset)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := full(t, id, samples()[4].value)
	other, _ := full(t, curve.BN254, samples()[4].value)
	small := d
	small.Log = 1
	sc := alloc.NewScope(alloc.StageOf("test"), alloc.Host, nil)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, try := range map[string]func() (*groth16.Assignment, error){
		"no commitment keys": func() (*groth16.Assignment, error) {
			return c.Synthesize(t.Context(), sc, w, groth16.Want{Domain: d})
		},
		"other curve": func() (*groth16.Assignment, error) {
			return c.Synthesize(t.Context(), sc, other, groth16.Want{Domain: d})
		},
		"no witness": func() (*groth16.Assignment, error) {
			return c.Synthesize(t.Context(), sc, 7, groth16.Want{Domain: d})
		},
		"another circuit's": func() (*groth16.Assignment, error) {
			return c.Synthesize(t.Context(), sc, &hinted{X: 1, Y: 1}, groth16.Want{Domain: d})
		},
		"not assigned": func() (*groth16.Assignment, error) {
			return c.Synthesize(t.Context(), sc, &ranged{}, groth16.Want{Domain: d})
		},
		"small domain": func() (*groth16.Assignment, error) {
			return c.Synthesize(t.Context(), sc, w, groth16.Want{Domain: small})
		},
		"canceled": func() (*groth16.Assignment, error) {
			return c.Synthesize(canceled, sc, w, groth16.Want{Domain: d})
		},
	} {
		if a, err := try(); err == nil {
			a.Release()
			t.Errorf("%s: no error", name)
		}
	}
}

// A budget of exactly what Footprint and AssignmentBytes say is enough.
func TestFootprint(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	circuit, value := chainOf(1000, 1)
	c := newCircuit(t, compile(t, id, circuit))
	for _, full := range []bool{false, true} {
		d, err := groth16.NewDomain(id, c.NbConstraints(), curve.Coset)
		if err != nil {
			t.Fatal(err)
		}
		want := groth16.Want{Domain: d, C: full}
		need := c.Footprint(want).Add(groth16.AssignmentBytes(c, want))
		b := alloc.NewBudget(need)
		r, err := b.Reserve(t.Context(), need)
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Synthesize(t.Context(), alloc.NewScope(alloc.StageOf("test"), alloc.Host, r), value, want)
		if err != nil {
			t.Fatal(err)
		}
		a.Release()
		r.Close()
	}
}
