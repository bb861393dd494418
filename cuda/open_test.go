package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

func TestNoDevice(t *testing.T) {
	leakFree(t)
	_, err := Open("/nowhere/libcuda.so")
	if !errors.Is(err, gpu.ErrNoDevice) || !strings.Contains(err.Error(), "/nowhere/libcuda.so") {
		t.Errorf("no library: %v", err)
	}
	t.Setenv(driver.LibraryEnv, "/nowhere/either.so")
	if _, err := Available(); !errors.Is(err, gpu.ErrNoDevice) || !strings.Contains(err.Error(), "/nowhere/either.so") {
		t.Errorf("no library: %v", err)
	}
}

func TestOpen(t *testing.T) {
	onlyEmulated(t)
	for _, id := range curve.All() {
		points(t, id, curve.InG1, 3) // of a key that stays
	}
	leakFree(t)
	path := emulator.Need(t, emulator.Config{Cards: []emulator.Card{{}, {Name: "Another", Total: 64 * alloc.MiB}}})
	t.Setenv(driver.LibraryEnv, path)
	infos, err := Available()
	if err != nil || len(infos) != 2 || infos[1].Name != "Another" {
		t.Fatalf("the cards are %+v, %v", infos, err)
	}
	d, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		clean(t)
	}()
	if len(d.Cards()) != 2 || len(d.Devices()) != 2 || d.Path() != path || d.Version() == 0 {
		t.Errorf("%d cards of %s, version %d", len(d.Cards()), d.Path(), d.Version())
	}
	if _, err := d.Card("cuda:2"); !errors.Is(err, gpu.ErrNoDevice) {
		t.Errorf("a card that is not there: %v", err)
	}
	card, err := d.Card("cuda:1")
	if err != nil {
		t.Fatal(err)
	}
	// Engines of both curves share the card and its ledger.
	var all []*Engine
	for _, id := range curve.All() {
		e, err := New(card, id, host(t, id), small...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if all[0].Card().mem != all[1].Card().mem {
		t.Error("two engines of one card have a ledger each")
	}
	if s, err := all[0].Describe(); err != nil || !strings.Contains(s.String(), "cuda:1: Another, 64 MiB of 64 MiB free") {
		t.Errorf("described as %v, %v", s, err)
	}
	for _, e := range all {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error("closed again:", err)
		}
		if _, err := e.MSMG1(ctx(), scope(), curve.Query{Points: points(t, e.Curve(), curve.InG1, 3)}, make([]curve.Scalar, 3), nil); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("a call after Close: %v", err)
		}
	}
}

// TestArguments: mistakes of the caller are errors that no other try can help.
func TestArguments(t *testing.T) {
	id := curve.BN254
	e := newEngine(t, id, emulator.Config{})
	if _, err := New(e.card, 0, host(t, id)); err == nil {
		t.Error("an engine of no curve")
	}
	if _, err := New(e.card, curve.BLS12381, host(t, id)); err == nil {
		t.Error("an engine with another curve's host")
	}
	if _, err := New(e.card, id, host(t, id), Streams(0)); err == nil {
		t.Error("an engine without streams")
	}
	w := scalars(id, 8, 2, 2, 1)
	g1, g2 := points(t, id, curve.InG1, 8), points(t, id, curve.InG2, 8)
	for name, f := range map[string]func() error{
		"another group": func() error { _, err := e.MSMG1(ctx(), scope(), curve.Query{Points: g2}, w, nil); return err },
		"short witness": func() error { _, err := e.MSMG1(ctx(), scope(), curve.Query{Points: g1, First: 1}, w, nil); return err },
		"wire too large": func() error {
			_, err := e.MSMG1(ctx(), scope(), curve.Query{Points: g1, Wires: make([]uint32, 7)}, w, nil)
			return err
		},
		"pick too large": func() error { _, err := e.MSMG1(ctx(), scope(), curve.Query{Points: g1}, w, []uint32{8}); return err },
		"no domain": func() error {
			return e.Quotient(ctx(), scope(), curve.Domain{Log: 40}, curve.Coset, w, w, nil)
		},
		"not a root": func() error {
			return e.Quotient(ctx(), scope(), curve.Domain{Log: 3, Shift: e.one}, curve.Coset, w, w, nil)
		},
		"a Held of somebody else": func() error { _, err := e.QuotientOf(ctx(), scope(), &split{}); return err },
	} {
		err := f()
		var again interface{ Temporary() bool }
		if err == nil || errors.As(err, &again) && again.Temporary() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
