package inputs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
)

// Claims says what each file of an invocation is for, so that no two results go
// to one file and none to a file that is read. Files count as the same when
// their paths lead to the same place, links followed. What is no regular file
// (a device, a pipe) may be written any number of times. It is not safe for
// concurrent use.
type Claims struct {
	files map[string]claim // by the path that it leads to
}

type claim struct {
	what  string // "--proof", "--proof of w1.wtns"
	write bool
}

// Read claims a file for reading: what names it in errors. It is an error if a
// result goes there.
func (c *Claims) Read(path, what string) error {
	return c.add(path, claim{what: what})
}

// Write claims a file for a result. It is an error if another goes there, or if
// the file is read.
func (c *Claims) Write(path, what string) error {
	return c.add(path, claim{what, true})
}

func (c *Claims) add(path string, by claim) error {
	if path == "" {
		return nil
	}
	at, regular := destination(path)
	if !regular {
		return nil
	}
	first, taken := c.files[at]
	switch {
	case taken && first.write && by.write:
		return fmt.Errorf("%s and %s would both be written to %s", first.what, by.what, path)
	case taken && by.write:
		return fmt.Errorf("%s would be written over the file of %s, %s", by.what, first.what, path)
	case taken && first.write:
		return fmt.Errorf("%s would be written over the file of %s, %s", first.what, by.what, path)
	case taken:
		return nil
	}
	if c.files == nil {
		c.files = map[string]claim{}
	}
	c.files[at] = by
	return nil
}

// Clone is a copy, to try names out.
func (c *Claims) Clone() *Claims { return &Claims{files: maps.Clone(c.files)} }

// destination is where a path leads, and whether a regular file is there or
// could be made there.
func destination(path string) (at string, regular bool) {
	if outfile.IsStream(path) {
		return path, false
	}
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() && st.Mode().Type() != fs.ModeDir {
		return path, false
	}
	if at, err = filepath.EvalSymlinks(path); err != nil { // not there yet
		at = path
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			at = filepath.Join(dir, filepath.Base(path))
		}
	}
	if abs, err := filepath.Abs(at); err == nil {
		at = abs
	}
	return filepath.Clean(at), true
}
