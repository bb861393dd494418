package bls12381

import (
	"math/big"
	"testing"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"golang.org/x/sync/semaphore"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu/internal/ifma"
	"github.com/snarkline/snarkline/curve"
)

// TestTablesAreShared asks for the tables of three domains in turns: the two
// used last are there, the third is made again.
func TestTablesAreShared(t *testing.T) {
	if !ifma.Available() {
		t.Skip("NO AVX-512 IFMA HERE: there are no tables")
	}
	var kept tables
	get := func(log int) *ifma.NTT {
		t.Helper()
		gd := fft.NewDomain(1 << log)
		n, err := kept.of(curve.Domain{Log: log, Generator: curve.Scalar(gd.Generator), Shift: curve.Scalar(gd.FrMultiplicativeGen)})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	a, b := get(8), get(9)
	if get(8) != a || get(9) != b || get(8) != a {
		t.Error("two domains in turns have new tables")
	}
	get(10)
	if get(8) != a {
		t.Error("the domain before the last one has new tables")
	}
	if get(9) == b {
		t.Error("three domains have tables")
	}
	if _, err := kept.of(curve.Domain{Log: 9}); err == nil {
		t.Error("no generator: no error")
	}
}

// TestRootsAreKept asks for the tables of three roots in turns, of one root in
// two sizes, and transforms with a table that was kept.
func TestRootsAreKept(t *testing.T) {
	var kept roots
	get := func(log int, inverse bool) fr.Vector {
		d := fft.NewDomain(1 << log)
		root := d.Generator
		if inverse {
			root = d.GeneratorInv
		}
		return kept.of(&transform{log: log, workers: 2}, root)
	}
	same := func(a, b fr.Vector) bool { return &a[0] == &b[0] && len(a) == len(b) }
	a, b := get(8, false), get(8, true)
	if same(a, b) || !same(get(8, false), a) || !same(get(8, true), b) {
		t.Error("a root and its inverse in turns do not have a table each")
	}
	if c := get(9, false); same(c, a) || same(c, b) || len(c) != 256 {
		t.Error("another size has no table of its own")
	}
	if !same(get(8, true), b) {
		t.Error("the root before the last one has a new table")
	}
	if same(get(8, false), a) {
		t.Error("three roots have tables")
	}
	if v := get(0, false); len(v) != 1 || !v[0].IsOne() {
		t.Errorf("the table of a domain of one: %v", v)
	}
}

// TestTableInScratch goes forth and back over a domain whose table is not kept.
func TestTableInScratch(t *testing.T) {
	if testing.Short() {
		t.Skip("2^21 elements")
	}
	gd := fft.NewDomain(1 << (maxKept + 1))
	d := curve.Domain{Log: maxKept + 1, Generator: curve.Scalar(gd.Generator), Shift: curve.Scalar(gd.FrMultiplicativeGen)}
	e := New(2, semaphore.NewWeighted(1), false)
	v := make(fr.Vector, d.Size())
	v[3].SetUint64(5) // 5 X^3
	a := unsafe.Slice((*curve.Scalar)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
	if err := e.Transform(t.Context(), alloc.ScopeOf(t.Context()), d, a, false, false, false); err != nil {
		t.Fatal(err)
	}
	// Place 1 in bit-reversed order is −1, place 2 the root's power n/4.
	var x fr.Element
	x.Exp(gd.Generator, big.NewInt(3*int64(d.Size())/4))
	for range 2 {
		x.Double(&x)
	}
	var y fr.Element
	y.Exp(gd.Generator, big.NewInt(3*int64(d.Size())/4))
	x.Add(&x, &y)
	if v[2] != x {
		t.Error("5 X^3 has another value at the root of order 4")
	}
	if err := e.Transform(t.Context(), alloc.ScopeOf(t.Context()), d, a, true, false, true); err != nil {
		t.Fatal(err)
	}
	for i := range v {
		if want := i == 3; v[i].IsZero() == want {
			t.Fatalf("coefficient %d of 5 X^3 is %v", i, v[i])
		}
	}
	if e.Roots.last[0].table != nil {
		t.Error("a table of such a size was kept")
	}
}
