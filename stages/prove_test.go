package stages_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	gnark "github.com/consensys/gnark/backend/groth16"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// TestProofs proves on both curves, in every form of key, with a witness of
// mostly bits and a dense one, split and whole. With the same r and s the proof
// is that of the arithmetic's methods called one after another.
func TestProofs(t *testing.T) {
	for _, id := range curve.All() {
		for name, o := range map[string]groth16.SetupOptions{
			"coset folded": folded,
			"coset":        {Basis: curve.Coset},
			"monomial":     {Basis: curve.Monomial},
		} {
			for _, bits := range []int{0, 50} {
				t.Run(fmt.Sprintf("%v/%s/%d bits", id, name, bits), func(t *testing.T) {
					p, toy := newProver(t, id, 64, bits, o)
					leakFree(t)
					var first *groth16.Proof
					for _, ones := range []float64{-1, 0, 2} {
						q := *p
						q.MinOnes, q.Rand = ones, stream("r and s")
						r, err := stages.ProveResult(context.Background(), &q, toy.witness(5))
						if err != nil {
							t.Fatal(err)
						}
						if first == nil {
							first, err = groth16.ProveDirect(context.Background(), p.Key, p.Circuit, p.Arith, toy.witness(5), stream("r and s"))
							if err != nil {
								t.Fatal(err)
							}
						}
						if !reflect.DeepEqual(r.Proof, first) {
							t.Errorf("MinOnes %v gives another proof than the methods called directly", ones)
						}
						if n := r.Counts[0] + r.Counts[1] + r.Counts[2]; n != p.Key.NbWires {
							t.Errorf("%d wires were classified, there are %d", n, p.Key.NbWires)
						}
						if len(r.Public) != 1 || r.Public[0] != toy.witness(5)[1] {
							t.Errorf("public inputs are %v", r.Public)
						}
						if r.Staged == "" {
							t.Error("prestage does not say what it did")
						}
					}
					judge(t, p.VK, first, []curve.Scalar{toy.witness(5)[1]})
				})
			}
		}
	}
}

// judge asks gnark whether the proof is valid, and whether it is for another
// public input.
func judge(t *testing.T, vk *groth16.VerifyingKey, proof *groth16.Proof, public []curve.Scalar) {
	t.Helper()
	if _, err := groth16.ToGnarkProof(proof); err != nil {
		t.Fatal(err)
	}
	if err := vk.Verify(proof, public); err != nil {
		t.Errorf("the proof is refused: %v", err)
	}
	public[0][0] ^= 1
	if err := vk.Verify(proof, public); !errors.Is(err, groth16.ErrInvalidProof) {
		t.Errorf("the proof of another statement: %v", err)
	}
}

var _ gnark.Proof // the verification of groth16 is gnark's

func TestFreshBlinding(t *testing.T) {
	p, toy := small(t)
	a, err := stages.Prove(context.Background(), p, toy.witness(1))
	if err != nil {
		t.Fatal(err)
	}
	b, err := stages.Prove(context.Background(), p, toy.witness(1))
	if err != nil {
		t.Fatal(err)
	}
	if a.A == b.A || a.B == b.B || a.C == b.C {
		t.Error("two proofs of the same statement share a point: r and s are not fresh")
	}
}

func TestManyAtOnce(t *testing.T) {
	p, toy := small(t)
	leakFree(t)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			w := toy.witness(i)
			proof, err := stages.Prove(context.Background(), p, w)
			if err != nil {
				t.Errorf("prover %d: %v", i, err)
				return
			}
			if err := p.VK.Verify(proof, w[1:2]); err != nil {
				t.Errorf("proof %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestBatch(t *testing.T) {
	p, toy := small(t)
	leakFree(t)
	const n = 40
	set, err := pipeline.ParseSettings("synthesize.workers=3", "ntt.capacity=2", "tail-msm.workers=2")
	if err != nil {
		t.Fatal(err)
	}
	out, report, err := collect(t, context.Background(), p, toy.jobs(n), stages.BatchOptions{Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := out[i]
		if r == nil {
			t.Fatalf("no proof of part %d", i)
		}
		if err := p.VK.Verify(r.Proof, toy.witness(i)[1:2]); err != nil {
			t.Errorf("part %d: %v", i, err)
		}
	}
	for _, name := range stages.Names() {
		if got := stageReport(t, report, name).Items; got != n {
			t.Errorf("stage %s had %d items, want %d", name, got, n)
		}
	}
}

func TestWrongWitness(t *testing.T) {
	p, toy := small(t)
	leakFree(t)
	w := toy.witness(3)
	w[3] = scalar(toy.id, toy.id.FieldModulus()) // no bit
	_, err := stages.Prove(context.Background(), p, w)
	var at *pipeline.StageError
	if !errors.As(err, &at) || at.Stage != stages.NameSynthesize || !errors.Is(err, groth16.ErrUnsatisfied) {
		t.Errorf("a wrong witness: %v", err)
	}
	// Without the search at synthesis, the verification refuses the proof.
	q := *p
	q.NoCheck = true
	_, err = stages.Prove(context.Background(), &q, w)
	var refused *stages.VerifyError
	if !errors.As(err, &refused) {
		t.Errorf("a wrong witness that nobody checked: %v", err)
	}
}

// vkOf is a copy of p's verifying key, for a test to change.
func vkOf(p *stages.Prover) *groth16.VerifyingKey {
	vk := p.VK
	return &groth16.VerifyingKey{
		Curve: vk.Curve, Alpha1: vk.Alpha1, Beta1: vk.Beta1, Delta1: vk.Delta1,
		Beta2: vk.Beta2, Gamma2: vk.Gamma2, Delta2: vk.Delta2, IC: slices.Clone(vk.IC),
	}
}

func TestProverCheck(t *testing.T) {
	p, _ := small(t)
	other, _ := newProver(t, curve.BLS12381, 64, 40, folded)
	again, _ := newProver(t, curve.BN254, 64, 39, folded)
	with := func(change func(vk *groth16.VerifyingKey)) func(*stages.Prover) {
		return func(q *stages.Prover) {
			q.VK = vkOf(q)
			change(q.VK)
		}
	}
	for name, spoil := range map[string]func(q *stages.Prover){
		"no key":        func(q *stages.Prover) { q.Key = nil },
		"no circuit":    func(q *stages.Prover) { q.Circuit = nil },
		"no arithmetic": func(q *stages.Prover) { q.Arith = nil },
		"no vk":         func(q *stages.Prover) { q.VK = nil },
		"other vk":      func(q *stages.Prover) { q.VK = other.VK },
		"other engine":  func(q *stages.Prover) { q.Arith = other.Arith },
		"other circuit": func(q *stages.Prover) { q.Circuit = newToy(curve.BN254, 100, 10).r1cs },
		"other curve":   func(q *stages.Prover) { q.Circuit = other.Circuit },
		"other set-up":  func(q *stages.Prover) { q.VK = again.VK },
		"other counts":  with(func(vk *groth16.VerifyingKey) { vk.IC = append(vk.IC, vk.IC[0]) }),
		"commitments": with(func(vk *groth16.VerifyingKey) {
			vk.IC, vk.Committed = append(vk.IC, vk.IC[0]), [][]int{{}}
			vk.Commitments = make([]groth16.CommitmentVerifyingKey, 1)
		}),
		"other alpha": with(func(vk *groth16.VerifyingKey) { vk.Alpha1 = again.VK.Alpha1 }),
		"other beta":  with(func(vk *groth16.VerifyingKey) { vk.Beta2 = again.VK.Beta2 }),
		"other delta": with(func(vk *groth16.VerifyingKey) { vk.Delta2 = again.VK.Delta2 }),
		"other beta1": with(func(vk *groth16.VerifyingKey) { vk.Beta1 = again.VK.Beta1 }),
	} {
		q := *p
		spoil(&q)
		if err := q.Check(); err == nil {
			t.Errorf("%s: a prover that cannot prove passes the check", name)
		}
		if _, err := stages.Prove(context.Background(), &q, nil); err == nil {
			t.Errorf("%s: it proves", name)
		}
	}
	q := *p
	q.VK, q.NoVerify = nil, true
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	// snarkjs's verification_key.json holds neither β₁ nor δ₁.
	q = *p
	with(func(vk *groth16.VerifyingKey) { vk.Beta1, vk.Delta1 = curve.G1{}, curve.G1{} })(&q)
	if err := q.Check(); err != nil {
		t.Errorf("a verifying key without β₁ and δ₁: %v", err)
	}
}

// TestWrongVerifyingKey: keys that Check cannot tell apart give a proof that
// does not verify; a key that is broken in itself gives no judgement on it.
func TestWrongVerifyingKey(t *testing.T) {
	p, toy := small(t)
	leakFree(t)
	q := *p
	q.VK = vkOf(p)
	q.VK.IC[0], q.VK.IC[1] = q.VK.IC[1], q.VK.IC[0]
	_, err := stages.Prove(context.Background(), &q, toy.witness(0))
	var refused *stages.VerifyError
	if !errors.As(err, &refused) || !errors.Is(err, groth16.ErrInvalidProof) {
		t.Errorf("a verifying key of another circuit: %v", err)
	}
	q.VK = vkOf(p)
	q.VK.IC[1][0] ^= 1
	_, err = stages.Prove(context.Background(), &q, toy.witness(0))
	if err == nil || errors.As(err, &refused) || errors.Is(err, groth16.ErrInvalidProof) {
		t.Errorf("a verifying key with a point off the curve: %v", err)
	}
}
