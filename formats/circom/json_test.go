package circom

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// TestJSONAsSnarkjs: what snarkjs wrote is read, verifies, and is written
// byte for byte as snarkjs wrote it.
func TestJSONAsSnarkjs(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault", "silent"} {
			vk := must[*groth16.VerifyingKey](t)(ReadVerifyingKey(name, bytes.NewReader(load(t, id, name+".vkey.json"))))
			proof := must[*groth16.Proof](t)(ReadProof(name, bytes.NewReader(load(t, id, name+".proof.json"))))
			public := must[[]curve.Scalar](t)(ReadPublic(name, bytes.NewReader(load(t, id, name+".public.json")), id))
			check(t, vk.Verify(proof, public))

			same := func(file string, write func(b *bytes.Buffer) error) {
				t.Helper()
				var b bytes.Buffer
				check(t, write(&b))
				if !bytes.Equal(b.Bytes(), load(t, id, name+file)) {
					t.Errorf("%s%s is not written as it was read:\n%s", name, file, b.Bytes())
				}
			}
			same(".vkey.json", func(b *bytes.Buffer) error { return WriteVerifyingKey(b, vk) })
			same(".proof.json", func(b *bytes.Buffer) error { return WriteProof(b, proof) })
			same(".public.json", func(b *bytes.Buffer) error { return WritePublic(b, id, public) })
			same(".calldata", func(b *bytes.Buffer) error {
				text, err := SolidityCalldata(proof, public)
				b.WriteString(text + "\n")
				return err
			})

			// The .zkey has the same verifying key.
			o := must[*opened](t)(readZkey(load(t, id, name+".zkey"), KeyOptions{}))
			same(".vkey.json", func(b *bytes.Buffer) error { return WriteVerifyingKey(b, o.vk) })
			o.close()
		}
	})
}

// TestInfinityInJSON: infinity is written and read as snarkjs does.
func TestInfinityInJSON(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		var b bytes.Buffer
		check(t, WriteProof(&b, &groth16.Proof{Curve: id}))
		text := strings.Join(strings.Fields(b.String()), "")
		for _, want := range []string{`"pi_a":["0","1","0"]`, `"pi_b":[["0","0"],["1","0"],["0","0"]]`} {
			if !strings.Contains(text, want) {
				t.Errorf("infinity is written as %s", text)
			}
		}
		p := must[*groth16.Proof](t)(ReadProof("", &b))
		if !p.A.IsInfinity() || !p.B.IsInfinity() || !p.C.IsInfinity() {
			t.Error("infinity is read as a point")
		}
		calldata := must[string](t)(SolidityCalldata(p, nil))
		if n := strings.Count(calldata, strings.Repeat("0", 63)+"1"); n != 3 {
			t.Errorf("calldata of infinity: %s", calldata)
		}
	})
}

// edit changes a field of a JSON object.
func edit(t *testing.T, doc []byte, field string, v any) []byte {
	t.Helper()
	var m map[string]any
	check(t, json.Unmarshal(doc, &m))
	if v == nil {
		delete(m, field)
	} else {
		m[field] = v
	}
	return must[[]byte](t)(json.Marshal(m))
}

// plainPoint1 is a point in a key's memory as coordinates in JSON.
func plainPoint1(id curve.ID, b []byte) []any {
	var p curve.G1
	copy(curve.Bytes(p[:]), b)
	return pointJSON(id, &p)
}

func plainPoint2(id curve.ID, b []byte) []any {
	var p curve.G2
	copy(curve.Bytes(p[:]), b)
	return pointJSON2(id, &p)
}

func TestProofJSONDamaged(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		good := load(t, id, "vault.proof.json")
		q := id.FieldModulus().String()
		other := curve.BLS12381
		if id == other {
			other = curve.BN254
		}
		outside1, outside2 := outsideSubgroup(id)
		type damage struct {
			field string
			value any
			text  string
		}
		cases := map[string]damage{
			"no pi_a":          {"pi_a", nil, "0 coordinates"},
			"one coordinate":   {"pi_a", []any{"1"}, "1 coordinates"},
			"four coordinates": {"pi_a", []any{"1", "2", "1", "1"}, "4 coordinates"},
			"off curve":        {"pi_a", []any{"1", "1", "1"}, "not on the curve"},
			"zero":             {"pi_c", []any{"0", "0", "1"}, "not on the curve"},
			"x is q":           {"pi_c", []any{q, "2", "1"}, "not below"},
			"z is 2":           {"pi_c", []any{"1", "2", "2"}, "must be 1"},
			"odd infinity":     {"pi_c", []any{"1", "2", "0"}, "infinity"},
			"flat pi_b":        {"pi_b", []any{"1", "2", "1"}, ""},
			"pi_b of ones":     {"pi_b", []any{[]any{"1"}, []any{"2"}}, "parts"},
			"pi_b off curve":   {"pi_b", []any{[]any{"1", "0"}, []any{"2", "0"}, []any{"1", "0"}}, "not on the curve"},
			"pi_b z":           {"pi_b", []any{[]any{"1", "0"}, []any{"2", "0"}, []any{"1", "1"}}, "must be [1, 0]"},
			"plonk":            {"protocol", "plonk", "not a Groth16 file"},
			"no protocol":      {"protocol", nil, "not a Groth16 file"},
			"no curve":         {"curve", nil, "unknown curve"},
			"unknown curve":    {"curve", "secp256k1", "unknown curve"},
			"another curve":    {"curve", other.Circom(), ""},
			"negative":         {"pi_a", []any{"-1", "2", "1"}, "not a number"},
			"words":            {"pi_a", []any{"one", "2", "1"}, `field pi_a: "one" is not a number`},
			"empty":            {"pi_a", []any{"", "2", "1"}, "not a number"},
			"fraction":         {"pi_a", []any{1.5, "2", "1"}, "not a number"},
			"null":             {"pi_a", []any{nil, "2", "1"}, "not a number"},
			"true":             {"pi_a", []any{true, "2", "1"}, "not a number"},
			"underscore":       {"pi_a", []any{"1_0", "2", "1"}, "not a number"},
			"hex word":         {"pi_a", []any{"0xzz", "2", "1"}, "not a number"},
			"long":             {"pi_a", []any{strings.Repeat("1", 300), "2", "1"}, "field pi_a: a number of 302 characters"},
			"object":           {"pi_a", map[string]any{"x": 1}, ""},
		}
		if outside1 != nil {
			cases["pi_a outside subgroup"] = damage{"pi_a", plainPoint1(id, outside1), "subgroup"}
		}
		cases["pi_b outside subgroup"] = damage{"pi_b", plainPoint2(id, outside2), "subgroup"}
		for name, e := range cases {
			_, err := ReadProof("proof.json", bytes.NewReader(edit(t, good, e.field, e.value)))
			var f *FormatError
			if !errors.As(err, &f) || f.File != "proof.json" || !strings.Contains(err.Error(), e.text) {
				t.Errorf("%s: error %v, want one that says %q", name, err, e.text)
			}
		}
		for name, doc := range map[string]string{
			"nothing": "", "array": "[]", "cut": string(good[:len(good)/2]), "trailing": string(good) + "{}",
			"large": string(good) + strings.Repeat(" ", maxProofJSON), "binary": "\x00\x01",
		} {
			_, err := ReadProof("proof.json", strings.NewReader(doc))
			wantFormatOf(t, name, err)
		}
		// Numbers may be JSON numbers and hexadecimal.
		var m map[string]any
		check(t, json.Unmarshal(good, &m))
		x, _ := new(big.Int).SetString(m["pi_a"].([]any)[0].(string), 10)
		y, _ := new(big.Int).SetString(m["pi_a"].([]any)[1].(string), 10)
		doc := edit(t, good, "pi_a", []any{json.Number(x.String()), "0x" + y.Text(16)})
		p := must[*groth16.Proof](t)(ReadProof("", bytes.NewReader(doc)))
		if c := arith.Coordinates(id, &p.A); c[0].Cmp(x) != 0 || c[1].Cmp(y) != 0 {
			t.Errorf("coordinates %v, want %v, %v", c, x, y)
		}
	})
}

func wantFormatOf(t *testing.T, name string, err error) {
	t.Helper()
	var f *FormatError
	if !errors.As(err, &f) || f.File == "" {
		t.Errorf("%s: error %v (%T), want a *FormatError", name, err, err)
	}
}

func TestVerificationKeyJSONDamaged(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		good := load(t, id, "vault.vkey.json")
		var m map[string]any
		check(t, json.Unmarshal(good, &m))
		ic := m["IC"].([]any)
		infinity2 := []any{[]any{"0", "0"}, []any{"1", "0"}, []any{"0", "0"}}
		for name, e := range map[string]struct {
			field string
			value any
			text  string
		}{
			"fewer points":     {"IC", ic[:2], "nPublic is 2, IC has 2 points"},
			"more points":      {"IC", append(append([]any{}, ic...), ic[0]), "nPublic is 2, IC has 4 points"},
			"no points":        {"IC", nil, "IC has 0 points"},
			"no count":         {"nPublic", nil, "no nPublic"},
			"negative count":   {"nPublic", -1, "nPublic is -1"},
			"large count":      {"nPublic", 1 << 40, "IC has 3 points"},
			"fraction":         {"nPublic", 1.5, ""},
			"alpha off curve":  {"vk_alpha_1", []any{"1", "1", "1"}, "field vk_alpha_1: the point is not on the curve"},
			"alpha infinite":   {"vk_alpha_1", []any{"0", "1", "0"}, "infinity"},
			"beta infinite":    {"vk_beta_2", infinity2, "infinity"},
			"gamma infinite":   {"vk_gamma_2", infinity2, "infinity"},
			"delta infinite":   {"vk_delta_2", infinity2, "infinity"},
			"delta off curve":  {"vk_delta_2", []any{[]any{"1", "0"}, []any{"2", "0"}, []any{"1", "0"}}, "not on the curve"},
			"IC off curve":     {"IC", []any{ic[0], []any{"1", "1", "1"}, ic[2]}, "field IC[1]"},
			"IC of one number": {"IC", []any{ic[0], ic[1], []any{"1"}}, "field IC[2]"},
			"fflonk":           {"protocol", "fflonk", "not a Groth16 file"},
			"curve":            {"curve", "bls12377", "unknown curve"},
		} {
			_, err := ReadVerifyingKey("vkey.json", bytes.NewReader(edit(t, good, e.field, e.value)))
			wantFormatOf(t, name, err)
			if err != nil && !strings.Contains(err.Error(), e.text) {
				t.Errorf("%s: error %v, want one that says %q", name, err, e.text)
			}
		}
		_, outside2 := outsideSubgroup(id)
		_, err := ReadVerifyingKey("vkey.json", bytes.NewReader(edit(t, good, "vk_gamma_2", plainPoint2(id, outside2))))
		if !errors.Is(err, arith.ErrSubgroup) {
			t.Errorf("gamma outside the subgroup: %v", err)
		}
		// The file's own pairing is not believed.
		vk := must[*groth16.VerifyingKey](t)(ReadVerifyingKey("", bytes.NewReader(edit(t, good, "vk_alphabeta_12", nil))))
		var b bytes.Buffer
		check(t, WriteVerifyingKey(&b, vk))
		if !bytes.Equal(b.Bytes(), good) {
			t.Error("the pairing is not computed")
		}
	})
}

func TestPublicJSONDamaged(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		r := id.ScalarModulus()
		below := new(big.Int).Sub(r, big.NewInt(1))
		for name, e := range map[string]struct{ doc, text string }{
			"r":        {`["1", "` + r.String() + `"]`, "[1]"},
			"above r":  {`["0x` + strings.Repeat("f", 64) + `"]`, "not below"},
			"object":   {`{}`, ""},
			"null":     {`null`, "not an array"},
			"negative": {`["-1"]`, "not a number"},
			"nested":   {`[["1"]]`, "not a number"},
			"cut":      {`["1"`, "unexpected end"},
		} {
			_, err := ReadPublic("public.json", strings.NewReader(e.doc), id)
			wantFormatOf(t, name, err)
			if err != nil && !strings.Contains(err.Error(), e.text) {
				t.Errorf("%s: error %v, want one that says %q", name, err, e.text)
			}
		}
		f := must[*arith.Field](t)(arith.FieldOf(id))
		v := must[[]curve.Scalar](t)(ReadPublic("", strings.NewReader(`["`+below.String()+`", 7, "0x0A"]`), id))
		if len(v) != 3 || f.ToBig(v[0]).Cmp(below) != 0 || f.ToBig(v[1]).Int64() != 7 || f.ToBig(v[2]).Int64() != 10 {
			t.Errorf("values %v", v)
		}
	})
	if _, err := ReadPublic("", strings.NewReader("[]"), 0); err == nil {
		t.Error("values of no curve are read")
	}
}

// TestWrongNumberOfInputs: a key refuses too few and too many public values.
func TestWrongNumberOfInputs(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		vk := must[*groth16.VerifyingKey](t)(ReadVerifyingKey("", bytes.NewReader(load(t, id, "vault.vkey.json"))))
		proof := must[*groth16.Proof](t)(ReadProof("", bytes.NewReader(load(t, id, "vault.proof.json"))))
		public := must[[]curve.Scalar](t)(ReadPublic("", bytes.NewReader(load(t, id, "vault.public.json")), id))
		for _, p := range [][]curve.Scalar{nil, public[:1], append(public, curve.Scalar{})} {
			if err := vk.Verify(proof, p); err == nil {
				t.Errorf("%d public values are taken for %d", len(p), vk.NbPublic())
			}
		}
	})
}

func TestCommitmentsAreNotForSnarkjs(t *testing.T) {
	p := &groth16.Proof{Curve: curve.BN254, Commitments: make([]curve.G1, 1)}
	if err := WriteProof(&bytes.Buffer{}, p); err == nil {
		t.Error("a proof with commitments is written")
	}
	if _, err := SolidityCalldata(p, nil); err == nil {
		t.Error("calldata of a proof with commitments")
	}
	vk := &groth16.VerifyingKey{Curve: curve.BN254, IC: make([]curve.G1, 1), Commitments: make([]groth16.CommitmentVerifyingKey, 1)}
	if err := WriteVerifyingKey(&bytes.Buffer{}, vk); err == nil {
		t.Error("a key with commitments is written")
	}
	if err := WriteProof(&bytes.Buffer{}, &groth16.Proof{}); err == nil {
		t.Error("a proof on no curve is written")
	}
}
