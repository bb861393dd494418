package cuda

import (
	"runtime"
	"unsafe"

	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// Vectors of real circuits are mostly 0, 1 and a few other small values, and to
// copy them takes the host's memory longer than anything else that it does for a
// proof. So what goes through page-locked buffers is packed on its way there, and
// expanded on the card: the host's memory is read once, and little is written.
//
// What was packed needs a place on the card until it is expanded. That is the
// part of the vector which is still to come: the pieces go from the beginning to
// the end, each by way of the place behind it. The last ones get smaller and
// smaller, and what is left then goes as it is.
//
// A card that is busy takes milliseconds to find room for a kernel, however
// small. So the copies have a stream of their own, which runs ahead of the
// expansions, and a page-locked buffer is free when it is copied.

// The share of scalars to be written out above which packing a piece does not
// pay, and the most that is taken of it: more would not fit behind the piece.
const (
	packDense = 0.6
	packRoom  = 8.0 / 13 // of what is left: a piece, packed to at most 5/8 of its size, has room behind it
)

// packers is how many goroutines pack a piece. Each reads about 5 GB/s, and the
// memory of a host is good for many times that.
func packers() int { return max(2, min(8, runtime.GOMAXPROCS(0))) }

// scalars carries src through the page-locked buffers, packed where that pays.
// What arrives is the same, bit by bit. It has read all of src when it returns.
// stop is asked between pieces.
func (b *belt) scalars(stop func() error, dst gpu.Ptr, src []curve.Scalar) error {
	b.packs = 0
	if !b.fresh {
		if err := b.behind(); err != nil {
			return err
		}
	}
	for len(src) > 0 {
		if err := stop(); err != nil {
			return err
		}
		n, err := b.packed(dst, src)
		if err == nil && n == 0 {
			n = min(int(b.size/curve.ScalarBytes), len(src))
			err = b.fill(dst, int64(n)*curve.ScalarBytes, func(p []byte) error { spread(p, curve.Bytes(src[:n])); return nil })
		}
		if err != nil {
			return err
		}
		dst, src = dst+gpu.Ptr(n*curve.ScalarBytes), src[n:]
	}
	return nil
}

// packed carries the first scalars of src by way of the memory behind them, and
// gives how many: 0 where it does not pay to pack them.
func (b *belt) packed(dst gpu.Ptr, src []curve.Scalar) (int, error) {
	n := min(kernels.PackMost(int(b.size)), int(float64(len(src))*packRoom))
	if n < b.e.o.packFrom || b.e.o.packFrom == 0 {
		return 0, nil
	}
	third, others := b.e.packer.Look(src[:n])
	if others > packDense {
		return 0, nil
	}
	k, err := b.e.set.Pack()
	if err != nil {
		return 0, err
	}
	plain := int64(n) * curve.ScalarBytes
	i, p, err := b.pin(int64(kernels.PackHeader(n)) + plain)
	if err != nil {
		return 0, err
	}
	x := b.e.packer.Pack(p, src[:n], third, packers())
	if x.Bytes > int64(len(src)-n)*curve.ScalarBytes || x.Bytes > plain*3/4 {
		// The sample was not like the rest.
		spread(p[:plain], curve.Bytes(src[:n]))
		return n, b.send(dst, i, plain)
	}
	behind := dst + gpu.Ptr(plain)
	at := behind
	if behind < b.packs { // where the piece before lies, which may not be expanded yet
		if err := b.behind(); err != nil {
			return 0, err
		}
	}
	for j := -1; j < len(x.Others); j++ {
		part := x.Header
		if j >= 0 {
			part = x.Others[j]
		}
		if len(part) == 0 {
			continue
		}
		if err := b.ahead.CopyIn(at, unsafe.Pointer(unsafe.SliceData(part)), int64(len(part))); err != nil {
			return 0, err
		}
		at += gpu.Ptr(len(part))
	}
	b.packs = at
	if err := b.ahead.Record(b.sent[i]); err != nil {
		return 0, err
	}
	b.busy[i] = true
	if err := b.stream.Wait(b.sent[i]); err != nil {
		return 0, err
	}
	if err := k.Expand(b.stream, b.args, behind, dst, n, third); err != nil {
		return 0, err
	}
	b.e.stats.up.Add(x.Bytes)
	b.e.stats.unpacked.Add(plain)
	b.e.stats.packed.Add(x.Bytes)
	return n, nil
}
