package kernels

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// matrixOf has rows of the given lengths, with terms drawn from a seed: of every
// ten coefficients about four are 1, two −1, one 0, the others drawn.
func matrixOf(id curve.ID, lengths []int, wires int, seed uint64) curve.Matrix {
	_, minus := plusMinus(id)
	m := curve.Matrix{Rows: []uint32{0}, Coeffs: []curve.Scalar{
		FillScalar(id, Uniform, seed, 0), FillScalar(id, Ones, 0, 0), {}, minus, FillScalar(id, Uniform, seed, 1), FillScalar(id, Ones, 0, 0),
	}}
	kinds := []uint32{1, 1, 1, 5, 3, 3, 2, 0, 4, 0}
	for _, n := range lengths {
		for range n {
			d := mix(seed + uint64(len(m.Terms)))
			m.Terms = append(m.Terms, curve.Term{Wire: uint32(d>>20) % uint32(wires), Coeff: kinds[d%10]})
		}
		m.Rows = append(m.Rows, uint32(len(m.Terms)))
	}
	return m
}

// matrixRig evaluates on the device.
type matrixRig struct {
	*rig
	x    *Matrix
	most uint32 // chunks at a time
}

// evaluate is rows of m·w on the device, in pieces of so many rows.
func (r matrixRig) evaluate(t fataler, m curve.Matrix, w []curve.Scalar, n, piece int, in InputRows) []curve.Scalar {
	t.Helper()
	p, err := PlanMatrix(r.set.Curve(), m, len(w))
	if err != nil {
		t.Fatal(err)
	}
	p.sums = max(4, r.most) // few, so that they take turns
	for _, l := range p.longs {
		p.sums = max(p.sums, l[2])
	}
	image := make([]byte, p.Bytes())
	if err := p.Parts(func(at int64, b []byte) error { copy(image[at:], b); return nil }); err != nil {
		t.Fatal(err)
	}
	mem, at, scratch := up(t, r.rig, image), up(t, r.rig, w), r.room(t, p.Scratch())
	const beyond = 3
	out := r.room(t, int64(n+beyond)*curve.ScalarBytes)
	for first := 0; first < n; first += piece {
		to := out + gpu.Ptr(first*curve.ScalarBytes)
		if err := r.x.Evaluate(r.st, r.args, p, mem, at, scratch, to, first, min(piece, n-first), in); err != nil {
			t.Fatal(err)
		}
	}
	got := down[curve.Scalar](t, r.rig, out, n+beyond)
	for _, v := range got[n:] {
		if v[0] != 0xa5a5a5a5a5a5a5a5 || v[3] != v[0] {
			t.Fatalf("more than %d rows were written", n)
		}
	}
	return got[:n]
}

func TestMatrix(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) {
			r := newMatrixRig(t, newRig(t, dev, id))
			host, err := cpu.New(id)
			if err != nil {
				t.Fatal(err)
			}
			check := func(t fataler, m curve.Matrix, w []curve.Scalar, n, piece int, in InputRows) {
				t.Helper()
				want := make([]curve.Scalar, n)
				if err := host.Evaluate(context.Background(), m, w, want); err != nil {
					t.Fatal(err)
				}
				copy(want[in.From:in.From+in.N], w)
				got := r.evaluate(t, m, w, n, piece, in)
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("row %d of %d is %x, not %x", i, n, got[i], want[i])
					}
				}
			}
			t.Run("drawn", func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					defer r.mark()()
					lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3), rapid.SampledFrom([]int{0, 1, 7, 8, 9, 31, 32, 33, 64, 1023, 1024, 1025, 2100})), 0, 90).Draw(t, "rows")
					wires := rapid.IntRange(1, 700).Draw(t, "wires")
					kind := rapid.SampledFrom([]Kind{Uniform, Zeros, Ones, MinusOnes, Bits}).Draw(t, "witness")
					seed := rapid.Uint64().Draw(t, "seed")
					in := InputRows{From: len(lengths), N: rapid.IntRange(0, wires).Draw(t, "input rows")}
					n := in.From + in.N + rapid.IntRange(0, 40).Draw(t, "padding")
					piece := rapid.IntRange(1, max(n, 1)).Draw(t, "rows at a time")
					check(t, matrixOf(id, lengths, wires, seed), drawn(id, kind, seed, wires), n, piece, in)
				})
			})
			t.Run("one huge row", func(t *testing.T) {
				defer r.mark()()
				lengths := make([]int, 300)
				for i := range lengths {
					lengths[i] = i % 3
				}
				lengths[117] = 100_000
				check(t, matrixOf(id, lengths, 5000, 7), drawn(id, Bits, 7, 5000), 512, 512, InputRows{})
			})
			t.Run("nothing", func(t *testing.T) {
				defer r.mark()()
				check(t, curve.Matrix{}, drawn(id, Uniform, 1, 9), 64, 64, InputRows{From: 3, N: 9})
			})
		})
	}
}

func newMatrixRig(t *testing.T, r *rig) matrixRig {
	x, err := r.set.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	return matrixRig{r, x, 0}
}

// TestMatrixCheck compares a∘b with c, and finds the first row that differs.
func TestMatrixCheck(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		r := newMatrixRig(t, newRig(t, dev, id))
		host, err := cpu.New(id)
		if err != nil {
			t.Fatal(err)
		}
		const n = 1000
		a, b, c := slices.Concat(drawn(id, Bits, 3, n/2), drawn(id, MinusOnes, 3, n/2)), drawn(id, Uniform, 4, n), make([]curve.Scalar, n)
		if err := host.Hadamard(context.Background(), a, b, c); err != nil {
			t.Fatal(err)
		}
		at := [2]gpu.Ptr{up(t, r.rig, a), up(t, r.rig, b)}
		z := r.room(t, n*curve.ScalarBytes)
		if err := r.x.Product(r.st, r.args, at[0], at[1], z, n); err != nil {
			t.Fatal(err)
		}
		if got := down[curve.Scalar](t, r.rig, z, n); !slices.Equal(got, c) {
			t.Errorf("%v: the product is not the host's", id)
		}
		for _, bad := range [][]int{nil, {0}, {999}, {700, 31, 32}, {511, 512}} {
			d := slices.Clone(c)
			for _, i := range bad {
				d[i][i%4] ^= 1 << (i % 64)
			}
			row := r.room(t, 4)
			if err := r.st.Fill(row, 0xff, 4); err != nil {
				t.Fatal(err)
			}
			cc := up(t, r.rig, d)
			for first := 0; first < n; first += 400 {
				k := min(400, n-first)
				off := gpu.Ptr(first * curve.ScalarBytes)
				if err := r.x.Check(r.st, r.args, at[0]+off, at[1]+off, cc+off, first, k, row); err != nil {
					t.Fatal(err)
				}
			}
			want := NoRow
			for _, i := range bad {
				want = min(want, uint32(i))
			}
			if got := down[uint32](t, r.rig, row, 1)[0]; got != want {
				t.Errorf("%v: the first of rows %v that differ is said to be %d", id, bad, int32(got))
			}
		}
	}
}

// TestPlanMatrix refuses what would read beyond its memory.
func TestPlanMatrix(t *testing.T) {
	one := []curve.Scalar{{1}}
	for _, m := range []curve.Matrix{
		{Rows: []uint32{0, 1}, Terms: []curve.Term{{Wire: 5}}, Coeffs: one},
		{Rows: []uint32{0, 1}, Terms: []curve.Term{{Coeff: 1}}, Coeffs: one},
		{Rows: []uint32{0, 2}, Terms: []curve.Term{{}}, Coeffs: one},
		{Rows: []uint32{1, 1}, Terms: []curve.Term{{}}, Coeffs: one},
		{Rows: []uint32{0, 2, 1}, Terms: []curve.Term{{}}, Coeffs: one},
		{Terms: []curve.Term{{}}, Coeffs: one},
	} {
		if _, err := PlanMatrix(curve.BN254, m, 5); err == nil {
			t.Errorf("a plan for %+v", m)
		}
	}
}
