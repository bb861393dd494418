package circom

import (
	"errors"
	"fmt"
)

// Bounds on what a module may announce in a few bytes.
const (
	maxLocals = 4096    // of a function
	maxTable  = 1 << 20 // entries
)

// checkModule reads the frame of a WebAssembly module (version 1, "Binary
// Format") and checks every count and length in it against the bytes that are
// there: wazero allocates what they say before it looks for it, and want of
// memory ends the process. It returns the module without its custom sections,
// which hold names at most. What a module does is for wazero to check.
func checkModule(code []byte) ([]byte, error) {
	const magic = "\x00asm\x01\x00\x00\x00"
	if len(code) < len(magic) || string(code[:len(magic)]) != magic {
		return nil, errors.New("no WebAssembly module of version 1")
	}
	m := &moduleReader{b: code, at: len(magic)}
	out := append(make([]byte, 0, len(code)), magic...)
	for m.at < len(code) && m.err == nil {
		start := m.at
		id := m.byte()
		body := m.sub()
		if m.err != nil {
			break
		}
		if id == 0 {
			continue
		}
		if int(id) >= len(wasmSections) {
			return nil, fmt.Errorf("byte %d: section %d is of no kind that is known", start, id)
		}
		s := wasmSections[id]
		s.read(body)
		if body.err == nil && body.at != len(body.b) {
			body.fail("%d bytes are left of the section", len(body.b)-body.at)
		}
		if body.err != nil {
			return nil, fmt.Errorf("section %s: %w", s.name, body.err)
		}
		out = append(out, code[start:m.at]...)
	}
	return out, m.err
}

// wasmSections are the sections by their numbers.
var wasmSections = []struct {
	name string
	read func(*moduleReader)
}{
	{},
	{"type", each((*moduleReader).functionType)},
	{"import", each((*moduleReader).imported)},
	{"function", each((*moduleReader).skip)},
	{"table", each((*moduleReader).table)},
	{"memory", each(func(m *moduleReader) { m.limits() })},
	{"global", each(func(m *moduleReader) {
		m.globalType()
		m.constant()
	})},
	{"export", each(func(m *moduleReader) {
		m.sub()
		m.byte()
		m.u32()
	})},
	{"start", (*moduleReader).skip},
	{"element", each(func(m *moduleReader) {
		if kind := m.u32(); kind != 0 {
			m.fail("element segments of kind %d are not read", kind)
		}
		m.constant()
		m.each((*moduleReader).skip)
	})},
	{"code", each((*moduleReader).function)},
	{"data", each(func(m *moduleReader) {
		switch kind := m.u32(); kind {
		case 0:
			m.constant()
		case 1:
		case 2:
			m.u32()
			m.constant()
		default:
			m.fail("data segments of kind %d are not read", kind)
		}
		m.sub()
	})},
	{"data count", (*moduleReader).skip},
}

func each(item func(*moduleReader)) func(*moduleReader) {
	return func(m *moduleReader) { m.each(item) }
}

// moduleReader walks over a module or a piece of one. The first error sticks;
// after it all that is read is 0.
type moduleReader struct {
	b    []byte
	at   int
	base int // of b in the module
	err  error
}

func (m *moduleReader) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("byte %d: %w", m.base+m.at, fmt.Errorf(format, args...))
	}
}

func (m *moduleReader) byte() byte {
	if m.err == nil && m.at >= len(m.b) {
		m.fail("%w", ErrTruncated)
	}
	if m.err != nil {
		return 0
	}
	m.at++
	return m.b[m.at-1]
}

// u32 reads an unsigned number of at most five bytes.
func (m *moduleReader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := m.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > 1<<32-1 {
				m.fail("a number of more than 32 bits")
			}
			return uint32(v)
		}
	}
	m.fail("a number of more than 5 bytes")
	return 0
}

func (m *moduleReader) skip() { m.u32() }

// sub is the piece that follows behind its length, as a reader of its own.
func (m *moduleReader) sub() *moduleReader {
	n := int64(m.u32())
	if m.err == nil && n > int64(len(m.b)-m.at) {
		m.fail("%w: %d bytes are announced, %d are left", ErrTruncated, n, len(m.b)-m.at)
	}
	if m.err != nil {
		return &moduleReader{err: m.err}
	}
	s := &moduleReader{b: m.b[m.at : m.at+int(n)], base: m.base + m.at}
	m.at += int(n)
	return s
}

// each reads a vector, whose items take a byte each at least.
func (m *moduleReader) each(item func(*moduleReader)) {
	n := int64(m.u32())
	if m.err == nil && n > int64(len(m.b)-m.at) {
		m.fail("%w: %d items are announced, %d bytes are left", ErrTruncated, n, len(m.b)-m.at)
	}
	for ; n > 0 && m.err == nil; n-- {
		item(m)
	}
}

// valueType is one of the numbers, vectors or references of one byte.
func (m *moduleReader) valueType() {
	switch t := m.byte(); t {
	case 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f:
	default:
		m.fail("0x%02x is no type of a value", t)
	}
}

func (m *moduleReader) functionType() {
	if b := m.byte(); b != 0x60 {
		m.fail("0x%02x begins no function's type", b)
	}
	m.each((*moduleReader).valueType)
	m.each((*moduleReader).valueType)
}

func (m *moduleReader) imported() {
	m.sub()
	m.sub()
	switch kind := m.byte(); kind {
	case 0:
		m.u32()
	case 1:
		m.table()
	case 2:
		m.limits()
	case 3:
		m.globalType()
	default:
		m.fail("imports of kind %d are not read", kind)
	}
}

func (m *moduleReader) globalType() {
	m.valueType()
	m.byte()
}

func (m *moduleReader) table() {
	m.valueType()
	if n := m.limits(); n > maxTable {
		m.fail("a table of %d entries, at most %d are taken", n, maxTable)
	}
}

// limits is the lower limit.
func (m *moduleReader) limits() uint32 {
	flags := m.byte()
	if flags > 3 {
		m.fail("0x%02x begins no limits", flags)
	}
	n := m.u32()
	if flags&1 != 0 {
		m.u32()
	}
	return n
}

// constant is an initial value: one instruction.
func (m *moduleReader) constant() {
	skip := func(n int) {
		for range n {
			m.byte()
		}
	}
	switch op := m.byte(); op {
	case 0x41, 0x42: // i32.const, i64.const
		for n := 0; m.byte() >= 0x80 && n < 10; n++ {
		}
	case 0x43:
		skip(4)
	case 0x44:
		skip(8)
	case 0x23: // global.get
		m.u32()
	default:
		m.fail("0x%02x begins no initial value that is read", op)
	}
	if b := m.byte(); b != 0x0b {
		m.fail("an initial value goes on after its first instruction")
	}
}

// function is the locals of a function; its instructions have no counts that
// anything is allocated by.
func (m *moduleReader) function() {
	f := m.sub()
	var locals uint64
	f.each(func(f *moduleReader) {
		if locals += uint64(f.u32()); locals > maxLocals {
			f.fail("more than %d locals", maxLocals)
		}
		f.valueType()
	})
	if m.err == nil {
		m.err = f.err
	}
}
