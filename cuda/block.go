package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

// block is device memory that outlives the call that took it, granted by the
// ledger. It has one owner.
type block struct {
	e     *Engine
	buf   *alloc.Buffer[byte]
	use   use
	bytes int64
	gen   uint64
	gone  atomic.Bool
}

// newBlock takes n bytes of device memory that the ledger has granted for u, in
// sc's reservation. On an error the grant is returned.
func (e *Engine) newBlock(sc *alloc.Scope, u use, n int64, p alloc.Purpose, f alloc.Flags) (*block, error) {
	gen := e.card.Generation()
	buf, err := alloc.Make[byte](sc.In(e.card.space), int(n), p, f)
	if err != nil {
		e.card.mem.give(u, n)
		return nil, err
	}
	e.card.taken.Add(n)
	return &block{e: e, buf: buf, use: u, bytes: n, gen: gen}, nil
}

// tryBlock is newBlock of memory that was not granted yet; nil where the ledger
// has no room.
func (e *Engine) tryBlock(sc *alloc.Scope, u use, n int64, p alloc.Purpose, f alloc.Flags) (*block, error) {
	ok, err := e.card.mem.try(u, n)
	if err != nil || !ok {
		return nil, err
	}
	return e.newBlock(sc, u, n, p, f)
}

// ptr is where the memory is.
func (b *block) ptr() gpu.Ptr { return gpu.Ptr(b.buf.Addr()) }

// free gives the memory back. The work that uses it is done. A second call does
// nothing, and a nil block has no memory.
func (b *block) free() {
	if b == nil || b.gone.Swap(true) {
		return
	}
	b.e.card.taken.Add(-b.bytes)
	b.buf.Release()
	b.e.card.mem.give(b.use, b.bytes)
}

// live is an error if a reset has taken the memory.
func (b *block) live() error {
	if b.gone.Load() || b.gen != b.e.card.Generation() {
		return &gpu.StaleError{Device: b.e.card.name, What: "a vector"}
	}
	return nil
}

// keep is a block of what a task was granted, for something that may outlive it:
// of use u if the ledger has room for that, and otherwise of the task's own
// memory, for the length of its use.
func (t *task) keep(u use, n int64, p alloc.Purpose, f alloc.Flags) (*block, error) {
	if n > t.room {
		return nil, fmt.Errorf("%d bytes for %v, %d are left of what was granted: %w", n, p, t.room, gpu.ErrNoMemory)
	}
	moved, err := t.e.card.mem.move(working, u, n)
	if err != nil {
		return nil, err
	}
	if !moved {
		u = working
	}
	t.room -= n
	return t.e.newBlock(t.e.card.own, u, n, p, f)
}
