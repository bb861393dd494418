package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestStreamIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := Stream(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half of the new")
		if got, _ := os.ReadFile(path); string(got) != "old" {
			t.Errorf("while writing, the file says %q", got)
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("after a failure the file says %q", got)
	}
	if n := names(t, dir); len(n) != 1 {
		t.Errorf("left behind: %v", n)
	}
}

func TestAllChangesNoNameWhenOneFails(t *testing.T) {
	dir := t.TempDir()
	err := All(Content{filepath.Join(dir, "a"), []byte("a")}, Content{filepath.Join(dir, "no", "b"), []byte("b")})
	if err == nil {
		t.Fatal("wrote into a folder that does not exist")
	}
	if n := names(t, dir); len(n) != 0 {
		t.Errorf("left behind: %v", n)
	}
	if err := All(Content{filepath.Join(dir, "a"), []byte("a")}, Content{filepath.Join(dir, "b"), []byte("b")}); err != nil {
		t.Fatal(err)
	}
	if n := names(t, dir); len(n) != 2 {
		t.Errorf("files: %v", n)
	}
}

// TestNoNameChangesWhenAFileCannotBeSettled: the second file's bytes do not
// reach the disk, as when it is full.
func TestNoNameChangesWhenAFileCannotBeSettled(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, path := range []string{a, b} {
		if err := Write(path, []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	var open []*File
	for _, path := range []string{a, b} {
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("new"); err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
	if err := open[1].Close(); err != nil { // its sync fails now
		t.Fatal(err)
	}
	if err := commit(open); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	for _, path := range []string{a, b} {
		if got, _ := os.ReadFile(path); string(got) != "old" {
			t.Errorf("%s says %q", path, got)
		}
	}
	if n := names(t, dir); len(n) != 2 {
		t.Errorf("left behind: %v", n)
	}
}

func TestLinksModesAndDevices(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(real, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if err := Write(link, []byte("y")); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", st, err)
	}
	got, _ := os.ReadFile(real)
	st, _ := os.Stat(real)
	if string(got) != "y" || st.Mode().Perm() != 0o600 {
		t.Errorf("%q with mode %v", got, st.Mode())
	}
	if err := Write(os.DevNull, []byte("z")); err != nil {
		t.Errorf("device: %v", err)
	}
	if st, err := os.Stat(os.DevNull); err != nil || st.Mode().IsRegular() {
		t.Error("the device was replaced")
	}
	if err := Write(dir, nil); err == nil {
		t.Error("wrote over a folder")
	}
}

func TestAbortAfterCommitKeepsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestStreams: an open file is written where its writer is.
func TestStreams(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString("before "); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"/dev/fd/%d", "/proc/self/fd/%d"} {
		path := fmt.Sprintf(form, f.Fd())
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
		if err := Check(path); err != nil {
			t.Error(err)
		}
		if err := Write(path, []byte("data ")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("after"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(f.Name()); string(got) != "before data data after" || len(names(t, dir)) != 1 {
		t.Errorf("%q, files %v", got, names(t, dir))
	}
	for path, want := range map[string]bool{"/dev/stdout": true, "/dev/stderr": true, "/proc/12/fd/3": true, "/dev/null": false, "/dev/fd/x": false, "fd/3": false} {
		if IsStream(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if err := Write("/dev/fd/987654", nil); err == nil {
		t.Error("wrote to a file that is not open")
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "", filepath.Join(dir, "new"): "", os.DevNull: "",
		dir: "is a folder", filepath.Join(file, "x"): "is no folder", filepath.Join(dir, "no", "x"): "does not exist",
	} {
		if err := Check(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if got, _ := os.ReadFile(file); string(got) != "old" || len(names(t, dir)) != 1 {
		t.Errorf("%q, files %v", got, names(t, dir))
	}
}

func TestErrorsNameTheFileOnce(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	err := Write("/dev/full", []byte("x"))
	if err == nil || strings.Count(err.Error(), "/dev/full") != 1 {
		t.Errorf("got %v", err)
	}
}
