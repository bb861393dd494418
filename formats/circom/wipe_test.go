package circom

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

// fullWriter takes so many bytes and no more.
type fullWriter int

func (w *fullWriter) Write(b []byte) (int, error) {
	if len(b) > int(*w) {
		n := int(*w)
		*w = 0
		return n, errors.New("full")
	}
	*w -= fullWriter(len(b))
	return len(b), nil
}

// The buffer between a witness and its file holds nothing of it afterwards,
// whether the file took all or not.
func TestWriterIsWiped(t *testing.T) {
	field := must[*arith.Field](t)(arith.FieldOf(curve.BN254))
	secret := make([]curve.Scalar, 100)
	for i := range secret {
		secret[i] = field.One()
	}
	for name, w := range map[string]io.Writer{"written": io.Discard, "failed": new(fullWriter), "cut": func() io.Writer { w := fullWriter(50); return &w }()} {
		c := newContainerWriter(w, KindWtns, 2, 1)
		c.section(wtnsValues, uint64(len(secret))*curve.ScalarBytes)
		c.plain(field, secret)
		b := c.w.AvailableBuffer()
		whole := c.w.Size()
		if err := c.close(); (err == nil) != (name == "written") {
			t.Errorf("%s: %v", name, err)
		}
		if left := c.w.AvailableBuffer(); cap(left) != whole || cap(b) >= whole {
			t.Fatalf("%s: the test sees %d bytes of a buffer of %d", name, cap(left), whole)
		} else if !bytes.Equal(left[:whole], make([]byte, whole)) {
			t.Errorf("%s: the buffer holds what was written", name)
		}
	}
}

func TestReducer(t *testing.T) {
	for _, id := range curve.All() {
		m := id.ScalarModulus()
		r := reducer{modulus: m}
		huge := new(big.Int).Lsh(big.NewInt(12345), 1000)
		for _, v := range []*big.Int{new(big.Int), big.NewInt(7), big.NewInt(-7), new(big.Int).Sub(m, big.NewInt(1)), m, huge, new(big.Int).Neg(huge)} {
			want := new(big.Int).Mod(v, m)
			if got := new(big.Int).SetBytes(littleEndian(bytes.Clone(r.bytes(v)))); got.Cmp(want) != 0 {
				t.Errorf("%v: %v is %v, want %v", id, v, got, want)
			}
		}
		words := r.rest.Bits()
		words = words[:cap(words)]
		if len(words) == 0 {
			t.Fatal("nothing was reduced")
		}
		r.wipe()
		for _, w := range words {
			if w != 0 {
				t.Errorf("%v: a word of the last value is left", id)
			}
		}
		if r.b != ([curve.ScalarBytes]byte{}) {
			t.Errorf("%v: the bytes of the last value are left", id)
		}
	}
}

// The words that come one by one are in no memory of their own.
func TestSharedWordsAreWiped(t *testing.T) {
	ctx := t.Context()
	c := must[*Calculator](t)(NewCalculator(ctx, "handmade", handmade(1, nil, nil), CalculatorOptions{Interpret: true}))
	defer c.Close()
	in := must[*instance](t)(c.instantiate(ctx))
	b := must[[]byte](t)(in.shared())
	if !bytes.Equal(b, scalarModulus(curve.BN254)) {
		t.Fatalf("the shared words are %x", b)
	}
	in.close()
	if !bytes.Equal(b, make([]byte, len(b))) {
		t.Errorf("after close the words are %x", b)
	}
}
