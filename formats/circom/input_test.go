package circom

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReadInput(t *testing.T) {
	in := must[Inputs](t)(ReadInput("input.json", strings.NewReader(`{
		"one": 1, "text": "2", "hex": "0xfF", "minus": "-3", "minus hex": "-0x10", "spaces": " 7 ",
		"large": 123456789012345678901234567890123456789012345678901234567890,
		"exact": 9007199254740993, "power": 1e3, "whole": 2.50e1, "yes": true, "no": false,
		"nested": [[1, "2"], [[3], []], 4], "empty": [],
		"bus": {"x": 1, "y": [2, 3]}, "buses": [{"x": 1}, {"x": [2, 3]}]
	}`)))
	for name, want := range map[string]string{
		"one": "1", "text": "2", "hex": "255", "minus": "-3", "minus hex": "-16", "spaces": "7",
		"large": "123456789012345678901234567890123456789012345678901234567890",
		"exact": "9007199254740993", "power": "1000", "whole": "25", "yes": "1", "no": "0",
		"nested": "1 2 3 4", "empty": "", "bus.x": "1", "bus.y": "2 3", "buses[0].x": "1", "buses[1].x": "2 3",
	} {
		var got []string
		values, ok := in[name]
		for _, v := range values {
			got = append(got, v.String())
		}
		if !ok || strings.Join(got, " ") != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
		delete(in, name)
	}
	if len(in) > 0 {
		t.Errorf("signals that are not there: %v", in)
	}
}

func TestReadInputDamaged(t *testing.T) {
	for doc, e := range map[string]struct{ section, text string }{
		``:                          {"", "too early"},
		`[]`:                        {"", "not an object"},
		`{"a": 1`:                   {"", "too early"},
		`{"a": 1} {}`:               {"", "something follows"},
		`{"a": 1,}`:                 {"", "invalid character"},
		`{"a": x}`:                  {"", "invalid character"},
		`{"a": null}`:               {"a", "null"},
		`{"a": 1.5}`:                {"a", "not an integer"},
		`{"a": 1e-1}`:               {"a", "not an integer"},
		`{"a": 1e999999999}`:        {"a", "out of range"},
		`{"a": "ten"}`:              {"a", "not an integer"},
		`{"a": ""}`:                 {"a", "not an integer"},
		`{"a": "--1"}`:              {"a", "not an integer"},
		`{"a": "-+1"}`:              {"a", "not an integer"},
		`{"a": "1_000"}`:            {"a", "not an integer"},
		`{"a": "0x"}`:               {"a", "not an integer"},
		`{"a": [1, [2, "b"]]}`:      {"a[1][1]", "not an integer"},
		`{"a": 1, "a": 2}`:          {"a", "given twice"},
		`{"a": {"b": 1}, "a.b": 2}`: {"a.b", "given twice"},
		`{"a": [1, {"b": 1}]}`:      {"a", "numbers and objects"},
		`{"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: {"a", "nested more than 64"},
		strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100):        {"a", "nested more than 64"},
		`{"a": "` + strings.Repeat("9", maxInputDigits+1) + `"}`:             {"a", "digits"},
	} {
		_, err := ReadInput("input.json", strings.NewReader(doc))
		t.Run("", func(t *testing.T) { wantFormat(t, err, e.section, e.text) })
	}
}

// TestInputNumbers: an integer reads the same in each of its spellings.
func TestInputNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "bytes")
		v := new(big.Int).SetBytes(b)
		sign := ""
		if rapid.Bool().Draw(t, "negative") && v.Sign() != 0 {
			sign = "-"
			v.Neg(v)
		}
		magnitude := new(big.Int).Abs(v)
		doc := `{"a": [` + v.String() + `, "` + v.String() + `", "` + sign + `0x` + magnitude.Text(16) + `", ` + v.String() + `e0]}`
		in, err := ReadInput("", strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range in["a"] {
			if got.Cmp(v) != 0 {
				t.Errorf("spelling %d of %v reads %v", i, v, got)
			}
		}
	})
}
