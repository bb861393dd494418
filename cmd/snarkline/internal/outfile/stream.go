package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// IsStream reports whether path names an open file of a process (/dev/stdout,
// /dev/fd/3, /proc/self/fd/3). Such a file is written where its writer is, and
// never replaced: whoever opened it goes on with the file that it has.
func IsStream(path string) bool {
	_, _, ok := descriptor(path)
	return ok
}

// descriptor reads the path of an open file; own says that it is one of this
// process.
func descriptor(path string) (fd int, own, ok bool) {
	path = filepath.Clean(path)
	switch path {
	case "/dev/stdout":
		return 1, true, true
	case "/dev/stderr":
		return 2, true, true
	}
	dir, name := filepath.Split(path)
	fd, err := strconv.Atoi(name)
	if err != nil || fd < 0 {
		return 0, false, false
	}
	switch dir {
	case "/dev/fd/", "/proc/self/fd/", fmt.Sprintf("/proc/%d/fd/", os.Getpid()):
		return fd, true, true
	}
	return fd, false, strings.HasPrefix(dir, "/proc/") && strings.HasSuffix(dir, "/fd/")
}

// openStream opens the file behind a path that IsStream knows. One of this
// process is not opened anew, since that would begin at the file's start.
func openStream(path string) (*os.File, error) {
	fd, own, _ := descriptor(path)
	if !own {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		return f, bare(err)
	}
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// bare is the reason in an error of package os. The name in it is that of the
// temporary file, or one that the caller says anyway.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// CheckFolder reports whether files can be written in dir. It leaves nothing
// behind.
func CheckFolder(dir string) error {
	f, err := os.CreateTemp(dir, ".*.part")
	if err != nil {
		return fmt.Errorf("write in %s: %w", dir, bare(err))
	}
	_ = f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("write in %s: %w", dir, bare(err))
	}
	return nil
}

// Check reports whether a file called path could be written now. It leaves
// nothing behind.
func Check(path string) error {
	if st, err := os.Stat(path); err == nil && !st.IsDir() && !st.Mode().IsRegular() || IsStream(path) {
		return nil // opening a pipe may wait for its reader
	}
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return fmt.Errorf("write %s: %s is no folder", path, dir)
	} else if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: the folder %s does not exist", path, dir)
	}
	f, err := Create(path)
	if err != nil {
		return err
	}
	f.Abort()
	return nil
}
