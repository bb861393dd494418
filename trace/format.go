package trace

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// A file is magic and frames. A frame is a byte of flags, the length of its
// records, the length as stored (both uvarint), the CRC-32C of what is stored
// (little-endian), and that. Records are a byte that says what they are, the
// time since the record before in the same frame (varint, in ns; the first counts
// from the begin of the run), and fields as varints and strings. Nothing in a
// frame needs a later one, so a file that ends anywhere is good up to its last
// whole frame.

const magic = "SNLTRC\x00\x01" // the last byte is the version of the file

const (
	flagZstd byte = 1 << iota // the frame is stored compressed
)

// The records.
const (
	recStart  byte = iota + 1 // JSON of header
	recEnd                    // JSON of footer; the last
	recString                 // the next number among the strings is this
	recNeeds                  // JSON of []NodeNeed: the next number among the needs is this
	recEvent                  // of the pipeline
	recMemory                 // a change of what alloc counts
	recSample                 // of processor time and resident memory
)

// The fields that an event may have, by bits, in this order.
const (
	hasCall byte = 1 << iota
	hasKey
	hasErr
	hasAttempt
	hasSlot // the input of a join; of Begin, the device and one
	hasRefs
	hasNeeds
	hasNumbers // of Resized, workers and capacity; of WaitedIn, 0 and the time in ns
)

const (
	maxFrame = 16 << 20 // bytes of records in a frame
	maxStart = 1 << 20  // bytes of the first record: a graph takes many times as much as its text
	maxRatio = 64       // by which a frame may be compressed, so that small files stay small in memory
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FormatError is a file that is no recording, or is damaged. A file that merely
// ends too early is not: see Trace.Cut.
type FormatError struct {
	Offset  int64  // of the frame or header, in bytes of the file
	Section string // "header", "frame", "event" and so on
	Err     error
}

// Error names offset and section.
func (e *FormatError) Error() string {
	return fmt.Sprintf("recording: %s at offset %d: %v", e.Section, e.Offset, e.Err)
}

// Unwrap is what is wrong there.
func (e *FormatError) Unwrap() error { return e.Err }

var (
	errShort  = errors.New("it ends within a record")
	errNumber = errors.New("a number is out of range")
)

// newEncoder is a compressor of frames. They are small, so its window is too.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10), zstd.WithEncoderCRC(false))
}

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderLowmem(true))
}
