package kernels_test

import (
	"math/big"
	"math/bits"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// place is a device with a stream, and the memory that a test took from it.
type place struct {
	t    testing.TB
	dev  gpu.Device
	st   gpu.Stream
	args *gpu.Args
}

func newPlace(t testing.TB, dev gpu.Device) *place {
	st, err := dev.NewStream(false)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dev: dev, st: st, args: gpu.NewArgs()}
	t.Cleanup(func() { p.must(st.Close()) })
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// alloc takes device memory until the test ends.
func (p *place) alloc(n int64) gpu.Ptr {
	p.t.Helper()
	m, err := p.dev.Alloc(max(n, 16))
	p.must(err)
	p.t.Cleanup(func() { p.must(p.dev.Free(m)) })
	return m
}

// take takes device memory and gives the call that frees it.
func (p *place) take(n int64) (gpu.Ptr, func()) {
	p.t.Helper()
	m, err := p.dev.Alloc(max(n, 16))
	p.must(err)
	return m, func() { p.must(p.dev.Free(m)) }
}

func (p *place) pinned(n int64) unsafe.Pointer {
	p.t.Helper()
	m, err := p.dev.AllocPinned(max(n, 16))
	p.must(err)
	p.t.Cleanup(func() { p.must(p.dev.FreePinned(m)) })
	return m
}

func (p *place) copyIn(to gpu.Ptr, b []byte) {
	p.t.Helper()
	if len(b) > 0 {
		p.must(p.st.CopyIn(to, unsafe.Pointer(&b[0]), int64(len(b))))
		p.must(p.st.Sync())
	}
}

func (p *place) upload(b []byte) gpu.Ptr {
	p.t.Helper()
	m := p.alloc(int64(len(b)))
	p.copyIn(m, b)
	return m
}

func (p *place) download(from gpu.Ptr, n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	p.must(p.st.CopyOut(unsafe.Pointer(&b[0]), from, int64(n)))
	p.must(p.st.Sync())
	return b
}

// group is a group with gnark-crypto's arithmetic.
type group struct {
	id    curve.ID
	g     curve.Group
	times func(k []curve.Scalar) []byte                      // k·generator, affine
	msm   func(points []byte, scalars []curve.Scalar) []byte // one affine point
}

func (g group) String() string { return g.id.String() + " " + g.g.String() }
func (g group) size() int      { return g.id.PointBytes(g.g) }

func view[T any](b []byte) []T {
	v, err := curve.View[T](b)
	if err != nil {
		panic(err)
	}
	return v
}

func scalarsOf[E any](s []curve.Scalar) []E { return view[E](curve.Bytes(s)) }

// one is the memory of a point, and checks nothing.
func onePoint[P any](p *P, err error) []byte {
	if err != nil {
		panic(err)
	}
	return curve.Bytes([]P{*p})
}

func groups() []group {
	_, _, bls1, bls2 := bls12381.Generators()
	_, _, bn1, bn2 := bn254.Generators()
	return []group{
		{curve.BLS12381, curve.InG1, func(k []curve.Scalar) []byte {
			return curve.Bytes(bls12381.BatchScalarMultiplicationG1(&bls1, scalarsOf[blsfr.Element](k)))
		}, func(p []byte, s []curve.Scalar) []byte {
			return onePoint(new(bls12381.G1Affine).MultiExp(view[bls12381.G1Affine](p), scalarsOf[blsfr.Element](s), ecc.MultiExpConfig{}))
		}},
		{curve.BLS12381, curve.InG2, func(k []curve.Scalar) []byte {
			return curve.Bytes(bls12381.BatchScalarMultiplicationG2(&bls2, scalarsOf[blsfr.Element](k)))
		}, func(p []byte, s []curve.Scalar) []byte {
			return onePoint(new(bls12381.G2Affine).MultiExp(view[bls12381.G2Affine](p), scalarsOf[blsfr.Element](s), ecc.MultiExpConfig{}))
		}},
		{curve.BN254, curve.InG1, func(k []curve.Scalar) []byte {
			return curve.Bytes(bn254.BatchScalarMultiplicationG1(&bn1, scalarsOf[bnfr.Element](k)))
		}, func(p []byte, s []curve.Scalar) []byte {
			return onePoint(new(bn254.G1Affine).MultiExp(view[bn254.G1Affine](p), scalarsOf[bnfr.Element](s), ecc.MultiExpConfig{}))
		}},
		{curve.BN254, curve.InG2, func(k []curve.Scalar) []byte {
			return curve.Bytes(bn254.BatchScalarMultiplicationG2(&bn2, scalarsOf[bnfr.Element](k)))
		}, func(p []byte, s []curve.Scalar) []byte {
			return onePoint(new(bn254.G2Affine).MultiExp(view[bn254.G2Affine](p), scalarsOf[bnfr.Element](s), ecc.MultiExpConfig{}))
		}},
	}
}

// montgomery is v·2^256 mod r.
func montgomery(id curve.ID, v *big.Int) (s curve.Scalar) {
	x := new(big.Int).Lsh(v, 256)
	x.Mod(x, id.ScalarModulus())
	for i := range s {
		s[i] = new(big.Int).Rsh(x, uint(64*i)).Uint64()
	}
	return s
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// scalarMaker gives the scalars that fpcheck_scalars makes.
type scalarMaker struct {
	r    curve.Scalar
	mask uint64
}

func newScalarMaker(id curve.ID) (m scalarMaker) {
	r := id.ScalarModulus()
	for i := range m.r {
		m.r[i] = new(big.Int).Rsh(r, uint(64*i)).Uint64()
	}
	m.mask = 1<<(r.BitLen()-192) - 1
	return m
}

func (m *scalarMaker) at(seed, i uint64) (s curve.Scalar) {
	for k := range s {
		s[k] = mix(seed + 4*i + uint64(k))
	}
	s[3] &= m.mask
	var d curve.Scalar
	var b uint64
	for k := range d {
		d[k], b = bits.Sub64(s[k], m.r[k], b)
	}
	if b == 0 {
		return d
	}
	return s
}

// Kinds of scalars.
var kinds = []string{"uniform", "zero", "one", "r-1", "equal", "bits", "16 bit", "eight", "edge"}

// makeScalars makes n scalars of a kind, in Montgomery form.
func makeScalars(id curve.ID, kind string, n int, seed uint64) []curve.Scalar {
	m := newScalarMaker(id)
	r := id.ScalarModulus()
	half := new(big.Int).Rsh(r, 1)
	number := func(v int64) curve.Scalar { return montgomery(id, big.NewInt(v)) }
	plus := func(v *big.Int, d int64) curve.Scalar { return montgomery(id, new(big.Int).Add(v, big.NewInt(d))) }
	one := number(1)
	var table []curve.Scalar
	switch kind {
	case "r-1":
		table = []curve.Scalar{plus(r, -1)}
	case "16 bit":
		for v := range int64(min(n, 1<<16)) {
			table = append(table, number(v*7919&0xffff))
		}
	case "edge":
		table = []curve.Scalar{{}, one, plus(r, -1), plus(half, 0), plus(half, 1), plus(half, -1), number(2), plus(r, -2)}
		for i := range uint(255) {
			p := new(big.Int).Lsh(big.NewInt(1), i)
			for d := int64(-1); d <= 1; d++ {
				if p.Cmp(half) < 0 || d < 1 {
					table = append(table, plus(p, d))
				}
			}
			if i%5 == 0 { // digits all at their end
				v := new(big.Int)
				for k := uint(0); k < 254; k += i + 6 {
					v.SetBit(v, int(k+i+5), 1)
				}
				table = append(table, plus(v, 0), plus(v.Neg(v), 0))
			}
		}
	}
	s := make([]curve.Scalar, n)
	for i := range s {
		switch u := uint64(i); kind {
		case "uniform":
			s[i] = m.at(seed, u)
		case "zero":
		case "one":
			s[i] = one
		case "equal":
			s[i] = m.at(seed, 0)
		case "bits":
			if t := mix(seed^(77*u+5)) % 100; t >= 90 {
				s[i] = m.at(seed, u)
			} else if t >= 45 {
				s[i] = one
			}
		case "eight":
			s[i] = m.at(seed, mix(seed+u)&7)
		default:
			s[i] = table[i%len(table)]
		}
	}
	return s
}

// logs are the discrete logarithms of points, to a common base: k·sign.
type logs struct {
	at func(i int) (k uint64, sign int)
}

// sequence are the points (2^40 + 1 + i)·G of generator.
var sequence = logs{func(i int) (uint64, int) { return 1<<40 + 1 + uint64(i), 1 }}

// expected is (Σ scalars[i]·log(i) for the i of pick)·G: a sum over the
// logarithms, on all processors.
func expected(g group, scalar func(i int) curve.Scalar, l logs, n int, pick func(j int) int) []byte {
	workers := runtime.NumCPU()
	sums := make([]*big.Int, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var acc [2][7]uint64
			for j := n * w / workers; j < n*(w+1)/workers; j++ {
				i := j
				if pick != nil {
					i = pick(j)
				}
				k, sign := l.at(i)
				s := scalar(i)
				a := &acc[0]
				if sign < 0 {
					a = &acc[1]
				} else if sign == 0 {
					continue
				}
				var carry, c uint64
				for x := range 4 {
					hi, lo := bits.Mul64(s[x], k)
					lo, c = bits.Add64(lo, carry, 0)
					hi += c
					a[x], c = bits.Add64(a[x], lo, 0)
					carry = hi + c
				}
				a[4], c = bits.Add64(a[4], carry, 0)
				a[5], _ = bits.Add64(a[5], 0, c)
			}
			v := new(big.Int)
			for s, a := range acc {
				x := new(big.Int)
				for i, word := range a {
					x.Or(x, new(big.Int).Lsh(new(big.Int).SetUint64(word), uint(64*i)))
				}
				if s == 1 {
					x.Neg(x)
				}
				v.Add(v, x)
			}
			sums[w] = v
		}()
	}
	wg.Wait()
	v := new(big.Int)
	for _, s := range sums {
		v.Add(v, s)
	}
	r := g.id.ScalarModulus()
	// The scalars are in Montgomery form.
	v.Mul(v, new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 256), r))
	return g.times([]curve.Scalar{montgomery(g.id, v.Mod(v, r))})
}

// generator makes the points of sequence on the device.
func (p *place) generator(set *kernels.Set, g group, n int) gpu.Ptr {
	p.t.Helper()
	k, err := set.FpcheckKernels()
	p.must(err)
	const log = 13
	small := make([]curve.Scalar, 1<<log)
	for i := range small {
		small[i] = montgomery(g.id, big.NewInt(int64(i+1)))
	}
	large := make([]curve.Scalar, n>>log+1)
	for i := range large {
		large[i] = montgomery(g.id, big.NewInt(1<<40+int64(i)<<log))
	}
	a, freeA := p.take(int64(len(small) * g.size()))
	b, freeB := p.take(int64(len(large) * g.size()))
	p.copyIn(a, g.times(small))
	p.copyIn(b, g.times(large))
	out := p.alloc(int64(n) * int64(g.size()))
	per := max(1, min(32, n/20000))
	l := gpu.Linear(int64((n+per-1)/per), 64)
	if g.g == curve.InG1 {
		p.must(k.FpcheckPoints1(p.st, l, p.args, a, b, log, uint32(per), out, uint32(n)))
	} else {
		p.must(k.FpcheckPoints2(p.st, l, p.args, a, b, log, uint32(per), out, uint32(n)))
	}
	p.must(p.st.Sync())
	freeA()
	freeB()
	return out
}

// uniform makes n scalars on the device: those of scalarMaker.
func (p *place) uniform(set *kernels.Set, n int, seed uint64, to gpu.Ptr) {
	p.t.Helper()
	k, err := set.FpcheckKernels()
	p.must(err)
	m := newScalarMaker(set.Curve())
	p.must(k.FpcheckScalars(p.st, gpu.Linear(int64(n), 256), p.args, seed, m.r[0], m.r[1], m.r[2], m.r[3], m.mask, to, uint32(n)))
	p.must(p.st.Sync())
}

// sumValue is the plain sum that Sum has copied to out.
func sumValue(g group, m *kernels.MSM, plan kernels.SumPlan, out unsafe.Pointer) []byte {
	if g.g == curve.InG1 {
		v := m.SumValue1(plan, out)
		return curve.Bytes(v[:])[:g.size()]
	}
	v := m.SumValue2(plan, out)
	return curve.Bytes(v[:])[:g.size()]
}

// value is the sum that a run has copied to out.
func value(g group, m *kernels.MSM, plan kernels.Plan, out unsafe.Pointer) []byte {
	if g.g == curve.InG1 {
		v := m.Value1(plan, out)
		return curve.Bytes(v[:])[:g.size()]
	}
	v := m.Value2(plan, out)
	return curve.Bytes(v[:])[:g.size()]
}
