package circom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

func TestWtnsRoundTrip(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault.wtns", "silent.wtns"} {
			w := must[*Wtns](t)(OpenWtns(file(id, name)))
			defer w.Close()
			if w.Curve() != id {
				t.Errorf("%s is of %v", name, w.Curve())
			}
			var b bytes.Buffer
			check(t, WriteWtns(context.Background(), &b, id, w))
			if !bytes.Equal(b.Bytes(), load(t, id, name)) {
				t.Errorf("%s is not written as it was read", name)
			}
		}
	})
}

func TestWtnsPublic(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		w := must[*Wtns](t)(OpenWtns(file(id, "vault.wtns")))
		defer w.Close()
		public := must[[]curve.Scalar](t)(w.Public(2))
		var b bytes.Buffer
		check(t, WritePublic(&b, id, public))
		if !bytes.Equal(b.Bytes(), load(t, id, "vault.public.json")) {
			t.Errorf("public values\n%s", b.Bytes())
		}
		for _, n := range []int{-1, w.Len()} {
			if _, err := w.Public(n); err == nil {
				t.Errorf("%d public values of %d wires", n, w.Len())
			}
		}
	})
}

func TestWtnsDamaged(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for name, e := range map[string]struct {
			change        func(h, v []byte) (header, values []byte)
			section, text string
		}{
			"unknown prime":   {func(h, v []byte) ([]byte, []byte) { h[5]++; return h, v }, "1 ", "no known curve"},
			"element size 0":  {func(h, v []byte) ([]byte, []byte) { h[0] = 0; return h, v }, "1 ", "0 bytes a scalar"},
			"element size 48": {func(h, v []byte) ([]byte, []byte) { h[0] = 48; return h, v }, "1 ", "too early"},
			"no values":       {func(h, v []byte) ([]byte, []byte) { h[36] = 0; return h, nil }, "1 ", "leading 1"},
			"count":           {func(h, v []byte) ([]byte, []byte) { binary.LittleEndian.PutUint32(h[36:], 1<<32-1); return h, v }, "2 ", "are not 4294967295 values"},
			"values":          {func(h, v []byte) ([]byte, []byte) { return h, v[:len(v)-32] }, "2 ", "values"},
			"half a value":    {func(h, v []byte) ([]byte, []byte) { return h, v[:len(v)-1] }, "2 ", "values"},
			"first is 2":      {func(h, v []byte) ([]byte, []byte) { v[0] = 2; return h, v }, "2 ", "must be 1"},
			"first is r + 1":  {func(h, v []byte) ([]byte, []byte) { copy(v, scalarModulus(id)); v[0]++; return h, v }, "2 ", "not below"},
			"last is r":       {func(h, v []byte) ([]byte, []byte) { copy(v[len(v)-32:], scalarModulus(id)); return h, v }, "2 ", "wire 243"},
		} {
			t.Run(name, func(t *testing.T) {
				p := parts(t, load(t, id, "vault.wtns"))
				h, v := e.change(sectionOf(t, p, 1), sectionOf(t, p, 2))
				w, err := openWtns(join(KindWtns, 2, []part{{2, v}, {1, h}}))
				if err == nil {
					err = w.Fill(context.Background(), make([]curve.Scalar, w.Len()))
				}
				wantFormat(t, err, e.section, e.text)
			})
		}
	})
}

func TestWtnsFill(t *testing.T) {
	w := must[*Wtns](t)(OpenWtns(file(curve.BN254, "vault.wtns")))
	defer w.Close()
	if err := w.Fill(context.Background(), make([]curve.Scalar, w.Len()-1)); err == nil {
		t.Error("a witness fills too few places")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Fill(ctx, make([]curve.Scalar, w.Len())); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestWrongCircuit: a witness or a curve of another circuit is refused before
// anything is computed.
func TestWrongCircuit(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		c := must[*Circuit](t)(readCircuit(load(t, id, "vault.r1cs")))
		defer c.Close()
		w := must[*Wtns](t)(OpenWtns(file(id, "silent.wtns")))
		defer w.Close()
		if err := synthesize(t, c, w); err == nil {
			t.Error("a witness of another circuit is taken")
		}
	})
	var b bytes.Buffer
	if err := WriteWtns(context.Background(), &b, 0, groth16.Witness{{1}}); err == nil {
		t.Error("a witness of no curve is written")
	}
	if err := WriteWtns(context.Background(), &b, curve.BN254, groth16.Witness(slices.Repeat([]curve.Scalar{}, 0))); err == nil {
		t.Error("an empty witness is written")
	}
}
