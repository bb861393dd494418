package ifma

import (
	"context"
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"

	"pgregory.net/rapid"
)

// edgeScalars are plain scalars at the ends of the range and of windows.
func edgeScalars(id curve.ID) []curve.Scalar {
	r := id.ScalarModulus()
	at := func(v *big.Int) curve.Scalar { return intScalar(v.Mod(v, r)) }
	s := []curve.Scalar{{}, {1}, {2}, at(big.NewInt(-1)), at(big.NewInt(-2)), at(new(big.Int).Rsh(r, 1))}
	for b := 3; b < 254; b += 25 {
		p := new(big.Int).Lsh(one, uint(b))
		s = append(s, at(new(big.Int).Set(p)), at(new(big.Int).Sub(p, one)), at(new(big.Int).Neg(p)))
	}
	return s
}

// msmProperty draws sums over few points, with repeated, opposite and infinite
// ones among them, and compares with gnark-crypto.
func msmProperty(o oracle, g *Group) func(t *rapid.T) {
	size := g.k.pointBytes()
	pool := o.random(24)
	for i := range 8 {
		copy(pool[(8+i)*size:(9+i)*size], o.neg(pool[i*size:(i+1)*size]))
	}
	clear(pool[23*size:])
	edges := edgeScalars(o.id)
	return func(t *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(t, "n")
		fresh := rapid.IntRange(0, 10).Draw(t, "tenths of fresh scalars")
		few := rapid.IntRange(1, len(edges)).Draw(t, "edge scalars")
		points := rapid.IntRange(1, 24).Draw(t, "points")
		seed := rapid.Uint64().Draw(t, "seed")
		workers := rapid.IntRange(1, 3).Draw(t, "workers")
		next := func(n int) int { // what rapid draws is the seed: one draw an element is slow
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		s := randomScalars(o.id, n)
		pick := make([]uint32, n)
		var picked []byte
		for i := range s {
			if next(10) >= fresh {
				s[i] = edges[next(few)]
			}
			p := next(points)
			if next(7) == 0 {
				p = 23 - next(points)
			}
			pick[i] = uint32(p)
			picked = append(picked, pool[p*size:(p+1)*size]...)
		}
		want := o.msm(picked, montgomery(o.id, s))
		out := make([]uint64, size/8)
		if err := g.MSM(context.Background(), pool, pick, s, workers, make([]byte, g.MSMScratch(n, workers)), out); err != nil {
			t.Fatal(err)
		}
		if string(mem(out)) != string(want) {
			t.Fatal("wrong sum")
		}
	}
}

func TestMSMProperty(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) { rapid.Check(t, msmProperty(o, g)) })
}

func FuzzMSM(f *testing.F) {
	if !Available() {
		f.Skip("no AVX-512 IFMA here")
	}
	o := oracles()[0]
	f.Fuzz(rapid.MakeFuzz(msmProperty(o, NewGroup(o.id, o.g))))
}

// TestNTTProperty draws a size and an order: forward agrees with gnark-crypto,
// and inverse undoes it.
func TestNTTProperty(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) {
			ffts, ntts := map[int]fft{}, map[int]*NTT{}
			for log := MinNTT; log <= 11; log++ {
				ffts[log] = newFFT(id, log)
				ntts[log] = newNTT(t, id, ffts[log].d)
			}
			rapid.Check(t, func(t *rapid.T) {
				log := rapid.IntRange(MinNTT, 11).Draw(t, "log")
				in := Order(rapid.IntRange(1, 2).Draw(t, "order"))
				coset := rapid.Bool().Draw(t, "coset")
				workers := rapid.IntRange(1, 3).Draw(t, "workers")
				a := randomScalars(id, 1<<log)
				for range rapid.IntRange(0, 3).Draw(t, "edges") {
					e := edgeScalars(id)
					a[rapid.IntRange(0, len(a)-1).Draw(t, "place")] = e[rapid.IntRange(0, len(e)-1).Draw(t, "scalar")]
				}
				want, got := append([]curve.Scalar(nil), a...), append([]curve.Scalar(nil), a...)
				ffts[log].forward(want, in, coset, 1)
				buf := make([]byte, NTTScratch(log, workers))
				if err := ntts[log].Forward(context.Background(), got, in, coset, workers, buf); err != nil {
					t.Fatal(err)
				}
				equal(t, "forward", got, want)
				if err := ntts[log].Inverse(context.Background(), got, 3-in, coset, workers, buf); err != nil {
					t.Fatal(err)
				}
				equal(t, "there and back", got, a)
			})
		})
	}
}

func equal(t *rapid.T, what string, got, want []curve.Scalar) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d differs", what, i)
		}
	}
}
