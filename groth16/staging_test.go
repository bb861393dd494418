package groth16

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// ownStaging is an arithmetic that is a Staging by itself.
type ownStaging struct{ Staging }

func TestStagingOf(t *testing.T) {
	ar := engine(t, curve.BN254)
	st := StagingOf(ar)
	if st.Name() != ar.Name() || st.Curve() != curve.BN254 {
		t.Error("the adapter is another processor")
	}
	own := ownStaging{st}
	if StagingOf(own) != Staging(own) {
		t.Error("a Staging is wrapped")
	}
}

// plus is p + q.
func plus(id curve.ID, p, q curve.G1) curve.G1 {
	if id == curve.BN254 {
		a := (*bn.G1Affine)(unsafe.Pointer(&p))
		a.Add(a, (*bn.G1Affine)(unsafe.Pointer(&q)))
	} else {
		a := (*bls.G1Affine)(unsafe.Pointer(&p))
		a.Add(a, (*bls.G1Affine)(unsafe.Pointer(&q)))
	}
	return p
}

// parts runs a job through a Staging step by step, as the stages do, and gives
// its sums.
func parts(t *testing.T, st Staging, key *ProvingKey, a *Assignment, whole bool) (s Sums) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.B2, err = st.SumB2(ctx, nil, key.B2, a.W)
	must(err)
	split, counts, err := st.Split(ctx, nil, a.W)
	must(err)
	if counts[0]+counts[1]+counts[2] != key.NbWires {
		t.Errorf("%v of %d wires", counts, key.NbWires)
	}
	qs := []curve.Query{key.L, key.A, key.B1}
	to := []*curve.G1{&s.L, &s.A, &s.B1}
	ones := make([]curve.G1, len(qs))
	for i, q := range qs {
		if !whole {
			ones[i], err = st.SumOnes(ctx, nil, q, split)
			must(err)
		}
	}
	others, err := st.Others(ctx, nil, split, whole, qs...)
	must(err)
	releaseHeld(split) // what Others made outlives it
	for i, q := range qs {
		sum, err := st.SumOthers(ctx, nil, q, others)
		must(err)
		*to[i] = plus(key.Curve, sum, ones[i])
	}
	releaseHeld(others)

	v, err := st.Prestage(ctx, nil, key.Domain, key.Basis, a.A, a.B, a.C)
	must(err)
	h, err := st.QuotientOf(ctx, nil, v)
	must(err)
	releaseHeld(v)
	s.H, err = st.SumH(ctx, nil, key.H, h)
	must(err)
	releaseHeld(h)
	return s
}

// TestStagingGivesTheSameSums: the host's adapter, step by step, against the
// methods of the arithmetic in one go.
func TestStagingGivesTheSameSums(t *testing.T) {
	for _, id := range curve.All() {
		for i, o := range kinds {
			noLeak(t)
			r, w := makeCircuit(t, shape{curve: id, rows: 33, public: 2}, uint64(i))
			key, vk := setUp(t, r, o)
			ar := engine(t, id)
			for _, whole := range []bool{false, true} {
				a, err := r.Synthesize(t.Context(), nil, w, key.Want(ar))
				if err != nil {
					t.Fatal(err)
				}
				sums := parts(t, StagingOf(ar), key, a, whole)
				p, err := Assemble(key, &sums, a, nil)
				a.Release()
				if err != nil {
					t.Fatal(err)
				}
				if err := vk.Verify(p, w[1:3]); err != nil {
					t.Errorf("%v, %+v, whole %v: %v", id, o, whole, err)
				}
			}
		}
	}
}

// stubborn is an arithmetic whose methods fail from the n-th call on.
type stubborn struct {
	Arithmetic
	left int
}

var errStubborn = errors.New("stubborn")

func (s *stubborn) fail() error {
	if s.left--; s.left < 0 {
		return errStubborn
	}
	return nil
}

func (s *stubborn) Classify(ctx context.Context, w []curve.Scalar, out []curve.Class) (curve.Counts, error) {
	if err := s.fail(); err != nil {
		return curve.Counts{}, err
	}
	return s.Arithmetic.Classify(ctx, w, out)
}

func (s *stubborn) Tail(ctx context.Context, q curve.Query, classes []curve.Class, out []uint32) (int, error) {
	if err := s.fail(); err != nil {
		return 0, err
	}
	return s.Arithmetic.Tail(ctx, q, classes, out)
}

// TestStagingFreesOnErrors: what the adapter has made is gone when it fails, and
// the references on its arguments are as they were.
func TestStagingFreesOnErrors(t *testing.T) {
	noLeak(t)
	r, w := makeCircuit(t, shape{curve: curve.BN254, rows: 20, public: 1}, 1)
	key, _ := setUp(t, r, SetupOptions{Basis: curve.Coset, Folded: true})
	ar := engine(t, curve.BN254)
	a, err := r.Synthesize(t.Context(), nil, w, key.Want(ar))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	for left := range 5 {
		st := StagingOf(&stubborn{ar, left})
		split, _, err := st.Split(t.Context(), nil, a.W)
		if left == 0 {
			if !errors.Is(err, errStubborn) {
				t.Errorf("classify: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		others, err := st.Others(t.Context(), nil, split, false, key.L, key.A, key.B1)
		if left < 4 {
			if !errors.Is(err, errStubborn) || others != nil {
				t.Errorf("pick after %d: %v", left, err)
			}
		} else {
			releaseHeld(others)
		}
		releaseHeld(split)
		if n := a.W.Refs(); n != 1 {
			t.Fatalf("%d references on the witness", n)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := StagingOf(ar).Prestage(done, nil, key.Domain, key.Basis, a.A, a.B, nil); !errors.Is(err, context.Canceled) || a.A.Refs() != 1 {
		t.Errorf("prestage after the end: %v", err)
	}
}

// TestStagingRefusesOthersHelds: a Held of somebody else's making, or of another
// step, is an error and no panic.
func TestStagingRefusesOthersHelds(t *testing.T) {
	noLeak(t)
	r, w := makeCircuit(t, shape{curve: curve.BN254, rows: 20, public: 1}, 1)
	key, _ := setUp(t, r, SetupOptions{Basis: curve.Coset, Folded: true})
	ar := engine(t, curve.BN254)
	st := StagingOf(ar)
	a, err := r.Synthesize(t.Context(), nil, w, key.Want(ar))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	ctx := t.Context()
	v, err := st.Prestage(ctx, nil, key.Domain, key.Basis, a.A, a.B, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseHeld(v)
	split, _, err := st.Split(ctx, nil, a.W)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseHeld(split)
	others, err := st.Others(ctx, nil, split, false, key.L)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseHeld(others)
	_, e1 := st.QuotientOf(ctx, nil, split)
	_, e2 := st.SumH(ctx, nil, key.H, v)
	_, e3 := st.SumOnes(ctx, nil, key.A, others)
	_, e4 := st.Others(ctx, nil, others, true)
	_, e5 := st.SumOthers(ctx, nil, key.A, split)
	_, e6 := st.SumOthers(ctx, nil, key.A, others)
	h, err := st.QuotientOf(ctx, nil, v)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseHeld(h)
	_, e7 := st.QuotientOf(ctx, nil, h)
	long := key.H
	long.Data = append(append([]byte(nil), long.Data...), long.Data...)
	_, e8 := st.SumH(ctx, nil, long, h)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8} {
		if err == nil {
			t.Errorf("call %d takes what is not its own", i+1)
		}
	}
	for _, held := range []Held{v, split, others, h} {
		if held.String() == "" {
			t.Errorf("a %T does not say where it is", held)
		}
	}
}

// TestLoad: what a key says of its jobs, and what the adapter makes of it.
func TestLoad(t *testing.T) {
	r, _ := makeCircuit(t, shape{curve: curve.BN254, rows: 20, public: 1}, 1)
	key, _ := setUp(t, r, SetupOptions{Basis: curve.Coset, Folded: true})
	l := key.Load()
	if l.Domain != key.Domain || l.Basis != key.Basis || !l.Folded || l.Wires != key.NbWires || l.H != key.H.Len() ||
		l.L != key.L.Len() || l.A != key.A.Len() || l.B1 != key.B1.Len() || l.B2 != key.B2.Len() {
		t.Errorf("%+v", l)
	}
	n := StagingOf(engine(t, curve.BN254)).Needs(l)
	if n.CopiesABC || n.CopiesW || !n.A.IsZero() || !n.BC.IsZero() || n.Wires != alloc.HostBytes(4*int64(l.L+l.A+l.B1)) {
		t.Errorf("the host needs %+v", n)
	}
}
