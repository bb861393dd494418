package ifma

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"

	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	blsfft "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	bnfft "github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"
)

// fft is gnark-crypto's transform and its domain.
type fft struct {
	d       curve.Domain
	forward func(a []curve.Scalar, in Order, coset bool, tasks int)
	inverse func(a []curve.Scalar, in Order, coset bool, tasks int)
}

func newFFT(id curve.ID, log int) fft {
	if id == curve.BLS12381 {
		d := blsfft.NewDomain(1 << log)
		run := func(f func([]blsfr.Element, blsfft.Decimation, ...blsfft.Option)) func([]curve.Scalar, Order, bool, int) {
			return func(a []curve.Scalar, in Order, coset bool, tasks int) {
				o := []blsfft.Option{blsfft.WithNbTasks(tasks)}
				if coset {
					o = append(o, blsfft.OnCoset())
				}
				dec := blsfft.DIF
				if in == Reversed {
					dec = blsfft.DIT
				}
				f(view[blsfr.Element](mem(a)), dec, o...)
			}
		}
		return fft{curve.Domain{Log: log, Generator: curve.Scalar(d.Generator), Shift: curve.Scalar(d.FrMultiplicativeGen)}, run(d.FFT), run(d.FFTInverse)}
	}
	d := bnfft.NewDomain(1 << log)
	run := func(f func([]bnfr.Element, bnfft.Decimation, ...bnfft.Option)) func([]curve.Scalar, Order, bool, int) {
		return func(a []curve.Scalar, in Order, coset bool, tasks int) {
			o := []bnfft.Option{bnfft.WithNbTasks(tasks)}
			if coset {
				o = append(o, bnfft.OnCoset())
			}
			dec := bnfft.DIF
			if in == Reversed {
				dec = bnfft.DIT
			}
			f(view[bnfr.Element](mem(a)), dec, o...)
		}
	}
	return fft{curve.Domain{Log: log, Generator: curve.Scalar(d.Generator), Shift: curve.Scalar(d.FrMultiplicativeGen)}, run(d.FFT), run(d.FFTInverse)}
}

// newNTT fills the tables' memory with rubbish first.
func newNTT(t testing.TB, id curve.ID, d curve.Domain) *NTT {
	t.Helper()
	m := make([]byte, NTTBytes(d.Log))
	for i := range m {
		m[i] = 0xa5
	}
	n, err := NewNTT(id, d, m)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// inputs are vectors of 2^log scalars in Montgomery form: fresh ones and edges.
func inputs(id curve.ID, log int) map[string][]curve.Scalar {
	n := 1 << log
	last := id.ScalarModulus()
	last.Sub(last, one)
	fill := func(f func(i int) curve.Scalar) []curve.Scalar {
		s := make([]curve.Scalar, n)
		for i := range s {
			s[i] = f(i)
		}
		return s
	}
	// The largest words that a reduced element can have make the largest lazy values.
	top := intScalar(last)
	return map[string][]curve.Scalar{
		"random": randomScalars(id, n),
		"zero":   make([]curve.Scalar, n),
		"last":   fill(func(int) curve.Scalar { return top }),
		"edges": fill(func(i int) curve.Scalar {
			return []curve.Scalar{{}, {1}, top, intScalar(new(big.Int).Rsh(last, 1))}[i*i%7%4]
		}),
		"unit": fill(func(i int) curve.Scalar {
			if i == 1 {
				return top
			}
			return curve.Scalar{}
		}),
	}
}

func TestNTT(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	ctx := context.Background()
	for _, id := range curve.All() {
		for log := MinNTT; log <= 15; log++ {
			f := newFFT(id, log)
			n := newNTT(t, id, f.d)
			for name, in := range inputs(id, log) {
				if log > 11 && name != "random" && name != "last" {
					continue
				}
				for _, order := range []Order{Natural, Reversed} {
					for _, coset := range []bool{false, true} {
						for _, inverse := range []bool{false, true} {
							want, got := append([]curve.Scalar(nil), in...), append([]curve.Scalar(nil), in...)
							workers := 1 + log%3
							buf := make([]byte, NTTScratch(log, workers))
							for i := range buf {
								buf[i] = 0x5a
							}
							var err error
							if inverse {
								f.inverse(want, order, coset, 1)
								err = n.Inverse(ctx, got, order, coset, workers, buf)
							} else {
								f.forward(want, order, coset, 1)
								err = n.Forward(ctx, got, order, coset, workers, buf)
							}
							if err != nil {
								t.Fatal(err)
							}
							for i := range want {
								if got[i] != want[i] {
									t.Fatalf("%v 2^%d %s: order %d coset %v inverse %v: element %d differs", id, log, name, order, coset, inverse, i)
								}
							}
						}
					}
				}
			}
		}
	}
}

func TestNTTErrors(t *testing.T) {
	if !Available() {
		t.Skip("no AVX-512 IFMA here")
	}
	f := newFFT(curve.BN254, 10)
	n := newNTT(t, curve.BN254, f.d)
	ctx, cancel := context.WithCancel(context.Background())
	a, buf := make([]curve.Scalar, 1<<10), make([]byte, NTTScratch(10, 2))
	if n.Forward(ctx, a[1:], Natural, false, 2, buf) == nil {
		t.Error("wrong length")
	}
	if n.Forward(ctx, a, Natural, false, 2, buf[1:]) == nil {
		t.Error("scratch too small")
	}
	cancel()
	if err := n.Inverse(ctx, a, Reversed, false, 2, buf); !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}
	if _, err := NewNTT(curve.BN254, f.d, make([]byte, 100)); err == nil {
		t.Error("memory too small")
	}
	f.d.Log = 11
	if _, err := NewNTT(curve.BN254, f.d, make([]byte, NTTBytes(11))); err == nil {
		t.Error("wrong generator")
	}
	f.d.Log = MinNTT - 1
	if n, err := NewNTT(curve.BN254, f.d, nil); n != nil || err != nil {
		t.Error("small sizes are refused without an error")
	}
}
