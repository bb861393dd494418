package ifma

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/snarkline/snarkline/curve"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn "github.com/consensys/gnark-crypto/ecc/bn254/fp"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"pgregory.net/rapid"
)

// TestAvailable says loudly where the kernels cannot be tested: it fails if
// SNARKLINE_NEED_IFMA is 1.
func TestAvailable(t *testing.T) {
	if Available() {
		return
	}
	const text = "NO AVX-512 IFMA HERE: not one vector kernel is tested in this run"
	if os.Getenv("SNARKLINE_NEED_IFMA") == "1" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// gnarkField is gnark-crypto's arithmetic of one field on elements in memory.
type gnarkField struct {
	id   curve.ID
	base bool
	p    *big.Int
	size int
	mul  func(z, x, y []byte)
}

func (g gnarkField) String() string {
	name := "Fr"
	if g.base {
		name = "Fp"
	}
	return fmt.Sprintf("%v %s", g.id, name)
}

func mulAs[E any, P interface {
	*E
	Mul(x, y *E) *E
}](z, x, y []byte) {
	P(&view[E](z)[0]).Mul(&view[E](x)[0], &view[E](y)[0])
}

func gnarkFields() []gnarkField {
	return []gnarkField{
		{curve.BLS12381, true, curve.BLS12381.FieldModulus(), 48, mulAs[bls.Element]},
		{curve.BLS12381, false, curve.BLS12381.ScalarModulus(), 32, mulAs[blsfr.Element]},
		{curve.BN254, true, curve.BN254.FieldModulus(), 32, mulAs[bn.Element]},
		{curve.BN254, false, curve.BN254.ScalarModulus(), 32, mulAs[bnfr.Element]},
	}
}

// reduced is the element in b as the one below p.
func (g gnarkField) reduced(b []byte) []byte {
	return g.put(new(big.Int).Mod(littleEndian(b), g.p))
}

func littleEndian(b []byte) *big.Int {
	r := make([]byte, len(b))
	for i := range b {
		r[len(b)-1-i] = b[i]
	}
	return new(big.Int).SetBytes(r)
}

func (g gnarkField) put(v *big.Int) []byte {
	b := make([]byte, (g.size+7)/8*8)
	for i := range len(b) / 8 {
		binary.LittleEndian.PutUint64(b[8*i:], word(v, i))
	}
	return b
}

// edges are representatives at the ends of the range, below p and above it,
// in gnark-crypto's layout: 0, 1, p − 1, p, p + 1, 2p − 1, and all bits set.
func (g gnarkField) edges() [][]byte {
	all := new(big.Int).Lsh(one, uint(8*g.size))
	var out [][]byte
	for k := int64(0); ; k++ {
		m := new(big.Int).Mul(g.p, big.NewInt(k))
		if m.Cmp(all) >= 0 {
			break
		}
		for d := int64(-2); d <= 2; d++ {
			v := new(big.Int).Add(m, big.NewInt(d))
			if v.Sign() >= 0 && v.Cmp(all) < 0 {
				out = append(out, g.put(v))
			}
		}
	}
	for b := 51; b < 8*g.size; b += 13 { // around the ends of limbs
		v := new(big.Int).Lsh(one, uint(b))
		out = append(out, g.put(v), g.put(v.Sub(v, one)))
	}
	return append(out, g.put(new(big.Int).Sub(all, one)))
}

// check loads x and y, multiplies the pairs depth times by y, stores, and
// compares every element with gnark-crypto's.
func (g gnarkField) check(x, y [][]byte, depth int) error {
	f := NewField(g.id, g.base)
	n := (len(x) + FieldBatch - 1) / FieldBatch * FieldBatch
	mx, my := make([]byte, n*g.size), make([]byte, n*g.size)
	for i := range x {
		copy(mx[i*g.size:], x[i])
		copy(my[i*g.size:], y[i])
	}
	vx, vy := make([]uint64, f.Words(n)), make([]uint64, f.Words(n))
	out := make([]byte, n*g.size)
	if err := f.Load(vx, mx); err != nil {
		return err
	}
	if err := f.Load(vy, my); err != nil {
		return err
	}
	want := make([][]byte, len(x))
	for i := range x {
		want[i] = g.reduced(x[i])
	}
	for d := range depth + 1 {
		if err := f.Store(out, vx); err != nil {
			return err
		}
		for i := range x {
			if got := out[i*g.size : (i+1)*g.size]; string(got) != string(want[i]) {
				return fmt.Errorf("%v: element %d after %d products is %x, want %x (%x, %x)", g, i, d, got, want[i], x[i], y[i])
			}
			g.mul(want[i], want[i], g.reduced(y[i]))
		}
		if err := f.Mul(vx, vx, vy); err != nil {
			return err
		}
	}
	return nil
}

// TestFieldEdges multiplies every pair of edges.
func TestFieldEdges(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	for _, g := range gnarkFields() {
		var x, y [][]byte
		for _, a := range g.edges() {
			for _, b := range g.edges() {
				x, y = append(x, a), append(y, b)
			}
		}
		if err := g.check(x, y, 2); err != nil {
			t.Error(err)
		}
	}
}

// TestFieldLengths has every number of elements from 1 to 70.
func TestFieldLengths(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, g := range gnarkFields() {
		for n := range 71 {
			x, y := make([][]byte, n), make([][]byte, n)
			for i := range x {
				x[i], y[i] = g.drawn(rng), g.drawn(rng)
			}
			if err := g.check(x, y, 1); err != nil {
				t.Error(err)
			}
		}
	}
}

func (g gnarkField) drawn(rng *rand.Rand) []byte {
	b := make([]byte, g.size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestFieldProperty(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	for _, g := range gnarkFields() {
		t.Run(g.String(), func(t *testing.T) {
			edges := g.edges()
			rapid.Check(t, func(t *rapid.T) {
				element := rapid.OneOf(rapid.SampledFrom(edges), rapid.SliceOfN(rapid.Byte(), g.size, g.size))
				n := rapid.IntRange(1, 40).Draw(t, "n")
				x := rapid.SliceOfN(element, n, n).Draw(t, "x")
				y := rapid.SliceOfN(element, n, n).Draw(t, "y")
				if err := g.check(x, y, rapid.IntRange(0, 5).Draw(t, "depth")); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// FuzzField takes elements of each field from the input as they come.
func FuzzField(f *testing.F) {
	if !Available() {
		f.Skip("no AVX-512 IFMA here")
	}
	fields := gnarkFields()
	for i, g := range fields {
		for _, e := range g.edges() {
			f.Add(uint8(i), append(append([]byte{}, e...), e...))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		g := fields[int(which)%len(fields)]
		var x, y [][]byte
		for len(data) >= 2*g.size && len(x) < 64 {
			x, y = append(x, data[:g.size]), append(y, data[g.size:2*g.size])
			data = data[2*g.size:]
		}
		if err := g.check(x, y, 3); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFieldErrors(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	f := NewField(curve.BN254, true)
	v, m := make([]uint64, f.Words(16)), make([]byte, 16*32)
	for name, err := range map[string]error{
		"load, 15 elements":  f.Load(v, m[:15*32]),
		"load, few words":    f.Load(v[1:], m),
		"store, 15 elements": f.Store(m[:15*32], v),
		"store, few words":   f.Store(m, v[1:]),
		"mul, lengths":       f.Mul(v, v, v[:40]),
		"mul, 8 elements":    f.Mul(v[:40], v[:40], v[:40]),
	} {
		if err == nil {
			t.Error(name + ": no error")
		}
	}
	if f.Load(nil, nil) != nil || f.Mul(nil, nil, nil) != nil || f.Store(nil, nil) != nil {
		t.Error("no elements are an error")
	}
	if NewField(9, true) != nil {
		t.Error("an unknown curve has a field")
	}
}

// BenchmarkField compares products alone, in vectors that stay in the cache.
func BenchmarkField(b *testing.B) {
	if !Available() {
		b.Skip("no AVX-512 IFMA here")
	}
	for _, g := range gnarkFields() {
		f := NewField(g.id, g.base)
		v := make([]uint64, f.Words(64))
		if err := f.Load(v, make([]byte, 64*g.size)); err != nil {
			b.Fatal(err)
		}
		b.Run(g.String(), func(b *testing.B) {
			for b.Loop() {
				if err := f.Mul(v, v, v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(64*b.N), "ns/product")
		})
	}
}
