package arith

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"testing"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	frbls "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	frbn "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/curve"
)

func fieldOf(t interface{ Fatal(...any) }, id curve.ID) *Field {
	f, err := FieldOf(id)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestScalarForms(t *testing.T) {
	for _, id := range curve.All() {
		rapid.Check(t, func(t *rapid.T) {
			f := fieldOf(t, id)
			v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "value"))
			v.Mod(v, f.r)
			s := f.FromBig(v)
			if f.ToBig(s).Cmp(v) != 0 || !f.Reduced(&s) {
				t.Fatalf("%v reads back as %v", v, f.ToBig(s))
			}
			want := [4]uint64(*new(frbn.Element).SetBigInt(v))
			if id == curve.BLS12381 {
				want = [4]uint64(*new(frbls.Element).SetBigInt(v))
			}
			if s != want {
				t.Fatalf("limbs %x, gnark-crypto has %x", s, want)
			}
			// From a file's bytes and back.
			var b [32]byte
			v.FillBytes(b[:])
			for i := range 16 {
				b[i], b[31-i] = b[31-i], b[i]
			}
			var got [1]curve.Scalar
			if f.Load(got[:], b[:]) >= 0 {
				t.Fatal("refused")
			}
			f.ToMontgomery(got[:])
			if got[0] != s {
				t.Fatalf("loaded as %x, want %x", got[0], s)
			}
			// v·R² is what ToMontgomery makes of v·R.
			f.ToMontgomery(got[:])
			f.FromMontgomery(got[:])
			f.FromMontgomery(got[:])
			var out [32]byte
			if Store(out[:], got[:]); out != b {
				t.Fatalf("stored as %x, want %x", out, b)
			}
		})
	}
}

func TestLoadRefusesLargeValues(t *testing.T) {
	for _, id := range curve.All() {
		f := fieldOf(t, id)
		for delta, want := range map[int64]int{-1: -1, 0: 2, 1: 2} {
			b := make([]byte, 4*32)
			v := new(big.Int).Add(f.r, big.NewInt(delta)).FillBytes(make([]byte, 32))
			for i := range v {
				b[64+31-i] = v[i]
			}
			if got := f.Load(make([]curve.Scalar, 4), b); got != want {
				t.Errorf("r%+d on %v: index %d, want %d", delta, id, got, want)
			}
		}
	}
}

func TestSnarkjsDomain(t *testing.T) {
	for _, id := range curve.All() {
		f := fieldOf(t, id)
		for log := range id.TwoAdicity() {
			d, err := SnarkjsDomain(id, log)
			if err != nil {
				t.Fatal(err)
			}
			shift := f.ToBig(d.Shift)
			half := new(big.Int).Exp(shift, new(big.Int).Lsh(big.NewInt(1), uint(log)), f.r)
			if half.Add(half, big.NewInt(1)).Cmp(f.r) != 0 {
				t.Fatalf("2^%d on %v: the shift is no primitive root of twice the order", log, id)
			}
			if shift.Mul(shift, shift).Mod(shift, f.r).Cmp(f.ToBig(d.Generator)) != 0 {
				t.Fatalf("2^%d on %v: the generator is not the square of the shift", log, id)
			}
		}
		for _, log := range []int{-1, id.TwoAdicity()} {
			if _, err := SnarkjsDomain(id, log); err == nil {
				t.Errorf("a domain of 2^%d on %v", log, id)
			}
		}
	}
	// gnark-crypto's root is snarkjs' on BN254 alone.
	for id, root := range map[curve.ID][4]uint64{
		curve.BN254: generatorBN254(t), curve.BLS12381: generatorBLS12381(t),
	} {
		d, err := SnarkjsDomain(id, 10)
		if err != nil {
			t.Fatal(err)
		}
		if same := d.Generator == root; same != (id == curve.BN254) {
			t.Errorf("on %v gnark-crypto's root of unity is snarkjs': %v", id, same)
		}
	}
}

func generatorBN254(t *testing.T) [4]uint64 {
	g, err := frbn.Generator(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func generatorBLS12381(t *testing.T) [4]uint64 {
	g, err := frbls.Generator(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestRootLog(t *testing.T) {
	for _, id := range curve.All() {
		rapid.Check(t, func(t *rapid.T) {
			f := fieldOf(t, id)
			log := rapid.IntRange(0, id.TwoAdicity()-1).Draw(t, "log")
			k := rapid.Uint64Range(0, 1<<(log+1)-1).Draw(t, "k")
			d, err := SnarkjsDomain(id, log)
			if err != nil {
				t.Fatal(err)
			}
			root := f.FromBig(new(big.Int).Exp(f.ToBig(d.Shift), new(big.Int).SetUint64(k), f.r))
			got, err := RootLog(id, log, root)
			if k%2 == 0 {
				if err == nil {
					t.Fatalf("%d is the logarithm of what is no primitive root", got)
				}
				return
			}
			if err != nil || got != k {
				t.Fatalf("logarithm %d, %v, want %d", got, err, k)
			}
		})
		if _, err := RootLog(id, 5, fieldOf(t, id).FromBig(big.NewInt(12345))); err == nil {
			t.Errorf("12345 is a root of unity on %v", id)
		}
	}
}

func TestCoordinates(t *testing.T) {
	for _, id := range curve.All() {
		g1, g2 := generators(id)
		p, q := Load1(g1, 0), Load2(g2, 0)
		if got, err := FromCoordinates(id, Coordinates(id, &p)); err != nil || got != p {
			t.Errorf("generator of G1 on %v: %v", id, err)
		}
		if got, err := FromCoordinates2(id, Coordinates2(id, &q)); err != nil || got != q {
			t.Errorf("generator of G2 on %v: %v", id, err)
		}
		c := Coordinates(id, &p)
		c[1] = id.FieldModulus()
		if _, err := FromCoordinates(id, c); !errors.Is(err, ErrCoordinate) {
			t.Errorf("y = q on %v: %v", id, err)
		}
		c[1] = big.NewInt(-1)
		if _, err := FromCoordinates(id, c); !errors.Is(err, ErrCoordinate) {
			t.Errorf("y = -1 on %v: %v", id, err)
		}
		c[1] = big.NewInt(3)
		if _, err := FromCoordinates(id, c); !errors.Is(err, ErrOffCurve) {
			t.Errorf("y = 3 on %v: %v", id, err)
		}
	}
	if _, err := FromCoordinates(0, [2]*big.Int{new(big.Int), new(big.Int)}); err == nil {
		t.Error("a point of no curve")
	}
}

// generators are vectors of the generator in both groups.
func generators(id curve.ID) (g1, g2 curve.Points) {
	var a, b []byte
	switch id {
	case curve.BN254:
		_, _, p, q := bn254.Generators()
		a, b = bytes.Clone(curve.Bytes([]bn254.G1Affine{p})), bytes.Clone(curve.Bytes([]bn254.G2Affine{q}))
	case curve.BLS12381:
		_, _, p, q := bls.Generators()
		a, b = bytes.Clone(curve.Bytes([]bls.G1Affine{p})), bytes.Clone(curve.Bytes([]bls.G2Affine{q}))
	}
	return curve.Points{Curve: id, Group: curve.InG1, Data: a}, curve.Points{Curve: id, Group: curve.InG2, Data: b}
}

// many repeats a point n times.
func many(p curve.Points, n int) curve.Points {
	p.Data = bytes.Repeat(p.Data, n)
	return p
}

// outside is a point of BLS12-381 in G1 that is not in the subgroup.
func outside(t *testing.T) bls.G1Affine {
	t.Helper()
	var p bls.G1Affine
	for x := uint64(1); x < 100; x++ {
		p.X.SetUint64(x)
		y, four := p.X, p.X
		y.Square(&y).Mul(&y, &p.X).Add(&y, four.SetUint64(4))
		if p.Y.Sqrt(&y) != nil && p.IsOnCurve() && !p.IsInSubGroup() {
			return p
		}
	}
	t.Fatal("no point outside the subgroup found")
	return p
}

// TestCheckFindsThePoint has vectors long enough for the batch check, with and
// without points outside the subgroup.
func TestCheckFindsThePoint(t *testing.T) {
	ctx := context.Background()
	for _, id := range curve.All() {
		g1, g2 := generators(id)
		good := []curve.Points{many(g1, 3000), many(g2, 100), many(g1, 2500), {Curve: id, Group: curve.InG1}}
		clear(good[2].Slice(7, 9).Data) // infinity is in every group
		if err := Check(ctx, good, CheckOptions{}); err != nil {
			t.Errorf("good points on %v: %v", id, err)
		}
		good[2].Slice(1234, 1235).Data[0]++
		var bad *PointError
		if err := Check(ctx, good, CheckOptions{SkipSubgroup: true}); !errors.As(err, &bad) || bad.Vector != 2 || bad.Index != 1234 || !errors.Is(err, ErrOffCurve) {
			t.Errorf("a point off the curve on %v: %v", id, err)
		}
	}
	g1, _ := generators(curve.BLS12381)
	p := outside(t)
	minus := p
	minus.Neg(&p)
	for name, points := range map[string][]bls.G1Affine{"one": {p}, "a pair that cancels": {p, minus}, "three": {p, p, p}} {
		for _, length := range []int{50, batchFrom} { // one by one, and in a batch
			v := []curve.Points{many(g1, 40), many(g1, length)}
			for i := range points {
				copy(v[1].Slice(20+i, 21+i).Data, curve.Bytes(points[i:i+1]))
			}
			var bad *PointError
			if err := Check(ctx, v, CheckOptions{}); !errors.As(err, &bad) || bad.Vector != 1 || bad.Index != 20 || !errors.Is(err, ErrSubgroup) {
				t.Errorf("%s of %d outside the subgroup: %v", name, length, err)
			}
			if err := Check(ctx, v, CheckOptions{SkipSubgroup: true}); err != nil {
				t.Errorf("%s of %d, not looked for: %v", name, length, err)
			}
		}
	}
}

func TestCheckCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g1, _ := generators(curve.BLS12381)
	if err := Check(ctx, []curve.Points{many(g1, 5000)}, CheckOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, v := range []curve.Points{{}, {Curve: curve.BN254}, {Curve: curve.BN254, Group: curve.InG1, Data: make([]byte, 63)}} {
		if err := Check(context.Background(), []curve.Points{v}, CheckOptions{}); err == nil {
			t.Errorf("a vector of %v in %v of %d bytes is good", v.Curve, v.Group, len(v.Data))
		}
	}
}

func BenchmarkCheckSubgroup(b *testing.B) {
	g1, g2 := generators(curve.BLS12381)
	for name, v := range map[string]curve.Points{"G1": many(g1, 1<<16), "G2": many(g2, 1<<14)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := Check(context.Background(), []curve.Points{v}, CheckOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(v.Len()), "ns/point")
		})
	}
}
