package rules

// Table is where values wait in a join for their partners of the same key.
type Table[K comparable, T any] struct {
	Peak   int // the most keys that waited at once
	inputs int
	closed uint8 // inputs that have ended, by bits
	wait   map[K]*Tuple[T]
	free   []*Tuple[T]
}

// Tuple is the values of a key that have come, by slot.
type Tuple[T any] struct {
	Have uint8 // slots, by bits
	Vals [MaxJoin]T
}

// Arrival is what becomes of a value that has come.
type Arrival uint8

// The arrivals.
const (
	Waits     Arrival = iota // for its partners
	Completes                // the tuple, which has left the table
	Twice                    // the slot had a value of the key already; the table has not taken it
	Stranded                 // it waits, but an input that it needs has ended
)

// spare is how many tuples are kept for further use.
const spare = 64

// NewTable makes the table of a join of at most MaxJoin inputs.
func NewTable[K comparable, T any](inputs int) Table[K, T] {
	return Table[K, T]{inputs: inputs, wait: make(map[K]*Tuple[T])}
}

func (j *Table[K, T]) all() uint8 { return 1<<j.inputs - 1 }

// Len is how many keys wait.
func (j *Table[K, T]) Len() int { return len(j.wait) }

// Arrive brings a value to an input. The tuple is the one that it is in; nil if
// it came Twice. Who has used up a tuple that it Completes gives it to Recycle.
func (j *Table[K, T]) Arrive(key K, slot int, v *T) (*Tuple[T], Arrival) {
	bit := uint8(1) << slot
	p := j.wait[key]
	if p == nil {
		p = j.fresh()
		j.wait[key] = p
		j.Peak = max(j.Peak, len(j.wait))
	}
	if p.Have&bit != 0 {
		return nil, Twice
	}
	p.Have |= bit
	p.Vals[slot] = *v
	switch {
	case p.Have == j.all():
		delete(j.wait, key)
		return p, Completes
	case j.Missing(p) != 0:
		return p, Stranded
	}
	return p, Waits
}

// Missing are the slots of inputs that have ended without a value for the tuple,
// by bits.
func (j *Table[K, T]) Missing(p *Tuple[T]) uint8 { return j.closed &^ p.Have }

// End says that an input yields nothing more. It calls stuck with a value of each
// key that can complete no longer, and reports whether all inputs have ended.
func (j *Table[K, T]) End(slot int, stuck func(*T)) (over bool) {
	j.closed |= 1 << slot
	for _, p := range j.wait {
		if p.Have&(1<<slot) != 0 {
			continue
		}
		for i := range j.inputs {
			if p.Have&(1<<i) != 0 {
				stuck(&p.Vals[i])
				break
			}
		}
	}
	return j.closed == j.all()
}

// Remove takes out a key, and calls out with each of its values.
func (j *Table[K, T]) Remove(key K, out func(*T)) {
	if p := j.wait[key]; p != nil {
		p.each(out)
		delete(j.wait, key)
	}
}

// Empty takes out everything.
func (j *Table[K, T]) Empty(out func(*T)) {
	for _, p := range j.wait {
		p.each(out)
	}
	clear(j.wait)
}

// Reset is Empty for who needs nothing of it, and forgets peak and ends too.
func (j *Table[K, T]) Reset() {
	clear(j.wait)
	j.Peak, j.closed = 0, 0
}

func (p *Tuple[T]) each(out func(*T)) {
	for i := range p.Vals {
		if p.Have&(1<<i) != 0 {
			out(&p.Vals[i])
		}
	}
}

func (j *Table[K, T]) fresh() *Tuple[T] {
	if n := len(j.free); n > 0 {
		p := j.free[n-1]
		j.free = j.free[:n-1]
		return p
	}
	return new(Tuple[T])
}

// Recycle takes back a tuple that nobody uses any more.
func (j *Table[K, T]) Recycle(p *Tuple[T]) {
	*p = Tuple[T]{}
	if len(j.free) < spare {
		j.free = append(j.free, p)
	}
}
