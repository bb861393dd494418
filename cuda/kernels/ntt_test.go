package kernels

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	blsfft "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	bnfr "github.com/consensys/gnark-crypto/ecc/bn254/fr"
	bnfft "github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"

	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
)

// nttPeer is gnark-crypto's transforms on one coset.
type nttPeer interface {
	forward(v []curve.Scalar, coset bool) // bit-reversed to natural
	inverse(v []curve.Scalar, coset bool) // natural to bit-reversed
}

type blsPeer struct{ d *blsfft.Domain }
type bnPeer struct{ d *bnfft.Domain }

func as[T any](v []curve.Scalar) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

func (p blsPeer) forward(v []curve.Scalar, coset bool) {
	var o []blsfft.Option
	if coset {
		o = append(o, blsfft.OnCoset())
	}
	p.d.FFT(as[blsfr.Element](v), blsfft.DIT, o...)
}

func (p blsPeer) inverse(v []curve.Scalar, coset bool) {
	var o []blsfft.Option
	if coset {
		o = append(o, blsfft.OnCoset())
	}
	p.d.FFTInverse(as[blsfr.Element](v), blsfft.DIF, o...)
}

func (p bnPeer) forward(v []curve.Scalar, coset bool) {
	var o []bnfft.Option
	if coset {
		o = append(o, bnfft.OnCoset())
	}
	p.d.FFT(as[bnfr.Element](v), bnfft.DIT, o...)
}

func (p bnPeer) inverse(v []curve.Scalar, coset bool) {
	var o []bnfft.Option
	if coset {
		o = append(o, bnfft.OnCoset())
	}
	p.d.FFTInverse(as[bnfr.Element](v), bnfft.DIF, o...)
}

func nttPeerOf(id curve.ID, log int, shift curve.Scalar) nttPeer {
	if id == curve.BN254 {
		return bnPeer{bnfft.NewDomain(1<<log, bnfft.WithShift(bnfr.Element(shift)))}
	}
	return blsPeer{blsfft.NewDomain(1<<log, blsfft.WithShift(blsfr.Element(shift)))}
}

// nttBench is a device, a stream on it, and a curve.
type nttBench struct {
	t    testing.TB
	dev  gpu.Device
	st   gpu.Stream
	args *gpu.Args
	ntt  *NTT
	id   curve.ID
	f    scalarField
	rng  *rand.Rand
}

func newNTTBench(t testing.TB, dev gpu.Device, id curve.ID) *nttBench {
	t.Helper()
	s := NewSet(dev, id)
	n, err := s.NTT()
	if err != nil {
		t.Fatal(err)
	}
	st, err := dev.NewStream(false)
	if err != nil {
		t.Fatal(err)
	}
	b := &nttBench{t: t, dev: dev, st: st, args: gpu.NewArgs(), ntt: n, id: id, f: newScalarField(id), rng: rand.New(rand.NewPCG(3, uint64(id)))}
	t.Cleanup(func() {
		b.must(st.Sync())
		b.must(st.Close())
		b.must(s.Close())
	})
	return b
}

func (b *nttBench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *nttBench) alloc(bytes int64) gpu.Ptr {
	b.t.Helper()
	if bytes == 0 {
		return 0
	}
	p, err := b.dev.Alloc(bytes)
	b.must(err)
	return p
}

func (b *nttBench) free(ps ...gpu.Ptr) {
	b.t.Helper()
	for _, p := range ps {
		if p != 0 {
			b.must(b.dev.Free(p))
		}
	}
}

func (b *nttBench) write(p gpu.Ptr, v []curve.Scalar) {
	b.t.Helper()
	b.must(b.st.CopyIn(p, unsafe.Pointer(unsafe.SliceData(v)), int64(len(v))*curve.ScalarBytes))
	b.must(b.st.Sync())
}

func (b *nttBench) read(p gpu.Ptr, v []curve.Scalar) []curve.Scalar {
	b.t.Helper()
	b.must(b.st.CopyOut(unsafe.Pointer(unsafe.SliceData(v)), p, int64(len(v))*curve.ScalarBytes))
	b.must(b.st.Sync())
	return v
}

func (b *nttBench) tables(d curve.Domain, basis curve.Basis) (*Tables, gpu.Ptr) {
	b.t.Helper()
	mem := b.alloc(b.ntt.TableBytes(d, basis))
	tab, err := b.ntt.MakeTables(b.st, b.args, d, basis, mem)
	b.must(err)
	return tab, mem
}

func (b *nttBench) domain(log int, basis curve.Basis) curve.Domain {
	b.t.Helper()
	d, err := groth16.NewDomain(b.id, 1<<log, basis)
	b.must(err)
	return d
}

// scalar is a number below r, drawn fast.
func (b *nttBench) scalar() curve.Scalar {
	top := b.f.r.Bit(254) + 2*b.f.r.Bit(253) // of the two highest bits that can be set
	s := curve.Scalar{b.rng.Uint64(), b.rng.Uint64(), b.rng.Uint64(), b.rng.Uint64() >> 2}
	if top == 1 {
		s[3] = s[3] % 0x73eda753299d7d48
	} else {
		s[3] = s[3] % 0x30644e72e131a029
	}
	return s
}

func (b *nttBench) random(n int) []curve.Scalar {
	v := make([]curve.Scalar, n)
	for i := range v {
		v[i] = b.scalar()
	}
	return v
}

// inputs are vectors that may go wrong: random, all 0, all r − 1 in Montgomery
// form and in plain form (the largest number there is), a single 1, and numbers
// whose sums are near multiples of r.
func (b *nttBench) inputs(n int) map[string][]curve.Scalar {
	last := new(big.Int).Sub(b.f.r, big.NewInt(1))
	var largest curve.Scalar
	for i := range largest {
		largest[i] = new(big.Int).Rsh(last, uint(64*i)).Uint64()
	}
	all := map[string][]curve.Scalar{"random": b.random(n)}
	if n > 1<<16 || !emulator.Real() && n > 1<<13 {
		return all
	}
	same, minus, single := make([]curve.Scalar, n), make([]curve.Scalar, n), make([]curve.Scalar, n)
	for i := range same {
		same[i], minus[i] = largest, b.f.to(last)
	}
	single[b.rng.IntN(n)] = b.f.to(big.NewInt(1))
	near := make([]curve.Scalar, n)
	for i := range near {
		if k := b.rng.Uint64N(5); b.rng.IntN(2) == 0 {
			near[i] = curve.Scalar{k}
		} else {
			near[i] = largest
			near[i][0] -= k // r is 1 modulo 2^28
			if largest[0] < k {
				near[i] = largest
			}
		}
	}
	all["all zero"], all["all of the largest words"], all["all r − 1"], all["a single 1"] = make([]curve.Scalar, n), same, minus, single
	all["sums near multiples of r"] = near
	return all
}

func (b *nttBench) equal(what string, got, want []curve.Scalar) {
	b.t.Helper()
	bad, first := 0, -1
	for i := range want {
		if got[i] != want[i] {
			if bad++; first < 0 {
				first = i
			}
		}
	}
	if bad > 0 {
		b.t.Fatalf("%v, %s: %d of %d are wrong, the first at %d", b.id, what, bad, len(want), first)
	}
}

// nttLogs are the sizes up to most, or on a card up to large.
func nttLogs(from, most, large int) []int {
	if emulator.Real() {
		most = large
	}
	if testing.Short() {
		most = min(most, 11)
	}
	var all []int
	for l := from; l <= most; l++ {
		all = append(all, l)
	}
	return all
}

func TestNTTIsGnarkCryptos(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		b := newNTTBench(t, dev, id)
		for _, log := range nttLogs(0, 14, 24) {
			d := b.domain(log, curve.Monomial)
			tab, mem := b.tables(d, curve.Monomial)
			b.transforms(log, tab)
			b.free(mem)
		}
	}
}

// TestNTTOfAnyShift has tables of each direction's coset.
func TestNTTOfAnyShift(t *testing.T) {
	dev := emulator.TestDevice(t)
	defer func(old bool) { forceShift = old }(forceShift)
	forceShift = true
	for _, id := range curve.All() {
		b := newNTTBench(t, dev, id)
		for _, log := range nttLogs(0, 12, 18) {
			d := b.domain(log, curve.Monomial)
			if log%2 == 1 {
				d.Shift = b.scalar()
			}
			tab, mem := b.tables(d, curve.Monomial)
			if tab.Shift() != d.Shift {
				t.Errorf("2^%d: the tables have another shift", log)
			}
			b.transforms(log, tab)
			b.free(mem)
		}
	}
}

// transforms compares the four transforms of tab with gnark-crypto's.
func (b *nttBench) transforms(log int, tab *Tables) {
	b.t.Helper()
	for name, v := range b.inputs(1 << log) {
		b.compare(log, tab, name, v)
	}
}

func (b *nttBench) compare(log int, tab *Tables, name string, v []curve.Scalar) {
	b.t.Helper()
	peer := nttPeerOf(b.id, log, tab.Shift())
	p := b.alloc(int64(len(v)) * curve.ScalarBytes)
	defer b.free(p)
	got := make([]curve.Scalar, len(v))
	for _, coset := range []bool{false, true} {
		what := fmt.Sprintf("2^%d, %s, coset %v", log, name, coset)
		b.write(p, v)
		b.must(b.ntt.Forward(b.st, b.args, tab, p, coset))
		b.read(p, got)
		b.must(b.ntt.Inverse(b.st, b.args, tab, p, coset))
		want := append([]curve.Scalar(nil), v...)
		peer.forward(want, coset)
		b.equal(what+", forward", got, want)
		b.equal(what+", forward and back", b.read(p, got), v)

		b.write(p, v)
		b.must(b.ntt.Inverse(b.st, b.args, tab, p, coset))
		copy(want, v)
		peer.inverse(want, coset)
		b.equal(what+", inverse", b.read(p, got), want)
	}
}

// TestNTTRoundTrips goes to sizes that are too large for a comparison.
func TestNTTRoundTrips(t *testing.T) {
	dev := emulator.TestDevice(t)
	for _, id := range curve.All() {
		b := newNTTBench(t, dev, id)
		for _, log := range nttLogs(13, 13, 27) {
			if log > 13 && log < 26 {
				continue
			}
			n := 1 << log
			tab, mem := b.tables(b.domain(log, curve.Monomial), curve.Monomial)
			p := b.alloc(int64(n) * curve.ScalarBytes)
			v, got := b.random(n), make([]curve.Scalar, n)
			for _, coset := range []bool{false, true} {
				b.write(p, v)
				b.must(b.ntt.Forward(b.st, b.args, tab, p, coset))
				b.read(p, got)
				if got[0] == v[0] && got[1] == v[1] {
					t.Errorf("2^%d: nothing was done", log)
				}
				b.must(b.ntt.Inverse(b.st, b.args, tab, p, coset))
				b.equal(fmt.Sprintf("2^%d, coset %v, forward and back", log, coset), b.read(p, got), v)
				b.must(b.ntt.Inverse(b.st, b.args, tab, p, coset))
				b.must(b.ntt.Forward(b.st, b.args, tab, p, !coset))
				b.must(b.ntt.Inverse(b.st, b.args, tab, p, !coset))
				b.must(b.ntt.Forward(b.st, b.args, tab, p, coset))
				b.equal(fmt.Sprintf("2^%d, coset %v, through the other", log, coset), b.read(p, got), v)
			}
			b.free(p, mem)
		}
	}
}

// TestNTTInAnyOrder starts the threads of a block in other orders, which shows a
// barrier that is missing.
func TestNTTInAnyOrder(t *testing.T) {
	if emulator.Real() {
		t.Skip("a card has an order of its own")
	}
	for _, order := range []uint32{1, 77} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			b := newNTTBench(t, emulator.TestDevice(t, emulator.Config{Order: order}), curve.BN254)
			for _, log := range []int{5, 12, 15} {
				if log == 15 && order == 1 {
					continue
				}
				d := b.domain(log, curve.Coset)
				tab, mem := b.tables(d, curve.Coset)
				b.compare(log, tab, "random", b.random(1<<log))
				b.quotient(d, curve.Coset, log == 12)
				b.free(mem)
			}
		})
	}
}

// TestEveryPlan runs plans that planNTT does not choose, for every number of
// levels in the first pass.
func TestEveryPlan(t *testing.T) {
	dev := emulator.TestDevice(t)
	b := newNTTBench(t, dev, curve.BLS12381)
	seen := map[int]bool{}
	for log := smallNTT + 1; log <= MaxNTT; log++ {
		p := planNTT(log)
		left := log - p.low
		for _, r := range p.rounds {
			left -= 3 * r
		}
		if left != 0 || p.low < 5 || p.low > nttTileLog || len(p.rounds) == 0 {
			t.Errorf("2^%d: %v", log, p)
		}
		seen[p.low] = true
	}
	for low := 5; low <= nttTileLog; low++ {
		if !seen[low] {
			t.Errorf("no plan begins with %d levels", low)
		}
	}
	plans := []nttPlan{{10, []int{2}}, {6, []int{3}}, {5, []int{2, 2}}}
	if emulator.Real() {
		plans = append(plans, nttPlan{7, []int{3, 2}}, nttPlan{5, []int{3, 3}}, nttPlan{10, []int{2, 2}})
	}
	for _, p := range plans {
		b.ntt.plan = func(int) nttPlan { return p }
		log := p.low
		for _, r := range p.rounds {
			log += 3 * r
		}
		tab, mem := b.tables(b.domain(log, curve.Coset), curve.Coset)
		n := 1 << log
		b.compare(log, tab, "random", b.random(n))
		b.free(mem)
		// What goes with the last of several passes is lost in none before it.
		b.quotient(b.domain(log, curve.Coset), curve.Coset, false)
		b.quotient(b.domain(log, curve.Monomial), curve.Monomial, false)
	}
}

func TestQuotientIsTheCPUs(t *testing.T) {
	dev := emulator.TestDevice(t)
	defer func(old bool) { forceShift = old }(forceShift)
	for _, id := range curve.All() {
		b := newNTTBench(t, dev, id)
		for _, log := range nttLogs(0, 13, 22) {
			if log == 9 || log == 12 || log > 14 && log%2 == 1 {
				continue // as others
			}
			for _, basis := range []curve.Basis{curve.Monomial, curve.Coset} {
				for _, folded := range []bool{false, true} {
					forceShift = false
					b.quotient(b.domain(log, basis), basis, folded)
					if log > 11 {
						continue
					}
					d := b.domain(log, basis)
					d.Shift = b.scalar()
					b.quotient(d, basis, folded)
					forceShift = true
					b.quotient(d, basis, folded)
					if basis == curve.Monomial {
						d.Shift = curve.Scalar{}
						b.quotient(d, basis, folded)
					}
				}
			}
		}
	}
}

func (b *nttBench) quotient(d curve.Domain, basis curve.Basis, folded bool) {
	b.t.Helper()
	n := d.Size()
	host, err := cpu.New(b.id, cpu.Workers(runtime.GOMAXPROCS(0)))
	b.must(err)
	x, y, z := b.random(n), b.random(n), b.random(n)
	tab, mem := b.tables(d, basis)
	if basis == curve.Monomial && tab.odd && !folded {
		b.must(host.Hadamard(context.Background(), x, y, z))
	}
	bytes := int64(n) * curve.ScalarBytes
	va, vb, vc, scratch := b.alloc(bytes), b.alloc(bytes), gpu.Ptr(0), b.alloc(b.ntt.ScratchBytes(d.Log, basis, folded))
	b.write(va, x)
	b.write(vb, y)
	if folded {
		z = nil
	} else {
		vc = b.alloc(bytes)
		b.write(vc, z)
	}
	b.must(b.ntt.Quotient(b.st, b.args, tab, basis, va, vb, vc, scratch))
	got := b.read(va, make([]curve.Scalar, n))
	b.must(host.Quotient(context.Background(), nil, d, basis, x, y, z))
	b.equal(fmt.Sprintf("quotient on 2^%d, %v, folded %v, odd %v", d.Log, basis, folded, tab.odd), got, x)
	b.free(va, vb, vc, scratch, mem)
}

func TestTablesAreRefused(t *testing.T) {
	b := newNTTBench(t, emulator.TestDevice(t), curve.BN254)
	good := b.domain(4, curve.Coset)
	for name, d := range map[string]curve.Domain{
		"no shift":         {Log: 4, Generator: good.Generator},
		"another order":    {Log: 5, Generator: good.Generator, Shift: good.Shift},
		"too large":        {Log: 29, Generator: good.Generator, Shift: good.Shift},
		"negative":         {Log: -1, Generator: good.Generator, Shift: good.Shift},
		"no root of unity": {Log: 4, Generator: b.scalar(), Shift: good.Shift},
	} {
		if b.ntt.TableBytes(d, curve.Coset) != 0 {
			t.Errorf("%s: it has tables", name)
		}
		if _, err := b.ntt.MakeTables(b.st, b.args, d, curve.Coset, 0); err == nil {
			t.Errorf("%s: tables were made", name)
		} else {
			t.Log(err)
		}
	}
	if _, err := b.ntt.MakeTables(b.st, b.args, curve.Domain{Log: 4, Generator: good.Generator, Shift: good.Generator}, curve.Monomial, 0); err == nil {
		t.Error("a shift in the domain passed")
	}
	tab, mem := b.tables(good, curve.Coset)
	if err := b.ntt.Quotient(b.st, b.args, tab, curve.Monomial, 0, 0, 0, 0); err == nil {
		t.Error("tables of another basis passed")
	}
	b.free(mem)
}
