package cuda

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// vector is scalars of a job, in device memory, in the host buffer that they
// came in, or in both while they are copied. It is an alloc.Ref of its own, so
// that the engine hears when the last user is done and can let go of one of the
// two places before.
type vector struct {
	e     *Engine
	n     int
	refs  atomic.Int32
	first alloc.Space

	mu     sync.Mutex
	dev    *block
	host   *alloc.Buffer[curve.Scalar]
	copied *mark         // of the copy to dev
	coming bool          // the copy to dev may be under way
	unkept bool          // dev is to go when that is over
	over   chan struct{} // closed when it is, if there was one
	left   func()        // called when host has been let go of

	shared *witnessCache // where others may find it; nil: nowhere
}

// newVector holds a reference on host; nil: it is to be made on the card.
func newVector(e *Engine, n int, host *alloc.Buffer[curve.Scalar], left func()) *vector {
	v := &vector{e: e, n: n, host: host, left: left, first: e.card.space}
	if host != nil {
		v.first = host.Space()
		host.Retain()
	}
	v.refs.Store(1)
	return v
}

func (v *vector) bytes() int64 { return int64(v.n) * curve.ScalarBytes }

// Retain takes another reference.
func (v *vector) Retain() { v.refs.Add(1) }

// tryRetain takes another reference, unless the last one is gone.
func (v *vector) tryRetain() bool {
	for {
		n := v.refs.Load()
		if n <= 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends one. The last one lets go of both places.
func (v *vector) Release() {
	if v.refs.Add(-1) == 0 {
		if v.shared != nil {
			v.shared.forget(v)
		}
		v.letHostGo()
		v.dropDevice(true)
	}
}

// Bytes is its size. Whoever counts it adds and takes off the same, so that
// does not change when a place is let go of.
func (v *vector) Bytes() int64 { return v.bytes() }

// Space is where it was first put; that does not change either.
func (v *vector) Space() alloc.Space { return v.first }

// abandoned reports whether only the caller has a reference, and nobody will.
func (v *vector) abandoned() bool {
	if v.shared != nil {
		return v.shared.abandon(v)
	}
	return v.refs.Load() == 1
}

// onDevice is the device memory, or nil.
func (v *vector) onDevice() *block {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dev
}

// onHost is the host buffer, or nil. It is good for as long as the caller's
// reference and nobody calls letHostGo.
func (v *vector) onHost() *alloc.Buffer[curve.Scalar] {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.host
}

// begin gives the vector device memory before anybody else knows it.
func (v *vector) begin(b *block) {
	v.dev, v.first = b, v.e.card.space
}

// place gives the vector device memory.
func (v *vector) place(b *block) {
	v.mu.Lock()
	v.dev = b
	v.mu.Unlock()
}

// letHostGo ends the reference on the host buffer.
func (v *vector) letHostGo() {
	v.mu.Lock()
	host, left := v.host, v.left
	v.host, v.left = nil, nil
	v.mu.Unlock()
	if host != nil {
		host.Release()
	}
	if left != nil {
		left()
	}
}

// dropDevice gives the device memory back. The work that uses it is done; where
// come is false a copy to it may still be under way, and ends first.
func (v *vector) dropDevice(come bool) {
	v.mu.Lock()
	if v.coming && !come {
		v.unkept = true
		v.mu.Unlock()
		return
	}
	dev, copied := v.dev, v.copied
	v.dev, v.copied = nil, nil
	v.mu.Unlock()
	dev.free()
	if copied != nil {
		copied.close()
	}
}

// expectCopy says that m will mark the end of a copy to the device memory.
func (v *vector) expectCopy(m *mark) {
	v.mu.Lock()
	v.copied, v.coming, v.over = m, true, make(chan struct{})
	v.mu.Unlock()
}

// came says that the copy is over, whatever came of it.
func (v *vector) came() {
	v.mu.Lock()
	v.coming = false
	drop, over := v.unkept, v.over
	v.mu.Unlock()
	v.letHostGo()
	if drop {
		v.dropDevice(true)
	}
	v.Release()
	close(over)
}

// arrived waits until all of the copy to the device is queued, if there is one:
// so that no worker has to wait for that. The error is the copy's, or ctx's.
func (v *vector) arrived(ctx context.Context) error {
	v.mu.Lock()
	copied := v.copied
	v.mu.Unlock()
	if copied == nil {
		return nil
	}
	since := time.Now()
	defer func() { v.e.stats.awaited.Add(int64(time.Since(since))) }()
	return copied.wait(ctx)
}

// ready makes the work of st from now on wait until the vector is on the device,
// and gives its address.
func (v *vector) ready(ctx context.Context, st gpu.Stream) (gpu.Ptr, error) {
	v.mu.Lock()
	dev, copied := v.dev, v.copied
	v.mu.Unlock()
	if dev == nil {
		return 0, &gpu.StaleError{Device: v.e.card.name, What: "a vector"}
	}
	if err := dev.live(); err != nil {
		return 0, err
	}
	if err := copied.before(ctx, st); err != nil {
		return 0, err
	}
	return dev.ptr(), nil
}
