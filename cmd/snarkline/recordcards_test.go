package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/snarkline/snarkline/cuda"
)

// TestLinkName: cards behind one port share its link; others, and those of which the
// system says nothing, have one of their own.
func TestLinkName(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "bus")
	if err := os.Mkdir(root, 0o777); err != nil {
		t.Fatal(err)
	}
	for pci, path := range map[string]string{
		"0000:3b:00.0": "pci0000:3a/0000:3a:00.0/0000:3b:00.0",
		"0000:5e:00.0": "pci0000:5d/0000:5d:00.0/0000:5d:02.0/0000:5e:00.0",
		"0000:5f:00.0": "pci0000:5d/0000:5d:00.0/0000:5d:03.0/0000:5f:00.0",
		"0000:00:05.0": "pci0000:00/0000:00:05.0",
	} {
		full := filepath.Join(dir, "devices", path)
		if err := os.MkdirAll(full, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(full, filepath.Join(root, pci)); err != nil {
			t.Fatal(err)
		}
	}
	for pci, want := range map[string]string{
		"0000:3b:00.0": "PCIe 0000:3a:00.0", "0000:5e:00.0": "PCIe 0000:5d:00.0", "0000:5f:00.0": "PCIe 0000:5d:00.0",
		"0000:00:05.0": "PCIe 0000:00:05.0", "0000:99:00.0": "PCIe 0000:99:00.0", "": "",
	} {
		if got := linkName(root, pci); got != want {
			t.Errorf("%q is on %q, want %q", pci, got, want)
		}
	}
}

func TestUploadRate(t *testing.T) {
	s := cuda.Stats{Uploads: cuda.UploadStats{Fastest: 10e9}}
	if r := uploadRate(&s); r != 10e9 {
		t.Errorf("%v bytes a second", r)
	}
	s.Unpacked, s.Packed = 100, 25
	if r := uploadRate(&s); r != 2.5e9 {
		t.Errorf("packed: %v bytes a second", r)
	}
	s.Uploads.Fastest = 1e12 // the host had nothing to do with it
	if r := uploadRate(&s); r != 0 {
		t.Errorf("%v bytes a second", r)
	}
}
