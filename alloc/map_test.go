package alloc

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMapShowsTheFile(t *testing.T) {
	tr := newTracker()
	sc := scope(tr, "key", Host, nil)
	want := make([]byte, 70_001)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	whole := must[*Mapping](t)(MapFile(sc, path))
	if !bytes.Equal(whole.Data(), want) {
		t.Fatal("other bytes than in the file")
	}
	f := must[*os.File](t)(os.Open(path))
	part := must[*Mapping](t)(Map(sc, f, 12_345, 50_000))
	none := must[*Mapping](t)(Map(sc, f, 70_001, 0))
	for _, c := range [][2]int64{{-1, 5}, {0, -5}, {0, 70_002}, {70_000, 2}, {70_002, 0}, {1 << 62, 1 << 62}} {
		if _, err := Map(sc, f, c[0], c[1]); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("offset %d, %d bytes: %v", c[0], c[1], err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(part.Data(), want[12_345:62_345]) || len(none.Data()) != 0 {
		t.Fatal("other bytes than in the file")
	}
	for _, a := range []Advice{Sequential, Random, WillNeed} {
		if err := part.Advise(100, 20_000, a); err != nil {
			t.Error(err)
		}
	}
	if err := part.Advise(0, 50_001, WillNeed); err == nil {
		t.Error("advice beyond the mapping is accepted")
	}
	s := tr.Snapshot()
	if h := s.Space(Host); h.Mapped != 120_001 || h.Live != 0 || tr.Mapped() != 120_001 {
		t.Fatalf("mapped files must be counted apart: %+v", h)
	}
	if len(s.Rows) != 1 || s.Rows[0].Kind != MappedFile || s.Rows[0].Purpose != "key" || len(s.Stages) != 0 {
		t.Fatalf("%+v", s)
	}
	part.Hand(StageOf("prove"))
	var r Ref = part
	r.Retain()
	for range 2 {
		if err := part.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_ = part.Data()[0] // a reference is left
	r.Release()
	if _, ok := thrown(func() { part.Data() }).(*UseAfterFreeError); !ok {
		t.Fatal("the view of an unmapped file can be had")
	}
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	if err := none.Close(); err != nil {
		t.Fatal(err)
	}
	if tr.Mapped() != 0 {
		t.Fatalf("%d bytes stay counted", tr.Mapped())
	}
	if _, err := MapFile(sc, path+"x"); err == nil {
		t.Fatal("a file that is not there is mapped")
	}
}
