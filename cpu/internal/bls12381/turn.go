package bls12381

import "context"

const (
	// blockLen is how many scalars a worker takes at a time; the context is
	// looked at in between.
	blockLen = 4096
	// aloneLen is the size from which a call has all workers for itself.
	aloneLen = 1 << 12
)

// turn waits until no other large call is running, first come first served, so
// that two of them neither hold their memory at the same time nor share cores
// and caches. Small calls pass.
func (e *Engine) turn(ctx context.Context, n int) (end func(), err error) {
	if n < aloneLen {
		return func() {}, nil
	}
	if err := e.Turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { e.Turn.Release(1) }, nil
}
