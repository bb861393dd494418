package live

// ring keeps the last values that were put into it and counts all.
type ring[T any] struct {
	at []T
	n  uint64 // values ever
}

func newRing[T any](size int) ring[T] { return ring[T]{at: make([]T, size)} }

func (r *ring[T]) push(v T) {
	r.at[r.n%uint64(len(r.at))] = v
	r.n++
}

// first is the number of the oldest value that is still there; numbers begin
// at 0.
func (r *ring[T]) first() uint64 {
	if size := uint64(len(r.at)); r.n > size {
		return r.n - size
	}
	return 0
}

// get is value number i, which must be between first and n.
func (r *ring[T]) get(i uint64) *T { return &r.at[i%uint64(len(r.at))] }

// since is a copy of the values from number i on, oldest first.
func (r *ring[T]) since(i uint64) []T {
	i = max(i, r.first())
	out := make([]T, 0, r.n-min(i, r.n))
	for ; i < r.n; i++ {
		out = append(out, *r.get(i))
	}
	return out
}

// newest is a copy of at most n values, newest first.
func (r *ring[T]) newest(n int) []T {
	out := make([]T, 0, min(uint64(n), r.n-r.first()))
	for i := r.n; i > r.first() && len(out) < n; i-- {
		out = append(out, *r.get(i - 1))
	}
	return out
}
