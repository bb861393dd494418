package rules

// Unbounded as a capacity lets a queue grow without end.
const Unbounded = -1

// Queue is the sized channel before a stage: a ring whose capacity can change.
type Queue[T any] struct {
	Capacity int // Unbounded or at least 1
	Peak     int // the most that there were at once
	ring     []T
	head, n  int
}

// Len is how many values wait.
func (q *Queue[T]) Len() int { return q.n }

// Full reports whether there is no room.
func (q *Queue[T]) Full() bool { return q.Capacity != Unbounded && q.n >= q.Capacity }

// Put takes a value in, whether the queue is full or not.
func (q *Queue[T]) Put(v *T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	i := q.head + q.n
	if i >= len(q.ring) {
		i -= len(q.ring)
	}
	q.ring[i] = *v
	q.n++
	q.Peak = max(q.Peak, q.n)
}

func (q *Queue[T]) grow() {
	ring := make([]T, max(4, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = ring, 0
}

// First is the oldest value, where it is. There must be one.
func (q *Queue[T]) First() *T { return &q.ring[q.head] }

// Take moves the oldest value into v. There must be one.
func (q *Queue[T]) Take(v *T) {
	at := &q.ring[q.head]
	*v = *at
	var none T
	*at = none
	if q.head++; q.head == len(q.ring) {
		q.head = 0
	}
	q.n--
}

// Filter takes out the values that hit says so of, which it sees in order.
func (q *Queue[T]) Filter(hit func(*T) bool) {
	kept := 0
	for i := range q.n {
		at := (q.head + i) % len(q.ring)
		v := q.ring[at]
		var none T
		q.ring[at] = none
		if !hit(&v) {
			q.ring[(q.head+kept)%len(q.ring)] = v
			kept++
		}
	}
	q.n = kept
}

// Reset empties the queue and forgets the peak. Its room stays.
func (q *Queue[T]) Reset(capacity int) {
	clear(q.ring)
	q.head, q.n, q.Peak, q.Capacity = 0, 0, 0, capacity
}
