package curve

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bn "github.com/consensys/gnark-crypto/ecc/bn254"
	"pgregory.net/rapid"
)

func TestConstantsAreGnarkCryptos(t *testing.T) {
	for _, c := range []struct {
		id     ID
		theirs ecc.ID
		g1, g2 uintptr
	}{
		{BN254, ecc.BN254, unsafe.Sizeof(bn.G1Affine{}), unsafe.Sizeof(bn.G2Affine{})},
		{BLS12381, ecc.BLS12_381, unsafe.Sizeof(bls.G1Affine{}), unsafe.Sizeof(bls.G2Affine{})},
	} {
		if c.id.ScalarModulus().Cmp(c.theirs.ScalarField()) != 0 {
			t.Errorf("%v: r differs", c.id)
		}
		if c.id.FieldModulus().Cmp(c.theirs.BaseField()) != 0 {
			t.Errorf("%v: q differs", c.id)
		}
		if c.id.PointBytes(InG1) != int(c.g1) || c.id.PointBytes(InG2) != int(c.g2) {
			t.Errorf("%v: points of %d and %d bytes, theirs have %d and %d", c.id,
				c.id.G1Bytes(), c.id.G2Bytes(), c.g1, c.g2)
		}
		// 2^TwoAdicity divides r − 1, and twice that does not.
		m := new(big.Int).Sub(c.id.ScalarModulus(), big.NewInt(1))
		if int(m.TrailingZeroBits()) != c.id.TwoAdicity() {
			t.Errorf("%v: r − 1 has %d trailing zeros, not %d", c.id, m.TrailingZeroBits(), c.id.TwoAdicity())
		}
	}
	if unsafe.Sizeof(Scalar{}) != unsafe.Sizeof(blsfr.Element{}) {
		t.Error("a scalar is not as large as gnark-crypto's")
	}
}

func TestModulusIsACopy(t *testing.T) {
	BN254.ScalarModulus().SetInt64(7)
	if BN254.ScalarModulus().Cmp(ecc.BN254.ScalarField()) != 0 {
		t.Error("a caller changed r")
	}
}

func TestParse(t *testing.T) {
	for name, want := range map[string]ID{
		"bn254": BN254, "bn128": BN254, "alt_bn128": BN254, "BN-254": BN254,
		"bls12-381": BLS12381, "bls12381": BLS12381, "BLS12_381": BLS12381,
	} {
		if got, err := Parse(name); err != nil || got != want {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	for _, id := range All() {
		for _, name := range []string{id.String(), id.Circom()} {
			if got, err := Parse(name); err != nil || got != id {
				t.Errorf("%s is %v, %v", name, got, err)
			}
		}
	}
	if _, err := Parse("bls12-377"); err == nil || !strings.Contains(err.Error(), "bls12-377") {
		t.Errorf("an unknown curve: %v", err)
	}
}

func TestUnknownCurve(t *testing.T) {
	for _, id := range []ID{0, 3, 255} {
		if id.Valid() || id.G1Bytes() != 0 || id.TwoAdicity() != 0 || id.String() != fmt.Sprintf("curve(%d)", id) {
			t.Errorf("%d passes for a curve", id)
		}
	}
}

func TestView(t *testing.T) {
	words := make([]uint64, 9)
	raw := Bytes(words)
	v, err := View[Scalar](raw[4 : 4+64]) // 4-byte aligned, as in a .zkey
	if err != nil {
		t.Fatal(err)
	}
	v[1][3] = 1 << 63
	if raw[4+63] != 0x80 {
		t.Error("the view is a copy")
	}
	if _, err := View[Scalar](raw[:63]); err == nil {
		t.Error("63 bytes passed for scalars")
	}
	if _, err := View[Scalar](raw[1:33]); err == nil {
		t.Error("an odd address passed")
	}
	if v, err := View[Scalar](nil); v != nil || err != nil {
		t.Errorf("no bytes: %v, %v", v, err)
	}
	if Bytes[Scalar](nil) != nil {
		t.Error("no scalars have bytes")
	}
}

func TestPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(All()).Draw(t, "curve")
		g := rapid.SampledFrom([]Group{InG1, InG2}).Draw(t, "group")
		n := rapid.IntRange(0, 20).Draw(t, "points")
		size := id.PointBytes(g)
		p := Points{Curve: id, Group: g, Data: make([]byte, n*size)}
		for i := range n {
			p.Data[i*size] = byte(i)
		}
		from := rapid.IntRange(0, n).Draw(t, "from")
		to := rapid.IntRange(from, n).Draw(t, "to")
		s := p.Slice(from, to)
		if p.Len() != n || s.Len() != to-from {
			t.Fatalf("%d and %d points, want %d and %d", p.Len(), s.Len(), n, to-from)
		}
		for i := range s.Len() {
			if s.Data[i*size] != byte(from+i) {
				t.Fatalf("point %d of the slice is point %d", i, s.Data[i*size])
			}
		}
	})
	if (Points{}).Len() != 0 {
		t.Error("the zero value has points")
	}
}

func TestInfinity(t *testing.T) {
	g1, g2 := G1{}, G2{}
	if !g1.IsInfinity() || !g2.IsInfinity() {
		t.Error("zero is infinity")
	}
	g1[7], g2[23] = 1, 1
	if g1.IsInfinity() || g2.IsInfinity() {
		t.Error("a point passes for infinity")
	}
	var s Scalar
	if !s.IsZero() {
		t.Error("zero is zero")
	}
	for i := range s {
		s = Scalar{}
		s[i] = 1
		if s.IsZero() {
			t.Errorf("limb %d is not looked at", i)
		}
	}
}

func ExampleQuery() {
	q := Query{
		Points: Points{Curve: BN254, Group: InG1, Data: make([]byte, 3*BN254.G1Bytes())},
		First:  2, // an L query leaves out the leading one and a public input
	}
	fmt.Println(q.Len(), "points; the last belongs to wire", q.Wire(2))
	q.Wires = []uint32{2, 5, 9} // and a key may leave out wires
	fmt.Println("or to wire", q.Wire(2))
	// Output:
	// 3 points; the last belongs to wire 4
	// or to wire 9
}

func TestDomainAndMatrix(t *testing.T) {
	if (Domain{Log: 10}).Size() != 1024 {
		t.Error("2^10")
	}
	if (Matrix{}).NumRows() != 0 || (Matrix{Rows: []uint32{0, 2, 2}}).NumRows() != 2 {
		t.Error("rows")
	}
	if Monomial.String() != "monomial" || Coset.String() != "coset" || Basis(0).String() != "unknown basis" {
		t.Error("names of the bases")
	}
}
