package groth16

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// A proof of a random circuit with a random kind of key verifies, for its own
// inputs only, and a witness with a wrong wire is caught or harmless.
func TestRandomCircuits(t *testing.T) {
	noLeak(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{
			curve:     rapid.SampledFrom(curve.All()).Draw(rt, "curve"),
			rows:      rapid.IntRange(1, 40).Draw(rt, "rows"),
			public:    rapid.IntRange(0, 5).Draw(rt, "public"),
			inputRows: rapid.Bool().Draw(rt, "input rows"),
		}
		r, w := makeCircuit(t, s, rapid.Uint64().Draw(rt, "seed"))
		o := rapid.SampledFrom(kinds).Draw(rt, "kind")
		key, vk, err := UnsafeSetup(t.Context(), r, o)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = key.Close() }()
		ar := engine(t, s.curve)
		p, err := ProveDirect(t.Context(), key, r, ar, w, nil)
		if err != nil {
			rt.Fatal(err)
		}
		public := append([]curve.Scalar{}, w[1:1+s.public]...)
		if err := vk.Verify(p, public); err != nil {
			rt.Fatal(err)
		}
		f, _ := backendOf(s.curve)
		at := rapid.IntRange(1, len(w)-1).Draw(rt, "wire")
		w[at] = f.Add(w[at], f.One())
		if at <= s.public {
			public[at-1] = w[at]
			// Without rows of their own, inputs that no constraint names have
			// IC at infinity, and any value of theirs is proved.
			if err := vk.Verify(p, public); err == nil && !vk.IC[at].IsInfinity() {
				rt.Fatal("another public input passes")
			}
		}
		p, err = ProveDirect(t.Context(), key, r, ar, w, nil)
		switch {
		case errors.Is(err, ErrUnsatisfied):
		case err != nil:
			rt.Fatal(err)
		default: // no constraint depends on the wire
			if err := vk.Verify(p, public); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// A set-up, a folding and a synthesis that are cancelled leave nothing behind.
func TestCancelled(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	r, w := makeCircuit(t, shape{curve: id, rows: 64, public: 1}, 2)
	key, _ := setUp(t, r, SetupOptions{Basis: curve.Monomial})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := UnsafeSetup(ctx, r, SetupOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("set-up: %v", err)
	}
	if _, err := Fold(ctx, key, r, FoldOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("fold: %v", err)
	}
	if _, err := ProveDirect(ctx, key, r, engine(t, id), w, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("prove: %v", err)
	}
	if err := key.Validate(ctx, CheckSubgroup); !errors.Is(err, context.Canceled) {
		t.Errorf("validate: %v", err)
	}
}

// Without memory, an error and nothing left.
func TestNoMemory(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	r, w := makeCircuit(t, shape{curve: id, rows: 64, public: 1}, 2)
	key, _ := setUp(t, r, SetupOptions{Basis: curve.Monomial})
	full := alloc.HostBytes(64 * alloc.MiB)
	for _, limit := range []int64{0, 100, 3000, 5000, 20000, 200000, 2 << 20} {
		b := alloc.NewBudget(full)
		res, err := b.Reserve(t.Context(), alloc.HostBytes(max(limit, 1)))
		if err != nil {
			t.Fatal(err)
		}
		ctx := alloc.WithScope(t.Context(), alloc.NewScope(alloc.StageOf("test"), alloc.Host, res))
		if k, _, err := UnsafeSetup(ctx, r, SetupOptions{}); err == nil {
			_ = k.Close()
		}
		if k, err := Fold(ctx, key, r, FoldOptions{}); err == nil {
			_ = k.Close()
		}
		if _, err := ProveDirect(ctx, key, r, engine(t, id), w, nil); err == nil && limit < 1000 {
			t.Error("proved without memory")
		}
		res.Close()
	}
}

func TestSetupRefuses(t *testing.T) {
	id := curve.BLS12381
	good, _ := makeCircuit(t, shape{curve: id, rows: 4, public: 1}, 2)
	for name, change := range map[string]func(r *R1CS, o *SetupOptions){
		"no C":           func(r *R1CS, _ *SetupOptions) { r.C = curve.Matrix{} },
		"no rows":        func(r *R1CS, _ *SetupOptions) { r.A, r.B, r.C = curve.Matrix{}, curve.Matrix{}, curve.Matrix{} },
		"no curve":       func(r *R1CS, _ *SetupOptions) { r.ID = 0 },
		"wire":           func(r *R1CS, _ *SetupOptions) { r.Wires = 3 },
		"public":         func(r *R1CS, _ *SetupOptions) { r.Public = -1 },
		"coefficient":    func(r *R1CS, _ *SetupOptions) { r.C.Coeffs = r.C.Coeffs[:0] },
		"row order":      func(r *R1CS, _ *SetupOptions) { r.C.Rows = []uint32{0, 3, 1, uint32(len(r.C.Terms))} },
		"row end":        func(r *R1CS, _ *SetupOptions) { r.C.Rows = []uint32{0, 3} },
		"basis":          func(_ *R1CS, o *SetupOptions) { o.Basis = 9 },
		"commitment":     func(r *R1CS, _ *SetupOptions) { r.Commitments = []Commitment{{Wire: 1}} },
		"committed":      func(r *R1CS, _ *SetupOptions) { r.Commitments = []Commitment{{Wire: 3, Private: []uint32{5, 4}}} },
		"dry randomness": func(_ *R1CS, o *SetupOptions) { o.Rand = dry{} },
	} {
		r, o := *good, SetupOptions{}
		change(&r, &o)
		if k, _, err := UnsafeSetup(t.Context(), &r, o); err == nil {
			_ = k.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

// dry is a source of nothing but zeros, which no secret may be.
type dry struct{}

func (dry) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
