package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// ReadFile is Read of a file.
func ReadFile(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Read reads a recording. One that ends before the run did, because the process
// was killed, is read as far as it goes, and is marked as Cut. What is no
// recording, or is damaged, is a *FormatError.
func Read(r io.Reader) (*Trace, error) {
	in := &frameReader{r: newBuffered(r)}
	if err := in.magic(); err != nil {
		return nil, err
	}
	dec, err := newDecoder()
	if err != nil {
		return nil, fmt.Errorf("prepare to read a recording: %w", err)
	}
	defer dec.Close()
	b := newBuilder()
	for !b.ended {
		at := in.offset
		frame, err := in.next(dec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := b.frame(frame); err != nil {
			section := "record"
			var where *recordError
			if errors.As(err, &where) {
				section, err = where.what, where.err
			}
			return nil, &FormatError{Offset: at, Section: section, Err: err}
		}
	}
	if !b.started {
		return nil, &FormatError{Offset: in.offset, Section: "start", Err: errors.New("the file ends before the run began")}
	}
	return b.trace(), nil
}

type frameReader struct {
	r      *bufio.Reader
	offset int64
	stored []byte
	raw    []byte
}

func (f *frameReader) magic() error {
	var m [len(magic)]byte
	n, err := io.ReadFull(f.r, m[:])
	f.offset += int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read a recording: %w", err)
	case n < len(m) || string(m[:len(m)-1]) != magic[:len(m)-1]:
		return &FormatError{Section: "header", Err: errors.New("it is no recording")}
	case m[len(m)-1] != magic[len(m)-1]:
		return &FormatError{Section: "header", Err: fmt.Errorf("version %d is not known, only %d is", m[len(m)-1], magic[len(m)-1])}
	}
	return nil
}

// next is the records of the next frame; io.EOF if there is no whole one.
func (f *frameReader) next(dec *zstd.Decoder) ([]byte, error) {
	at := f.offset
	bad := func(format string, args ...any) error {
		return &FormatError{Offset: at, Section: "frame", Err: fmt.Errorf(format, args...)}
	}
	flags, err := f.r.ReadByte()
	if err != nil {
		return nil, f.ending(err)
	}
	f.offset++
	var length [2]uint64
	for i := range length {
		if length[i], err = f.uvarint(); err != nil {
			if errors.Is(err, errNumber) {
				return nil, bad("length: %w", err)
			}
			return nil, f.ending(err)
		}
	}
	raw, stored := length[0], length[1]
	switch {
	case flags&^flagZstd != 0:
		return nil, bad("unknown flags %#x", flags)
	case raw > maxFrame || stored > maxFrame:
		return nil, bad("%d bytes, stored as %d, are more than the %d that there can be", raw, stored, maxFrame)
	case flags == 0 && raw != stored, flags != 0 && (stored >= raw || raw > maxRatio*stored):
		return nil, bad("%d bytes cannot be stored as %d", raw, stored)
	}
	var sum [4]byte
	if err := f.full(sum[:]); err != nil {
		return nil, f.ending(err)
	}
	// A length alone does not make this allocate: it grows with what is there.
	f.stored = f.stored[:0]
	for uint64(len(f.stored)) < stored {
		n := min(stored-uint64(len(f.stored)), 1<<16)
		f.stored = append(f.stored, make([]byte, n)...)
		if err := f.full(f.stored[uint64(len(f.stored))-n:]); err != nil {
			return nil, f.ending(err)
		}
	}
	if got := crc32.Checksum(f.stored, castagnoli); got != binary.LittleEndian.Uint32(sum[:]) {
		return nil, bad("the checksum differs")
	}
	if flags == 0 {
		return f.stored, nil
	}
	if f.raw, err = dec.DecodeAll(f.stored, f.raw[:0]); err != nil {
		return nil, bad("decompress: %w", err)
	}
	if uint64(len(f.raw)) != raw {
		return nil, bad("it has %d bytes and says %d", len(f.raw), raw)
	}
	return f.raw, nil
}

func (f *frameReader) full(p []byte) error {
	n, err := io.ReadFull(f.r, p)
	f.offset += int64(n)
	return err
}

func (f *frameReader) uvarint() (n uint64, err error) {
	for shift := 0; shift < 64; shift += 7 {
		b, err := f.r.ReadByte()
		if err != nil {
			return 0, err
		}
		f.offset++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errNumber
}

// ending tells the end of the file, at whatever place, from a failure to read it.
func (f *frameReader) ending(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return fmt.Errorf("read a recording at offset %d: %w", f.offset, err)
}

func newBuffered(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 1<<16) }
