// Package outfile writes files that are either there in full or not there at
// all: the bytes go to a temporary file in the same folder, reach the disk, and
// only then take the name that was asked for.
package outfile

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file being written. Exactly one of Commit and Abort ends it; a
// second call of either does nothing, so that `defer f.Abort()` is safe.
type File struct {
	*os.File
	path string // the name asked for, links followed
	done bool   // it has its name, or was given up
	live bool   // written in place: a device or a pipe, which cannot be replaced
}

// Write writes to the file; its errors do not name it.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, bare(err)
}

// Create starts a file that will be called path. A path that names something
// other than a regular file (a device, a pipe), or an open file of a process
// (/dev/stdout), is written in place.
func Create(path string) (*File, error) {
	if IsStream(path) {
		f, err := openStream(path)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		return &File{File: f, path: path, live: true}, nil
	}
	final := path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		final = target
	}
	mode := fs.FileMode(0o666)
	if st, err := os.Stat(final); err == nil {
		switch {
		case st.IsDir():
			return nil, fmt.Errorf("write %s: is a folder", path)
		case !st.Mode().IsRegular():
			f, err := os.OpenFile(final, os.O_WRONLY, 0)
			if err != nil {
				return nil, fmt.Errorf("write %s: %w", path, bare(err))
			}
			return &File{File: f, path: final, live: true}, nil
		}
		mode = st.Mode().Perm()
	}
	var tag [6]byte
	_, _ = rand.Read(tag[:]) // never fails
	temp := filepath.Join(filepath.Dir(final), "."+filepath.Base(final)+"."+hex.EncodeToString(tag[:])+".part")
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, bare(err))
	}
	return &File{File: f, path: final}, nil
}

// Commit brings the bytes to the disk and gives the file its name.
func (f *File) Commit() error { return commit([]*File{f}) }

// settle brings the bytes to the disk and closes the file; only its name is
// then missing.
func (f *File) settle() error {
	if !f.live {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("write %s: %w", f.path, bare(err))
		}
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", f.path, bare(err))
	}
	return nil
}

// name gives a settled file its name.
func (f *File) name() error {
	if f.live {
		return nil
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return fmt.Errorf("write %s: %w", f.path, bare(err))
	}
	return nil
}

// commit ends files together: the bytes of all of them are on the disk before
// the first gets its name. On an error the files without a name are gone.
func commit(files []*File) error {
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	for _, f := range files {
		if !f.done {
			if err := f.settle(); err != nil {
				return err
			}
		}
	}
	folders := map[string]bool{}
	for _, f := range files {
		if f.done {
			continue
		}
		if err := f.name(); err != nil {
			return err
		}
		f.done = true
		if !f.live {
			folders[filepath.Dir(f.path)] = true
		}
	}
	for path := range folders {
		if dir, err := os.Open(path); err == nil {
			_ = dir.Sync() // the names themselves; not every file system can
			_ = dir.Close()
		}
	}
	return nil
}

// Abort gives the file up and leaves nothing behind.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	_ = f.Close()
	if !f.live {
		_ = os.Remove(f.Name())
	}
}

// Write puts data into the file called path.
func Write(path string, data []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// Stream lets fill write the file called path. When fill fails there is no file.
func Stream(path string, fill func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := fill(struct{ io.Writer }{f}); err != nil { // os.File's other methods name the temporary file
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

// Content is a file to be written by All.
type Content struct {
	Path string
	Data []byte
}

// All writes several files that belong together. No name changes until the
// bytes of every one are on the disk; what can still fail then is a renaming.
func All(files ...Content) error {
	var open []*File
	defer func() {
		for _, f := range open {
			f.Abort()
		}
	}()
	for _, c := range files {
		f, err := Create(c.Path)
		if err != nil {
			return err
		}
		open = append(open, f)
		if _, err := f.Write(c.Data); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
	}
	return commit(open)
}
