package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const sample = `# settings
budget = "4GiB"
set = [
  "ntt.capacity=2",   # over
  "h-msm.workers=1",  # several lines
]

[prove]
note = """
[not a table]
x = 1
"""
no-verify = true

[stages.synthesize]
workers = 4
[stages]
ntt = { capacity = 3, workers = 1 }
"quo.ted" = 1
`

func TestParseKeepsLines(t *testing.T) {
	f, err := Parse("s.toml", sample)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	data := map[string]any{}
	for _, v := range f.Values {
		got[strings.Join(v.Key, "/")] = v.Line
		data[strings.Join(v.Key, "/")] = v.Data
	}
	want := map[string]int{
		"budget": 2, "set": 3, "prove/note": 9, "prove/no-verify": 13,
		"stages/synthesize/workers": 16, "stages/ntt/capacity": 18, "stages/ntt/workers": 18,
		"stages/quo.ted": 19,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lines\n got %v\nwant %v", got, want)
	}
	if !reflect.DeepEqual(data["set"], []any{"ntt.capacity=2", "h-msm.workers=1"}) {
		t.Errorf("set is %v", data["set"])
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\nb = \n":                   "s.toml:2: ",
		"a = 1\na = 2\n":                  "s.toml:2: ",
		"[t]\nx = \"\"\"\nnever closed\n": "s.toml:",
	} {
		_, err := Parse("s.toml", text)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.toml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("[[a]]\nb=1\n[a.c]\nd=2")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 { // lines are found in quadratic time
			return
		}
		file, err := Parse("s.toml", text)
		if err != nil {
			return
		}
		for _, v := range file.Values {
			if v.Line < 0 || v.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%v is said to be on line %d", v.Key, v.Line)
			}
		}
	})
}
