package ifma

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"

	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// montgomery turns plain scalars to Montgomery form.
func montgomery(id curve.ID, plain []curve.Scalar) []curve.Scalar {
	out := make([]curve.Scalar, len(plain))
	for i := range plain {
		v := scalarInt(plain[i])
		if id == curve.BLS12381 {
			var e blsfr.Element
			e.SetBigInt(v)
			out[i] = curve.Scalar(e)
		} else {
			var e bnfr.Element
			e.SetBigInt(v)
			out[i] = curve.Scalar(e)
		}
	}
	return out
}

func scalarInt(s curve.Scalar) *big.Int {
	v := new(big.Int)
	for i := 3; i >= 0; i-- {
		v.Lsh(v, 64)
		v.Or(v, new(big.Int).SetUint64(s[i]))
	}
	return v
}

func intScalar(v *big.Int) (s curve.Scalar) {
	for i := range s {
		s[i] = word(v, i)
	}
	return s
}

// randomScalars are plain.
func randomScalars(id curve.ID, n int) []curve.Scalar {
	s := make([]curve.Scalar, n)
	for i := range s {
		if id == curve.BLS12381 {
			var e blsfr.Element
			e.MustSetRandom()
			s[i] = curve.Scalar(e.Bits())
		} else {
			var e bnfr.Element
			e.MustSetRandom()
			s[i] = curve.Scalar(e.Bits())
		}
	}
	return s
}

// checkMSM compares with gnark-crypto.
func checkMSM(t *testing.T, o oracle, g *Group, pts []byte, pick []uint32, s []curve.Scalar, workers int) {
	t.Helper()
	size := g.k.pointBytes()
	picked := pts[:len(s)*size]
	if pick != nil {
		picked = nil
		for _, i := range pick {
			picked = append(picked, pts[int(i)*size:int(i+1)*size]...)
		}
	}
	want := o.msm(picked, montgomery(o.id, s))
	out := make([]uint64, size/8)
	buf := make([]byte, g.MSMScratch(len(s), workers))
	for i := range buf {
		buf[i] = 0xa5
	}
	if err := g.MSM(context.Background(), pts, pick, append([]curve.Scalar(nil), s...), workers, buf, out); err != nil {
		t.Fatal(err)
	}
	if string(mem(out)) != string(want) {
		t.Fatalf("n=%d workers=%d: wrong sum", len(s), workers)
	}
}

func TestMSM(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		const most = 2600
		size := g.k.pointBytes()
		pts := o.random(most)
		s := randomScalars(o.id, most)
		for _, n := range []int{1, 2, 3, 7, 8, 9, 31, 33, 100, 257, 1000, most} {
			checkMSM(t, o, g, pts, nil, s[:n], 1+n%3)
		}
		last := o.id.ScalarModulus()
		last.Sub(last, one)
		fixed := func(n int, v ...*big.Int) []curve.Scalar {
			s := make([]curve.Scalar, n)
			for i := range s {
				s[i] = intScalar(v[i%len(v)])
			}
			return s
		}
		zero, two := new(big.Int), big.NewInt(2)
		t.Run("scalars", func(t *testing.T) {
			for i, s := range [][]curve.Scalar{
				fixed(1, zero), fixed(50, zero), fixed(300, one), fixed(300, last), fixed(most, one, two),
				fixed(300, one, last), fixed(500, zero, one, two, last), fixed(most, last),
				fixed(700, new(big.Int).Lsh(one, 200), new(big.Int).Lsh(one, 16)),
			} {
				t.Run(fmt.Sprint(i), func(t *testing.T) { checkMSM(t, o, g, pts, nil, s, 2) })
			}
		})
		t.Run("equal points", func(t *testing.T) {
			p := append([]byte(nil), pts[:1000*size]...)
			for i := range 1000 {
				copy(p[i*size:(i+1)*size], p[:size])
			}
			checkMSM(t, o, g, p, nil, s[:1000], 2)
			checkMSM(t, o, g, p, nil, fixed(1000, one), 1)
			checkMSM(t, o, g, p, nil, fixed(1000, one, last), 1)
		})
		t.Run("infinite, repeated and opposite points", func(t *testing.T) {
			p := append([]byte(nil), pts[:1500*size]...)
			for i := 0; i+1 < 1500; i++ {
				switch i % 7 {
				case 0:
					clear(p[i*size : (i+1)*size])
				case 1:
					copy(p[(i+1)*size:(i+2)*size], p[i*size:(i+1)*size])
				case 3:
					copy(p[(i+1)*size:(i+2)*size], o.neg(p[i*size:(i+1)*size]))
				}
			}
			checkMSM(t, o, g, p, nil, s[:1500], 1)
			checkMSM(t, o, g, p, nil, fixed(1500, one), 1)
			checkMSM(t, o, g, p, nil, fixed(1500, two, two, one, two, two), 2)
			checkMSM(t, o, g, make([]byte, 100*size), nil, s[:100], 1)
			for i := range 700 { // everything cancels
				copy(p[(700+i)*size:(701+i)*size], o.neg(p[i*size:(i+1)*size]))
			}
			checkMSM(t, o, g, p, nil, fixed(1400, last), 1)
		})
		t.Run("picked", func(t *testing.T) {
			pick := make([]uint32, 900)
			for i := range pick {
				pick[i] = uint32((i * i * 31) % most)
			}
			checkMSM(t, o, g, pts, pick, s[:900], 2)
		})
	})
}

func TestMSMErrors(t *testing.T) {
	onGroups(t, func(t *testing.T, o oracle, g *Group) {
		pts := o.random(40)
		out := make([]uint64, g.k.pointBytes()/8)
		buf := make([]byte, g.MSMScratch(40, 2))
		ctx, cancel := context.WithCancel(context.Background())
		run := func(n int, pick []uint32, buf []byte, s []curve.Scalar) error {
			return g.MSM(ctx, pts, pick, s[:n], 2, buf, out)
		}
		if err := run(41, nil, make([]byte, 1<<24), randomScalars(o.id, 41)); err == nil {
			t.Error("more scalars than points")
		}
		if err := run(2, []uint32{1, 40}, buf, randomScalars(o.id, 2)); err == nil {
			t.Error("pick out of range")
		}
		if err := run(2, []uint32{1}, buf, randomScalars(o.id, 2)); err == nil {
			t.Error("pick too short")
		}
		if err := run(40, nil, buf[:len(buf)-1], randomScalars(o.id, 40)); err == nil {
			t.Error("scratch too small")
		}
		if err := run(1, nil, buf, []curve.Scalar{{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0) >> 1}}); !errors.Is(err, errScalar) {
			t.Error("scalar out of range:", err)
		}
		cancel()
		if err := run(40, nil, buf, randomScalars(o.id, 40)); !errors.Is(err, context.Canceled) {
			t.Error("cancelled:", err)
		}
	})
}
