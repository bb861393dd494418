package alloc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestRestGivesPagesBackAndKeepsTheFile(t *testing.T) {
	want := bytes.Repeat([]byte("snarkline "), 1<<20)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	m := must[*Mapping](t)(MapFile(scope(newTracker(), "key", Host, nil), path))
	defer func() { _ = m.Close() }()
	if !bytes.Equal(m.Data(), want) {
		t.Fatal("other bytes than in the file")
	}
	before := must[Resident](t)(ResidentNow())
	if err := m.Rest(m.Data()[100 : len(want)-100]); err != nil {
		t.Fatal(err)
	}
	after := must[Resident](t)(ResidentNow())
	if before.File >= 0 && before.File-after.File < int64(len(want))*9/10 {
		t.Errorf("%d bytes of files were resident, and still %d are", before.File, after.File)
	}
	if !bytes.Equal(m.Data(), want) {
		t.Error("other bytes than in the file when it is read again")
	}
	if err := m.Rest(nil); err != nil {
		t.Errorf("nothing to rest: %v", err)
	}
	if err := m.Rest(make([]byte, 10)); err == nil {
		t.Error("memory of others can be rested")
	}
}

// TestFillOfLargeMemory: what several goroutines clear is cleared to the last
// byte, and no further.
func TestFillOfLargeMemory(t *testing.T) {
	mem := make([]byte, wipeMin+5000)
	for _, n := range []int{wipeMin - 1, wipeMin, wipeMin + 1, wipeMin + 4099} {
		for i := range mem {
			mem[i] = 0x77
		}
		fillBytes(mem[:n], 0)
		for i, v := range mem {
			if (v == 0) != (i < n) {
				t.Fatalf("byte %d of %d is %#x", i, n, v)
			}
		}
	}
}
