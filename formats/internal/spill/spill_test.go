package spill

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/snarkline/snarkline/alloc"
)

// onDisk is a folder that takes a file.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := Create(dir, 1<<20, false)
	if errors.Is(err, ErrMemory) {
		t.Skipf("the tests' folder is memory: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("in the folder are %v, %v", entries, err)
	}
}

func TestFileHoldsVectors(t *testing.T) {
	mark := alloc.Marked()
	defer mark.CheckLeaks(t)
	dir := onDisk(t)
	f, err := Create(dir, 1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]byte{bytes.Repeat([]byte("one "), 25_001), bytes.Repeat([]byte("two"), 70_000), []byte("three")}
	offs := make([]int64, len(want))
	var wg sync.WaitGroup
	for i, b := range want {
		offs[i] = f.Reserve(int64(len(b)))
		if offs[i]%Block != 0 {
			t.Errorf("vector %d lies at %d", i, offs[i])
		}
		wg.Go(func() {
			for from := 0; from < len(b); from += 4096 {
				if err := f.WriteAt(b[from:min(from+4096, len(b))], offs[i]+int64(from)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if f.Folder() != dir || f.Bytes() != 100_004+210_000+5 {
		t.Errorf("%s, %d bytes", f.Folder(), f.Bytes())
	}
	empty(t, dir)
	maps := make([]*alloc.Mapping, len(want))
	for i, b := range want {
		if maps[i], err = f.Map(nil, offs[i], int64(len(b))); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, dir)
	for i, m := range maps {
		if !bytes.Equal(m.Data(), want[i]) {
			t.Errorf("vector %d is another", i)
		}
		if err := m.Rest(m.Data()); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(m.Data(), want[i]) {
			t.Errorf("vector %d is another when it is read again", i)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	var bad *Error
	if err := f.WriteAt([]byte("x"), 0); !errors.As(err, &bad) || bad.Folder != dir {
		t.Errorf("a closed file is written to: %v", err)
	}
	if _, err := f.Map(nil, 0, 1); !errors.As(err, &bad) {
		t.Errorf("a closed file is mapped: %v", err)
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	dir := onDisk(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := diskOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	type refusal struct {
		folder  string
		size    int64
		careful bool
		want    error
	}
	cases := []refusal{
		{filepath.Join(dir, "none"), 1, false, os.ErrNotExist},
		{file, 1, false, ErrFolder},
	}
	if d.free >= 0 {
		cases = append(cases, refusal{dir, d.free * 2, false, ErrNoSpace})
	}
	if d.kind == local {
		cases = append(cases, refusal{dir, d.free / 2, true, ErrNoSpace})
		f, err := Create(dir, d.free/2, false)
		if err != nil {
			t.Errorf("half of what is free, of a folder that somebody chose: %v", err)
		}
		_ = f.Close()
	} else {
		cases = append(cases, refusal{dir, 1, true, ErrRemote})
	}
	if d, err := diskOf("/dev/shm"); err == nil && d.kind == memory {
		cases = append(cases, refusal{"/dev/shm", 1, false, ErrMemory}, refusal{"/dev/shm", 1, true, ErrMemory})
	}
	if os.Geteuid() != 0 {
		closed := filepath.Join(dir, "closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, refusal{closed, 1, false, os.ErrPermission})
	}
	for _, c := range cases {
		f, err := Create(c.folder, c.size, c.careful)
		var bad *Error
		if f != nil || !errors.As(err, &bad) || bad.Folder != c.folder || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.folder) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestNameIsTakenAway: where a file must have a name, it has none after Create,
// or at the latest after Close.
func TestNameIsTakenAway(t *testing.T) {
	dir := onDisk(t)
	f, err := named(dir)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, dir)
	if _, err := f.f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	kept, err := os.CreateTemp(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&File{f: kept, folder: dir, name: kept.Name()}).Close(); err != nil {
		t.Error(err)
	}
	empty(t, dir)
}

func TestFolders(t *testing.T) {
	t.Setenv("TMPDIR", "/of/mine")
	if got := Folders(); len(got) != 1 || got[0] != "/of/mine" {
		t.Errorf("%v", got)
	}
	t.Setenv("TMPDIR", "")
	if got := Folders(); len(got) != 2 || got[0] != "/var/tmp" {
		t.Errorf("%v", got)
	}
}
