package native

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
	"github.com/snarkline/snarkline/groth16"
)

// Options say how a file is opened.
type Options struct {
	// SkipSubgroup leaves out the check that points are in the subgroup, and
	// SkipPoints all checks of points, for a file that was vetted before: then
	// only what is used of it is read from the disk.
	SkipSubgroup, SkipPoints bool
	// Progress hears of the points checked so far, from several goroutines.
	Progress func(done, total int)

	rest func(curve.Points) // takes what was checked out of memory
}

// File is an open key file. Its parts are views of the mapping and end with
// Close, as they do with the key's Close.
type File struct {
	Key     *groth16.ProvingKey
	VK      *groth16.VerifyingKey // nil if the file has none
	Circuit *groth16.R1CS         // nil if the file has none
}

// Close unmaps the file. Nothing may use its parts then.
func (f *File) Close() error { return f.Key.Close() }

// Open maps the file at path and checks it.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	m, err := alloc.MapFile(alloc.ScopeOf(ctx), path)
	if err != nil {
		return nil, fmt.Errorf("open a key file: %w", err)
	}
	// What cannot be given back stays resident, which is no reason to fail.
	o.rest = func(p curve.Points) { _ = m.Rest(p.Data) }
	f, err := Parse(ctx, path, m.Data(), o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a key file: %w", err), m.Close())
	}
	f.Key.OnClose(m.Close)
	f.Key.OnRest(o.rest)
	return f, nil
}

// Parse reads a file that lies in memory, aligned to 8 bytes; the result views
// it. The name is for messages.
func Parse(ctx context.Context, name string, data []byte, o Options) (*File, error) {
	p := &parser{name: name, data: data}
	if err := p.header(); err != nil {
		return nil, err
	}
	f := &File{Key: p.key()}
	f.VK = p.verifyingKey()
	f.Circuit = p.circuit()
	if p.err == nil && len(p.table) > 0 {
		for id, e := range p.table {
			p.fail(e.section(), int64(e.offset), fmt.Errorf("section of kind %d and index %d has no place in this file", id.kind, id.index))
			break
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	if err := (Content{Key: f.Key, VK: f.VK, Circuit: f.Circuit}).check(ctx); err != nil {
		return nil, &FormatError{File: name, Offset: -1, Err: err}
	}
	if !o.SkipPoints {
		if err := p.points(ctx, f, o); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// entryID tells sections apart.
type entryID struct {
	kind  kind
	index uint32
}

// entry is one row of the table.
type entry struct {
	entryID
	offset, length uint64
	first          uint32
}

func (e entry) section() string {
	name := kindNames[e.kind]
	if name == "" {
		name = fmt.Sprint("kind ", uint32(e.kind))
	}
	if e.kind.perIndex() {
		return fmt.Sprintf("%s %d", name, e.index)
	}
	return name
}

// parser takes sections out of the table as it goes. The first error sticks.
type parser struct {
	name  string
	data  []byte
	id    curve.ID
	flags uint32
	head  struct{ basis, log uint32 }
	count [3]uint64 // constraints, wires, public inputs
	table map[entryID]entry
	used  []checkedVector
	err   error
}

// checkedVector is a vector of points whose place in the file is known.
type checkedVector struct {
	section string
	offset  uint64
	points  curve.Points
}

func (p *parser) fail(section string, offset int64, err error) {
	if p.err == nil {
		p.err = &FormatError{File: p.name, Section: section, Offset: offset, Err: err}
	}
}

func (p *parser) header() error {
	size := uint64(len(p.data))
	le := binary.LittleEndian
	bad := func(at int64, err error) error { return &FormatError{File: p.name, Offset: at, Err: err} }
	if size < uint64(len(magic)) || string(p.data[:len(magic)]) != magic {
		return bad(0, ErrMagic)
	}
	if size < headerSize {
		return bad(int64(size), fmt.Errorf("%w: a header takes %d bytes", ErrTruncated, headerSize))
	}
	u32 := func(i int) uint32 { return le.Uint32(p.data[8+4*i:]) }
	if v := u32(0); v != version {
		return bad(8, fmt.Errorf("version %d of the format, this program reads %d", v, version))
	}
	if announced := le.Uint64(p.data[56:]); announced > size {
		return bad(56, fmt.Errorf("%w: %d bytes are announced, there are %d", ErrTruncated, announced, size))
	} else if announced < size {
		return bad(int64(announced), fmt.Errorf("%d bytes follow the end", size-announced))
	}
	n := uint64(u32(5))
	if n > maxSections || n > (size-headerSize)/entrySize {
		return bad(28, fmt.Errorf("%w: a table of %d sections", ErrTruncated, n))
	}
	table := p.data[headerSize : headerSize+n*entrySize]
	if sum := checksum(p.data[:hashed], table); string(sum[:]) != string(p.data[hashed:hashed+len(sum)]) {
		return bad(hashed, errors.New("the checksum of header and table is wrong"))
	}
	if i := bytes.IndexFunc(p.data[hashed+sha256.Size:headerSize], func(r rune) bool { return r != 0 }); i >= 0 {
		return bad(int64(hashed+sha256.Size+i), errors.New("the rest of the header is not zero"))
	}
	p.id, p.flags = curve.ID(min(u32(1), math.MaxUint8)), u32(3)
	if !p.id.Valid() {
		return bad(12, fmt.Errorf("curve %d is not known", u32(1)))
	}
	p.head.basis, p.head.log = u32(2), u32(4)
	if p.head.basis != uint32(curve.Monomial) && p.head.basis != uint32(curve.Coset) {
		return bad(16, fmt.Errorf("basis %d is not known", p.head.basis))
	}
	if p.flags&^(flagFolded|flagInputRows|flagCircuit) != 0 {
		return bad(20, fmt.Errorf("flags %#x are not known", p.flags))
	}
	if int64(p.head.log) > int64(p.id.TwoAdicity()) {
		return bad(24, fmt.Errorf("there is no domain of 2^%d on %v", p.head.log, p.id))
	}
	for i := range p.count {
		if p.count[i] = le.Uint64(p.data[32+8*i:]); p.count[i] > math.MaxUint32 {
			return bad(int64(32+8*i), fmt.Errorf("%d is too many", p.count[i]))
		}
	}
	p.table = make(map[entryID]entry, n)
	for i := range n {
		at := headerSize + i*entrySize
		b := p.data[at:]
		e := entry{
			entryID: entryID{kind(le.Uint32(b)), le.Uint32(b[4:])},
			offset:  le.Uint64(b[8:]), length: le.Uint64(b[16:]), first: le.Uint32(b[24:]),
		}
		if e.offset > size || e.length > size-e.offset {
			return bad(int64(at), fmt.Errorf("%w: section %s takes %d bytes at %d of %d", ErrTruncated, e.section(), e.length, e.offset, size))
		}
		if e.offset%alignment != 0 || e.offset < headerSize+n*entrySize {
			return bad(int64(at), fmt.Errorf("section %s begins at %d", e.section(), e.offset))
		}
		if le.Uint32(b[28:]) != 0 {
			return bad(int64(at)+28, fmt.Errorf("the last word of section %s is not zero", e.section()))
		}
		if _, ok := p.table[e.entryID]; ok {
			return bad(int64(at), fmt.Errorf("section %s occurs twice", e.section()))
		}
		p.table[e.entryID] = e
	}
	return nil
}

// take is a section, out of the table.
func (p *parser) take(k kind, index int) (entry, []byte, bool) {
	e, ok := p.table[entryID{k, uint32(index)}]
	if !ok {
		return e, nil, false
	}
	delete(p.table, e.entryID)
	return e, p.data[e.offset : e.offset+e.length], true
}

// need is take for a section that must be there.
func (p *parser) need(k kind, index int) (entry, []byte) {
	e, b, ok := p.take(k, index)
	if !ok {
		p.fail(entry{entryID: entryID{k, uint32(index)}}.section(), -1, errors.New("the section is missing"))
	}
	return e, b
}

// view reads a section as a vector of T.
func view[T any](p *parser, e entry, b []byte) []T {
	v, err := curve.View[T](b)
	if err != nil {
		p.fail(e.section(), int64(e.offset), err)
	}
	return v
}

// vector is a section of points.
func (p *parser) vector(k kind, index int, g curve.Group) (entry, curve.Points) {
	e, b := p.need(k, index)
	if len(b)%p.id.PointBytes(g) != 0 {
		p.fail(e.section(), int64(e.offset), fmt.Errorf("%d bytes are no whole number of points", len(b)))
		b = nil
	}
	v := curve.Points{Curve: p.id, Group: g, Data: b}
	p.used = append(p.used, checkedVector{e.section(), e.offset, v})
	return e, v
}

// query is a vector of points with its wires.
func (p *parser) query(points, wires kind, g curve.Group) curve.Query {
	e, v := p.vector(points, 0, g)
	q := curve.Query{Points: v}
	we, b, ok := p.take(wires, 0)
	if !ok {
		q.First = e.first
		return q
	}
	if q.Wires = view[uint32](p, we, b); q.Wires == nil {
		q.Wires = []uint32{}
	}
	return q
}

// singles reads points that follow one another: so many of G1, then of G2.
func (p *parser) singles(k kind, index, n1, n2 int) (g1 []curve.G1, g2 []curve.G2) {
	e, b := p.need(k, index)
	s1, s2 := p.id.G1Bytes(), p.id.G2Bytes()
	if len(b) != n1*s1+n2*s2 {
		p.fail(e.section(), int64(e.offset), fmt.Errorf("%d bytes, %d points of G1 and %d of G2 take %d", len(b), n1, n2, n1*s1+n2*s2))
		b = make([]byte, n1*s1+n2*s2)
	}
	g1, g2 = make([]curve.G1, n1), make([]curve.G2, n2)
	for i := range g1 {
		copy(curve.Bytes(g1[i][:]), b[:s1])
		b = b[s1:]
	}
	for i := range g2 {
		copy(curve.Bytes(g2[i][:]), b[:s2])
		b = b[s2:]
	}
	return g1, g2
}

// points checks every point of the file.
func (p *parser) points(ctx context.Context, f *File, o Options) error {
	k := f.Key
	for _, s := range []struct {
		name string
		err  error
	}{
		{"α₁", arith.CheckG1(p.id, &k.Alpha1)}, {"β₁", arith.CheckG1(p.id, &k.Beta1)}, {"δ₁", arith.CheckG1(p.id, &k.Delta1)},
		{"β₂", arith.CheckG2(p.id, &k.Beta2)}, {"δ₂", arith.CheckG2(p.id, &k.Delta2)},
	} {
		if s.err != nil {
			return &FormatError{File: p.name, Section: kindNames[kindSingles], Offset: -1, Err: fmt.Errorf("%s: %w", s.name, s.err)}
		}
	}
	if f.VK != nil {
		if err := f.VK.Check(); err != nil {
			return &FormatError{File: p.name, Section: kindNames[kindVK], Offset: -1, Err: err}
		}
	}
	vectors := make([]curve.Points, len(p.used))
	for i, u := range p.used {
		vectors[i] = u.points
	}
	err := arith.Check(ctx, vectors, arith.CheckOptions{SkipSubgroup: o.SkipSubgroup, Progress: o.Progress, Done: o.rest})
	var bad *arith.PointError
	if errors.As(err, &bad) {
		u := p.used[bad.Vector]
		return &FormatError{File: p.name, Section: u.section, Offset: int64(u.offset) + int64(bad.Index)*int64(p.id.PointBytes(u.points.Group)), Err: err}
	}
	return err
}
