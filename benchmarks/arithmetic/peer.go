package main

import (
	"math/rand/v2"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfp "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	blsfft "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"
	bnfp "github.com/consensys/gnark-crypto/ecc/bn254/fp"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	bnfft "github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
)

// peer is gnark-crypto's arithmetic of one curve.
type peer struct {
	points func(g curve.Group, n int) []byte
	msm    func(g curve.Group, points []byte, w []curve.Scalar, tasks int) ([]byte, error)
	scalar func(v int64) curve.Scalar
	random func() curve.Scalar
	domain func(log int) (curve.Domain, func(a []curve.Scalar, t cpu.Transform, tasks int))
	fields []peerField
}

// peerField is gnark-crypto's arithmetic of one field, on elements in memory.
type peerField struct {
	name   string
	base   bool
	size   int
	mul    func(z, x, y []byte)
	vector func(z, x, y []byte) // a product of whole vectors, where there is one
}

// view reads memory that this program made itself.
func view[T any](b []byte) []T {
	v, err := curve.View[T](b)
	if err != nil {
		panic(err)
	}
	return v
}

type element[E any] interface {
	*E
	Mul(x, y *E) *E
}

func products[E any, P element[E]](z, x, y []byte) {
	zs, xs, ys := view[E](z), view[E](x), view[E](y)
	for i := range zs {
		P(&zs[i]).Mul(&xs[i], &ys[i])
	}
}

type jacobian[J, A any] interface {
	*J
	AddMixed(a *A) *J
	FromAffine(a *A) *J
}

// walk is n points: multiples of a, each a step further.
func walk[J, A any, P jacobian[J, A]](a A, n int, affine func([]J) []A) []byte {
	v := make([]J, n)
	P(&v[0]).FromAffine(&a)
	for i := 1; i < n; i++ {
		v[i] = v[i-1]
		P(&v[i]).AddMixed(&a)
	}
	return curve.Bytes(affine(v))
}

// the points of G2 have no batched conversion in every version
func affineEach[J, A any](one func(*J) A) func([]J) []A {
	return func(v []J) []A {
		out := make([]A, len(v))
		for i := range v {
			out[i] = one(&v[i])
		}
		return out
	}
}

func peerOf(id curve.ID) peer {
	if id == curve.BN254 {
		return bnPeer()
	}
	return blsPeer()
}

func blsPeer() peer {
	_, _, g1, g2 := bls.Generators()
	fr := func(v []curve.Scalar) []blsfr.Element { return view[blsfr.Element](curve.Bytes(v)) }
	return peer{
		points: func(g curve.Group, n int) []byte {
			if g == curve.InG1 {
				return walk[bls.G1Jac](g1, n, bls.BatchJacobianToAffineG1)
			}
			return walk[bls.G2Jac](g2, n, affineEach(func(p *bls.G2Jac) (a bls.G2Affine) { return *a.FromJacobian(p) }))
		},
		msm: func(g curve.Group, points []byte, w []curve.Scalar, tasks int) ([]byte, error) {
			c := ecc.MultiExpConfig{NbTasks: tasks}
			if g == curve.InG1 {
				r := make([]bls.G1Affine, 1)
				_, err := r[0].MultiExp(view[bls.G1Affine](points), fr(w), c)
				return curve.Bytes(r), err
			}
			r := make([]bls.G2Affine, 1)
			_, err := r[0].MultiExp(view[bls.G2Affine](points), fr(w), c)
			return curve.Bytes(r), err
		},
		scalar: func(v int64) curve.Scalar { var e blsfr.Element; return curve.Scalar(*e.SetInt64(v)) },
		random: func() curve.Scalar {
			return random(func(b []byte) curve.Scalar { var e blsfr.Element; return curve.Scalar(*e.SetBytes(b)) })
		},
		domain: func(log int) (curve.Domain, func([]curve.Scalar, cpu.Transform, int)) {
			d := blsfft.NewDomain(1 << log)
			return curve.Domain{Log: log, Generator: curve.Scalar(d.Generator), Shift: curve.Scalar(d.FrMultiplicativeGen)},
				func(a []curve.Scalar, t cpu.Transform, tasks int) {
					order, f, opts := blsfft.DIF, d.FFT, []blsfft.Option{blsfft.WithNbTasks(tasks)}
					if t.Reversed {
						order = blsfft.DIT
					}
					if t.Inverse {
						f = d.FFTInverse
					}
					if t.Coset {
						opts = append(opts, blsfft.OnCoset())
					}
					f(fr(a), order, opts...)
				}
		},
		fields: []peerField{
			{"Fp", true, 48, products[blsfp.Element], nil},
			{"Fr", false, 32, products[blsfr.Element], func(z, x, y []byte) {
				v := blsfr.Vector(view[blsfr.Element](z))
				v.Mul(view[blsfr.Element](x), view[blsfr.Element](y))
			}},
		},
	}
}

func bnPeer() peer {
	_, _, g1, g2 := bn.Generators()
	fr := func(v []curve.Scalar) []bnfr.Element { return view[bnfr.Element](curve.Bytes(v)) }
	return peer{
		points: func(g curve.Group, n int) []byte {
			if g == curve.InG1 {
				return walk[bn.G1Jac](g1, n, bn.BatchJacobianToAffineG1)
			}
			return walk[bn.G2Jac](g2, n, affineEach(func(p *bn.G2Jac) (a bn.G2Affine) { return *a.FromJacobian(p) }))
		},
		msm: func(g curve.Group, points []byte, w []curve.Scalar, tasks int) ([]byte, error) {
			c := ecc.MultiExpConfig{NbTasks: tasks}
			if g == curve.InG1 {
				r := make([]bn.G1Affine, 1)
				_, err := r[0].MultiExp(view[bn.G1Affine](points), fr(w), c)
				return curve.Bytes(r), err
			}
			r := make([]bn.G2Affine, 1)
			_, err := r[0].MultiExp(view[bn.G2Affine](points), fr(w), c)
			return curve.Bytes(r), err
		},
		scalar: func(v int64) curve.Scalar { var e bnfr.Element; return curve.Scalar(*e.SetInt64(v)) },
		random: func() curve.Scalar {
			return random(func(b []byte) curve.Scalar { var e bnfr.Element; return curve.Scalar(*e.SetBytes(b)) })
		},
		domain: func(log int) (curve.Domain, func([]curve.Scalar, cpu.Transform, int)) {
			d := bnfft.NewDomain(1 << log)
			return curve.Domain{Log: log, Generator: curve.Scalar(d.Generator), Shift: curve.Scalar(d.FrMultiplicativeGen)},
				func(a []curve.Scalar, t cpu.Transform, tasks int) {
					order, f, opts := bnfft.DIF, d.FFT, []bnfft.Option{bnfft.WithNbTasks(tasks)}
					if t.Reversed {
						order = bnfft.DIT
					}
					if t.Inverse {
						f = d.FFTInverse
					}
					if t.Coset {
						opts = append(opts, bnfft.OnCoset())
					}
					f(fr(a), order, opts...)
				}
		},
		fields: []peerField{
			{"Fp", true, 32, products[bnfp.Element], nil},
			{"Fr", false, 32, products[bnfr.Element], func(z, x, y []byte) {
				v := bnfr.Vector(view[bnfr.Element](z))
				v.Mul(view[bnfr.Element](x), view[bnfr.Element](y))
			}},
		},
	}
}

// random is an element from 40 bytes, which set reduces.
func random(set func([]byte) curve.Scalar) curve.Scalar {
	var b [40]byte
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return set(b[:])
}
