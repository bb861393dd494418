package circom

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

// containerWriter writes a container section by section. The first failure stays.
type containerWriter struct {
	w    *bufio.Writer
	left uint64 // bytes that the section still needs
	err  error
}

func newContainerWriter(w io.Writer, kind string, version, sections uint32) *containerWriter {
	c := &containerWriter{w: bufio.NewWriterSize(w, 1<<16)}
	c.raw([]byte(kind))
	c.left = 8
	c.u32(version)
	c.u32(sections)
	return c
}

func (c *containerWriter) raw(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
}

// section begins a section of just length bytes.
func (c *containerWriter) section(id uint32, length uint64) {
	c.full()
	c.left = 12
	c.u32(id)
	c.u64(length)
	c.left = length
}

// full checks that the section got the bytes that it announced.
func (c *containerWriter) full() {
	if c.err == nil && c.left != 0 {
		c.err = fmt.Errorf("%d bytes of a section were not written", c.left)
	}
}

func (c *containerWriter) bytes(b []byte) {
	if c.err == nil && uint64(len(b)) > c.left {
		c.err = fmt.Errorf("%d bytes too many in a section", uint64(len(b))-c.left)
	}
	c.left -= uint64(len(b))
	c.raw(b)
}

func (c *containerWriter) u32(v uint32) { c.bytes(binary.LittleEndian.AppendUint32(nil, v)) }
func (c *containerWriter) u64(v uint64) { c.bytes(binary.LittleEndian.AppendUint64(nil, v)) }

// prime writes a modulus with its length before it.
func (c *containerWriter) prime(b []byte) {
	c.u32(uint32(len(b)))
	c.bytes(b)
}

// plain writes scalars, which are in Montgomery form, in plain form.
func (c *containerWriter) plain(f *arith.Field, v []curve.Scalar) {
	var chunk [128]curve.Scalar
	var b [len(chunk) * curve.ScalarBytes]byte
	for len(v) > 0 {
		n := copy(chunk[:], v)
		f.FromMontgomery(chunk[:n])
		arith.Store(b[:], chunk[:n])
		c.bytes(b[:n*curve.ScalarBytes])
		v = v[n:]
	}
	clear(chunk[:]) // of a witness
	clear(b[:])
}

// close flushes, wipes the buffer, which may hold pieces of a witness, and says
// whether all went well.
func (c *containerWriter) close() error {
	c.full()
	if c.err == nil {
		c.err = c.w.Flush()
	}
	c.w.Reset(nil) // what a failed writer did not take is in the buffer too
	b := c.w.AvailableBuffer()
	clear(b[:cap(b)])
	return c.err
}
