package kernels_test

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// asSum is an affine point in the kernels' form, with a Z of its own: X = x·z²,
// Y = y·z³, ZZ = z², ZZZ = z³, and lazy: some coordinates have p added.
func asSum(f *baseField, rng *rand.Rand, point []byte) []byte {
	elements := f.decode(point)
	zero := true
	for _, e := range elements {
		zero = zero && e.Sign() == 0
	}
	if zero {
		return make([]byte, 2*len(point))
	}
	half := len(elements) / 2 // components of a coordinate are 1 or 2
	z := f.numbers(rng, 1, 1)[0]
	if z.Mod(z, f.p).Sign() == 0 {
		z.SetInt64(5)
	}
	z2 := f.product(z, z)
	z3 := f.product(z2, z)
	var out []*big.Int
	for i, e := range elements {
		by := z2
		if i >= half {
			by = z3
		}
		out = append(out, f.product(e, by))
	}
	for _, v := range []*big.Int{z2, z3} {
		out = append(out, v)
		for range half - 1 {
			out = append(out, new(big.Int))
		}
	}
	for i, v := range out {
		if rng.IntN(2) == 0 && (i < 2*half || v.Sign() > 0) {
			v.Add(v, f.p)
		}
	}
	return f.encode(out)
}

// TestAdditions adds two sums by each way that there is: equal and opposite
// ones, and the identity.
func TestAdditions(t *testing.T) {
	each(t, func(t *testing.T, p *place, g group, m *kernels.MSM) {
		set := kernels.NewSet(p.dev, g.id)
		t.Cleanup(func() { p.must(set.Close()) })
		k, err := set.FpcheckKernels()
		p.must(err)
		f := newBaseField(g.id)
		rng := rand.New(rand.NewPCG(4, uint64(g.size())))
		var logA, logB []int64
		for _, pair := range [][2]int64{{1, 1}, {7, 7}, {7, -7}, {0, 3}, {3, 0}, {0, 0}, {5, -4}, {-9, -9}, {2, 1}, {-1, 1}} {
			logA, logB = append(logA, pair[0]), append(logB, pair[1])
		}
		for range 30 {
			logA, logB = append(logA, rng.Int64N(1<<40)), append(logB, -rng.Int64N(1<<40))
		}
		n := len(logA)
		affine := func(v []int64) [][]byte {
			s := make([]curve.Scalar, n)
			for i := range s {
				s[i] = montgomery(g.id, big.NewInt(v[i]))
			}
			all := g.times(s)
			out := make([][]byte, n)
			for i := range out {
				out[i] = all[i*g.size() : (i+1)*g.size()]
			}
			return out
		}
		var both [2]gpu.Ptr
		for i, v := range [][]int64{logA, logB} {
			var b []byte
			for _, point := range affine(v) {
				b = append(b, asSum(f, rng, point)...)
			}
			both[i] = p.upload(b)
		}
		out := p.alloc(int64(2 * n * g.size()))
		for way, name := range []string{"one thread", "eight threads", "doubled"} {
			want := make([]int64, n)
			for i := range want {
				want[i] = logA[i] + logB[i]
				if way == 2 {
					want[i] = 2 * logA[i]
				}
			}
			l := gpu.Launch{Grid: [3]uint32{uint32(n)}, Block: [3]uint32{32}}
			if g.g == curve.InG1 {
				p.must(k.FpcheckAdd1(p.st, l, p.args, uint32(way), uint32(n), both[0], both[1], out))
			} else {
				p.must(k.FpcheckAdd2(p.st, l, p.args, uint32(way), uint32(n), both[0], both[1], out))
			}
			got := p.download(out, 2*n*g.size())
			for i, w := range affine(want) {
				if v := m.AffineOf(got[2*i*g.size() : 2*(i+1)*g.size()]); !bytes.Equal(v, w) {
					t.Errorf("%s: %d and %d times the generator: %x, want %x", name, logA[i], logB[i], v, w)
				}
			}
		}
	})
}

func TestPlans(t *testing.T) {
	const sms = 132
	for _, c := range []struct{ log, bits int }{{20, 16}, {22, 17}, {24, 20}, {26, 22}, {27, 22}} {
		p, err := kernels.PlanMSM(sms, curve.BLS12381, curve.InG1, 1<<c.log, 64<<30)
		if err != nil {
			t.Fatal(err)
		}
		if p.Sort.C != c.bits || p.N != 1<<c.log {
			t.Errorf("2^%d terms: windows of %d bits in passes of %d, want %d and one pass", c.log, p.Sort.C, p.N, c.bits)
		}
	}
	for _, id := range curve.All() {
		for _, g := range []curve.Group{curve.InG1, curve.InG2} {
			for n := range 3 {
				if _, err := kernels.PlanMSM(sms, id, g, n, 1<<30); err != nil {
					t.Errorf("%d terms: %v", n, err)
				}
			}
			free, err := kernels.PlanMSM(sms, id, g, 1<<24, 64<<30)
			if err != nil {
				t.Fatal(err)
			}
			for limit := free.Scratch; limit > 32<<20; limit /= 2 {
				p, err := kernels.PlanMSM(sms, id, g, 1<<24, limit)
				if err != nil {
					t.Fatalf("with %d bytes: %v", limit, err)
				}
				if p.Scratch > limit {
					t.Errorf("a plan for %d bytes takes %d", limit, p.Scratch)
				}
			}
			if _, err := kernels.PlanMSM(sms, id, g, 1<<24, 1<<10); !errors.Is(err, gpu.ErrNoMemory) {
				t.Errorf("a plan for a kilobyte: %v", err)
			}
		}
	}
	for _, n := range []int{-1, 1<<28 + 1} {
		if _, err := kernels.PlanMSM(sms, curve.BN254, curve.InG1, n, 1<<40); err == nil || errors.Is(err, gpu.ErrNoMemory) {
			t.Errorf("%d terms: %v", n, err)
		}
	}
}
