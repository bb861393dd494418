//go:build unix

// Package spill puts large vectors in a temporary file that is mapped, so that
// their pages can leave memory while nobody uses them. The file has no name in
// its folder (or loses it as soon as it is made): it goes with its last mapping,
// however the process ends.
package spill

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
)

// Error is why a folder does not take a file, or no longer takes one.
type Error struct {
	Folder string
	Err    error
}

// Error names the folder.
func (e *Error) Error() string { return fmt.Sprintf("temporary file in %s: %v", e.Folder, e.Err) }

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }

// What makes a folder unsuitable.
var (
	ErrMemory  = errors.New("the folder itself is memory")
	ErrRemote  = errors.New("the folder is not on a disk of this machine, or nobody knows")
	ErrNoSpace = errors.New("too little space is free")
	ErrFolder  = errors.New("is no folder")
)

// share is the part of the free space that a file may take in a folder that
// nobody chose: one of so many.
const share = 4

// Block is the size and alignment of writes that the system can keep, and map,
// as one huge page: then reading here and there is as fast as in memory of one's
// own, and few page faults are needed when a vector comes back.
const Block = 2 << 20

// File is a temporary file in the making. WriteAt may be called from several
// goroutines.
type File struct {
	f      *os.File
	folder string
	name   string // that could not be taken away; usually empty
	end    atomic.Int64
	bytes  atomic.Int64
	closed bool
}

// Create makes a file for about size bytes in a folder. Folders that are memory
// themselves (tmpfs) or have too little space are refused; careful, for a folder
// that nobody chose, refuses those that are not known to be a local disk too,
// and takes a quarter of the free space at the most. Errors are *Error.
func Create(folder string, size int64, careful bool) (*File, error) {
	f, err := create(folder, size, careful)
	if err != nil {
		return nil, &Error{folder, err}
	}
	return f, nil
}

func create(folder string, size int64, careful bool) (*File, error) {
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return nil, bare(err)
	case !info.IsDir():
		return nil, ErrFolder
	}
	d, err := diskOf(folder)
	switch {
	case err != nil:
		return nil, bare(err)
	case d.kind == memory:
		return nil, ErrMemory
	case careful && d.kind != local:
		return nil, ErrRemote
	case d.free < 0: // not known, and the user's own choice
	case size > d.free:
		return nil, fmt.Errorf("%w: %s of %s", ErrNoSpace, humanize.IBytes(uint64(size)), humanize.IBytes(uint64(d.free)))
	case careful && size > d.free/share:
		return nil, fmt.Errorf("%w: %s of %s, of which 1/%d may be taken", ErrNoSpace, humanize.IBytes(uint64(size)), humanize.IBytes(uint64(d.free)), share)
	}
	if f, err := nameless(folder); err == nil {
		return &File{f: f, folder: folder}, nil
	}
	return named(folder)
}

// named makes a file whose name is taken away at once.
func named(folder string) (*File, error) {
	f, err := os.CreateTemp(folder, "snarkline-*.tmp")
	if err != nil {
		return nil, bare(err)
	}
	s := &File{f: f, folder: folder}
	if os.Remove(s.f.Name()) != nil {
		s.name = s.f.Name() // a system that keeps open files: Close tries again
	}
	return s, nil
}

// bare is err without the path, which Error has.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Folder is where the file is.
func (s *File) Folder() string { return s.folder }

// Bytes is the size of what was reserved.
func (s *File) Bytes() int64 { return s.bytes.Load() }

// Reserve gives the offset of n bytes that nobody else has, a multiple of Block.
// What lies between vectors takes no space.
func (s *File) Reserve(n int64) int64 {
	s.bytes.Add(n)
	n = (n + Block - 1) / Block * Block
	return s.end.Add(n) - n
}

// WriteAt writes all of b at an offset, best one or several blocks. Errors are
// *Error.
func (s *File) WriteAt(b []byte, off int64) error {
	for len(b) > 0 {
		n := min(int64(len(b)), Block-off%Block)
		if _, err := s.f.WriteAt(b[:n], off); err != nil {
			return &Error{s.folder, fmt.Errorf("write: %w", bare(err))}
		}
		b, off = b[n:], off+n
	}
	return nil
}

// Map maps n bytes from off on that were written. The mapping lives on when the
// file is closed. Errors are *Error.
func (s *File) Map(sc *alloc.Scope, off, n int64) (*alloc.Mapping, error) {
	m, err := alloc.Map(sc, s.f, off, n)
	if err != nil {
		return nil, &Error{s.folder, err}
	}
	return m, nil
}

// Close ends the writing. What is mapped stays until it is unmapped; then the
// system has the space back. A second Close does nothing.
func (s *File) Close() error {
	if s == nil || s.closed {
		return nil
	}
	s.closed = true
	err := s.f.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	if err != nil {
		return &Error{s.folder, err}
	}
	return nil
}

// kind is what a folder lies on.
type kind int

const (
	unknown kind = iota
	local        // a disk, as far as is known
	remote       // another machine, or a program
	memory       // tmpfs and its like
)

// disk is what is known of a folder's file system.
type disk struct {
	kind kind
	free int64 // bytes for this user; below 0 if unknown
}

// Folders are those that a temporary file may go to if nobody says where:
// $TMPDIR if it is set, else /var/tmp, which is meant for large ones, and /tmp.
func Folders() []string {
	if dir := os.Getenv("TMPDIR"); dir != "" {
		return []string{dir}
	}
	return []string{"/var/tmp", "/tmp"}
}
