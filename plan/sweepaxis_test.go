package plan

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/pipeline"
)

func TestParseAxis(t *testing.T) {
	for text, want := range map[string]string{
		"ntt.workers=1,2,4":              "1 2 4",
		"ntt.workers = 1..4":             "1 2 3 4",
		"ntt.workers=1..8*2":             "1 2 4 8",
		"ntt.workers=2..10+4":            "2 6 10",
		"ntt.workers=1,1..3":             "1 2 3",
		"ntt.capacity=1..2,unbounded":    "1 2 unbounded",
		"budget.host=1GiB..8GiB*2":       "1GiB 2GiB 4GiB 8GiB",
		"budget.host=512MiB,none":        "512MiB 0",
		"budget.device0=1GiB..2GiB+512M": "1GiB 1536MiB 2GiB",
		"device=cpu,cuda:0":              "cpu cuda:0",
		"b2=auto":                        "auto",
	} {
		a, err := ParseAxis(text)
		if got := strings.Join(a.Values, " "); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"ntt.workers":            "want NAME=VALUES",
		"=1":                     "want NAME=VALUES",
		"ntt.workers=":           "want NAME=VALUES",
		"ntt.workers=0":          "at least 1",
		"ntt.workers=1,,2":       "empty value",
		"ntt.workers=4..1":       "ends before it begins",
		"ntt.workers=1..8*1":     "does not grow",
		"ntt.workers=0..8*2":     "does not grow",
		"ntt.workers=1..8+0":     "does not grow",
		"ntt.workers=1..1000000": "more than 10000",
		"ntt.workers=a..b":       "is no number",
		"ntt.workers=1..2*x":     "the step",
		"ntt.capacity=0":         "the least is 1",
		"ntt.worker=1":           "a stage has workers and capacity",
		"budget.host=1GiB..2GiB": "say how sizes grow",
		"budget.hots=1GiB":       "unknown memory space",
		"budget.host=much":       "is no number of bytes",
	} {
		if _, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestSpace(t *testing.T) {
	base, err := pipeline.ParseSettings("a.workers=3", "budget.host=1GiB")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSpace([]string{"a", "b"}, base, "all.workers=1,2", "b.workers=4", "a+b.capacity=1,unbounded", "device=cpu")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for p := range s.Points() {
		keys = append(keys, p.Key())
	}
	want := []string{
		"a.capacity=1 a.workers=1 b.capacity=1 b.workers=4 budget.host=1GiB device=cpu",
		"a.capacity=unbounded a.workers=1 b.capacity=unbounded b.workers=4 budget.host=1GiB device=cpu",
		"a.capacity=1 a.workers=2 b.capacity=1 b.workers=4 budget.host=1GiB device=cpu",
		"a.capacity=unbounded a.workers=2 b.capacity=unbounded b.workers=4 budget.host=1GiB device=cpu",
	}
	if !slices.Equal(keys, want) || s.Size() != 4 {
		t.Errorf("%q", keys)
	}
	if s, err = ParseSpace([]string{"a", "b"}, base, "each.workers=1..3"); err != nil || len(s.Axes) != 2 || s.Size() != 9 {
		t.Errorf("%v %v", s, err)
	}
	for text, want := range map[string]string{
		"c.workers=1":   `no stage "c" (stages: a, b)`,
		"a+c.workers=1": `no stage "c"`,
	} {
		if _, err := ParseSpace([]string{"a", "b"}, base, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ParseSpace([]string{"a"}, base, "a.workers=1", "a.workers=2"); err == nil {
		t.Error("two axes of one name")
	}
	if _, err := ParseSpace(nil, base, "all.workers=1"); err == nil {
		t.Error("all of no stages")
	}
}

// TestPointsAreAll: every combination comes once, and each axis text is read
// back from what String writes.
func TestPointsAreAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		var axes []string
		size := 1
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "axes") {
			lo, n := rapid.IntRange(1, 5).Draw(t, "from"), rapid.IntRange(1, 4).Draw(t, "n")
			a := Axis{Name: name + ".workers"}
			for i := range n {
				a.Values = append(a.Values, itoa(lo+i))
			}
			size *= n
			back, err := ParseAxis(a.String())
			if err != nil || back.String() != a.String() {
				t.Fatalf("%v: %v %v", a, back, err)
			}
			axes = append(axes, a.String())
		}
		s, err := ParseSpace(names, pipeline.Settings{}, axes...)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for p := range s.Points() {
			seen[p.Key()] = true
		}
		if len(seen) != size || s.Size() != size {
			t.Fatalf("%d points, %d of them different, want %d", s.Size(), len(seen), size)
		}
	})
}

func FuzzParseAxis(f *testing.F) {
	for _, s := range []string{"a.workers=1..8*2", "budget.host=1GiB..4GiB+1GiB", "a.capacity=unbounded", "x=y,z", "a.workers=1..9999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAxis(text)
		if err != nil {
			return
		}
		if len(a.Values) == 0 || len(a.Values) > maxAxis {
			t.Errorf("%q: %d values", text, len(a.Values))
		}
		if b, err := ParseAxis(a.String()); err != nil || b.String() != a.String() {
			t.Errorf("%q: %q is read as %q, %v", text, a, b, err)
		}
	})
}
