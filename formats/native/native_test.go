package native

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
	"github.com/consensys/gnark/std/rangecheck"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/gnark"
	"github.com/snarkline/snarkline/groth16"
)

func TestMain(m *testing.M) {
	logger.Disable()
	m.Run()
}

type cubic struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *cubic) Define(api frontend.API) error {
	api.AssertIsEqual(c.Y, api.Add(api.Mul(c.X, c.X, c.X), c.X, 5))
	return nil
}

type ranged struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *ranged) Define(api frontend.API) error {
	rangecheck.New(api).Check(c.X, 9)
	api.AssertIsEqual(c.Y, api.Mul(c.X, c.X))
	return nil
}

type sample struct {
	name           string
	circuit, value frontend.Circuit
}

var samples = []sample{
	{"cubic", &cubic{}, &cubic{X: 3, Y: 35}},
	{"commitments", &ranged{}, &ranged{X: 300, Y: 90000}},
}

type made struct {
	ccs     constraint.ConstraintSystem
	w       witness.Witness
	public  []curve.Scalar
	content Content
}

func make1(t testing.TB, id curve.ID, s sample, o groth16.SetupOptions) *made {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var m made
	var err error
	m.ccs, err = frontend.Compile(id.ScalarModulus(), r1cs.NewBuilder, s.circuit)
	must(err)
	m.w, err = frontend.NewWitness(s.value, id.ScalarModulus())
	must(err)
	m.public, err = gnark.PublicInputs(m.w, id)
	must(err)
	m.content.Circuit, err = gnark.R1CSFromGnark(m.ccs)
	must(err)
	m.content.Key, m.content.VK, err = groth16.UnsafeSetup(t.Context(), m.content.Circuit, o)
	must(err)
	t.Cleanup(func() { must(m.content.Key.Close()) })
	return &m
}

func noLeak(t testing.TB) {
	t.Helper()
	mark := alloc.Marked()
	t.Cleanup(func() { mark.CheckLeaks(t) })
}

func encode(t testing.TB, c Content) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(context.Background(), &b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for _, id := range curve.All() {
		for _, s := range samples {
			for _, o := range []groth16.SetupOptions{
				{Folded: true}, {}, {Basis: curve.Monomial}, {Basis: curve.Monomial, Folded: true},
			} {
				t.Run(fmt.Sprintf("%v/%s/%+v", id, s.name, o), func(t *testing.T) {
					noLeak(t)
					m := make1(t, id, s, o)
					path := filepath.Join(t.TempDir(), "key"+Extension)
					if err := WriteFile(t.Context(), path, m.content); err != nil {
						t.Fatal(err)
					}
					f, err := Open(t.Context(), path, Options{})
					if err != nil {
						t.Fatal(err)
					}
					ar, err := cpu.New(id)
					if err != nil {
						t.Fatal(err)
					}
					c, err := gnark.NewCircuit(m.ccs)
					if err != nil {
						t.Fatal(err)
					}
					p, err := groth16.ProveDirect(t.Context(), f.Key, c, ar, m.w, nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, vk := range []*groth16.VerifyingKey{f.VK, m.content.VK} {
						if err := vk.Verify(p, m.public); err != nil {
							t.Fatal(err)
						}
					}
					if len(f.Circuit.Commitments) == 0 {
						// The circuit of the file serves too: its matrices with a full witness.
						a, err := c.Synthesize(t.Context(), nil, m.w, f.Key.Want(ar))
						if err != nil {
							t.Fatal(err)
						}
						p, err := groth16.ProveDirect(t.Context(), f.Key, f.Circuit, ar, groth16.Witness(a.W.Slice()), nil)
						if err != nil {
							t.Fatal(err)
						}
						if err := f.VK.Verify(p, m.public); err != nil {
							t.Fatal(err)
						}
						a.Release()
					}
					on, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if again := encode(t, Content{f.Key, f.VK, f.Circuit}); !bytes.Equal(again, on) {
						t.Error("the file changes when it is written again")
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
						t.Errorf("left behind: %v %v", left, err)
					}
				})
			}
		}
	}
}

func TestKeyAlone(t *testing.T) {
	noLeak(t)
	m := make1(t, curve.BN254, samples[0], groth16.SetupOptions{Folded: true})
	f, err := Parse(t.Context(), "f", encode(t, Content{Key: m.content.Key}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.VK != nil || f.Circuit != nil {
		t.Error("there is more than was written")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	noLeak(t)
	a := make1(t, curve.BN254, samples[0], groth16.SetupOptions{})
	b := make1(t, curve.BN254, samples[1], groth16.SetupOptions{})
	dir := t.TempDir()
	for _, c := range []Content{{}, {Key: a.content.Key, VK: b.content.VK}, {Key: a.content.Key, Circuit: b.content.Circuit}} {
		if err := WriteFile(t.Context(), filepath.Join(dir, "k"), c); err == nil {
			t.Error("no error")
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WriteFile(canceled, filepath.Join(dir, "k"), a.content); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// resum makes the checksum of a changed file right again.
func resum(b []byte) []byte {
	if len(b) < headerSize {
		return b
	}
	n := uint64(binary.LittleEndian.Uint32(b[28:]))
	if n > uint64(len(b)-headerSize)/entrySize {
		return b
	}
	sum := checksum(b[:hashed], b[headerSize:headerSize+n*entrySize])
	copy(b[hashed:hashed+sha256.Size], sum[:])
	return b
}

func TestBadFiles(t *testing.T) {
	noLeak(t)
	m := make1(t, curve.BLS12381, samples[1], groth16.SetupOptions{Folded: true})
	good := encode(t, m.content)
	read := func(b []byte) error {
		f, err := Parse(context.Background(), "f", b, Options{})
		if err == nil {
			err = f.Close()
		}
		return err
	}
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(good); n += 37 {
		var fe *FormatError
		if err := read(good[:n:n]); !errors.As(err, &fe) || fe.File != "f" {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if err := read(append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte too many is read")
	}
	for at := range headerSize + entrySize*10 {
		b := bytes.Clone(good)
		b[at] ^= 1
		if err := read(b); err == nil {
			t.Errorf("header byte %d changed: no error", at)
		}
	}
	// With the checksum made right, each field must be checked for itself: either
	// the file is refused, or its parts are as good as if nothing had been changed
	// (the reserved word and an unused "first" may say anything).
	read = func(b []byte) error {
		f, err := Parse(context.Background(), "f", b, Options{})
		if err != nil {
			return err
		}
		err = f.Key.Validate(context.Background(), groth16.CheckSubgroup)
		if f.VK != nil {
			err = errors.Join(err, f.VK.Check())
		}
		if f.Circuit != nil {
			err = errors.Join(err, f.Circuit.Validate())
		}
		return errors.Join(err, f.Close())
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(good)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			b[rapid.IntRange(0, headerSize+entrySize*20).Draw(t, "at")] = rapid.Byte().Draw(t, "to")
		}
		var fe *FormatError
		if err := read(resum(b)); err != nil && !errors.As(err, &fe) {
			t.Fatal(err)
		}
	})
	// A point of L.
	e := entryOf(t, good, kindL)
	b := bytes.Clone(good)
	b[e.offset+96*2+5] ^= 1
	var fe *FormatError
	if err := read(b); !errors.As(err, &fe) || fe.Section != "L" || fe.Offset != int64(e.offset)+96*2 {
		t.Errorf("a point off the curve: %v", err)
	}
	f, err := Parse(t.Context(), "f", b, Options{SkipPoints: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	// Wires that do not ascend.
	e = entryOf(t, good, kindLWires)
	b = bytes.Clone(good)
	copy(b[e.offset+4:], b[e.offset:e.offset+4])
	if err := read(b); err == nil {
		t.Error("wires that do not ascend are read")
	}
}

func entryOf(t testing.TB, b []byte, k kind) entry {
	t.Helper()
	p := &parser{name: "f", data: b}
	if err := p.header(); err != nil {
		t.Fatal(err)
	}
	e, ok := p.table[entryID{kind: k}]
	if !ok {
		t.Fatalf("no section %v", kindNames[k])
	}
	return e
}

func FuzzParse(f *testing.F) {
	for _, id := range curve.All() {
		for _, s := range samples {
			f.Add(encode(f, make1(f, id, s, groth16.SetupOptions{Folded: true}).content))
		}
	}
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, in := range [][]byte{b, resum(bytes.Clone(b))} {
			file, err := Parse(context.Background(), "f", in, Options{SkipSubgroup: true})
			if err != nil {
				continue
			}
			if err := file.Key.Validate(context.Background(), groth16.CheckCurve); err != nil {
				t.Error(err)
			}
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
