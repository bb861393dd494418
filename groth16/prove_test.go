package groth16

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/logger"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

func TestMain(m *testing.M) {
	logger.Disable()
	m.Run()
}

var kinds = []SetupOptions{
	{Basis: curve.Coset}, {Basis: curve.Coset, Folded: true},
	{Basis: curve.Monomial}, {Basis: curve.Monomial, Folded: true},
}

// gnarkVerify asks gnark's own verifier through its public face.
func gnarkVerify(t *testing.T, vk *VerifyingKey, p *Proof, public []curve.Scalar) error {
	t.Helper()
	gvk, err := ToGnarkVerifyingKey(vk)
	if err != nil {
		t.Fatal(err)
	}
	gp, err := ToGnarkProof(p)
	if err != nil {
		t.Fatal(err)
	}
	w, err := witness.New(vk.Curve.ScalarModulus())
	if err != nil {
		t.Fatal(err)
	}
	values := make(chan any)
	go func() {
		defer close(values)
		for i := range public {
			values <- plain(t, vk.Curve, public[i])
		}
	}()
	if err := w.Fill(len(public), 0, values); err != nil {
		t.Fatal(err)
	}
	return gnark.Verify(gp, gvk, w)
}

func TestProveEveryKindOfKey(t *testing.T) {
	for _, id := range curve.All() {
		for i, s := range []shape{
			{rows: 1}, {rows: 2, public: 1}, {rows: 3}, {rows: 7, public: 2}, {rows: 8, public: 2}, {rows: 9, public: 2},
			{rows: 31, public: 5, same: true}, {rows: 32}, {rows: 33, public: 1}, {rows: 20, public: 4, inputRows: true},
			{rows: 16, inputRows: true}, {rows: 30, public: 3, zeros: true}, {rows: 127, public: 1}, {rows: 128}, {rows: 129, public: 182, inputRows: true},
		} {
			s.curve = id
			t.Run(fmt.Sprintf("%v/%+v", id, s), func(t *testing.T) {
				noLeak(t)
				r, w := makeCircuit(t, s, uint64(i))
				public := []curve.Scalar(w[1 : 1+s.public])
				for _, o := range kinds {
					key, vk := setUp(t, r, o)
					p, err := ProveDirect(t.Context(), key, r, engine(t, id), w, nil)
					if err != nil {
						t.Fatalf("%+v: %v", o, err)
					}
					if err := vk.Verify(p, public); err != nil {
						t.Fatalf("%+v: %v", o, err)
					}
					if err := gnarkVerify(t, vk, p, public); err != nil {
						t.Fatalf("%+v: gnark: %v", o, err)
					}
					if err := vk.Verify(p, append([]curve.Scalar{}, public...)); err != nil {
						t.Fatal(err)
					}
					if s.public > 0 && !s.zeros {
						other := append([]curve.Scalar{}, public...)
						other[0][0] ^= 1
						if err := vk.Verify(p, other); !errors.Is(err, ErrInvalidProof) {
							t.Fatalf("another public input: %v", err)
						}
					}
				}
			})
		}
	}
}

// The basis and the folding of a key change how the sums are made, not what they are.
func TestFoldedProofIsTheSameElement(t *testing.T) {
	for _, id := range curve.All() {
		for _, basis := range []curve.Basis{curve.Coset, curve.Monomial} {
			for _, rows := range []int{1, 2, 30, 64, 100} {
				t.Run(fmt.Sprintf("%v/%v/%d", id, basis, rows), func(t *testing.T) {
					noLeak(t)
					r, w := makeCircuit(t, shape{curve: id, rows: rows, public: 2, inputRows: basis == curve.Coset}, 5)
					key, vk := setUp(t, r, SetupOptions{Basis: basis})
					var last, total atomic.Int64
					folded, err := Fold(t.Context(), key, r, FoldOptions{Progress: func(d, n int) {
						total.Store(int64(n))
						for old := last.Load(); int64(d) > old && !last.CompareAndSwap(old, int64(d)); old = last.Load() {
						}
					}})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = folded.Close() }()
					if last.Load() != total.Load() {
						t.Errorf("progress ends at %d of %d", last.Load(), total.Load())
					}
					if err := folded.Validate(t.Context(), CheckSubgroup); err != nil {
						t.Fatal(err)
					}
					var proofs []*Proof
					for _, k := range []*ProvingKey{key, folded} {
						p, err := ProveDirect(t.Context(), k, r, engine(t, id), w, &counter{})
						if err != nil {
							t.Fatal(err)
						}
						if err := vk.Verify(p, w[1:3]); err != nil {
							t.Fatal(err)
						}
						proofs = append(proofs, p)
					}
					if proofs[0].A != proofs[1].A || proofs[0].B != proofs[1].B || proofs[0].C != proofs[1].C {
						t.Error("the folded key gives another proof")
					}
				})
			}
		}
	}
}

// A key whose ceremony had no power to spare leaves the top point of H out.
func TestFoldWithoutTheTopPower(t *testing.T) {
	id := curve.BLS12381
	r, w := makeCircuit(t, shape{curve: id, rows: 16, public: 1}, 3)
	key, vk := setUp(t, r, SetupOptions{Basis: curve.Monomial})
	if key.H.Len() != 15 {
		t.Fatalf("gnark's keys have n − 1 points, this one %d of 16", key.H.Len())
	}
	folded, err := Fold(t.Context(), key, r, FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folded.Close() }()
	p, err := ProveDirect(t.Context(), folded, r, engine(t, id), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := vk.Verify(p, w[1:2]); err != nil {
		t.Fatal(err)
	}
}

func TestSynthesizeNamesTheUnsatisfiedConstraint(t *testing.T) {
	noLeak(t)
	for _, id := range curve.All() {
		r, w := makeCircuit(t, shape{curve: id, rows: 40, public: 2, inputRows: true}, 9)
		d, err := NewDomain(id, r.NbConstraints(), curve.Coset)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []bool{false, true} {
			// The last wire of row 25 is in no earlier row.
			bad := append(Witness{}, w...)
			row := 25
			wire := len(w) - 40 + row
			bad[wire][0] ^= 1
			_, err := r.Synthesize(t.Context(), alloc.NewScope(alloc.StageOf("test"), alloc.Host, nil), bad, Want{Domain: d, C: c, Check: true, Arithmetic: engine(t, id)})
			var u *UnsatisfiedError
			if !errors.As(err, &u) || u.Row != row || !errors.Is(err, ErrUnsatisfied) {
				t.Errorf("want row %d, got %v", row, err)
			}
		}
	}
}

func TestSynthesizeRefusesTheWrongInput(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	r, w := makeCircuit(t, shape{curve: id, rows: 4, public: 1}, 1)
	d, _ := NewDomain(id, 4, curve.Coset)
	sc := alloc.NewScope(alloc.StageOf("test"), alloc.Host, nil)
	want := Want{Domain: d, Check: true, Arithmetic: engine(t, id)}
	bad := append(Witness{}, w...)
	bad[0] = curve.Scalar{}
	other, small := want, want
	other.Arithmetic = engine(t, curve.BLS12381)
	small.Domain.Log = 1
	for _, c := range []struct {
		name  string
		input any
		want  Want
	}{
		{"w[0] is 0", bad, want}, {"short", w[1:], want}, {"no witness", "x", want}, {"nil", nil, want},
		{"other curve", w, other}, {"small domain", w, small}, {"no arithmetic", w, Want{Domain: d}},
	} {
		if a, err := r.Synthesize(t.Context(), sc, c.input, c.want); err == nil {
			a.Release()
			t.Errorf("%s: no error", c.name)
		}
	}
	if a, err := r.Synthesize(t.Context(), sc, []curve.Scalar(w), want); err != nil {
		t.Error(err)
	} else {
		if got := a.W.Bytes() + a.A.Bytes() + a.B.Bytes(); alloc.HostBytes(got) != AssignmentBytes(r, want) {
			t.Errorf("%d bytes, AssignmentBytes says %v", got, AssignmentBytes(r, want))
		}
		a.Release()
	}
}
