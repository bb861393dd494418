package ifma

// directRows is how many rows are weighted one by one, outside the vectors.
const directRows = 32

// reducer turns buckets into their weighted sum.
type reducer struct {
	*summer
	acc accumulators
}

// The accumulators of a reducer.
const (
	accSum   = iota // Σ X_i
	accWhole        // Σ i·X_i
	accCount
)

// weighted sets accWhole to Σ i·X_i and accSum to Σ X_i over rows first+i, i < m,
// and spends the rows.
//
// It adds neighbours until few rows are left: after l rounds, row j·2^l is the
// sum over the i that begin with j. What ended at an odd j in round l are the
// rows whose bit l is set, so their sum S_l has weight 2^l, and no later round
// writes to them. That is two additions a row, in large batches.
func (r *reducer) weighted(first uint32, m int) error {
	rounds := 0
	for ; m > directRows<<rounds; rounds++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.halve(first, m, 1<<rounds)
	}
	if err := r.bits(first, m, rounds); err != nil {
		return err
	}
	r.acc.clear(accSum)
	r.acc.clear(accWhole)
	for i := (m - 1) >> rounds; i >= 0; i-- {
		r.acc.add(accWhole, accSum)
		if row := first + uint32(i<<rounds); !r.isInf(row) {
			r.acc.addRow(accSum, r.row(row))
		}
	}
	for l := rounds - 1; l >= 0; l-- {
		r.acc.double(accWhole)
		if row := first + 1<<l; !r.isInf(row) {
			r.acc.addRow(accWhole, r.row(row))
		}
	}
	return nil
}

// halve adds to the rows at even multiples of step those at odd ones.
func (r *reducer) halve(first uint32, m, step int) {
	r.fromPoints = false
	for i := 0; i+step < m; i += 2 * step {
		r.accumulate(first+uint32(i), first+uint32(i+step))
	}
	r.flush()
}

// bits sums, for each of the rounds l, the rows at odd multiples of 2^l to the
// first of them, a piece at a time.
func (r *reducer) bits(first uint32, m, rounds int) error {
	for apart := 1; ; apart *= pieces { // of the odd multiples
		more := false
		for l := range rounds {
			one, stride := first+1<<l, apart<<(l+1)
			n := (m - 1<<l + stride - 1) / stride
			if n < 2 {
				continue
			}
			more = more || n > pieces
			if err := r.piecewise(one, stride, n); err != nil {
				return err
			}
		}
		r.tree(false)
		if !more {
			return nil
		}
	}
}

// piecewise collects n rows, stride apart, in pieces that are summed to the
// first row of each.
func (r *reducer) piecewise(first uint32, stride, n int) error {
	var names [pieces]uint32
	for i := 0; i < n; i += pieces {
		dst, k := first+uint32(i*stride), 0
		for j := i; j < min(i+pieces, n); j++ {
			if row := first + uint32(j*stride); !r.isInf(row) {
				names[k] = row << 1
				k++
			}
		}
		if err := r.collect(names[:k], dst, false); err != nil {
			return err
		}
	}
	return nil
}

// accumulate adds row b to row a.
func (r *reducer) accumulate(a, b uint32) {
	switch {
	case r.isInf(b):
	case r.isInf(a):
		copy(r.row(a), r.row(b))
	default:
		r.push(a<<1, b<<1, a)
	}
}
