package circom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// opened is all that a .zkey gives.
type opened struct {
	key     *groth16.ProvingKey
	vk      *groth16.VerifyingKey
	circuit *Circuit
}

func (o *opened) close() {
	o.circuit.Close()
	o.key.Close()
}

func takeAll(z *Zkey, o KeyOptions) (*opened, error) {
	ctx := context.Background()
	key, err := z.ProvingKey(ctx, o)
	if err != nil {
		return nil, err
	}
	vk, err := z.VerifyingKey(ctx, o)
	if err != nil {
		return nil, errors.Join(err, key.Close())
	}
	c, err := z.Circuit(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, key.Close())
	}
	return &opened{key, vk, c}, nil
}

// readZkey reads all of a .zkey in memory.
func readZkey(b []byte, o KeyOptions) (*opened, error) {
	z, err := openZkey(b)
	if err != nil {
		return nil, err
	}
	return takeAll(z, o)
}

// TestProveWithZkey proves with keys and witnesses of snarkjs, from the
// matrices of the .zkey and from those of the .r1cs.
func TestProveWithZkey(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault", "silent"} {
			z := must[*Zkey](t)(OpenZkey(file(id, name+".zkey")))
			o := must[*opened](t)(takeAll(z, KeyOptions{}))
			defer o.close()
			check(t, z.Close()) // the key holds the mapping on its own
			check(t, o.key.Validate(context.Background(), groth16.CheckSubgroup))
			r := must[*Circuit](t)(readCircuit(load(t, id, name+".r1cs")))
			defer r.Close()
			if o.key.NbConstraints != o.circuit.NbConstraints() || o.key.NbConstraints != r.NbConstraints() {
				t.Errorf("%s: %d rows in the key, %d in its circuit, %d in the .r1cs", name, o.key.NbConstraints, o.circuit.NbConstraints(), r.NbConstraints())
			}
			w := must[*Wtns](t)(OpenWtns(file(id, name+".wtns")))
			defer w.Close()
			public := must[[]curve.Scalar](t)(w.Public(o.key.NbPublic))
			for _, c := range []groth16.Circuit{o.circuit, r} {
				proof := prove(t, o.key, c, w)
				check(t, o.vk.Verify(proof, public))
				if len(public) > 0 {
					wrong := slices.Clone(public)
					wrong[0] = curve.Scalar{1}
					if err := o.vk.Verify(proof, wrong); !errors.Is(err, groth16.ErrInvalidProof) {
						t.Errorf("%s: a wrong public value: %v", name, err)
					}
				}
			}
		}
	})
}

// TestZkeyHasInfinities makes sure that the bundled key is of the kind that
// needs them handled.
func TestZkeyHasInfinities(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		o := must[*opened](t)(readZkey(load(t, id, "vault.zkey"), KeyOptions{}))
		defer o.close()
		count := func(q curve.Query) (n int) {
			size := q.Points.Curve.PointBytes(q.Points.Group)
			for j := range q.Len() {
				if isZero(q.Points.Data[size*j : size*(j+1)]) {
					n++
				}
			}
			return n
		}
		if a, b1, b2 := count(o.key.A), count(o.key.B1), count(o.key.B2); a == 0 || b1 == 0 || b1 != b2 {
			t.Errorf("infinities: %d in A, %d in B1, %d in B2", a, b1, b2)
		}
	})
}

// TestZkeyAnyOrder: the order of sections and of coefficients does not matter,
// nor whether sections lie at multiples of 4.
func TestZkeyAnyOrder(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		original := load(t, id, "vault.zkey")
		p := parts(t, original)
		coeffs := sectionOf(t, p, zkeyCoeffs)[4:]
		entries := make([][]byte, 0, len(coeffs)/coefficient)
		for e := range slices.Chunk(slices.Clone(coeffs), coefficient) {
			entries = append(entries, e)
		}
		random := rand.New(rand.NewPCG(1, 2))
		random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		copy(coeffs, slices.Concat(entries...))
		random.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
		p = slices.Insert(p, 0, part{99, []byte{1}}) // shifts all others to odd places

		o := must[*opened](t)(readZkey(join(KindZkey, 1, p), KeyOptions{}))
		defer o.close()
		w := filled(t, must[*Wtns](t)(openWtns(load(t, id, "vault.wtns"))))
		check(t, o.vk.Verify(prove(t, o.key, o.circuit, w), w[1:1+o.key.NbPublic]))

		// The matrices are the same, row by row, up to the order in a row.
		want := must[*opened](t)(readZkey(original, KeyOptions{}))
		defer want.close()
		for i, m := range []curve.Matrix{o.circuit.A, o.circuit.B} {
			n := []curve.Matrix{want.circuit.A, want.circuit.B}[i]
			for row := range n.NumRows() {
				if a, b := sorted(m, row), sorted(n, row); !slices.Equal(a, b) {
					t.Fatalf("row %d of matrix %d: %v, want %v", row, i, a, b)
				}
			}
		}
	})
}

type value struct {
	wire  uint32
	coeff curve.Scalar
}

func sorted(m curve.Matrix, row int) []value {
	var out []value
	for _, t := range rowOf(m, row) {
		out = append(out, value{t.Wire, m.Coeffs[t.Coeff]})
	}
	slices.SortFunc(out, func(a, b value) int { return int(a.wire) - int(b.wire) })
	return out
}

// TestWriteZkeyAgain: what was read is written as it was.
func TestWriteZkeyAgain(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault.zkey", "silent.zkey"} {
			original := load(t, id, name)
			o := must[*opened](t)(readZkey(original, KeyOptions{}))
			defer o.close()
			var b bytes.Buffer
			check(t, WriteZkey(&b, o.key, o.vk, &o.circuit.R1CS))
			want := parts(t, original)
			got := parts(t, b.Bytes())
			if len(got) != 9 {
				t.Errorf("%s: %d sections", name, len(got))
			}
			for _, p := range got {
				if !bytes.Equal(p.data, sectionOf(t, want, p.id)) {
					t.Errorf("%s: section %d differs", name, p.id)
				}
			}
		}
	})
}

// TestWriteZkeyOfSetup: keys of our own set-up become .zkey files that prove,
// over gnark's roots of unity (renumbered on BLS12-381) and over snarkjs'.
func TestWriteZkeyOfSetup(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		ctx := context.Background()
		r := must[*Circuit](t)(readCircuit(load(t, id, "vault.r1cs")))
		defer r.Close()
		w := filled(t, must[*Wtns](t)(openWtns(load(t, id, "vault.wtns"))))
		for name, domain := range map[string]curve.Domain{"gnark's": {}, "snarkjs'": must[curve.Domain](t)(SnarkjsDomain(id, 8))} {
			key, vk, err := groth16.UnsafeSetup(ctx, &r.R1CS, groth16.SetupOptions{Basis: curve.Coset, Domain: domain})
			check(t, err)
			defer key.Close()
			var b bytes.Buffer
			check(t, WriteZkey(&b, key, vk, &r.R1CS))
			o := must[*opened](t)(readZkey(b.Bytes(), KeyOptions{}))
			defer o.close()
			if err := vk.Verify(prove(t, o.key, o.circuit, w), w[1:1+o.key.NbPublic]); err != nil {
				t.Errorf("roots of unity of %s: %v", name, err)
			}
		}
		folded, vk, err := groth16.UnsafeSetup(ctx, &r.R1CS, groth16.SetupOptions{Basis: curve.Coset, Folded: true})
		check(t, err)
		defer folded.Close()
		if err := WriteZkey(&bytes.Buffer{}, folded, vk, &r.R1CS); err == nil {
			t.Error("a folded key is written")
		}
		mono, vk, err := groth16.UnsafeSetup(ctx, &r.R1CS, groth16.SetupOptions{Basis: curve.Monomial})
		check(t, err)
		defer mono.Close()
		if err := WriteZkey(&bytes.Buffer{}, mono, vk, &r.R1CS); err == nil {
			t.Error("a key in the monomial basis is written")
		}
	})
}

// TestSwappedSections: A and B1 have the same length, so that only the proof
// shows that they changed places. It must not verify.
func TestSwappedSections(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		p := parts(t, load(t, id, "vault.zkey"))
		for i := range p {
			switch p[i].id {
			case zkeyA:
				p[i].id = zkeyB1
			case zkeyB1:
				p[i].id = zkeyA
			}
		}
		o := must[*opened](t)(readZkey(join(KindZkey, 1, p), KeyOptions{}))
		defer o.close()
		w := filled(t, must[*Wtns](t)(openWtns(load(t, id, "vault.wtns"))))
		if err := o.vk.Verify(prove(t, o.key, o.circuit, w), w[1:1+o.key.NbPublic]); !errors.Is(err, groth16.ErrInvalidProof) {
			t.Errorf("proof of swapped sections: %v", err)
		}
	})
}

func TestZkeyProgressAndCancel(t *testing.T) {
	z := must[*Zkey](t)(OpenZkey(file(curve.BLS12381, "vault.zkey")))
	defer z.Close()
	var calls, last atomic.Int64
	key := must[*groth16.ProvingKey](t)(z.ProvingKey(context.Background(), KeyOptions{Progress: func(done, total int) {
		calls.Add(1)
		last.Store(max(last.Load(), int64(done)))
		if done > total {
			t.Errorf("%d of %d points", done, total)
		}
	}}))
	check(t, key.Close())
	if want := int64(6 + 4*z.Wires - z.Public - 1 + 1<<z.DomainLog); calls.Load() == 0 || last.Load() != want {
		t.Errorf("%d reports, the last of %d points, want %d", calls.Load(), last.Load(), want)
	}
	defer alloc.Marked().CheckLeaks(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := z.ProvingKey(ctx, KeyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := z.VerifyingKey(ctx, KeyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := z.Circuit(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestZkeyDamagedHeader(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		put := binary.LittleEndian.PutUint32
		r := 4 + id.FieldBytes() // where the length of r is
		wires := r + 4 + 32
		other := curve.BLS12381
		if id == other {
			other = curve.BN254
		}
		for name, e := range map[string]struct {
			change        func(h []byte)
			section, text string
		}{
			"q of 33 bytes":    {func(h []byte) { h[0] = 33 }, "2 ", "33 bytes a base field element"},
			"q unknown":        {func(h []byte) { h[4]++ }, "2 ", "base field modulus is of no known curve"},
			"r unknown":        {func(h []byte) { h[r+4]++ }, "2 ", "scalar field modulus is of no known curve"},
			"r of another":     {func(h []byte) { copy(h[r+4:], scalarModulus(other)) }, "2 ", "the base field is of"},
			"no wires":         {func(h []byte) { put(h[wires:], 0) }, "2 ", "0 wires cannot hold"},
			"wires":            {func(h []byte) { put(h[wires:], 245) }, "5 ", "are not 245 points"},
			"wires 2^32 - 1":   {func(h []byte) { put(h[wires:], 1<<32-1) }, "5 ", "points"},
			"public":           {func(h []byte) { put(h[wires+4:], 3) }, "3 ", "are not 4 points"},
			"public 2^32 - 1":  {func(h []byte) { put(h[wires+4:], 1<<32-1) }, "2 ", "cannot hold"},
			"domain":           {func(h []byte) { put(h[wires+8:], 512) }, "9 ", "are not 512 points"},
			"domain 0":         {func(h []byte) { put(h[wires+8:], 0) }, "2 ", "power of two"},
			"domain 255":       {func(h []byte) { put(h[wires+8:], 255) }, "2 ", "power of two"},
			"domain too small": {func(h []byte) { put(h[wires+8:], 2) }, "2 ", "cannot hold"},
			"alpha infinite":   {func(h []byte) { clear(h[wires+12:][:id.G1Bytes()]) }, "2 ", "infinity"},
			"delta2 infinite":  {func(h []byte) { clear(h[len(h)-id.G2Bytes():]) }, "2 ", "infinity"},
			"alpha off curve":  {func(h []byte) { h[wires+12]++ }, "2 ", "not on the curve"},
			"gamma2 off curve": {func(h []byte) { h[wires+12+2*id.G1Bytes()+id.G2Bytes()]++ }, "2 ", "not on the curve"},
		} {
			t.Run(name, func(t *testing.T) {
				p := parts(t, load(t, id, "vault.zkey"))
				e.change(sectionOf(t, p, zkeyHeader))
				_, err := readZkey(join(KindZkey, 1, p), KeyOptions{})
				wantFormat(t, err, e.section, e.text)
			})
		}
		for protocol, text := range map[uint32]string{2: "PLONK", 10: "FFLONK", 7: "protocol 7"} {
			p := parts(t, load(t, id, "vault.zkey"))
			put(sectionOf(t, p, zkeyProtocol), protocol)
			_, err := readZkey(join(KindZkey, 1, p), KeyOptions{})
			wantFormat(t, err, "1 ", text)
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("protocol %d: %v", protocol, err)
			}
		}
		// The largest power of two is within no domain of BN254.
		p := parts(t, load(t, id, "vault.zkey"))
		put(sectionOf(t, p, zkeyHeader)[wires+8:], 1<<31)
		_, err := readZkey(join(KindZkey, 1, p), KeyOptions{})
		want := map[curve.ID]string{curve.BN254: "2 ", curve.BLS12381: "9 "}[id]
		wantFormat(t, err, want, "")
	})
}

func TestZkeyDamagedCoefficients(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		put := binary.LittleEndian.PutUint32
		for name, e := range map[string]struct {
			change func(b []byte)
			text   string
		}{
			"matrix 2":       {func(b []byte) { put(b[4:], 2) }, "matrix 2"},
			"row":            {func(b []byte) { put(b[8:], 256) }, "constraint 256 of a domain of 256"},
			"row 2^32 - 1":   {func(b []byte) { put(b[8:], 1<<32-1) }, "constraint 4294967295"},
			"wire":           {func(b []byte) { put(b[12:], 244) }, "wire 244 of 244"},
			"value r":        {func(b []byte) { copy(b[16:], scalarModulus(id)) }, "not below"},
			"one more":       {func(b []byte) { put(b, binary.LittleEndian.Uint32(b)+1) }, "coefficients"},
			"count 2^32 - 1": {func(b []byte) { put(b, 1<<32-1) }, "coefficients"},
		} {
			t.Run(name, func(t *testing.T) {
				p := parts(t, load(t, id, "vault.zkey"))
				e.change(sectionOf(t, p, zkeyCoeffs))
				_, err := readZkey(join(KindZkey, 1, p), KeyOptions{})
				wantFormat(t, err, "4 ", e.text)
			})
		}
	})
}

// TestZkeyDamagedPoints puts a bad point in each section of points: the error
// names the section and the byte.
func TestZkeyDamagedPoints(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		original := load(t, id, "vault.zkey")
		outside1, outside2 := outsideSubgroup(id)
		for _, section := range []uint32{zkeyIC, zkeyA, zkeyB1, zkeyB2, zkeyC, zkeyH} {
			size, outside := id.G1Bytes(), outside1
			if section == zkeyB2 {
				size, outside = id.G2Bytes(), outside2
			}
			at := 2 * size // the third point, whatever the section
			modulus := fieldModulus(id)
			for _, e := range []struct {
				name   string
				change func(b []byte)
				skip   bool
				want   error
			}{
				{"off curve", func(b []byte) { copy(b, bytes.Repeat([]byte{3, 0}, size/2)) }, false, arith.ErrOffCurve},
				{"off curve, subgroup skipped", func(b []byte) { copy(b, bytes.Repeat([]byte{3, 0}, size/2)) }, true, arith.ErrOffCurve},
				{"coordinate q", func(b []byte) { copy(b[size-len(modulus):], modulus) }, true, arith.ErrCoordinate},
				{"outside subgroup", func(b []byte) { copy(b, outside) }, false, arith.ErrSubgroup},
			} {
				if errors.Is(e.want, arith.ErrSubgroup) && outside == nil {
					continue // all of BN254's G1 is in the subgroup
				}
				p := parts(t, original)
				e.change(sectionOf(t, p, section)[at:][:size])
				b := join(KindZkey, 1, p)
				_, err := readZkey(b, KeyOptions{SkipSubgroup: e.skip})
				var f *FormatError
				if !errors.As(err, &f) || !errors.Is(err, e.want) {
					t.Errorf("section %d, %s: %v", section, e.name, err)
					continue
				}
				c := must[*Container](t)(Parse("", b))
				s, _ := c.find(section)
				if f.Section != c.SectionName(section) || f.Offset != s.Offset+int64(at) {
					t.Errorf("section %d, %s: the error is about %s at %d, want byte %d", section, e.name, f.Section, f.Offset, s.Offset+int64(at))
				}
				if errors.Is(e.want, arith.ErrSubgroup) {
					o, err := readZkey(b, KeyOptions{SkipSubgroup: true})
					if err != nil {
						t.Errorf("section %d: the subgroup check is not skipped: %v", section, err)
						continue
					}
					o.close()
				}
			}
		}
	})
}
