package cuda

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// belt carries host memory to the device on a stream of its own. Memory that is
// page-locked is copied from directly; everything else goes through two
// page-locked buffers in turns, so that one is filled while the other is
// copied. The host waits for a copy out of one of them and for nothing else.
// They are as large as what has come so far needed, and never larger than size:
// to page-lock memory takes long, and others lack it.
//
// It is used by one goroutine at a time.
type belt struct {
	e      *Engine
	stream gpu.Stream
	ahead  gpu.Stream // copies of what is packed, which do not wait for what is expanded before
	gate   gpu.Event  // in stream, for ahead
	packs  gpu.Ptr    // the end of what was packed last, on the device
	fresh  bool       // nothing that stream waits for uses the memory it brings to
	size   int64      // of a page-locked buffer at most
	pins   [2]*gpu.Pinned
	sent   [2]gpu.Event // the last copy out of pins[i]
	busy   [2]bool
	turn   int
	args   *gpu.Args
}

func newBelt(e *Engine) (*belt, error) {
	b := &belt{e: e, size: e.o.chunk}
	var err error
	if b.stream, err = e.card.NewStream(true); err != nil {
		return nil, err
	}
	b.args = gpu.NewArgs()
	if b.ahead, err = e.card.NewStream(true); err == nil {
		b.gate, err = e.card.NewEvent(false)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	for i := range b.sent {
		if b.sent[i], err = e.card.NewEvent(false); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, nil
}

// close gives everything back. What was queued is done, or the context is gone.
func (b *belt) close() {
	if b == nil {
		return
	}
	for i := range b.pins {
		if b.sent[i] != nil {
			_ = b.sent[i].Close() // what cannot be closed ends with the context
		}
		if b.pins[i] != nil {
			b.pins[i].Release()
		}
	}
	if b.args != nil {
		b.args.Close()
	}
	if b.gate != nil {
		_ = b.gate.Close()
	}
	if b.ahead != nil {
		_ = b.ahead.Close()
	}
	_ = b.stream.Close()
	*b = belt{}
}

// drain waits until nothing is queued.
func (b *belt) drain() error {
	b.busy = [2]bool{}
	err := drain(b.ahead)
	if e := drain(b.stream); err == nil {
		err = e
	}
	return err
}

// behind makes copies on ahead wait for all that stream has so far.
func (b *belt) behind() error {
	if err := b.stream.Record(b.gate); err != nil {
		return err
	}
	return b.ahead.Wait(b.gate)
}

// pinMin is the least size of a page-locked buffer.
const pinMin = 64 << 10

// pin gives the next page-locked buffer, of n ≤ size bytes or more, once the copy
// out of it is done.
func (b *belt) pin(n int64) (int, []byte, error) {
	i := b.turn
	b.turn = 1 - i
	if b.busy[i] {
		if err := b.sent[i].Sync(); err != nil {
			return 0, nil, err
		}
		b.busy[i] = false
	}
	if b.pins[i] != nil && int64(b.pins[i].Len()) < n {
		b.pins[i].Release()
		b.pins[i] = nil
	}
	if b.pins[i] == nil {
		buf, err := b.e.card.Pinned(b.e.card.own, b.pinSize(n), alloc.Scratch)
		if err != nil {
			return 0, nil, fmt.Errorf("page-locked memory to copy through: %w", err)
		}
		b.pins[i] = buf
	}
	return i, b.pins[i].Slice(), nil
}

// pinSize is how large a buffer is made that n bytes go through: a power of two,
// so that it grows a few times at most, and then holds whatever comes.
func (b *belt) pinSize(n int64) int64 {
	size := int64(pinMin)
	for size < n {
		size *= 2
	}
	return min(size, b.size)
}

// send queues the copy of the first n bytes of page-locked buffer i to dst.
func (b *belt) send(dst gpu.Ptr, i int, n int64) error {
	if n == 0 {
		return nil
	}
	if err := b.stream.CopyIn(dst, unsafe.Pointer(unsafe.SliceData(b.pins[i].Slice())), n); err != nil {
		return err
	}
	b.e.stats.up.Add(n)
	if err := b.stream.Record(b.sent[i]); err != nil {
		return err
	}
	b.busy[i] = true
	return nil
}

// fill carries n ≤ size bytes that f writes.
func (b *belt) fill(dst gpu.Ptr, n int64, f func(p []byte) error) error {
	i, p, err := b.pin(n)
	if err != nil {
		return err
	}
	if err := f(p[:n]); err != nil {
		return err
	}
	return b.send(dst, i, n)
}

// carry carries src, of any length, through the page-locked buffers. It has
// read all of src when it returns.
func (b *belt) carry(ctx context.Context, dst gpu.Ptr, src []byte) error {
	for len(src) > 0 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(b.size, int64(len(src)))
		err := b.fill(dst, n, func(p []byte) error { spread(p, src[:n]); return nil })
		if err != nil {
			return err
		}
		dst, src = dst+gpu.Ptr(n), src[n:]
	}
	return nil
}

// straight queues the copy of page-locked memory, which must stay as it is until
// the stream has come past it.
func (b *belt) straight(dst gpu.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := b.stream.CopyIn(dst, unsafe.Pointer(unsafe.SliceData(src)), int64(len(src))); err != nil {
		return err
	}
	b.e.stats.up.Add(int64(len(src)))
	return nil
}

// spreadMin is the size from which a copy is worth several goroutines, and
// spreadOver how many share it: one core does not keep up with the bus.
const (
	spreadMin  = 4 << 20
	spreadOver = 4
)

// spread is copy by several goroutines.
func spread(dst, src []byte) {
	if len(src) < spreadMin {
		copy(dst, src)
		return
	}
	var wg sync.WaitGroup
	step := (len(src)/spreadOver + 4095) &^ 4095
	for at := 0; at < len(src); at += step {
		to := min(at+step, len(src))
		wg.Go(func() { copy(dst[at:to], src[at:to]) })
	}
	wg.Wait()
}

// drain waits for a stream. A wait that fails says nothing of the work, so it is
// tried again: what the work reads must not be freed before it is done.
func drain(st gpu.Stream) (err error) {
	for range 3 {
		if err = st.Sync(); err == nil || isSticky(err) {
			return err
		}
	}
	return err
}
