package gnark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/guard"
)

// Options say how a file is read.
type Options struct {
	Name  string   // of the file, for messages
	Curve curve.ID // of the file; 0 to find out
	// SkipSubgroup leaves out the check that points are in the subgroup, for a
	// key that was vetted before. They are checked to be on the curve always.
	SkipSubgroup bool
}

func (o Options) name() string {
	if o.Name == "" {
		return "gnark file"
	}
	return o.Name
}

// curves are the curves to try.
func (o Options) curves() []curve.ID {
	if o.Curve != 0 {
		return []curve.ID{o.Curve}
	}
	return curve.All()
}

// reader walks over a file of known size. The first error sticks.
type reader struct {
	r    io.ReaderAt
	size int64
	name string
	at   int64
	f    backend
	err  error
	way  []byte // points on their way to a file
}

func newReader(r io.ReaderAt, size int64, name string, f backend) *reader {
	return &reader{r: r, size: size, name: name, f: f}
}

// fail makes err the reader's error, at an offset of a section.
func (r *reader) fail(section string, offset int64, err error) {
	if r.err == nil {
		r.err = &FormatError{File: r.name, Section: section, Offset: offset, Err: err}
	}
}

// left is how many bytes there are to come.
func (r *reader) left() int64 { return r.size - r.at }

// bytes reads the next n bytes of a section to memory: for small things.
func (r *reader) bytes(section string, n int64) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > r.left() {
		r.fail(section, r.at, fmt.Errorf("%w: %d bytes are needed, %d are left", ErrTruncated, n, r.left()))
		return nil
	}
	b := make([]byte, n)
	if err := readAt(r.r, b, r.at); err != nil {
		r.fail(section, r.at, err)
		return nil
	}
	r.at += n
	return b
}

// readAt fills b; io.EOF after the last byte is no error.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %d bytes of %d could be read", ErrTruncated, n, len(b))
	}
	return fmt.Errorf("read: %w", err)
}

func (r *reader) u32(section string) uint32 {
	if b := r.bytes(section, 4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(section string) uint64 {
	if b := r.bytes(section, 8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) u64le(section string) uint64 {
	if b := r.bytes(section, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// scalar reads a canonical big-endian scalar.
func (r *reader) scalar(section string) curve.Scalar {
	at := r.at
	b := r.bytes(section, curve.ScalarBytes)
	if b == nil {
		return curve.Scalar{}
	}
	s, err := r.f.Element((*[curve.ScalarBytes]byte)(b))
	if err != nil {
		r.fail(section, at, err)
	}
	return s
}

// compressed tells from a point's first byte whether it is compressed; an error
// when the byte begins no point of the curve.
func compressed(id curve.ID, first byte) (bool, error) {
	if id == curve.BN254 {
		return first>>6 != 0, nil
	}
	switch first >> 5 {
	case 0, 2: // plain, infinity
		return false, nil
	case 4, 5, 6: // smaller y, larger y, infinity
		return true, nil
	}
	return false, fmt.Errorf("0x%02x begins no point", first)
}

// pointSize is the size of an encoded point.
func pointSize(id curve.ID, g curve.Group, compressed bool) int {
	if compressed {
		return id.PointBytes(g) / 2
	}
	return id.PointBytes(g)
}

// point reads one point of group g, of either encoding, to out.
func (r *reader) point(section string, g curve.Group, out []byte) {
	at := r.at
	b := r.bytes(section, 1)
	if b == nil {
		return
	}
	r.at = at
	small, err := compressed(r.f.ID(), b[0])
	if err != nil {
		r.fail(section, at, err)
		return
	}
	if b = r.bytes(section, int64(pointSize(r.f.ID(), g, small))); b == nil {
		return
	}
	if _, err := r.f.Decode(b, curve.Points{Curve: r.f.ID(), Group: g, Data: out}); err != nil {
		r.fail(section, at, err)
	}
}

func (r *reader) g1(section string) (p curve.G1) {
	r.point(section, curve.InG1, curve.Bytes(p[:])[:r.f.ID().G1Bytes()])
	return p
}

func (r *reader) g2(section string) (p curve.G2) {
	r.point(section, curve.InG2, curve.Bytes(p[:])[:r.f.ID().G2Bytes()])
	return p
}

// vector reads the points that follow to where to has room for them, in parallel
// pieces, window by window. All must have the encoding of the first.
func (r *reader) vector(ctx context.Context, section string, to *place) {
	n := to.n
	if r.err != nil || n == 0 {
		return
	}
	first := r.bytes(section, 1)
	if first == nil {
		return
	}
	r.at--
	start := r.at
	small, err := compressed(r.f.ID(), first[0])
	if err != nil {
		r.fail(section, start, err)
		return
	}
	size := int64(pointSize(r.f.ID(), to.group, small))
	if int64(n) > r.left()/size {
		r.fail(section, start, fmt.Errorf("%w: %d points of %d bytes, %d bytes are left", ErrTruncated, n, size, r.left()))
		return
	}
	// Workers' buffers for what the file has.
	pool := sync.Pool{New: func() any {
		b := make([]byte, piece*size)
		return &b
	}}
	for base := 0; base < n; {
		end := min(base+to.window(), n)
		out := r.span(to, base, end)
		bad, err := pieces(ctx, end-base, func(from, till int) (int, error) {
			b := pool.Get().(*[]byte) //nolint:errcheck,forcetypeassert // what New made
			defer pool.Put(b)
			buf := (*b)[:int64(till-from)*size]
			if err := readAt(r.r, buf, start+int64(base+from)*size); err != nil {
				return from, err
			}
			for i := from; i < till; i++ {
				c, err := compressed(r.f.ID(), buf[int64(i-from)*size])
				if err == nil && c != small {
					err = errors.New("the point is encoded otherwise than the first")
				}
				if err != nil {
					return i, err
				}
			}
			i, err := r.f.Decode(buf, out.Slice(from, till))
			return from + i, err
		})
		if err == nil {
			bad, err = 0, to.put(out.Data, base)
		}
		if err != nil {
			bad += base
			r.fail(section, start+int64(bad)*size, fmt.Errorf("point %d: %w", bad, err))
			return
		}
		base = end
	}
	r.at += int64(n) * size
}

// raw reads the points that follow as they lie in memory.
func (r *reader) raw(ctx context.Context, section string, to *place) {
	for base := 0; base < to.n && r.err == nil; {
		end := min(base+to.window(), to.n)
		out := r.span(to, base, end)
		err := ctx.Err()
		if err == nil {
			err = readAt(r.r, out.Data, r.at)
		}
		if err == nil {
			err = to.put(out.Data, base)
		}
		if err != nil {
			r.fail(section, r.at, err)
			return
		}
		r.at += int64(len(out.Data))
		base = end
	}
}

// span is memory for the points [from, to) of p: their own, or that of what is
// on its way to a file.
func (r *reader) span(p *place, from, to int) curve.Points {
	v, n := curve.Points{Curve: p.id, Group: p.group}, (to-from)*p.size()
	if p.file == nil {
		v.Data = p.memory[from*p.size() : to*p.size()]
		return v
	}
	if len(r.way) < n {
		r.way = make([]byte, n)
	}
	v.Data = r.way[:n]
	return v
}

// piece is how many points one task decodes: some milliseconds of square roots.
const piece = 512

// pieces runs fn over [0, n) on all processors and returns the first error of
// the lowest piece that has one, with the index that fn gave. A panic in fn is an
// error at the piece's first index.
func pieces(ctx context.Context, n int, fn func(from, to int) (int, error)) (int, error) {
	var (
		next atomic.Int64
		mu   sync.Mutex
		bad  = n
		why  error
		wg   sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), (n+piece-1)/piece) {
		wg.Go(func() {
			for {
				from := int(next.Add(piece)) - piece
				if from >= n {
					return
				}
				i, err := from, ctx.Err()
				if err == nil {
					err = guard.Call(func() (err error) {
						i, err = fn(from, min(from+piece, n))
						return err
					})
				}
				if err != nil {
					mu.Lock()
					if i < bad {
						bad, why = i, err
					}
					mu.Unlock()
					next.Store(int64(n))
					return
				}
			}
		})
	}
	wg.Wait()
	return bad, why
}

// end fails unless all was read.
func (r *reader) end() {
	if r.err == nil && r.left() != 0 {
		r.fail("", r.at, fmt.Errorf("%d bytes follow the end", r.left()))
	}
}
