package kernels_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// baseField is the field of the coordinates, with numbers as they lie in memory.
type baseField struct {
	p, R, inverse *big.Int
	bytes         int
}

func newBaseField(id curve.ID) *baseField {
	f := &baseField{p: id.FieldModulus(), bytes: id.FieldBytes()}
	f.R = new(big.Int).Lsh(big.NewInt(1), uint(8*f.bytes))
	f.inverse = new(big.Int).ModInverse(f.R, f.p)
	return f
}

func (f *baseField) times(k float64) *big.Int {
	v, _ := new(big.Float).Mul(new(big.Float).SetInt(f.p), big.NewFloat(k)).Int(nil)
	return v
}

// product is a·b/R mod p.
func (f *baseField) product(a, b *big.Int) *big.Int {
	v := new(big.Int).Mul(a, b)
	v.Mul(v, f.inverse)
	return v.Mod(v, f.p)
}

func (f *baseField) encode(v []*big.Int) []byte {
	b := make([]byte, len(v)*f.bytes)
	for i, x := range v {
		be := x.FillBytes(make([]byte, f.bytes))
		for k, c := range be {
			b[i*f.bytes+f.bytes-1-k] = c
		}
	}
	return b
}

func (f *baseField) decode(b []byte) []*big.Int {
	v := make([]*big.Int, len(b)/f.bytes)
	for i := range v {
		be := make([]byte, f.bytes)
		for k := range be {
			be[k] = b[i*f.bytes+f.bytes-1-k]
		}
		v[i] = new(big.Int).SetBytes(be)
	}
	return v
}

// numbers are n values of at most k·p, more of them at the ends of the range.
func (f *baseField) numbers(rng *rand.Rand, n int, k float64) []*big.Int {
	most := f.times(k)
	v := make([]*big.Int, n)
	for i := range v {
		switch rng.IntN(6) {
		case 0:
			v[i] = new(big.Int).Sub(most, big.NewInt(int64(rng.IntN(3))))
		case 1:
			v[i] = big.NewInt(int64(rng.IntN(3)))
		case 2: // near a multiple of p
			v[i] = new(big.Int).Mul(f.p, big.NewInt(int64(rng.IntN(int(k)+1))))
			v[i].Add(v[i], big.NewInt(int64(rng.IntN(3)-1)))
		case 3: // words of ones and zeros
			v[i] = new(big.Int)
			for w := range f.bytes / 4 {
				if rng.IntN(2) == 1 {
					v[i].Or(v[i], new(big.Int).Lsh(big.NewInt(1<<32-1), uint(32*w)))
				}
			}
		default:
			b := make([]byte, f.bytes+8)
			for k := 0; k < len(b); k += 8 {
				binary.LittleEndian.PutUint64(b[k:], rng.Uint64())
			}
			v[i] = new(big.Int).SetBytes(b)
		}
		if v[i].Sign() < 0 || v[i].Cmp(most) > 0 {
			v[i].Mod(v[i], most)
		}
	}
	return v
}

// TestBaseField takes every operation to the ends of the ranges that its
// comment allows: the result is right modulo p, and within its bound.
func TestBaseField(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) {
			p := newPlace(t, dev)
			set := kernels.NewSet(dev, id)
			t.Cleanup(func() { p.must(set.Close()) })
			k, err := set.FpcheckKernels()
			p.must(err)
			f := newBaseField(id)
			bls := id == curve.BLS12381
			pick := func(onBLS, onBN float64) float64 {
				if bls {
					return onBLS
				}
				return onBN
			}
			sub := func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
			newX := func(x []*big.Int) *big.Int {
				return sub(sub(x[0], x[1]), new(big.Int).Add(x[1], x[2]))
			}
			whole := pick(9.8, 5.2)
			for op, c := range []struct {
				name  string
				in    [3]float64 // bounds of the operands, in p
				out   float64    // bound of the result
				value func(x []*big.Int) *big.Int
				exact bool // the number itself, not modulo p
			}{
				{"product", [3]float64{4, pick(4, 2)}, pick(2.63, 2.52), func(x []*big.Int) *big.Int { return f.product(x[0], x[1]) }, false},
				{"square", [3]float64{pick(4, 2)}, pick(2.63, 1.76), func(x []*big.Int) *big.Int { return f.product(x[0], x[0]) }, false},
				{"difference", [3]float64{pick(2, 1.99), 2}, pick(4, 2), func(x []*big.Int) *big.Int { return sub(x[0], x[1]) }, false},
				{"new x", [3]float64{pick(2.9, 1.99), pick(1.59, 1.99), pick(1.8, 1.99)}, 2, newX, false},
				{"new x, tight", [3]float64{1.99, 1.99, 1.99}, 2, newX, false},
				{"factor", [3]float64{2, 2}, 4, func(x []*big.Int) *big.Int { return sub(x[0], x[1]) }, false},
				{"p minus", [3]float64{1}, 1, func(x []*big.Int) *big.Int { return sub(f.p, x[0]) }, true},
				{"2p minus", [3]float64{2}, 2, func(x []*big.Int) *big.Int { return sub(f.times(2), x[0]) }, true},
				{"less p", [3]float64{whole}, whole, func(x []*big.Int) *big.Int {
					if x[0].Cmp(f.p) >= 0 {
						return sub(x[0], f.p)
					}
					return x[0]
				}, true},
				{"less 2p", [3]float64{whole}, whole, func(x []*big.Int) *big.Int {
					if x[0].Cmp(f.times(2)) >= 0 {
						return sub(x[0], f.times(2))
					}
					return x[0]
				}, true},
				{"is zero", [3]float64{3.99}, 1, func(x []*big.Int) *big.Int {
					if new(big.Int).Mod(x[0], f.p).Sign() == 0 {
						return big.NewInt(1)
					}
					return new(big.Int)
				}, true},
				{"inverse", [3]float64{1.99}, 2, func(x []*big.Int) *big.Int {
					v := new(big.Int).ModInverse(x[0], f.p)
					if v == nil {
						return new(big.Int)
					}
					return v.Mod(v.Mul(v, new(big.Int).Exp(f.R, big.NewInt(2), f.p)), f.p)
				}, false},
				{"product, schoolbook", [3]float64{4, pick(4, 2)}, pick(2.63, 2.52), func(x []*big.Int) *big.Int { return f.product(x[0], x[1]) }, false},
			} {
				n := 2000
				if c.name == "inverse" {
					n = 40
				}
				rng := rand.New(rand.NewPCG(uint64(op), uint64(id)))
				var in [3][]*big.Int
				var mem [3]gpu.Ptr
				for i := range in {
					in[i] = f.numbers(rng, n, max(c.in[i], 1))
					mem[i] = p.upload(f.encode(in[i]))
				}
				out := p.alloc(int64(n * f.bytes))
				p.must(k.FpcheckFp(p.st, gpu.Linear(int64(n), 128), p.args, uint32(op), uint32(n), mem[0], mem[1], mem[2], out))
				bound := f.times(c.out)
				for i, v := range f.decode(p.download(out, n*f.bytes)) {
					x := []*big.Int{in[0][i], in[1][i], in[2][i]}
					want, got := c.value(x), v
					if !c.exact {
						want, got = new(big.Int).Mod(want, f.p), new(big.Int).Mod(v, f.p)
					}
					if got.Cmp(want) != 0 {
						t.Fatalf("%s of %x is %x, want %x", c.name, x, v, want)
					}
					if v.Cmp(bound) > 0 {
						t.Fatalf("%s of %x is %x, above %.2f p", c.name, x, v, c.out)
					}
				}
			}
		})
	}
}

// TestQuadraticField does the same for the products of Fp2.
func TestQuadraticField(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) {
			p := newPlace(t, dev)
			set := kernels.NewSet(dev, id)
			t.Cleanup(func() { p.must(set.Close()) })
			k, err := set.FpcheckKernels()
			p.must(err)
			f := newBaseField(id)
			factor := 2.0 // of the last operand
			if id == curve.BLS12381 {
				factor = 4
			}
			const n = 1500
			rng := rand.New(rand.NewPCG(9, uint64(id)))
			var in [4][]*big.Int
			var mem [4]gpu.Ptr
			for i, bound := range []float64{2, 2, 2, factor} {
				in[i] = f.numbers(rng, 2*n, bound)
				mem[i] = p.upload(f.encode(in[i]))
			}
			out := p.alloc(int64(2 * n * f.bytes))
			times := func(a, b []*big.Int) [2]*big.Int {
				return [2]*big.Int{
					new(big.Int).Sub(f.product(a[0], b[0]), f.product(a[1], b[1])),
					new(big.Int).Add(f.product(a[0], b[1]), f.product(a[1], b[0])),
				}
			}
			for op, name := range []string{"a·b", "a·b + c·e", "a²"} {
				p.must(k.FpcheckFp2(p.st, gpu.Linear(n, 64), p.args, uint32(op), n, mem[0], mem[1], mem[2], mem[3], out))
				got := f.decode(p.download(out, 2*n*f.bytes))
				for i := 0; i < 2*n; i += 2 {
					a, b, c, e := in[0][i:i+2], in[1][i:i+2], in[2][i:i+2], in[3][i:i+2]
					want := times(a, b)
					switch op {
					case 1:
						w := times(c, e)
						want[0].Add(want[0], w[0])
						want[1].Add(want[1], w[1])
					case 2:
						want = times(a, a)
					}
					for x := range want {
						g := got[i+x]
						if new(big.Int).Mod(g, f.p).Cmp(want[x].Mod(want[x], f.p)) != 0 || g.Cmp(f.times(2)) >= 0 {
							t.Fatalf("%s: component %d is %x, want %x mod p and below 2p, for %s", name, x, g, want[x], fmt.Sprintf("%x %x %x %x", a, b, c, e))
						}
					}
				}
			}
		})
	}
}
