package trace

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	frameSize  = 64 << 10
	frameQueue = 512 // frames that may wait for the disk: 32 MiB
)

// frameWriter compresses and writes frames in a goroutine of its own.
type frameWriter struct {
	w     io.Writer
	in    chan []byte
	done  chan struct{}
	spare sync.Pool
	enc   *zstd.Encoder

	mu  sync.Mutex
	err error // the first
}

func newFrameWriter(w io.Writer) (*frameWriter, error) {
	enc, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("prepare the compression of a recording: %w", err)
	}
	f := &frameWriter{w: w, in: make(chan []byte, frameQueue), done: make(chan struct{}), enc: enc}
	f.spare.New = func() any { return make([]byte, 0, frameSize+4096) }
	return f, nil
}

// fresh is an empty buffer for a frame.
func (f *frameWriter) fresh() []byte { return f.spare.Get().([]byte)[:0] }

// put hands a frame over. It waits only if the disk is far behind.
func (f *frameWriter) put(frame []byte) { f.in <- frame }

func (f *frameWriter) run() {
	defer close(f.done)
	var out []byte
	if _, err := io.WriteString(f.w, magic); err != nil {
		f.fail(err)
	}
	for frame := range f.in {
		if f.failed() == nil {
			out = f.encode(out[:0], frame)
			if _, err := f.w.Write(out); err != nil {
				f.fail(err)
			}
		}
		f.spare.Put(frame[:0]) //nolint:staticcheck // a slice's header is little beside the frame
	}
}

// encode appends a frame as it is stored.
func (f *frameWriter) encode(out, frame []byte) []byte {
	flags, stored := byte(0), frame
	if packed := f.enc.EncodeAll(frame, nil); len(packed) < len(frame) && len(frame) <= maxRatio*len(packed) {
		flags, stored = flagZstd, packed
	}
	out = append(out, flags)
	out = binary.AppendUvarint(out, uint64(len(frame)))
	out = binary.AppendUvarint(out, uint64(len(stored)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(stored, castagnoli))
	return append(out, stored...)
}

// close writes what is left and gives the first error.
func (f *frameWriter) close() error {
	close(f.in)
	<-f.done
	_ = f.enc.Close() // nothing is streamed
	return f.failed()
}

func (f *frameWriter) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *frameWriter) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
