package gpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
)

// Pinned is page-locked host memory of one card: what its own work copies through.
// Buffers of alloc.Pinned belong to whichever card is first, and lose their lock
// with that card's context, in the middle of another's copies if it so happens.
type Pinned struct {
	card   *Card
	bytes  []byte
	charge *alloc.Charge
}

// Pinned takes n > 0 bytes, which are counted as sc's stage's in the space
// alloc.Pinned, in whole pages or less. Release ends them.
func (c *Card) Pinned(sc *alloc.Scope, n int64, p alloc.Purpose) (*Pinned, error) {
	charge, err := alloc.Foreign(sc.In(alloc.Pinned), p, n)
	if err != nil {
		return nil, err
	}
	at, err := c.AllocPinned(n)
	if errors.Is(err, ErrNoMemory) {
		alloc.Default().TrimPoolOf(alloc.Pinned)
		at, err = c.AllocPinned(n)
	}
	if err != nil {
		charge.Release()
		return nil, fmt.Errorf("page-lock %s for %s: %w", size(n), c.Name(), err)
	}
	return &Pinned{c, unsafe.Slice((*byte)(at), n), charge}, nil
}

// Slice is the memory.
func (b *Pinned) Slice() []byte { return b.bytes }

// Len is its size.
func (b *Pinned) Len() int { return len(b.bytes) }

// Ptr is where it begins.
func (b *Pinned) Ptr() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.bytes)) }

// Release wipes it and gives it back; nothing copies from it or to it any more. What
// the card does not take back stays counted. A second Release does nothing.
func (b *Pinned) Release() {
	if b == nil || b.charge == nil {
		return
	}
	clear(b.bytes)
	at, charge := b.Ptr(), b.charge
	b.bytes, b.charge = nil, nil
	for range 3 {
		if err := b.card.FreePinned(at); err == nil || isGone(err) {
			charge.Release()
			return
		}
	}
}
