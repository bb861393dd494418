package circom

import (
	"fmt"

	"github.com/snarkline/snarkline/alloc"
)

// linearMemory is the memory of one instance, outside Go's heap and counted.
// It holds secrets, so it is wiped. It implements experimental.LinearMemory and
// is its own allocator for the one memory that a calculator has.
type linearMemory struct {
	sc  *alloc.Scope
	buf *alloc.Buffer[byte]
	err error // why it could not grow
}

// newLinearMemory allocates the memory that an instance begins with, so that
// want of it is an error here and not a fault in the machine.
func newLinearMemory(sc *alloc.Scope, size uint64) (*linearMemory, error) {
	m := &linearMemory{sc: sc}
	if m.Reallocate(size) == nil && size > 0 {
		return nil, m.err
	}
	return m, nil
}

// Reallocate implements experimental.LinearMemory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if m.buf != nil && uint64(m.buf.Len()) >= size {
		return m.buf.Slice()[:size]
	}
	buf, err := alloc.Make[byte](m.sc, int(size), alloc.Scratch, alloc.Secret)
	if err != nil {
		m.err = fmt.Errorf("memory of the witness calculator: %w", err)
		return nil
	}
	if m.buf != nil {
		copy(buf.Slice(), m.buf.Slice())
		m.buf.Release()
	}
	m.buf = buf
	return buf.Slice()
}

// Free implements experimental.LinearMemory. It may be called more than once:
// an instance that is cut off may or may not call it.
func (m *linearMemory) Free() {
	if m.buf != nil {
		m.buf.Release()
		m.buf = nil
	}
}
