package circom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// The kinds of container, by their magic.
const (
	KindR1CS = "r1cs"
	KindWtns = "wtns"
	KindZkey = "zkey"
)

// maxSections is far above what any known file has (18 in a FFLONK key).
const maxSections = 256

// Section is one section of a container.
type Section struct {
	ID             uint32
	Offset, Length int64 // of its data, in the file
}

// Container is a file of iden3's binary format: a magic, a version and
// numbered sections in any order. It owns the mapping of the file until Close.
type Container struct {
	name     string
	kind     string
	version  uint32
	data     []byte
	mapping  *alloc.Mapping // nil for memory of the caller's
	sections []Section
}

// Parse reads the table of sections of a container that lies in memory, which
// must not change while it is in use. The name is for messages.
func Parse(name string, data []byte) (*Container, error) {
	c := &Container{name: name, data: data}
	const head = 12
	if len(data) < head {
		return nil, c.whole(0, fmt.Errorf("%w: %d bytes are too few for a header", ErrTruncated, len(data)))
	}
	c.kind = string(data[:4])
	switch c.kind {
	case KindR1CS, KindWtns, KindZkey:
	default:
		return nil, c.whole(0, fmt.Errorf("magic %q is none of r1cs, wtns, zkey", c.kind))
	}
	c.version = binary.LittleEndian.Uint32(data[4:])
	n := binary.LittleEndian.Uint32(data[8:])
	if n > maxSections {
		return nil, c.whole(8, fmt.Errorf("%d sections (at most %d)", n, maxSections))
	}
	size := int64(len(data))
	at := int64(head)
	seen := make(map[uint32]bool, n)
	for i := range n {
		if size-at < 12 {
			return nil, c.whole(at, fmt.Errorf("%w: no header of section %d of %d", ErrTruncated, i+1, n))
		}
		s := Section{ID: binary.LittleEndian.Uint32(data[at:]), Offset: at + 12}
		length := binary.LittleEndian.Uint64(data[at+4:])
		if length > uint64(size-s.Offset) {
			return nil, c.in(s, at+4, fmt.Errorf("%w: %d bytes announced, %d left", ErrTruncated, length, size-s.Offset))
		}
		s.Length = int64(length)
		if seen[s.ID] {
			return nil, c.in(s, at, errors.New("the section occurs twice"))
		}
		seen[s.ID] = true
		c.sections = append(c.sections, s)
		at = s.Offset + s.Length
	}
	if at != size {
		return nil, c.whole(at, fmt.Errorf("%d bytes after the last section", size-at))
	}
	return c, nil
}

// Open maps the file and reads its table of sections.
func Open(path string) (*Container, error) {
	data, mapping, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(path, data)
	if err != nil {
		mapping.Release()
		return nil, err
	}
	c.mapping = mapping
	return c, nil
}

// IsContainer reports whether a file that begins with head is a container.
func IsContainer(head []byte) bool {
	for _, k := range []string{KindR1CS, KindWtns, KindZkey} {
		if bytes.HasPrefix(head, []byte(k)) {
			return true
		}
	}
	return false
}

// Name is what the file was opened by.
func (c *Container) Name() string { return c.name }

// Kind is "r1cs", "wtns" or "zkey".
func (c *Container) Kind() string { return c.kind }

// Version is the version of the file's kind.
func (c *Container) Version() uint32 { return c.version }

// Size is the length of the file in bytes.
func (c *Container) Size() int64 { return int64(len(c.data)) }

// Sections lists the sections in the order of the file.
func (c *Container) Sections() []Section { return append([]Section(nil), c.sections...) }

// Close gives the mapping back. It may be called more than once.
func (c *Container) Close() error {
	if c.mapping != nil {
		c.mapping.Release()
		c.mapping = nil
	}
	c.data = nil
	return nil
}

// SectionName is the number and the meaning of a section: "4 (coefficients)".
func (c *Container) SectionName(id uint32) string {
	if names := sectionNames[c.kind]; int64(id) < int64(len(names)) && names[id] != "" {
		return fmt.Sprintf("%d (%s)", id, names[id])
	}
	return fmt.Sprintf("%d (unknown)", id)
}

var sectionNames = map[string][]string{
	KindR1CS: {1: "header", 2: "constraints", 3: "labels", 4: "custom gates", 5: "custom gate uses"},
	KindWtns: {1: "header", 2: "values"},
	KindZkey: {1: "protocol", 2: "header", 3: "IC points", 4: "coefficients", 5: "A points", 6: "B1 points",
		7: "B2 points", 8: "C points", 9: "H points", 10: "contributions"},
}

// find is the section with the given number.
func (c *Container) find(id uint32) (Section, bool) {
	for _, s := range c.sections {
		if s.ID == id {
			return s, true
		}
	}
	return Section{}, false
}

// need is find for a section that must be there.
func (c *Container) need(id uint32) (Section, error) {
	if c.data == nil {
		return Section{}, c.closed()
	}
	s, ok := c.find(id)
	if !ok {
		return s, &FormatError{File: c.name, Section: c.SectionName(id), Offset: -1, Err: errors.New("the section is missing")}
	}
	return s, nil
}

// closed is the error for a file that is used after its Close.
func (c *Container) closed() error { return fmt.Errorf("%s: %w", c.name, os.ErrClosed) }

// bytes is the data of s, in place.
func (c *Container) bytes(s Section) []byte { return c.data[s.Offset : s.Offset+s.Length] }

// in is an error about section s at a byte of the file.
func (c *Container) in(s Section, offset int64, err error) error {
	return &FormatError{File: c.name, Section: c.SectionName(s.ID), Offset: offset, Err: err}
}

// whole is an error about the file at one of its bytes.
func (c *Container) whole(offset int64, err error) error {
	return &FormatError{File: c.name, Offset: offset, Err: err}
}

// expect checks the kind and the version of the file.
func (c *Container) expect(kind string, version uint32) error {
	if c.kind != kind {
		return c.whole(0, fmt.Errorf("this is a .%s file, not a .%s", c.kind, kind))
	}
	if c.version != version {
		return c.whole(4, fmt.Errorf("version %d of .%s is not known (only %d is)", c.version, kind, version))
	}
	return nil
}

// cursor reads a section from its beginning. The first failure stays.
type cursor struct {
	c   *Container
	s   Section
	pos int64 // in the section
	err error
}

func (c *Container) cursor(s Section) *cursor { return &cursor{c: c, s: s} }

// offset is the place in the file.
func (r *cursor) offset() int64 { return r.s.Offset + r.pos }

// take is the next n bytes, in place; n is trusted to be below 2^62.
func (r *cursor) take(n int64) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.s.Length-r.pos {
		r.err = r.c.in(r.s, r.offset(), fmt.Errorf("%w: %d bytes of the section left, %d wanted", ErrTruncated, r.s.Length-r.pos, n))
		return nil
	}
	at := r.offset()
	r.pos += n
	return r.c.data[at : at+n]
}

func (r *cursor) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *cursor) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// fail is an error n bytes before the cursor; an earlier one wins.
func (r *cursor) fail(n int64, format string, args ...any) error {
	if r.err == nil {
		r.err = r.c.in(r.s, r.offset()-n, fmt.Errorf(format, args...))
	}
	return r.err
}

// end checks that the section was read to its end.
func (r *cursor) end() error {
	if r.err == nil && r.pos != r.s.Length {
		r.err = r.c.in(r.s, r.offset(), fmt.Errorf("%d bytes too many in the section", r.s.Length-r.pos))
	}
	return r.err
}

// prime reads a length-prefixed modulus and finds the curve that it belongs to.
func (r *cursor) prime(what string, modulus func(curve.ID) []byte) (curve.ID, error) {
	n := r.u32()
	if r.err == nil && n != 32 && n != 48 {
		return 0, r.fail(4, "%d bytes a %s element (32 or 48 are known)", n, what)
	}
	b := r.take(int64(n))
	if r.err != nil {
		return 0, r.err
	}
	for _, id := range curve.All() {
		if bytes.Equal(b, modulus(id)) {
			return id, nil
		}
	}
	return 0, r.fail(int64(n), "the %s modulus is of no known curve", what)
}

// scalarModulus is r as a file holds it: 32 bytes, little-endian.
func scalarModulus(id curve.ID) []byte {
	return littleEndian(id.ScalarModulus().FillBytes(make([]byte, curve.ScalarBytes)))
}

// fieldModulus is q as a file holds it: 32 or 48 bytes, little-endian.
func fieldModulus(id curve.ID) []byte {
	return littleEndian(id.FieldModulus().FillBytes(make([]byte, id.FieldBytes())))
}

func littleEndian(b []byte) []byte {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}
