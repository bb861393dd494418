package rules

// Order holds the values of an ordered stage that are early, by their places in
// the order, which have no gaps but those that Skip tells of.
type Order[T any] struct {
	next   uint64
	early  map[uint64]T
	passed map[uint64]struct{} // places that stay empty, before their turn
}

// NewOrder begins at place 0.
func NewOrder[T any]() Order[T] {
	return Order[T]{early: make(map[uint64]T), passed: make(map[uint64]struct{})}
}

// Len is how many values wait.
func (o *Order[T]) Len() int { return len(o.early) }

// Put takes a value over, and reports whether it is its turn.
func (o *Order[T]) Put(place uint64, v *T) (due bool) {
	o.early[place] = *v
	return place == o.next
}

// Due reports whether the next value is here.
func (o *Order[T]) Due() bool {
	_, ok := o.early[o.next]
	return ok
}

// Take takes out the next value, which must be Due. The turn stays at its place
// until Pass.
func (o *Order[T]) Take() T {
	v := o.early[o.next]
	delete(o.early, o.next)
	return v
}

// Pass gives the turn to the next place that is not empty for good.
func (o *Order[T]) Pass() {
	o.next++
	o.advance()
}

func (o *Order[T]) advance() {
	for {
		if _, ok := o.passed[o.next]; !ok {
			return
		}
		delete(o.passed, o.next)
		o.next++
	}
}

// At is the value that waits for the turn of a place.
func (o *Order[T]) At(place uint64) (v T, ok bool) {
	v, ok = o.early[place]
	return v, ok
}

// Remove takes out the value of a place, which keeps its turn.
func (o *Order[T]) Remove(place uint64) { delete(o.early, place) }

// Past reports whether the turn of a place has been.
func (o *Order[T]) Past(place uint64) bool { return place < o.next }

// Skip says that a place stays empty. A value that is there is taken out.
func (o *Order[T]) Skip(place uint64) {
	if o.Past(place) {
		return
	}
	delete(o.early, place)
	o.passed[place] = struct{}{}
	o.advance()
}

// Jump gives the turn to the first value that is here, as nothing else will come.
// There must be one.
func (o *Order[T]) Jump() {
	first := ^uint64(0)
	for place := range o.early {
		first = min(first, place)
	}
	o.next = first
	clear(o.passed)
}

// Empty takes out everything; the turn stays.
func (o *Order[T]) Empty(out func(*T)) {
	for _, v := range o.early {
		out(&v)
	}
	clear(o.early)
}

// Reset begins anew.
func (o *Order[T]) Reset() {
	clear(o.early)
	clear(o.passed)
	o.next = 0
}
