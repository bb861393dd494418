package circom

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

// section is a section of a module.
func section(id byte, body ...byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

// bombs are modules of a few bytes that announce gigabytes.
func bombs() map[string][]byte {
	const head = "\x00asm\x01\x00\x00\x00"
	many := []byte{0xff, 0xff, 0xff, 0xff, 0x0f} // 2³²−1
	cat := slices.Concat[[]byte]
	out := map[string][]byte{
		"parameters":      section(1, cat([]byte{1, 0x60}, many)...),
		"results":         section(1, cat([]byte{1, 0x60, 0}, many)...),
		"import's module": section(2, cat([]byte{1}, many)...),
		"import's name":   section(2, cat([]byte{1, 1, 'a'}, many)...),
		"imported table":  section(2, cat([]byte{1, 0, 0, 1, 0x70, 0}, many)...),
		"table":           section(4, cat([]byte{1, 0x70, 0}, many)...),
		"export's name":   section(7, cat([]byte{1}, many)...),
		"element":         section(9, cat([]byte{1, 0, 0x41, 0, 0x0b}, many)...),
		"locals":          section(10, cat([]byte{1, 8, 1}, many, []byte{0x7f, 0x0b})...),
		"kinds of locals": section(10, cat([]byte{1, 8}, many, []byte{0x7f, 0x0b})...),
		"function":        section(10, cat([]byte{1}, many)...),
		"data":            section(11, cat([]byte{1, 0, 0x41, 0, 0x0b}, many)...),
		"section":         cat([]byte{3}, many),
		"custom section":  cat([]byte{0}, many),
	}
	for id := byte(1); id <= 11; id++ {
		if id != 8 {
			out["items of section "+wasmSections[id].name] = section(id, many...)
		}
	}
	for name, b := range out {
		out[name] = cat([]byte(head), b)
	}
	return out
}

func TestModulesThatAnnounceTooMuch(t *testing.T) {
	for name, code := range bombs() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := NewCalculator(context.Background(), "bomb", code, CalculatorOptions{Interpret: true})
		runtime.ReadMemStats(&after)
		if err == nil {
			c.Close()
		}
		t.Run(name, func(t *testing.T) {
			wantFormat(t, err, "", "byte ")
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("%d bytes were allocated for a module of %d", n, len(code))
			}
		})
	}
}

func TestCheckModule(t *testing.T) {
	for _, id := range curve.All() {
		for _, name := range []string{"vault.wasm", "silent.wasm"} {
			code := load(t, id, name)
			// Only the names of functions, at the end, are left out.
			out := must[[]byte](t)(checkModule(code))
			if len(out) >= len(code) || !bytes.Equal(out, code[:len(out)]) || code[len(out)] != 0 {
				t.Errorf("%v/%s: %d bytes of %d are left", id, name, len(out), len(code))
			}
			for n := range len(code) {
				if n < 2000 || n%97 == 0 {
					_, _ = checkModule(code[:n]) // no panic
				}
			}
		}
	}
	code := handmade(1, nil, nil)
	if out := must[[]byte](t)(checkModule(code)); !bytes.Equal(out, code) {
		t.Error("a module without names changes")
	}
	// Names of what is not UTF-8, or too long: they are not read.
	if out := must[[]byte](t)(checkModule(append(slices.Clone(code), section(0, 0xff, 0xff)...))); !bytes.Equal(out, code) {
		t.Error("a custom section is kept")
	}
	for text, b := range map[string][]byte{
		"no kind":            section(40),
		"2 bytes are left":   section(8, 1, 2, 3),
		"more than 32 bits":  section(8, 0xff, 0xff, 0xff, 0xff, 0x1f),
		"more than 5 bytes":  section(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0),
		"no type of a value": section(1, 1, 0x60, 1, 0x63),
		"begins no function": section(1, 1, 0x4e),
		"imports of kind 4":  section(2, 1, 0, 0, 4),
		"begins no limits":   section(5, 1, 9, 1),
		"initial value":      section(6, 1, 0x7f, 0, 0xd2, 0, 0x0b),
		"goes on":            section(6, 1, 0x7f, 0, 0x41, 0, 0x41),
		"segments of kind 5": section(9, 1, 5),
		"segments of kind 3": section(11, 1, 3),
		"ends too early":     section(11, 1, 0, 0x44, 1, 2),
	} {
		if _, err := checkModule(append(slices.Clone(code), b...)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one that says %q", err, text)
		}
	}
}
