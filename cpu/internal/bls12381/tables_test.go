package bls12381

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

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
