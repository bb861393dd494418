package gnark

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// made holds the files of one circuit as gnark writes them.
type made struct {
	ccs             constraint.ConstraintSystem
	keys            map[string][]byte // by encoding
	vk, vkRaw       []byte
	proof, proofRaw []byte
	witness, r1cs   []byte
	publicWitness   []byte
	encoding        map[string]Encoding
	sample          sample
	id              curve.ID
	pk              gnark.ProvingKey
}

func sampleNamed(t testing.TB, name string) sample {
	t.Helper()
	for _, s := range samples() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no sample %q", name)
	return sample{}
}

// makeFiles makes them once for each circuit; nobody changes them.
func makeFiles(t testing.TB, id curve.ID, s sample) *made {
	t.Helper()
	allMade.Lock()
	defer allMade.Unlock()
	key := fmt.Sprint(id, s.name)
	if allMade.of[key] == nil {
		allMade.of[key] = makeNewFiles(t, id, s)
	}
	return allMade.of[key]
}

var allMade = struct {
	sync.Mutex
	of map[string]*made
}{of: map[string]*made{}}

func makeNewFiles(t testing.TB, id curve.ID, s sample) *made {
	t.Helper()
	m := &made{ccs: compile(t, id, s.circuit), keys: map[string][]byte{}, sample: s, id: id,
		encoding: map[string]Encoding{"compressed": Compressed, "raw": Raw, "dump": Dump}}
	pk, vk, err := gnark.Setup(m.ccs)
	if err != nil {
		t.Fatal(err)
	}
	m.pk = pk
	w, _ := full(t, id, s.value)
	p, err := gnark.Prove(m.ccs, pk, w)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := w.Public()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	take := func(err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out := bytes.Clone(buf.Bytes())
		buf.Reset()
		return out
	}
	second := func(_ int64, err error) error { return err }
	m.keys["compressed"] = take(second(pk.WriteTo(&buf)))
	m.keys["raw"] = take(second(pk.WriteRawTo(&buf)))
	m.keys["dump"] = take(pk.WriteDump(&buf))
	m.vk, m.vkRaw = take(second(vk.WriteTo(&buf))), take(second(vk.WriteRawTo(&buf)))
	m.proof, m.proofRaw = take(second(p.WriteTo(&buf))), take(second(p.WriteRawTo(&buf)))
	m.witness, m.publicWitness = take(second(w.WriteTo(&buf))), take(second(pub.WriteTo(&buf)))
	m.r1cs = take(second(m.ccs.WriteTo(&buf)))
	return m
}

func readKey(t testing.TB, b []byte, o KeyOptions) (*groth16.ProvingKey, error) {
	t.Helper()
	return ReadProvingKey(t.Context(), bytes.NewReader(b), int64(len(b)), o)
}

func TestFilesRoundTrip(t *testing.T) {
	for _, id := range curve.All() {
		for _, name := range []string{"chain of 1", "zeros", "range checks", "commitments"} {
			t.Run(fmt.Sprintf("%v/%s", id, name), func(t *testing.T) {
				noLeak(t)
				m := makeFiles(t, id, sampleNamed(t, name))

				ccs, err := ReadR1CS(bytes.NewReader(m.r1cs), int64(len(m.r1cs)), Options{})
				if err != nil {
					t.Fatal(err)
				}
				var buf bytes.Buffer
				if err := WriteR1CS(&buf, ccs); err != nil || !bytes.Equal(buf.Bytes(), m.r1cs) {
					t.Errorf("the constraint system changes: %v", err)
				}
				w, err := ReadWitness(bytes.NewReader(m.witness), int64(len(m.witness)), Options{Curve: id})
				if err != nil {
					t.Fatal(err)
				}
				buf.Reset()
				if err := WriteWitness(&buf, w); err != nil || !bytes.Equal(buf.Bytes(), m.witness) {
					t.Errorf("the witness changes: %v", err)
				}
				pw, err := ReadWitness(bytes.NewReader(m.publicWitness), int64(len(m.publicWitness)), Options{Curve: id})
				if err != nil {
					t.Fatal(err)
				}
				public, err := PublicInputs(pw, id)
				if err != nil {
					t.Fatal(err)
				}
				var vk *groth16.VerifyingKey
				for i, b := range [][]byte{m.vk, m.vkRaw} {
					if vk, err = ReadVerifyingKey(bytes.NewReader(b), int64(len(b)), Options{}); err != nil {
						t.Fatal(err)
					}
					buf.Reset()
					if err := WriteVerifyingKey(&buf, vk, i == 1); err != nil || !bytes.Equal(buf.Bytes(), b) {
						t.Errorf("the verifying key changes: %v", err)
					}
				}
				for i, b := range [][]byte{m.proof, m.proofRaw} {
					p, err := ReadProof(bytes.NewReader(b), int64(len(b)), Options{})
					if err != nil {
						t.Fatal(err)
					}
					if err := vk.Verify(p, public); err != nil {
						t.Fatal(err)
					}
					buf.Reset()
					if err := WriteProof(&buf, p, i == 1); err != nil || !bytes.Equal(buf.Bytes(), b) {
						t.Errorf("the proof changes: %v", err)
					}
				}
				for enc, b := range m.keys {
					path := filepath.Join(t.TempDir(), "key")
					if err := os.WriteFile(path, b, 0o600); err != nil {
						t.Fatal(err)
					}
					key, err := OpenProvingKey(t.Context(), path, KeyOptions{Circuit: ccs})
					if err != nil {
						t.Fatalf("%s: %v", enc, err)
					}
					closes(t, key)
					buf.Reset()
					if err := WriteProvingKey(&buf, key, m.encoding[enc]); err != nil || !bytes.Equal(buf.Bytes(), b) {
						t.Errorf("%s: the proving key changes: %v", enc, err)
					}
					p, err := groth16.ProveDirect(t.Context(), key, newCircuit(t, ccs), engine(t, id), w, nil)
					if err != nil {
						t.Fatal(err)
					}
					if err := vk.Verify(p, public); err != nil {
						t.Fatalf("%s: %v", enc, err)
					}
				}
			})
		}
	}
}

func TestKeyWithoutItsCircuit(t *testing.T) {
	noLeak(t)
	id := curve.BN254
	m := makeFiles(t, id, sampleNamed(t, "hint"))
	key, err := readKey(t, m.keys["raw"], KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, key)
	if key.NbPublic != 1 || key.NbConstraints != 0 {
		t.Errorf("%d public inputs, %d constraints", key.NbPublic, key.NbConstraints)
	}
	c := makeFiles(t, id, sampleNamed(t, "commitments"))
	if _, err := readKey(t, c.keys["raw"], KeyOptions{}); err == nil || !strings.Contains(err.Error(), "circuit is needed") {
		t.Errorf("a key with commitments: %v", err)
	}
	if _, err := readKey(t, c.keys["raw"], KeyOptions{Circuit: m.ccs}); err == nil {
		t.Error("a key with another circuit is read")
	}
}

// Any byte cut off or changed gives an error or a key that is well formed, and
// nothing is allocated that the file cannot fill.
func TestBadFiles(t *testing.T) {
	noLeak(t)
	for _, id := range curve.All() {
		m := makeFiles(t, id, sampleNamed(t, "commitments"))
		readers := map[string]func(b []byte) error{
			"proof": func(b []byte) error {
				_, err := ReadProof(bytes.NewReader(b), int64(len(b)), Options{Name: "f"})
				return err
			},
			"vk": func(b []byte) error {
				_, err := ReadVerifyingKey(bytes.NewReader(b), int64(len(b)), Options{Name: "f"})
				return err
			},
			"witness": func(b []byte) error {
				_, err := ReadWitness(bytes.NewReader(b), int64(len(b)), Options{Name: "f", Curve: id})
				return err
			},
			"r1cs": func(b []byte) error {
				_, err := ReadR1CS(bytes.NewReader(b), int64(len(b)), Options{Name: "f"})
				return err
			},
			"key": func(b []byte) error {
				k, err := readKey(t, b, KeyOptions{Options: Options{Name: "f", SkipSubgroup: true}, Circuit: m.ccs})
				if err == nil {
					err = k.Validate(t.Context(), groth16.CheckCurve)
					_ = k.Close()
				}
				return err
			},
		}
		for _, f := range []struct {
			kind  string
			bytes []byte
			exact bool // every cut is an error
		}{
			{"proof", m.proof, true}, {"proof", m.proofRaw, true}, {"vk", m.vk, true}, {"vk", m.vkRaw, true},
			{"witness", m.witness, true}, {"r1cs", m.r1cs, true},
			{"key", m.keys["compressed"], true}, {"key", m.keys["raw"], true}, {"key", m.keys["dump"], true},
		} {
			read := readers[f.kind]
			if err := read(f.bytes); err != nil {
				t.Fatalf("%v/%s: %v", id, f.kind, err)
			}
			step := max(len(f.bytes)/60, 1)
			for n := 0; n < len(f.bytes); n += step {
				err := read(f.bytes[:n])
				var fe *FormatError
				if !errors.As(err, &fe) || fe.File != "f" {
					t.Errorf("%v/%s cut at %d of %d: %v", id, f.kind, n, len(f.bytes), err)
				}
			}
			if err := read(append(f.bytes[:len(f.bytes):len(f.bytes)], 0)); err == nil {
				t.Errorf("%v/%s: a byte too many is read", id, f.kind)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tries := 0
			for at := 0; at+4 <= len(f.bytes); at += max(step/4, 1) {
				b := bytes.Clone(f.bytes)
				binary.BigEndian.PutUint32(b[at:], 1<<26)
				_ = read(b)
				tries++
			}
			runtime.ReadMemStats(&after)
			if per := int(after.TotalAlloc-before.TotalAlloc) / tries; per > 100*len(f.bytes)+8<<20 {
				t.Errorf("%v/%s: %d bytes allocated a try for a file of %d", id, f.kind, per, len(f.bytes))
			}
		}
	}
}

func TestWrongCurve(t *testing.T) {
	noLeak(t)
	for _, id := range curve.All() {
		other := curve.BN254 + curve.BLS12381 - id
		m := makeFiles(t, id, sampleNamed(t, "hint"))
		for enc, b := range m.keys {
			if _, err := readKey(t, b, KeyOptions{Options: Options{Curve: other}}); !errors.Is(err, ErrCurve) {
				t.Errorf("%v key, %s: %v", id, enc, err)
			}
		}
		if _, err := ReadR1CS(bytes.NewReader(m.r1cs), int64(len(m.r1cs)), Options{Curve: other}); !errors.Is(err, ErrCurve) {
			t.Errorf("%v r1cs: %v", id, err)
		}
		if _, err := ReadProof(bytes.NewReader(m.proof), int64(len(m.proof)), Options{Curve: other}); err == nil {
			t.Errorf("%v proof is read as one on %v", id, other)
		}
		if _, err := ReadVerifyingKey(bytes.NewReader(m.vk), int64(len(m.vk)), Options{Curve: other}); err == nil {
			t.Errorf("%v verifying key is read as one on %v", id, other)
		}
		if _, err := ReadProof(bytes.NewReader(m.proof), int64(len(m.proof)), Options{Curve: 9}); !errors.Is(err, ErrCurve) {
			t.Errorf("unknown curve: %v", err)
		}
		if _, err := ReadWitness(bytes.NewReader(m.witness), int64(len(m.witness)), Options{}); err == nil {
			t.Error("a witness of no curve is read")
		}
	}
}

// A point that is on the curve but not in the subgroup, and one off the curve.
func TestKeyPointsAreChecked(t *testing.T) {
	noLeak(t)
	m := makeFiles(t, curve.BLS12381, sampleNamed(t, "hint"))
	b := bytes.Clone(m.keys["dump"])
	// The first point of A: behind marker, domain, 3 G1 and 2 G2 raw, the flags.
	var wires = binary.BigEndian.Uint64(b[8+domainBytes+3*96+2*192:])
	at := 8 + domainBytes + 3*96 + 2*192 + 24 + 2*int(wires) + 4 + 8
	b[at] ^= 1
	_, err := readKey(t, b, KeyOptions{Options: Options{SkipSubgroup: true}})
	var fe *FormatError
	if !errors.As(err, &fe) || fe.Section != "A" || fe.Offset != int64(at) {
		t.Errorf("off the curve: %v", err)
	}
	b = bytes.Clone(m.keys["dump"])
	copy(b[at:], outsideG1(t))
	if _, err = readKey(t, b, KeyOptions{}); !errors.As(err, &fe) || fe.Section != "A" || fe.Offset != int64(at) {
		t.Errorf("outside the subgroup: %v", err)
	}
	key, err := readKey(t, b, KeyOptions{Options: Options{SkipSubgroup: true}})
	if err != nil {
		t.Errorf("the check was to be skipped: %v", err)
	} else {
		_ = key.Close()
	}
}
