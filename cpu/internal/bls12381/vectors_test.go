package bls12381

import (
	"context"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

func TestEvaluate(t *testing.T) {
	rng := newRand(t)
	ctx := context.Background()
	coeffs := []curve.Scalar{{}, curve.Scalar(fr.One()), scalarsG1(rng, 1, "r-1")[0], curve.Scalar(randomScalar(rng))}
	for _, rows := range []int{0, 1, 5, 5000} {
		w := scalarsG1(rng, 300, "bits")
		m := curve.Matrix{Rows: []uint32{0}, Coeffs: coeffs}
		want := make([]fr.Element, rows)
		for i := range rows {
			for range rng.IntN(6) {
				term := curve.Term{Wire: rng.Uint32N(300), Coeff: rng.Uint32N(4)}
				m.Terms = append(m.Terms, term)
				var v fr.Element
				v.Mul((*fr.Element)(&w[term.Wire]), (*fr.Element)(&coeffs[term.Coeff]))
				want[i].Add(&want[i], &v)
			}
			m.Rows = append(m.Rows, uint32(len(m.Terms)))
		}
		for _, room := range []int{rows, rows + 1, rows + 9000} {
			out := randomVector(rng, room)
			if err := engineG1(3).Evaluate(ctx, m, w, out); err != nil {
				t.Fatal(err)
			}
			for i := range out {
				var v fr.Element
				if i < rows {
					v = want[i]
				}
				if fr.Element(out[i]) != v {
					t.Fatalf("%d rows in %d: wrong at %d", rows, room, i)
				}
			}
		}
	}
	m := curve.Matrix{Rows: []uint32{0, 1}, Terms: []curve.Term{{Wire: 3}}, Coeffs: coeffs}
	out := make([]curve.Scalar, 1)
	for name, f := range map[string]func() error{
		"no room":      func() error { return engineG1(1).Evaluate(ctx, m, make([]curve.Scalar, 4), nil) },
		"no such wire": func() error { return engineG1(1).Evaluate(ctx, m, make([]curve.Scalar, 3), out) },
		"no such number": func() error {
			m := m
			m.Coeffs = nil
			return engineG1(1).Evaluate(ctx, m, make([]curve.Scalar, 4), out)
		},
		"no such term": func() error { m := m; m.Terms = nil; return engineG1(1).Evaluate(ctx, m, make([]curve.Scalar, 4), out) },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestUnsatisfied(t *testing.T) {
	rng := newRand(t)
	ctx := context.Background()
	e := engineG1(3)
	for _, n := range []int{0, 1, 100, 50000} {
		a, b, c := randomVector(rng, n), randomVector(rng, n), make([]curve.Scalar, n)
		if err := e.Hadamard(ctx, a, b, c); err != nil {
			t.Fatal(err)
		}
		if i, err := e.Unsatisfied(ctx, a, b, c); i != -1 || err != nil {
			t.Errorf("n %d: %d, %v", n, i, err)
		}
		if n == 0 {
			continue
		}
		for range 20 {
			first := n
			d := slices.Clone(c)
			for range 3 {
				i := rng.IntN(n)
				d[i] = curve.Scalar(randomScalar(rng))
				first = min(first, i)
			}
			if i, err := e.Unsatisfied(ctx, a, b, d); i != first || err != nil {
				t.Errorf("n %d: %d, %v, want %d", n, i, err, first)
			}
		}
		for _, out := range [][]curve.Scalar{a, b} {
			x, y := slices.Clone(a), slices.Clone(b)
			if &out[0] == &a[0] {
				out = x
			} else {
				out = y
			}
			if err := e.Hadamard(ctx, x, y, out); err != nil || !slices.Equal(out, c) {
				t.Errorf("n %d: product in place: %v", n, err)
			}
		}
	}
}

func TestClassesTailAndSum(t *testing.T) {
	defer alloc.CheckLeaks(t)
	rng := newRand(t)
	ctx := context.Background()
	for _, n := range []int{0, 1, 3, tinyG1, 100, 5000, 20000} {
		pts := pointsG1(rng, n, true)
		w := scalarsG1(rng, n+10, "bits")
		if n == 5000 {
			w = scalarsG1(rng, n+10, "one")
		}
		for _, workers := range []int{1, 2, 5, 12} {
			e := engineG1(workers)
			classes := make([]curve.Class, len(w))
			counts, err := e.Classify(ctx, w, classes)
			if err != nil {
				t.Fatal(err)
			}
			var want curve.Counts
			one := curve.Scalar(fr.One())
			for i, s := range w {
				c := curve.Other
				if s.IsZero() {
					c = curve.Zero
				} else if s == one {
					c = curve.One
				}
				if want[c]++; classes[i] != c {
					t.Fatalf("class of %d", i)
				}
			}
			if counts != want {
				t.Errorf("counts %v, want %v", counts, want)
			}
			q := queryG1(pts)
			q.First = 7
			if workers%10 == 2 {
				q.Wires = make([]uint32, n)
				for i := range q.Wires {
					q.Wires[i] = rng.Uint32N(uint32(len(w)))
				}
			}
			var tail []uint32
			var sum xyzzG1
			for j := range n {
				switch classes[q.Wire(j)] {
				case curve.One:
					sum.addAffine(&pts[j])
				case curve.Other:
					tail = append(tail, uint32(j))
				}
			}
			out := make([]uint32, 0, n)
			k, err := e.Tail(ctx, q, classes, out)
			if err != nil || !slices.Equal(out[:k], tail) {
				t.Errorf("n %d, %d workers: tail %v", n, workers, err)
			}
			res, err := alloc.NewBudget(alloc.Amount{}).Reserve(ctx, e.MSMScratch(curve.InG1, n))
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.SumG1(ctx, alloc.NewScope(alloc.StageOf("test"), alloc.Host, res), q, classes)
			p := sum.affine()
			if err != nil || got != valueG1(&p) {
				t.Errorf("n %d, %d workers: wrong sum, %v", n, workers, err)
			}
			res.Close()
			if n > 0 {
				if _, err := e.Tail(ctx, q, classes, out[:0:n-1]); err == nil {
					t.Error("tail without room: no error")
				}
				if _, err := e.SumG1(ctx, nil, q, classes[:0]); err == nil {
					t.Error("sum without classes: no error")
				}
			}
		}
	}
}

func TestSumNeedsItsMemory(t *testing.T) {
	defer alloc.CheckLeaks(t)
	for _, workers := range []int{2, 12} {
		testSumMemory(t, engineG1(workers))
	}
}

func testSumMemory(t *testing.T, e *Engine) {
	const n = 9000
	q := queryG1(pointsG1(newRand(t), n, false))
	classes := make([]curve.Class, n)
	for part := range int64(4) {
		res, err := alloc.NewBudget(alloc.Amount{}).Reserve(context.Background(), alloc.HostBytes(e.sumBytes(n)*(part+1)/5))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.SumG1(context.Background(), alloc.NewScope(alloc.StageOf("test"), alloc.Host, res), q, classes); err == nil {
			t.Errorf("part %d: no error", part)
		}
		res.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.SumG1(ctx, nil, q, classes); err == nil {
		t.Error("cancelled: no error")
	}
}
