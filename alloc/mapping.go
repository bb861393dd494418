//go:build unix

package alloc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeMapping is the size from which a mapped file asks for huge pages: smaller
// ones gain nothing in time, and parts of them would be resident 2 MiB at a time.
const hugeMapping = 64 << 20

// Mapping is a read-only view of a part of a file. Its bytes are counted as
// mapped, for purpose Key, apart from all totals: the system reads the pages
// when they are touched and may drop them at any time. It is a Ref: it is
// unmapped with its last reference. The file must not be cut short meanwhile,
// or reading the view is a bus error.
type Mapping struct {
	core   // the first: see mappingOf
	data   []byte
	head   uintptr // bytes of the page before data
	err    error   // of the unmapping
	closed atomic.Bool
}

// mappingOf is the mapping of a core of the kind MappedFile. Every buffer has a
// core, so that it holds nothing that mappings alone need.
func mappingOf(c *core) *Mapping { return (*Mapping)(unsafe.Pointer(c)) }

func (m *Mapping) unmap() {
	if len(m.data) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(m.data))
	if err := unix.MunmapPtr(unsafe.Add(p, -int(m.head)), uintptr(len(m.data))+m.head); err != nil {
		m.err = fmt.Errorf("unmap %d bytes: %w", len(m.data), err)
		m.tracker.failed(m.err)
	}
}

// MapFile maps a whole file.
func MapFile(s *Scope, path string) (*Mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("map a file: %w", err)
	}
	defer func() { _ = f.Close() }() // the mapping stays
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("map a file: %w", err)
	}
	return Map(s, f, 0, info.Size())
}

// Map maps n bytes of a file from off on, which need not be a multiple of a
// page. They must lie within the file. The file may be closed afterwards.
func Map(s *Scope, f *os.File, off, n int64) (*Mapping, error) {
	s = s.orUnowned()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("map a file: %w", err)
	}
	if off < 0 || n < 0 || off > info.Size() || n > info.Size()-off {
		return nil, fmt.Errorf("map %s: %d bytes at offset %d do not lie within its %d bytes", f.Name(), n, off, info.Size())
	}
	m := new(Mapping)
	if n > 0 {
		page := int64(os.Getpagesize())
		head := off % page
		p, err := unix.MmapPtr(int(f.Fd()), off-head, nil, uintptr(n+head), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("map %s: %d bytes at offset %d: %w", f.Name(), n, off, err)
		}
		if n >= hugeMapping {
			// Read from the disk in huge pages too, where the file system can.
			adviseHuge(unsafe.Slice((*byte)(p), n+head))
		}
		m.data, m.head = unsafe.Slice((*byte)(unsafe.Add(p, head)), n), uintptr(head)
	}
	sc := &Scope{tracker: s.tracker, stage: s.stage, space: Host, tag: s.tag}
	m.start(sc, MappedFile, Key, n)
	if Debug {
		m.rec = s.tracker.debug.born(&m.core, s.stage, Key)
		runtime.AddCleanup(m, lost, m.rec)
	}
	return m, nil
}

// Data is the bytes of the view. Writing to them is a fault.
func (m *Mapping) Data() []byte {
	if !m.live() {
		m.throwUse("Data")
	}
	return m.data
}

// Close ends the reference that Map gave. A second Close does nothing.
func (m *Mapping) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.Release()
	if !m.live() {
		return m.err
	}
	return nil
}

// Advice tells the system how a mapping will be read.
type Advice int

// What can be advised.
const (
	Sequential Advice = unix.MADV_SEQUENTIAL // from front to back
	Random     Advice = unix.MADV_RANDOM     // here and there
	WillNeed   Advice = unix.MADV_WILLNEED   // soon: read ahead
	DontNeed   Advice = unix.MADV_DONTNEED   // not soon: drop the pages
)

// Advise tells the system how n bytes from off on will be read. Whole pages
// around them are meant.
func (m *Mapping) Advise(off, n int64, a Advice) error {
	if off < 0 || n < 0 || off > m.bytes || n > m.bytes-off {
		return fmt.Errorf("advise on a mapping: %d bytes at offset %d do not lie within its %d bytes", n, off, m.bytes)
	}
	if n == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(m.Data()[off:]))
	head := uintptr(p) % uintptr(os.Getpagesize())
	if err := unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(p, -int(head))), n+int64(head)), int(a)); err != nil {
		return errors.Join(fmt.Errorf("advise on a mapping of %d bytes", m.bytes), err)
	}
	return nil
}

// Rest takes the pages of part, a slice of Data, out of resident memory. They
// come back from the system's file cache, or from the file, when they are read
// again; so it is safe while others read them, and only costs them time.
func (m *Mapping) Rest(part []byte) error {
	if len(part) == 0 {
		return nil
	}
	data := m.Data()
	base, at := uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if at < base || at+uintptr(len(part)) > base+uintptr(len(data)) {
		return fmt.Errorf("rest a part of a mapping: %d bytes that are not of it", len(part))
	}
	return m.Advise(int64(at-base), int64(len(part)), DontNeed)
}
