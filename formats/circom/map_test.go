package circom

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is not there is named once, with one word.
func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nope")
	for name, open := range map[string]func() error{
		"wtns": func() error { _, err := OpenWtns(path); return err },
		"zkey": func() error { _, err := OpenZkey(path); return err },
		"wasm": func() error { _, err := OpenCalculator(t.Context(), path, CalculatorOptions{}); return err },
	} {
		err := open()
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := err.Error()
		if strings.Count(s, "open") != 1 || strings.Count(s, path) != 1 || strings.Contains(s, "stat") {
			t.Errorf("%s: %s", name, s)
		}
	}
}
