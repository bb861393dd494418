package alloc

import "sync/atomic"

// Reservation is memory that was admitted for one item of work, in any number
// of spaces. Buffers made in a scope with it draw from it; a buffer that is
// freed can be drawn again, until the reservation shrinks. Drawing takes no
// lock and never waits.
//
// What the budget is charged is, in each space, the larger of what the
// reservation may still hold and what is in use.
type Reservation struct {
	budget  *Budget
	limit   [MaxSpaces]atomic.Int64 // what may be in use
	used    [MaxSpaces]atomic.Int64
	peak    [MaxSpaces]atomic.Int64 // of used
	closed  atomic.Bool
	charged Amount // what the budget counts for it; under budget.mu
}

// draw takes n bytes of the scope's space. The limit is read before what is in use:
// it only falls, and when it does, what it covered no longer has been freed. Read
// in the other order, memory that a neighbour frees and gives up in between would
// count against a limit that is without it already, and a draw that there is room
// for would be refused.
func (r *Reservation) draw(s *Scope, p Purpose, n int64) error {
	i := s.space
	for {
		limit := r.limit[i].Load()
		used := r.used[i].Load()
		if n > limit-used {
			return &OverdrawError{Stage: s.stage, Purpose: p, Space: i, Asked: n,
				Left: max(limit-used, 0), Closed: r.closed.Load()}
		}
		if r.used[i].CompareAndSwap(used, used+n) && r.confirm(i, used+n, n) {
			return nil
		}
	}
}

// confirm keeps a draw of n bytes that brought what is in use to used, or undoes
// it if the reservation has shrunk meanwhile: Shrink lowers the limit and then
// reads what is in use, so if it did not see the draw, the draw sees the limit.
// What is undone may have had room, if what is in use has fallen too; draw then
// looks again.
func (r *Reservation) confirm(i Space, used, n int64) bool {
	if used > r.limit[i].Load() {
		r.undraw(i, n)
		return false
	}
	for k := r.peak[i].Load(); used > k; k = r.peak[i].Load() {
		if r.peak[i].CompareAndSwap(k, used) {
			break
		}
	}
	return true
}

// undraw gives n bytes back. They stay reserved unless the reservation has
// shrunk or closed below what was in use: then the budget gets them at once.
func (r *Reservation) undraw(i Space, n int64) {
	if used := r.used[i].Add(-n); used+n > r.limit[i].Load() {
		r.settle()
	}
}

// settle gives the budget what the reservation holds no more. A draw and a
// shrink that cross are safe in any order: used is read after the limit was
// lowered, and whoever lowers used below the limit later settles again.
func (r *Reservation) settle() {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	var back bool
	for i := range r.charged {
		need := max(r.limit[i].Load(), r.used[i].Load())
		if d := r.charged[i] - need; d > 0 {
			r.charged[i] = need
			b.charged[i] -= d
			back = true
		}
	}
	if back {
		b.admit()
	}
}

// Shrink lowers the reservation to at most to in each space; it never raises
// it. What is in use above that stays charged until it is freed, and cannot be
// drawn again. The rest goes to those who wait, at once.
func (r *Reservation) Shrink(to Amount) {
	var lower bool
	for i := range to {
		n := max(to[i], 0)
		for limit := r.limit[i].Load(); n < limit; limit = r.limit[i].Load() {
			if r.limit[i].CompareAndSwap(limit, n) {
				lower = true
				break
			}
		}
	}
	if lower {
		r.settle()
	}
}

// Close gives back everything but what is still in use; that stays charged to
// the budget until it is freed. No draw succeeds afterwards. A second Close
// does nothing.
func (r *Reservation) Close() {
	if r.closed.Swap(true) {
		return
	}
	r.budget.mu.Lock()
	r.budget.open--
	r.budget.mu.Unlock()
	r.Shrink(Amount{})
}

// Limit is what may be in use, by space.
func (r *Reservation) Limit() (a Amount) {
	for i := range a {
		a[i] = r.limit[i].Load()
	}
	return a
}

// Used is what is in use, by space.
func (r *Reservation) Used() (a Amount) {
	for i := range a {
		a[i] = r.used[i].Load()
	}
	return a
}

// Peak is the most that was in use at one moment, space by space. It tells how
// well an estimate of what the work needs was.
func (r *Reservation) Peak() (a Amount) {
	for i := range a {
		a[i] = r.peak[i].Load()
	}
	return a
}

// Left is what can still be drawn, by space.
func (r *Reservation) Left() (a Amount) {
	for i := range a {
		a[i] = max(r.limit[i].Load()-r.used[i].Load(), 0)
	}
	return a
}
