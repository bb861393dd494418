package circom

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// formatError fails unless err is a *FormatError: input is the only cause of
// failure in these targets.
func formatError(t *testing.T, err error) {
	t.Helper()
	var f *FormatError
	if !errors.As(err, &f) {
		t.Fatalf("error %v (%T) is no *FormatError", err, err)
	}
}

// seed adds the files of both curves, whole and damaged.
func seed(f *testing.F, names ...string) {
	for _, id := range curve.All() {
		for _, name := range names {
			b := load(f, id, name)
			f.Add(b)
			f.Add(b[:len(b)/2])
			c := bytes.Clone(b)
			c[len(c)/3] ^= 0x80
			f.Add(c)
		}
	}
}

func FuzzContainer(f *testing.F) {
	seed(f, "silent.r1cs", "silent.wtns", "silent.zkey")
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse("fuzz", b)
		if err != nil {
			formatError(t, err)
			return
		}
		n := 12
		for _, s := range c.Sections() {
			n += 12 + len(c.bytes(s))
			_ = c.SectionName(s.ID)
		}
		if n != len(b) {
			t.Fatalf("sections are %d bytes of %d", n, len(b))
		}
	})
}

func FuzzR1CS(f *testing.F) {
	seed(f, "silent.r1cs")
	f.Fuzz(func(t *testing.T, b []byte) {
		defer alloc.Marked().CheckLeaks(t)
		c, err := readCircuit(b)
		if err != nil {
			formatError(t, err)
			return
		}
		defer c.Close()
		check(t, c.Validate())
		var out bytes.Buffer
		check(t, WriteR1CS(&out, &c.R1CS))
		again, err := readCircuit(out.Bytes())
		check(t, err)
		defer again.Close()
		if again.NbConstraints() != c.NbConstraints() || len(again.A.Terms) != len(c.A.Terms) {
			t.Fatal("what is written reads otherwise")
		}
	})
}

func FuzzWtns(f *testing.F) {
	seed(f, "silent.wtns")
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := openWtns(b)
		if err != nil {
			formatError(t, err)
			return
		}
		dst := make([]curve.Scalar, w.Len())
		if err := w.Fill(context.Background(), dst); err != nil {
			formatError(t, err)
			return
		}
		field, err := arith.FieldOf(w.Curve())
		check(t, err)
		for i := range dst {
			if !field.Reduced(&dst[i]) {
				t.Fatalf("wire %d is not reduced", i)
			}
		}
		var out bytes.Buffer
		check(t, WriteWtns(context.Background(), &out, w.Curve(), groth16.Witness(dst)))
		if _, err := openWtns(out.Bytes()); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzZkey(f *testing.F) {
	seed(f, "silent.zkey")
	f.Fuzz(func(t *testing.T, b []byte) {
		defer alloc.Marked().CheckLeaks(t)
		o, err := readZkey(b, KeyOptions{})
		if err != nil {
			formatError(t, err)
			return
		}
		defer o.close()
		check(t, o.circuit.Validate())
		check(t, o.key.Validate(context.Background(), groth16.CheckSubgroup))
		check(t, o.vk.Check())
	})
}

func FuzzProofJSON(f *testing.F) {
	seed(f, "silent.proof.json")
	f.Add([]byte(`{"pi_a":[1,2],"pi_b":[[1,2],[3,4]],"pi_c":["0","1","0"],"protocol":"groth16","curve":"bn128"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadProof("fuzz", bytes.NewReader(b))
		if err != nil {
			formatError(t, err)
			return
		}
		check(t, p.Check())
		var out bytes.Buffer
		check(t, WriteProof(&out, p))
		again, err := ReadProof("fuzz", &out)
		check(t, err)
		if again.A != p.A || again.B != p.B || again.C != p.C || again.Curve != p.Curve {
			t.Fatal("what is written reads otherwise")
		}
	})
}

func FuzzVerificationKeyJSON(f *testing.F) {
	seed(f, "silent.vkey.json", "vault.vkey.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		vk, err := ReadVerifyingKey("fuzz", bytes.NewReader(b))
		if err != nil {
			formatError(t, err)
			return
		}
		check(t, vk.Check())
		var out bytes.Buffer
		check(t, WriteVerifyingKey(&out, vk))
		if _, err := ReadVerifyingKey("fuzz", &out); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzPublicJSON(f *testing.F) {
	seed(f, "silent.public.json", "vault.public.json")
	f.Add([]byte(`["0x10", 3, "0"]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, id := range curve.All() {
			v, err := ReadPublic("fuzz", bytes.NewReader(b), id)
			if err != nil {
				formatError(t, err)
				continue
			}
			var out bytes.Buffer
			check(t, WritePublic(&out, id, v))
			again, err := ReadPublic("fuzz", &out, id)
			check(t, err)
			if len(again) != len(v) {
				t.Fatal("what is written reads otherwise")
			}
		}
	})
}

func FuzzInputJSON(f *testing.F) {
	for _, name := range []string{"vault.json", "silent.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"a": {"b": [{"c": [1, "0x2"]}, {"c": -3e2}]}, "d": true, "e": [[[]]]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := ReadInput("fuzz", bytes.NewReader(b))
		if err != nil {
			formatError(t, err)
			return
		}
		for name, values := range in {
			for i, v := range values {
				if v == nil {
					t.Fatalf("value %d of %q is missing", i, name)
				}
			}
		}
	})
}

// FuzzCalculator opens and runs modules that are damaged in any way: they come
// to an end, within their memory, and leave nothing behind.
func FuzzCalculator(f *testing.F) {
	seed(f, "silent.wasm")
	f.Add(handmade(1, nil, nil))
	f.Add(endless())
	for _, name := range slices.Sorted(maps.Keys(bombs())) {
		f.Add(bombs()[name])
	}
	inputs := Inputs{"a": {big.NewInt(3)}, "b": {big.NewInt(-5)}}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer alloc.Marked().CheckLeaks(t)
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		const limit = 4 << 20
		budget := alloc.NewBudget(alloc.HostBytes(16 << 20))
		r := must[*alloc.Reservation](t)(budget.Reserve(ctx, alloc.HostBytes(16<<20)))
		defer r.Close()
		ctx = alloc.WithScope(ctx, alloc.NewScope(alloc.StageOf("fuzz"), alloc.Host, r))
		c, err := NewCalculator(ctx, "fuzz", b, CalculatorOptions{Interpret: true, MemoryLimit: limit})
		if err == nil {
			defer c.Close()
			if c.Len() < 1 || c.Len() > limit/4 || c.Scratch()[alloc.Host] > limit {
				t.Fatalf("%d wires with %v of memory", c.Len(), c.Scratch())
			}
			err = c.Witness(inputs).Fill(ctx, make([]curve.Scalar, c.Len()))
		}
		var format *FormatError
		var circuit *CircuitError
		var input *InputError
		if err != nil && ctx.Err() == nil && !errors.As(err, &format) && !errors.As(err, &circuit) && !errors.As(err, &input) {
			t.Fatalf("error %v (%T)", err, err)
		}
	})
}
