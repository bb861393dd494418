package circom

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/snarkline/snarkline/curve"
)

func TestContainerListsSections(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		c := must[*Container](t)(Open(file(id, "vault.zkey")))
		defer c.Close()
		if c.Kind() != KindZkey || c.Version() != 1 || c.Name() != file(id, "vault.zkey") {
			t.Errorf("kind %q, version %d, name %q", c.Kind(), c.Version(), c.Name())
		}
		var ids []uint32
		end := int64(12)
		for _, s := range c.Sections() {
			if s.Offset != end+12 {
				t.Errorf("section %d begins at %d, the one before ends at %d", s.ID, s.Offset, end)
			}
			end = s.Offset + s.Length
			ids = append(ids, s.ID)
		}
		if end != c.Size() {
			t.Errorf("sections end at %d of %d", end, c.Size())
		}
		slices.Sort(ids)
		if want := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(ids, want) {
			t.Errorf("sections %v, want %v", ids, want)
		}
		if got := c.SectionName(4); got != "4 (coefficients)" {
			t.Errorf("name of section 4: %q", got)
		}
		if got := c.SectionName(77); got != "77 (unknown)" {
			t.Errorf("name of section 77: %q", got)
		}
	})
}

func TestContainerDamaged(t *testing.T) {
	good := join(KindWtns, 2, []part{{1, make([]byte, 40)}, {2, make([]byte, 32)}})
	change := func(at int, v ...byte) []byte {
		b := slices.Clone(good)
		copy(b[at:], v)
		return b
	}
	second := 12 + 12 + 40 // where the header of the second section is
	for name, e := range map[string]struct {
		data          []byte
		section, text string
	}{
		"empty":            {nil, "", "too early"},
		"magic only":       {[]byte("wtns"), "", "too early"},
		"wrong magic":      {change(0, 'z', 'i', 'p', 0), "", "magic"},
		"sections":         {change(8, 0, 0, 0, 1), "", "sections"},
		"one announced":    {change(8, 1), "", "after the last section"},
		"three announced":  {change(8, 3), "", "no header of section 3 of 3"},
		"in header":        {good[:second+5], "", "no header of section 2 of 2"},
		"in data":          {good[:len(good)-1], "2 (values)", "32 bytes announced, 31 left"},
		"trailing":         {append(slices.Clone(good), 0), "", "1 bytes after the last section"},
		"twice":            {change(second, 1), "1 (header)", "twice"},
		"length 2^63":      {change(second+4, 0, 0, 0, 0, 0, 0, 0, 0x80), "2 (values)", "announced"},
		"length 2^64 - 1":  {change(second+4, 255, 255, 255, 255, 255, 255, 255, 255), "2 (values)", "announced"},
		"length over file": {change(12+4, 0xff, 0xff), "1 (header)", "65535 bytes announced"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("test", e.data)
			wantFormat(t, err, e.section, e.text)
		})
	}
	if _, err := Parse("test", good); err != nil {
		t.Errorf("undamaged: %v", err)
	}
}

// TestTruncatedAtEverySectionBorder cuts real files before and after each
// border, leaving the number of sections as it was and adapting it.
func TestTruncatedAtEverySectionBorder(t *testing.T) {
	curves(t, func(t *testing.T, id curve.ID) {
		for _, name := range []string{"vault.r1cs", "vault.wtns", "vault.zkey"} {
			whole := load(t, id, name)
			c := must[*Container](t)(Parse(name, whole))
			for i, s := range c.Sections() {
				for _, at := range []int64{s.Offset - 12, s.Offset - 1, s.Offset, s.Offset + s.Length - 1} {
					if _, err := Parse(name, whole[:at]); !errors.Is(err, ErrTruncated) {
						t.Errorf("%s cut at %d (section %d): %v", name, at, s.ID, err)
					}
				}
				// The same with a count of sections that fits: then a section is missing.
				b := slices.Clone(whole[:s.Offset-12])
				binary.LittleEndian.PutUint32(b[8:], uint32(i))
				c := must[*Container](t)(Parse(name, b))
				_, r1 := c.R1CS()
				_, r2 := c.Wtns()
				_, r3 := c.Zkey()
				last := s.ID == 10 // contributions: of no use here, so they may be missing
				if r1 == nil || r2 == nil || r3 == nil && !last {
					t.Errorf("%s without its sections from %d on is accepted", name, s.ID)
				}
			}
		}
	})
}

func TestWrongKindAndVersion(t *testing.T) {
	zkey, wtns := load(t, curve.BN254, "vault.zkey"), load(t, curve.BN254, "vault.wtns")
	_, err := openWtns(zkey)
	wantFormat(t, err, "", "this is a .zkey file, not a .wtns")
	_, err = openZkey(wtns)
	wantFormat(t, err, "", "this is a .wtns file, not a .zkey")
	_, err = openR1CS(wtns)
	wantFormat(t, err, "", "this is a .wtns file, not a .r1cs")
	for _, open := range []func([]byte) error{
		func(b []byte) error { _, err := openWtns(b); return err },
		func(b []byte) error { _, err := openZkey(b); return err },
	} {
		for _, b := range [][]byte{slices.Clone(zkey), slices.Clone(wtns)} {
			b[4] = 9
			wantFormat(t, open(b), "", "")
		}
	}
	b := slices.Clone(wtns)
	b[4] = 1
	_, err = openWtns(b)
	wantFormat(t, err, "", "version 1")
}

func TestOpenNotRegular(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory is opened")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	check(t, os.WriteFile(empty, nil, 0o600))
	_, err := Open(empty)
	wantFormat(t, err, "", "too early")
}

// TestUseAfterClose is an error, not a fault.
func TestUseAfterClose(t *testing.T) {
	ctx := context.Background()
	w := must[*Wtns](t)(OpenWtns(file(curve.BN254, "vault.wtns")))
	z := must[*Zkey](t)(OpenZkey(file(curve.BN254, "vault.zkey")))
	r := must[*R1CSFile](t)(OpenR1CS(file(curve.BN254, "vault.r1cs")))
	for range 2 {
		check(t, errors.Join(w.Close(), z.Close(), r.Close()))
	}
	_, public := w.Public(1)
	_, key := z.ProvingKey(ctx, KeyOptions{})
	_, vk := z.VerifyingKey(ctx, KeyOptions{})
	_, matrices := z.Circuit(ctx, nil)
	_, circuit := r.Circuit(ctx, nil)
	for i, err := range []error{w.Fill(ctx, make([]curve.Scalar, w.Len())), public, key, vk, matrices, circuit} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("use %d after Close: %v", i, err)
		}
	}
}
