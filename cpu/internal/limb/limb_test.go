package limb

import (
	"testing"

	"pgregory.net/rapid"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	bn "github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

func TestSub(t *testing.T) {
	q6, q4 := modulus6(), modulus4()
	rapid.Check(t, func(t *rapid.T) {
		var x, y, want bls.Element
		x.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 48).Draw(t, "x"))
		y.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 48).Draw(t, "y"))
		for _, p := range [][2]bls.Element{{x, y}, {y, x}, {x, x}, {x, {}}, {{}, y}} {
			a, b := p[0], p[1]
			want.Sub(&a, &b)
			if Sub6((*[6]uint64)(&a), (*[6]uint64)(&a), (*[6]uint64)(&b), &q6); a != want {
				t.Fatalf("six limbs: %v, want %v", a, want)
			}
		}
		var u, v, d bn.Element
		u.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "u"))
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "v"))
		for _, p := range [][2]bn.Element{{u, v}, {v, u}, {u, u}, {u, {}}, {{}, v}} {
			a, b := p[0], p[1]
			d.Sub(&a, &b)
			if Sub4((*[4]uint64)(&a), (*[4]uint64)(&a), (*[4]uint64)(&b), &q4); a != d {
				t.Fatalf("four limbs: %v, want %v", a, d)
			}
		}
	})
}

func modulus6() (q [6]uint64) {
	for i, w := range bls.Modulus().Bits() {
		q[i] = uint64(w)
	}
	return q
}

func modulus4() (q [4]uint64) {
	for i, w := range bn.Modulus().Bits() {
		q[i] = uint64(w)
	}
	return q
}

var sink6 bls.Element

func BenchmarkSub6(b *testing.B) {
	q := modulus6()
	x := make([]bls.Element, 1<<14)
	for i := range x {
		x[i].MustSetRandom()
	}
	b.Run("own", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			Sub6((*[6]uint64)(&sink6), (*[6]uint64)(&x[i%(1<<14)]), (*[6]uint64)(&x[i*7%(1<<14)]), &q)
		}
	})
	b.Run("gnark", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			sink6.Sub(&x[i%(1<<14)], &x[i*7%(1<<14)])
		}
	})
}
