package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	blsfft "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	bnfft "github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"

	"github.com/snarkline/snarkline/curve"
)

// peer is gnark-crypto's arithmetic of one curve, for the comparison.
type peer struct {
	points func(g curve.Group, n int) []byte
	msm    func(g curve.Group, points []byte, w []curve.Scalar)
	scalar func(v uint64) curve.Scalar
	random func() curve.Scalar
	domain func(n int) (d curve.Domain, seven func(a, b, c []curve.Scalar))
}

func peerOf(id curve.ID) peer {
	if id == curve.BN254 {
		return bnPeer()
	}
	return blsPeer()
}

func view[T any](b []byte) []T {
	v, err := curve.View[T](b)
	if err != nil {
		panic(err)
	}
	return v
}

func blsPeer() peer {
	_, _, g1, g2 := bls.Generators()
	fr := func(v []curve.Scalar) []blsfr.Element { return view[blsfr.Element](curve.Bytes(v)) }
	p := peer{
		points: func(g curve.Group, n int) []byte {
			s := make([]blsfr.Element, n)
			for i := range s {
				s[i].MustSetRandom()
			}
			if g == curve.InG1 {
				return curve.Bytes(bls.BatchScalarMultiplicationG1(&g1, s))
			}
			return curve.Bytes(bls.BatchScalarMultiplicationG2(&g2, s))
		},
		msm: func(g curve.Group, points []byte, w []curve.Scalar) {
			var err error
			if g == curve.InG1 {
				_, err = new(bls.G1Affine).MultiExp(view[bls.G1Affine](points), fr(w), ecc.MultiExpConfig{})
			} else {
				_, err = new(bls.G2Affine).MultiExp(view[bls.G2Affine](points), fr(w), ecc.MultiExpConfig{})
			}
			if err != nil {
				panic(err)
			}
		},
		scalar: func(v uint64) curve.Scalar { return curve.Scalar(blsfr.NewElement(v)) },
		random: func() curve.Scalar { var e blsfr.Element; return curve.Scalar(*e.MustSetRandom()) },
		domain: func(n int) (curve.Domain, func(a, b, c []curve.Scalar)) {
			d := blsfft.NewDomain(uint64(n))
			return curve.Domain{Generator: curve.Scalar(d.Generator), Shift: curve.Scalar(d.FrMultiplicativeGen)},
				func(a, b, c []curve.Scalar) {
					for _, v := range [][]curve.Scalar{a, b, c} {
						d.FFTInverse(fr(v), blsfft.DIF)
						d.FFT(fr(v), blsfft.DIT, blsfft.OnCoset())
					}
					d.FFTInverse(fr(a), blsfft.DIF, blsfft.OnCoset())
				}
		},
	}
	return p
}

func bnPeer() peer {
	_, _, g1, g2 := bn.Generators()
	fr := func(v []curve.Scalar) []bnfr.Element { return view[bnfr.Element](curve.Bytes(v)) }
	return peer{
		points: func(g curve.Group, n int) []byte {
			s := make([]bnfr.Element, n)
			for i := range s {
				s[i].MustSetRandom()
			}
			if g == curve.InG1 {
				return curve.Bytes(bn.BatchScalarMultiplicationG1(&g1, s))
			}
			return curve.Bytes(bn.BatchScalarMultiplicationG2(&g2, s))
		},
		msm: func(g curve.Group, points []byte, w []curve.Scalar) {
			var err error
			if g == curve.InG1 {
				_, err = new(bn.G1Affine).MultiExp(view[bn.G1Affine](points), fr(w), ecc.MultiExpConfig{})
			} else {
				_, err = new(bn.G2Affine).MultiExp(view[bn.G2Affine](points), fr(w), ecc.MultiExpConfig{})
			}
			if err != nil {
				panic(err)
			}
		},
		scalar: func(v uint64) curve.Scalar { return curve.Scalar(bnfr.NewElement(v)) },
		random: func() curve.Scalar { var e bnfr.Element; return curve.Scalar(*e.MustSetRandom()) },
		domain: func(n int) (curve.Domain, func(a, b, c []curve.Scalar)) {
			d := bnfft.NewDomain(uint64(n))
			return curve.Domain{Generator: curve.Scalar(d.Generator), Shift: curve.Scalar(d.FrMultiplicativeGen)},
				func(a, b, c []curve.Scalar) {
					for _, v := range [][]curve.Scalar{a, b, c} {
						d.FFTInverse(fr(v), bnfft.DIF)
						d.FFT(fr(v), bnfft.DIT, bnfft.OnCoset())
					}
					d.FFTInverse(fr(a), bnfft.DIF, bnfft.OnCoset())
				}
		},
	}
}

// spent runs f and returns the wall and the processor time that it took.
func spent(f func()) (wall, cpu time.Duration) {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			panic(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	c, t := used(), time.Now()
	f()
	return time.Since(t), used() - c
}

func median(v []time.Duration) time.Duration {
	slices.Sort(v)
	return v[len(v)/2]
}

// compare runs the ways of doing one thing in alternating rounds and reports
// the median time of each and its ratio to the last one's, which is
// gnark-crypto. The ratio of processor time says more on a busy machine.
func compare(b *testing.B, names []string, ways []func()) {
	walls, cpus := make([][]time.Duration, len(ways)), make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, f := range ways {
			w, c := spent(f)
			walls[i], cpus[i] = append(walls[i], w), append(cpus[i], c)
		}
	}
	last := len(ways) - 1
	wall, cpu := median(walls[last]), median(cpus[last])
	for i, name := range names {
		w, c := median(walls[i]), median(cpus[i])
		b.ReportMetric(float64(w.Microseconds())/1000, name+"-ms")
		if i < last {
			b.ReportMetric(float64(w)/float64(wall), name+"-wall-ratio")
			b.ReportMetric(float64(c)/float64(cpu), name+"-cpu-ratio")
		}
	}
	b.ReportMetric(0, "ns/op")
}

func engines(b *testing.B, id curve.ID) (names []string, list []*Engine) {
	for _, vectors := range []bool{true, false} {
		e, err := New(id, Vectors(vectors))
		if err != nil {
			b.Fatal(err)
		}
		names = append(names, map[bool]string{true: "vec", false: "plain"}[vectors])
		list = append(list, e)
	}
	return append(names, "gnark"), list
}

// witness is n scalars: dense ones are random; of bit-heavy ones 55% are 0,
// 30% are 1 and the rest random, as in a SHA-256 chain.
func witness(p peer, n int, dense bool) []curve.Scalar {
	w := make([]curve.Scalar, n)
	for i := range w {
		k := rand.IntN(20)
		switch {
		case dense || k < 3:
			w[i] = p.random()
		case k < 9:
			w[i] = p.scalar(1)
		}
	}
	return w
}

func BenchmarkMSM(b *testing.B) {
	for _, id := range curve.All() {
		p := peerOf(id)
		for _, g := range []curve.Group{curve.InG1, curve.InG2} {
			for _, log := range []int{8, 10, 12, 14, 16, 18} {
				n := 1 << log
				q := curve.Query{Points: curve.Points{Curve: id, Group: g, Data: p.points(g, n)}}
				for _, kind := range []string{"dense", "bits"} {
					b.Run(fmt.Sprintf("%v/%v/%d/%s", id, g, log, kind), func(b *testing.B) {
						w := witness(p, n, kind == "dense")
						names, list := engines(b, id)
						var ways []func()
						for _, e := range list {
							ways = append(ways, func() {
								var err error
								if g == curve.InG1 {
									_, err = e.MSMG1(context.Background(), nil, q, w, nil)
								} else {
									_, err = e.MSMG2(context.Background(), nil, q, w, nil)
								}
								if err != nil {
									b.Fatal(err)
								}
							})
						}
						compare(b, names, append(ways, func() { p.msm(g, q.Points.Data, w) }))
					})
				}
			}
		}
	}
}

func BenchmarkQuotient(b *testing.B) {
	for _, id := range curve.All() {
		p := peerOf(id)
		for _, log := range []int{12, 14, 16, 18} {
			n := 1 << log
			d, seven := p.domain(n)
			d.Log = log
			x, y, z := witness(p, n, true), witness(p, n, true), witness(p, n, true)
			for _, kind := range []string{"monomial", "coset", "folded"} {
				b.Run(fmt.Sprintf("%v/%d/%s", id, log, kind), func(b *testing.B) {
					names, list := engines(b, id)
					basis, c := curve.Coset, z
					switch kind {
					case "monomial":
						basis = curve.Monomial
					case "folded":
						c = nil
					}
					var ways []func()
					for _, e := range list {
						ways = append(ways, func() {
							if err := e.Quotient(context.Background(), nil, d, basis, x, y, c); err != nil {
								b.Fatal(err)
							}
						})
					}
					compare(b, names, append(ways, func() { seven(x, y, z) }))
				})
			}
		}
	}
}
