package circom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

func TestR1CSHeader(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		f := must[*R1CSFile](t)(OpenR1CS(file(id, "vault.r1cs")))
		defer f.Close()
		want := R1CSHeader{Curve: id, Wires: 244, PublicOutputs: 1, PublicInputs: 1, PrivateInputs: 10, Labels: 296, Constraints: 238}
		if f.R1CSHeader != want {
			t.Errorf("header %+v, want %+v", f.R1CSHeader, want)
		}
	})
}

// synthesize evaluates a circuit on a witness, with the check of constraints.
func synthesize(t testing.TB, c *Circuit, w groth16.WitnessSource) error {
	t.Helper()
	domain := must[curve.Domain](t)(SnarkjsDomain(c.ID, 8))
	a, err := c.Synthesize(context.Background(), nil, w, groth16.Want{Domain: domain, C: true, Check: true, Arithmetic: engine(t, c.ID)})
	if err == nil {
		a.Release()
	}
	return err
}

func TestR1CSHoldsForItsWitness(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault", "silent"} {
			c := must[*Circuit](t)(readCircuit(load(t, id, name+".r1cs")))
			defer c.Close()
			check(t, c.Validate())
			w := must[*Wtns](t)(OpenWtns(file(id, name+".wtns")))
			defer w.Close()
			check(t, synthesize(t, c, w))

			// Any other value of a wire that is used breaks a constraint, and
			// the first broken one is named.
			bad := filled(t, w)
			bad[c.Wires-1] = curve.Scalar{12345}
			var u *groth16.UnsatisfiedError
			if err := synthesize(t, c, bad); !errors.As(err, &u) {
				t.Errorf("%s with a wrong wire: %v", name, err)
			}
		}
	})
}

func TestR1CSCoefficientsAreShared(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		c := must[*Circuit](t)(readCircuit(load(t, id, "vault.r1cs")))
		defer c.Close()
		seen := map[curve.Scalar]bool{}
		for _, v := range c.A.Coeffs {
			if seen[v] {
				t.Fatal("a coefficient is kept twice")
			}
			seen[v] = true
		}
		if terms := len(c.A.Terms) + len(c.B.Terms) + len(c.C.Terms); len(seen)*10 > terms {
			t.Errorf("%d distinct coefficients of %d", len(seen), terms)
		}
	})
}

// TestInternerGrows has far more distinct values than the table starts with.
func TestInternerGrows(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	table := must[*interner](t)(newInterner(nil))
	const n = 10_000
	for range 2 {
		for i := range uint64(n) {
			if got := must[uint32](t)(table.add(&curve.Scalar{i, 7 * i})); got != uint32(i) {
				t.Fatalf("value %d has number %d", i, got)
			}
		}
	}
	out := must[*alloc.Buffer[curve.Scalar]](t)(table.finish())
	defer out.Release()
	if out.Len() != n || out.Slice()[n-1] != (curve.Scalar{n - 1, 7 * (n - 1)}) {
		t.Errorf("%d values, the last %v", out.Len(), out.Slice()[out.Len()-1])
	}
}

func TestWriteR1CS(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		original := load(t, id, "vault.r1cs")
		c := must[*Circuit](t)(readCircuit(original))
		defer c.Close()
		var b bytes.Buffer
		check(t, WriteR1CS(&b, &c.R1CS))
		again := must[*Circuit](t)(readCircuit(b.Bytes()))
		defer again.Close()
		if !bytes.Equal(sectionOf(t, parts(t, b.Bytes()), r1csConstraints), sectionOf(t, parts(t, original), r1csConstraints)) {
			t.Error("the constraints are not written as they were read")
		}
		if again.Public != c.Public || again.Wires != c.Wires || !again.InputRows {
			t.Errorf("read back: %d public of %d wires", again.Public, again.Wires)
		}
		z := must[*Zkey](t)(OpenZkey(file(id, "vault.zkey")))
		defer z.Close()
		ab := must[*Circuit](t)(z.Circuit(context.Background(), nil))
		defer ab.Close()
		if err := WriteR1CS(&b, &ab.R1CS); err == nil {
			t.Error("a system without C is written")
		}
	})
}

func TestR1CSDamaged(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		good := parts(t, load(t, id, "vault.r1cs"))
		// The header is n8, prime, wires, outputs, public, private, labels, constraints.
		const wires, outputs, private, constraints = 36, 40, 48, 60
		put := binary.LittleEndian.PutUint32
		for name, e := range map[string]struct {
			change        func(h, c, l []byte) []part
			section, text string
		}{
			"element of 31 bytes":  {func(h, _, _ []byte) []part { h[0] = 31; return nil }, "1 ", "31 bytes a scalar field element"},
			"unknown prime":        {func(h, _, _ []byte) []part { h[4]++; return nil }, "1 ", "no known curve"},
			"no wires":             {func(h, _, _ []byte) []part { put(h[wires:], 0); return nil }, "1 ", "0 wires cannot hold"},
			"more inputs":          {func(h, _, _ []byte) []part { put(h[private:], 1<<32-1); return nil }, "1 ", "cannot hold"},
			"outputs overflow":     {func(h, _, _ []byte) []part { put(h[outputs:], 1<<32-1); return nil }, "1 ", "cannot hold"},
			"more wires":           {func(h, _, _ []byte) []part { put(h[wires:], 1<<32-1); return nil }, "3 ", "labels"},
			"fewer wires":          {func(h, _, l []byte) []part { put(h[wires:], 243); return []part{{3, l[8:]}} }, "2 ", "wire 243 of 243"},
			"more constraints":     {func(h, _, _ []byte) []part { put(h[constraints:], 1<<27); return nil }, "2 ", "cannot hold"},
			"too many constraints": {func(h, _, _ []byte) []part { put(h[constraints:], 1<<32-1); return nil }, "1 ", "domain"},
			"one constraint more":  {func(h, _, _ []byte) []part { put(h[constraints:], 239); return nil }, "2 ", "too early"},
			"one constraint less":  {func(h, _, _ []byte) []part { put(h[constraints:], 237); return nil }, "2 ", "too many in the section"},
			"long row":             {func(_, c, _ []byte) []part { put(c, 1<<32-1); return nil }, "2 ", "too early"},
			"value r":              {func(_, c, _ []byte) []part { copy(c[8:], scalarModulus(id)); return nil }, "2 ", "not below"},
			"value 2^256 - 1":      {func(_, c, _ []byte) []part { copy(c[8:40], bytes.Repeat([]byte{255}, 32)); return nil }, "2 ", "not below"},
			"wire out of range":    {func(_, c, _ []byte) []part { put(c[4:], 244); return nil }, "2 ", "wire 244 of 244"},
			"labels":               {func(_, _, l []byte) []part { return []part{{3, l[1:]}} }, "3 ", "labels"},
			"custom gates":         {func(_, _, _ []byte) []part { return []part{{4, []byte{1, 0, 0, 0}}} }, "4 ", "custom gates"},
			"custom gate uses":     {func(_, _, _ []byte) []part { return []part{{5, []byte{1, 0, 0, 0}}} }, "5 ", "custom gates"},
			"header too long":      {func(h, _, _ []byte) []part { return []part{{1, append(h, 0)}} }, "1 ", "too many"},
			"header too short":     {func(h, _, _ []byte) []part { return []part{{1, h[:63]}} }, "1 ", "too early"},
			"header empty":         {func(_, _, _ []byte) []part { return []part{{1, nil}} }, "1 ", "too early"},
		} {
			t.Run(name, func(t *testing.T) {
				p := make([]part, 0, len(good)+1)
				for _, s := range good {
					p = append(p, part{s.id, slices.Clone(s.data)})
				}
				for _, n := range e.change(sectionOf(t, p, 1), sectionOf(t, p, 2), sectionOf(t, p, 3)) {
					if i := slices.IndexFunc(p, func(s part) bool { return s.id == n.id }); i >= 0 {
						p[i] = n
					} else {
						p = append(p, n)
					}
				}
				c, err := readCircuit(join(KindR1CS, 1, p))
				if err == nil {
					c.Close()
				}
				wantFormat(t, err, e.section, e.text)
			})
		}
		// No gates in a section of gates, and sections in another order, are fine.
		slices.Reverse(good)
		c := must[*Circuit](t)(readCircuit(join(KindR1CS, 1, append(good, part{4, make([]byte, 4)}))))
		c.Close()
	})
}

func TestR1CSCancel(t *testing.T) {
	f := must[*R1CSFile](t)(OpenR1CS(file(curve.BN254, "vault.r1cs")))
	defer f.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	defer alloc.Marked().CheckLeaks(t)
	if _, err := f.Circuit(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
