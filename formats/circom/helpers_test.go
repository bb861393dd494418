package circom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// file is the path of a file of the bundled circuits: "vault.zkey".
func file(id curve.ID, name string) string { return filepath.Join("testdata", id.Circom(), name) }

// load is its content.
func load(t testing.TB, id curve.ID, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(file(id, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// curves runs a test on both curves, and looks for leaks after each.
func curves(t *testing.T, f func(t *testing.T, id curve.ID)) {
	t.Helper()
	for _, id := range curve.All() {
		t.Run(id.String(), func(t *testing.T) {
			defer alloc.Marked().CheckLeaks(t)
			f(t, id)
		})
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// part is a section to make a container of.
type part struct {
	id   uint32
	data []byte
}

// parts takes a container apart. The data are copies.
func parts(t testing.TB, b []byte) []part {
	t.Helper()
	c := must[*Container](t)(Parse("parts", b))
	var out []part
	for _, s := range c.Sections() {
		out = append(out, part{s.ID, slices.Clone(c.bytes(s))})
	}
	return out
}

// join makes a container.
func join(kind string, version uint32, parts []part) []byte {
	b := []byte(kind)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(parts)))
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint32(b, p.id)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(p.data)))
		b = append(b, p.data...)
	}
	return b
}

// sectionOf is the data of a part, to change.
func sectionOf(t testing.TB, p []part, id uint32) []byte {
	t.Helper()
	for _, s := range p {
		if s.id == id {
			return s.data
		}
	}
	t.Fatalf("no section %d", id)
	return nil
}

// wantFormat checks that err is a *FormatError about the section (a prefix of
// its name) that says text.
func wantFormat(t testing.TB, err error, section, text string) {
	t.Helper()
	var f *FormatError
	if !errors.As(err, &f) {
		t.Fatalf("error %v (%T), want a *FormatError", err, err)
	}
	if f.File == "" || !strings.HasPrefix(f.Section, section) || (section == "") != (f.Section == "") {
		t.Errorf("error %q is about %q of %q, want section %q", err, f.Section, f.File, section)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("error %q does not say %q", err, text)
	}
}

// openZkey is OpenZkey of memory.
func openZkey(b []byte) (*Zkey, error) {
	c, err := Parse("test.zkey", b)
	if err != nil {
		return nil, err
	}
	return c.Zkey()
}

func openR1CS(b []byte) (*R1CSFile, error) {
	c, err := Parse("test.r1cs", b)
	if err != nil {
		return nil, err
	}
	return c.R1CS()
}

func openWtns(b []byte) (*Wtns, error) {
	c, err := Parse("test.wtns", b)
	if err != nil {
		return nil, err
	}
	return c.Wtns()
}

// readCircuit reads all of a .r1cs.
func readCircuit(b []byte) (*Circuit, error) {
	f, err := openR1CS(b)
	if err != nil {
		return nil, err
	}
	return f.Circuit(context.Background(), nil)
}

func engine(t testing.TB, id curve.ID) *cpu.Engine {
	t.Helper()
	return must[*cpu.Engine](t)(cpu.New(id))
}

// prove makes a proof with the reference prover.
func prove(t testing.TB, key *groth16.ProvingKey, c groth16.Circuit, input any) *groth16.Proof {
	t.Helper()
	return must[*groth16.Proof](t)(groth16.ProveDirect(context.Background(), key, c, engine(t, key.Curve), input, nil))
}

// filled is all of a witness.
func filled(t testing.TB, src groth16.WitnessSource) groth16.Witness {
	t.Helper()
	w := make([]curve.Scalar, src.Len())
	check(t, src.Fill(context.Background(), w))
	return w
}

// inputsOf reads the input.json of a bundled circuit.
func inputsOf(t testing.TB, name string) Inputs {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	check(t, err)
	return must[Inputs](t)(ReadInput(name, bytes.NewReader(b)))
}
