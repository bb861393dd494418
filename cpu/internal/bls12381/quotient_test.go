package bls12381

import (
	"context"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// rootFrom is base^((r−1)/2^log): base must not be a square.
func rootFrom(base uint64, log int) curve.Scalar {
	e := fr.Modulus()
	e.Sub(e, big.NewInt(1)).Rsh(e, uint(log))
	var g fr.Element
	g.SetUint64(base)
	g.Exp(g, e)
	return curve.Scalar(g)
}

func randomVector(rng *rand.Rand, n int) []curve.Scalar {
	v := make([]curve.Scalar, n)
	for i := range v {
		v[i] = curve.Scalar(randomScalar(rng))
	}
	return v
}

// at evaluates at x the polynomial of degree < n that has the values v on d,
// by the barycentric formula.
func at(v []curve.Scalar, d curve.Domain, x fr.Element) fr.Element {
	n := len(v)
	one := fr.One()
	w := make([]fr.Element, n)
	den := make([]fr.Element, n)
	w[0] = one
	g := fr.Element(d.Generator)
	for i := range n {
		if i > 0 {
			w[i].Mul(&w[i-1], &g)
		}
		den[i].Sub(&x, &w[i])
	}
	den = fr.BatchInvert(den)
	var sum, t fr.Element
	for i := range n {
		t.Mul(&den[i], &w[i])
		t.Mul(&t, (*fr.Element)(&v[i]))
		sum.Add(&sum, &t)
	}
	t.Exp(x, big.NewInt(int64(n)))
	t.Sub(&t, &one)
	sum.Mul(&sum, &t)
	t.SetUint64(uint64(n))
	t.Inverse(&t)
	return *sum.Mul(&sum, &t)
}

// TestQuotientOnCoset compares places of the result with the polynomials
// evaluated one by one.
func TestQuotientOnCoset(t *testing.T) {
	defer alloc.CheckLeaks(t)
	rng := newRand(t)
	for _, log := range []int{0, 1, 2, 3, 4, 5, 7, 10, 11, 13, 14, 16, 19} {
		if log > 14 && testing.Short() {
			continue
		}
		n := 1 << log
		for _, base := range []uint64{5, 7} {
			if log > 14 && base == 7 {
				continue
			}
			d := curve.Domain{Log: log, Generator: rootFrom(base, log), Shift: curve.Scalar(randomScalar(rng))}
			for _, folded := range []bool{false, true} {
				if log > 16 && folded {
					continue
				}
				a, b, c := randomVector(rng, n), randomVector(rng, n), randomVector(rng, n)
				got := append([]curve.Scalar(nil), a...)
				with := append([]curve.Scalar(nil), c...)
				if folded {
					with = nil
				}
				e := engineG1(1 + rng.IntN(5) + 10*rng.IntN(2))
				err := e.Quotient(context.Background(), nil, d, curve.Coset, got, append([]curve.Scalar(nil), b...), with)
				if err != nil {
					t.Fatal(err)
				}
				for range min(n, 5, max(1, 1<<17>>log)) {
					i := rng.IntN(n)
					x := fr.Element(d.Generator)
					x.Exp(x, big.NewInt(int64(i)))
					x.Mul(&x, (*fr.Element)(&d.Shift))
					want, v := at(a, d, x), at(b, d, x)
					want.Mul(&want, &v)
					if !folded {
						v = at(c, d, x)
						want.Sub(&want, &v)
					}
					if fr.Element(got[i]) != want {
						t.Fatalf("2^%d, base %d, folded %v: wrong at %d", log, base, folded, i)
					}
				}
			}
		}
	}
}

// TestQuotientMonomial checks a·b − c = h·(Xⁿ − 1) at a random point, with the
// shift of the domain and without one.
func TestQuotientMonomial(t *testing.T) {
	defer alloc.CheckLeaks(t)
	rng := newRand(t)
	for _, log := range []int{0, 1, 2, 3, 6, 10, 13, 14, 15} {
		n := 1 << log
		for _, shift := range []fr.Element{{}, randomScalar(rng)} {
			d := curve.Domain{Log: log, Generator: rootFrom(5, log), Shift: curve.Scalar(shift)}
			a, b := randomVector(rng, n), randomVector(rng, n)
			c := make([]curve.Scalar, n)
			e := engineG1(1 + rng.IntN(5) + 10*rng.IntN(2))
			if err := e.Hadamard(context.Background(), a, b, c); err != nil {
				t.Fatal(err)
			}
			x := randomScalar(rng)
			want, v := at(a, d, x), at(b, d, x)
			want.Mul(&want, &v)
			v = at(c, d, x)
			want.Sub(&want, &v)
			h := append([]curve.Scalar(nil), a...)
			if err := e.Quotient(context.Background(), nil, d, curve.Monomial, h, b, c); err != nil {
				t.Fatal(err)
			}
			var got, xi fr.Element
			for i := n - 1; i >= 0; i-- {
				j := bits.Reverse64(uint64(i)) >> (64 - log)
				got.Mul(&got, &x)
				got.Add(&got, (*fr.Element)(&h[j]))
			}
			one := fr.One()
			xi.Exp(x, big.NewInt(int64(n)))
			xi.Sub(&xi, &one)
			got.Mul(&got, &xi)
			if got != want {
				t.Errorf("2^%d: a·b − c is not h·Z", log)
			}
		}
	}
}

// TestQuotientMonomialFolded: with c nil, the result is that with c, plus
// c/(gⁿ − 1), which is what folding C into the key takes off.
func TestQuotientMonomialFolded(t *testing.T) {
	rng := newRand(t)
	const log, n = 8, 1 << 8
	fd := fft.NewDomain(n)
	d := curve.Domain{Log: log, Generator: curve.Scalar(fd.Generator), Shift: curve.Scalar(randomScalar(rng))}
	a, b, c := randomVector(rng, n), randomVector(rng, n), randomVector(rng, n)
	clone := func(v []curve.Scalar) []curve.Scalar { return append([]curve.Scalar(nil), v...) }
	full, folded, coeffs := clone(a), clone(a), clone(c)
	e := engineG1(2)
	for v, c := range map[*[]curve.Scalar][]curve.Scalar{&full: clone(c), &folded: nil} {
		if err := e.Quotient(context.Background(), nil, d, curve.Monomial, *v, clone(b), c); err != nil {
			t.Fatal(err)
		}
	}
	fd.FFTInverse(elements(coeffs), fft.DIF)
	var scale, diff fr.Element
	one := fr.One()
	scale.Exp(fr.Element(d.Shift), big.NewInt(n))
	scale.Sub(&scale, &one)
	scale.Inverse(&scale)
	for i := range n {
		diff.Sub((*fr.Element)(&folded[i]), (*fr.Element)(&full[i]))
		var want fr.Element
		if want.Mul(&scale, (*fr.Element)(&coeffs[i])); diff != want {
			t.Fatalf("coefficient %d", i)
		}
	}
}

func TestQuotientRefuses(t *testing.T) {
	defer alloc.CheckLeaks(t)
	rng := newRand(t)
	e := engineG1(2)
	v := randomVector(rng, 8)
	ok := curve.Domain{Log: 3, Generator: rootFrom(5, 3), Shift: curve.Scalar(randomScalar(rng))}
	with := func(f func(d *curve.Domain)) curve.Domain {
		d := ok
		f(&d)
		return d
	}
	for name, bad := range map[string]struct {
		d     curve.Domain
		basis curve.Basis
		a     []curve.Scalar
	}{
		"short vector":    {ok, curve.Coset, v[:7]},
		"unknown basis":   {ok, 0, v},
		"no shift":        {with(func(d *curve.Domain) { d.Shift = curve.Scalar{} }), curve.Coset, v},
		"shift in domain": {with(func(d *curve.Domain) { d.Shift = d.Generator }), curve.Monomial, v},
		"smaller order":   {with(func(d *curve.Domain) { d.Generator = rootFrom(5, 2) }), curve.Coset, v},
		"larger order":    {with(func(d *curve.Domain) { d.Generator = rootFrom(5, 4) }), curve.Coset, v},
		"negative":        {with(func(d *curve.Domain) { d.Log = -1 }), curve.Coset, v},
		"too large":       {with(func(d *curve.Domain) { d.Log = 60 }), curve.Coset, v},
	} {
		if err := e.Quotient(context.Background(), nil, bad.d, bad.basis, bad.a, v, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestQuotientScratchIsWhatItTakes(t *testing.T) {
	rng := newRand(t)
	for _, log := range []int{0, 1, 4, 10, 12, 14} {
		for _, workers := range []int{1, 2, 5, 12} {
			e := engineG1(workers)
			d := curve.Domain{Log: log, Generator: rootFrom(5, log), Shift: curve.Scalar(randomScalar(rng))}
			bound := e.QuotientScratch(1<<log, curve.Coset, false)
			for part, enough := range []bool{false, true} {
				give := bound
				if !enough {
					give[alloc.Host] = bound[alloc.Host] * 2 / 3
				}
				res, err := alloc.NewBudget(bound).Reserve(context.Background(), give)
				if err != nil {
					t.Fatal(err)
				}
				a, b := randomVector(rng, 1<<log), randomVector(rng, 1<<log)
				err = e.Quotient(context.Background(), alloc.NewScope(alloc.StageOf("test"), alloc.Host, res), d, curve.Coset, a, b, nil)
				if (err == nil) != enough {
					t.Errorf("2^%d, %d workers, part %d: %v", log, workers, part, err)
				}
				if used := res.Used(); !used.IsZero() {
					t.Errorf("%v still in use", used)
				}
				res.Close()
			}
		}
	}
}
