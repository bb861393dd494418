package cpu

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew(t *testing.T) {
	for _, id := range curve.All() {
		e, err := New(id, Workers(3))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "cpu" || e.Curve() != id || e.NumWorkers() != 3 {
			t.Errorf("%s, %v, %d workers", e.Name(), e.Curve(), e.NumWorkers())
		}
		if e, err = New(id, Workers(0)); err != nil || e.NumWorkers() < 1 {
			t.Errorf("default: %v", err)
		}
	}
	if _, err := New(0); err == nil {
		t.Error("no curve: no error")
	}
}

// sum is the terms of one sum that any engine of the curve can do.
type sum struct {
	q curve.Query
	w []curve.Scalar
}

func newSum(id curve.ID, g curve.Group, n int) sum {
	p := peerOf(id)
	return sum{
		q: curve.Query{Points: curve.Points{Curve: id, Group: g, Data: p.points(g, n)}},
		w: witness(p, n, true),
	}
}

// TestManyCallsAtOnce has calls of all sizes run at the same time on one
// engine, with and without vector kernels: all agree.
func TestManyCallsAtOnce(t *testing.T) {
	defer alloc.CheckLeaks(t)
	ctx := context.Background()
	for _, id := range curve.All() {
		sizes := []int{20, 300, 4500}
		if raceEnabled || testing.Short() {
			sizes = []int{20, 300}
		}
		for _, n := range sizes {
			s := newSum(id, curve.InG1, n)
			results := make([]curve.G1, 6)
			var wg sync.WaitGroup
			for _, vectors := range []bool{false, true} {
				e, err := New(id, Workers(2), Vectors(vectors))
				if err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					if vectors {
						i += 3
					}
					wg.Go(func() {
						var err error
						if results[i], err = e.MSMG1(ctx, nil, s.q, s.w, nil); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			for i, r := range results {
				if r != results[0] || r.IsInfinity() {
					t.Errorf("%v, n %d: call %d differs", id, n, i)
				}
			}
		}
	}
}

// TestLargeCallsTakeTurns holds the turn: a large call waits, and gives up with
// its context; a small one passes.
func TestLargeCallsTakeTurns(t *testing.T) {
	defer alloc.CheckLeaks(t)
	e, turn, err := newEngine(curve.BN254, Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.Acquire(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	large, small := newSum(curve.BN254, curve.InG1, 5000), newSum(curve.BN254, curve.InG1, 100)
	if _, err := e.MSMG1(ctx, nil, large.q, large.w, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("large call while another runs: %v", err)
	}
	if _, err := e.MSMG1(context.Background(), nil, small.q, small.w, nil); err != nil {
		t.Errorf("small call while a large one runs: %v", err)
	}
	turn.Release(1)
	if _, err := e.MSMG1(context.Background(), nil, large.q, large.w, nil); err != nil {
		t.Errorf("large call after the other: %v", err)
	}
}

// TestCancelledCalls: every method returns the error of a context that is done.
func TestCancelledCalls(t *testing.T) {
	defer alloc.CheckLeaks(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	const n = 1 << 13
	for _, id := range curve.All() {
		e, err := New(id)
		if err != nil {
			t.Fatal(err)
		}
		p := peerOf(id)
		d, _ := p.domain(n)
		d.Log = 13
		v := make([]curve.Scalar, n)
		classes := make([]curve.Class, n)
		q1 := curve.Query{Points: curve.Points{Curve: id, Group: curve.InG1, Data: make([]byte, n*id.G1Bytes())}}
		q2 := curve.Query{Points: curve.Points{Curve: id, Group: curve.InG2, Data: make([]byte, n*id.G2Bytes())}}
		for name, f := range map[string]func() error{
			"evaluate":    func() error { return e.Evaluate(ctx, curve.Matrix{}, v, v) },
			"hadamard":    func() error { return e.Hadamard(ctx, v, v, v) },
			"unsatisfied": func() error { _, err := e.Unsatisfied(ctx, v, v, v); return err },
			"quotient":    func() error { return e.Quotient(ctx, nil, d, curve.Coset, v, v, nil) },
			"classify":    func() error { _, err := e.Classify(ctx, v, classes); return err },
			"sum":         func() error { _, err := e.SumG1(ctx, nil, q1, classes); return err },
			"tail":        func() error { _, err := e.Tail(ctx, q1, classes, make([]uint32, n)); return err },
			"msm g1":      func() error { _, err := e.MSMG1(ctx, nil, q1, v, nil); return err },
			"msm g2":      func() error { _, err := e.MSMG2(ctx, nil, q2, v, nil); return err },
		} {
			if err := f(); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %s: %v", id, name, err)
			}
		}
	}
}

// TestNoHeap: the methods that may not allocate do not, beyond what starting
// goroutines takes.
func TestNoHeap(t *testing.T) {
	e, err := New(curve.BLS12381, Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	const n = 1 << 14
	w := witness(peerOf(curve.BLS12381), n, false)
	classes := make([]curve.Class, n)
	out := make([]uint32, n)
	q := curve.Query{Points: curve.Points{Curve: curve.BLS12381, Group: curve.InG1, Data: make([]byte, n*96)}}
	ctx := context.Background()
	for name, f := range map[string]func() error{
		"classify": func() error { _, err := e.Classify(ctx, w, classes); return err },
		"tail":     func() error { _, err := e.Tail(ctx, q, classes, out); return err },
		"multiply": func() error { return e.Hadamard(ctx, w, w, w) },
	} {
		if got := testing.AllocsPerRun(5, func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		}); got > 20 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// TestVectorsEnv has the variable decide, and options have the last word.
func TestVectorsEnv(t *testing.T) {
	has := HasVectors()
	if !has {
		t.Log("NO AVX-512 IFMA HERE: only the portable code is tested in this run")
	}
	for _, c := range []struct {
		env   string
		opts  []Option
		fails bool
		uses  bool
	}{
		{"", nil, false, has},
		{"auto", nil, false, has},
		{"off", nil, false, false},
		{"on", nil, !has, has},
		{"off", []Option{Vectors(true)}, false, has},
		{"on", []Option{Vectors(false)}, false, false},
		{"perhaps", nil, true, false},
	} {
		t.Setenv(VectorsEnv, c.env)
		e, err := New(curve.BN254, c.opts...)
		if (err != nil) != c.fails {
			t.Fatalf("%q: %v", c.env, err)
		}
		if err == nil && e.UsesVectors() != c.uses {
			t.Errorf("%q, %d options: uses vectors: %v", c.env, len(c.opts), e.UsesVectors())
		}
	}
}

// TestField goes there and back, and multiplies by one.
func TestField(t *testing.T) {
	for _, id := range curve.All() {
		f, err := NewField(id, false)
		if !HasVectors() {
			if !errors.Is(err, ErrNoVectors) {
				t.Errorf("no vectors: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p := peerOf(id)
		in, ones := make([]curve.Scalar, 2*FieldBatch), make([]curve.Scalar, 2*FieldBatch)
		for i := range in {
			in[i], ones[i] = p.random(), p.scalar(1)
		}
		v, w, out := make([]uint64, f.Words(len(in))), make([]uint64, f.Words(len(in))), make([]curve.Scalar, len(in))
		err = errors.Join(f.Load(v, curve.Bytes(in)), f.Load(w, curve.Bytes(ones)), f.Mul(v, v, w), f.Store(curve.Bytes(out), v))
		if err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if in[i] != out[i] {
				t.Fatalf("%v: element %d differs", id, i)
			}
		}
	}
	if _, err := NewField(0, true); err == nil {
		t.Error("no curve: no error")
	}
}

// TestTransform goes there and back, the two orders taking turns.
func TestTransform(t *testing.T) {
	defer alloc.CheckLeaks(t)
	for _, id := range curve.All() {
		p := peerOf(id)
		d, _ := p.domain(1 << 10)
		d.Log = 10
		in := make([]curve.Scalar, 1<<10)
		for i := range in {
			in[i] = p.random()
		}
		for _, vectors := range []bool{false, true} {
			e, err := New(id, Workers(2), Vectors(vectors))
			if err != nil {
				t.Fatal(err)
			}
			for _, coset := range []bool{false, true} {
				a := append([]curve.Scalar(nil), in...)
				if err := e.Transform(context.Background(), nil, d, Transform{Coset: coset}, a); err != nil {
					t.Fatal(err)
				}
				if a[1] == in[1] && a[2] == in[2] {
					t.Error("nothing was done")
				}
				if err := e.Transform(context.Background(), nil, d, Transform{Inverse: true, Coset: coset, Reversed: true}, a); err != nil {
					t.Fatal(err)
				}
				for i := range in {
					if a[i] != in[i] {
						t.Fatalf("%v, vectors %v, coset %v: element %d differs", id, vectors, coset, i)
					}
				}
			}
		}
	}
}
