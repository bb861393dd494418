package circom

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// interner numbers distinct scalars in the order in which they come. Circuits
// have few distinct coefficients, so a term keeps a number in place of 32 bytes.
// Its hash is seeded: a file cannot choose its collisions.
type interner struct {
	sc     *alloc.Scope
	seed   maphash.Seed
	slots  *alloc.Buffer[uint32] // number + 1, or 0; a power of two, at most half full
	values *alloc.Buffer[curve.Scalar]
	n      int
}

func newInterner(sc *alloc.Scope) (*interner, error) {
	t := &interner{sc: sc, seed: maphash.MakeSeed()}
	var err error
	if t.slots, err = alloc.Make[uint32](sc, 256, alloc.Matrix, 0); err != nil {
		return nil, fmt.Errorf("table of coefficients: %w", err)
	}
	if t.values, err = alloc.Make[curve.Scalar](sc, 128, alloc.Matrix, alloc.Dirty); err != nil {
		t.slots.Release()
		return nil, fmt.Errorf("table of coefficients: %w", err)
	}
	return t, nil
}

// add is the number of v.
func (t *interner) add(v *curve.Scalar) (uint32, error) {
	slots, values := t.slots.Slice(), t.values.Slice()
	i := t.slot(slots, v)
	for slots[i] != 0 {
		if values[slots[i]-1] == *v {
			return slots[i] - 1, nil
		}
		i = (i + 1) & (len(slots) - 1)
	}
	if t.n == len(values) {
		if err := t.grow(); err != nil {
			return 0, err
		}
		return t.add(v)
	}
	values[t.n] = *v
	t.n++
	slots[i] = uint32(t.n)
	return uint32(t.n - 1), nil
}

func (t *interner) slot(slots []uint32, v *curve.Scalar) int {
	return int(maphash.Bytes(t.seed, curve.Bytes(v[:]))) & (len(slots) - 1)
}

// grow doubles the table.
func (t *interner) grow() error {
	if t.n >= math.MaxUint32/2 {
		return fmt.Errorf("table of coefficients: more than %d distinct ones", t.n)
	}
	values, err := alloc.Make[curve.Scalar](t.sc, 2*t.n, alloc.Matrix, alloc.Dirty)
	if err != nil {
		return fmt.Errorf("table of coefficients: %w", err)
	}
	slots, err := alloc.Make[uint32](t.sc, 4*t.n, alloc.Matrix, 0)
	if err != nil {
		values.Release()
		return fmt.Errorf("table of coefficients: %w", err)
	}
	copy(values.Slice(), t.values.Slice()[:t.n])
	table := slots.Slice()
	for k := range t.n {
		i := t.slot(table, &values.Slice()[k])
		for table[i] != 0 {
			i = (i + 1) & (len(table) - 1)
		}
		table[i] = uint32(k + 1)
	}
	t.values.Release()
	t.slots.Release()
	t.values, t.slots = values, slots
	return nil
}

// finish hands over the distinct scalars, in a buffer of just their size, and
// frees the table.
func (t *interner) finish() (*alloc.Buffer[curve.Scalar], error) {
	out, err := alloc.Make[curve.Scalar](t.sc, t.n, alloc.Matrix, alloc.Dirty)
	if err == nil {
		copy(out.Slice(), t.values.Slice()[:t.n])
	}
	t.free()
	return out, err
}

// free gives the table back; it may be called after finish.
func (t *interner) free() {
	if t.slots != nil {
		t.slots.Release()
		t.values.Release()
		t.slots, t.values = nil, nil
	}
}
