package ifma

// directRows is how many rows are weighted one by one, outside the vectors.
const directRows = 32

// segmentsFor is the number of running sums that go side by side over m rows:
// enough to fill batches, few against m.
func segmentsFor(m int) int {
	s := directRows
	for s < 1024 && s*s < 16*m {
		s *= 2
	}
	return min(s, m)
}

// reduceRows is the number of rows that weighted takes for m rows.
func reduceRows(m int) int {
	n := 1
	for m > directRows {
		m = segmentsFor(m)
		n += 2 * m
	}
	return n
}

// reducer turns buckets into their weighted sum.
type reducer struct {
	*summer
	acc  accumulators
	free uint32 // first of reduceRows rows for running sums
}

// The accumulators of a reducer.
const (
	accSum   = iota // Σ X_i
	accWhole        // Σ i·X_i
	accTimes        // to multiply with
	accCount
)

// A level of running sums: their totals, and the length of their segments.
type level struct {
	tot    uint32
	segs   int
	length int
}

// weighted sets accWhole to Σ i·X_i and accSum to Σ X_i over rows first+i, i < m.
// Running sums over segments of length l, all segments side by side, give
// Σ i·X_i = Σ_s (Σ_k k·X_{sl+k}) + l·Σ_s s·(Σ_k X_{sl+k}); the last sum is again
// one of this kind, over the running sums' ends.
func (r *reducer) weighted(first uint32, m int) error {
	var levels []level
	free := r.free
	for m > directRows {
		segs := segmentsFor(m)
		v := level{free + uint32(segs), segs, (m + segs - 1) / segs}
		if err := r.running(first, m, free, v); err != nil {
			return err
		}
		levels = append(levels, v)
		first, m = free, segs
		free += 2 * uint32(segs)
	}
	r.totals(levels)
	r.acc.clear(accSum)
	r.acc.clear(accWhole)
	for i := m - 1; i >= 0; i-- {
		r.acc.add(accWhole, accSum)
		if row := first + uint32(i); !r.isInf(row) {
			r.acc.addRow(accSum, r.row(row))
		}
	}
	for i := len(levels) - 1; i >= 0; i-- {
		r.times(accWhole, levels[i].length)
		if row := levels[i].tot; !r.isInf(row) {
			r.acc.addRow(accWhole, r.row(row))
		}
	}
	return nil
}

// running sums rows first+i, i < m, from the ends of v's segments to their
// beginnings, in rows run+s; the totals of the running sums are in v.tot+s.
func (r *reducer) running(first uint32, m int, run uint32, v level) error {
	for s := range uint32(v.segs) {
		r.setInf(run + s)
		r.setInf(v.tot + s)
	}
	r.fromPoints = false
	for k := v.length - 1; k >= 0; k-- {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		for s := range v.segs {
			// The total takes the running sum before that takes the row: in
			// this order a batch that is cut between the two is right as well.
			r.accumulate(v.tot+uint32(s), run+uint32(s))
			if i := s*v.length + k; i < m {
				r.accumulate(run+uint32(s), first+uint32(i))
			}
		}
		r.flush()
	}
	return nil
}

// totals sums the totals of each level to its first row.
func (r *reducer) totals(levels []level) {
	for i, v := range levels {
		start := r.used
		for s := range uint32(v.segs) {
			if !r.isInf(v.tot + s) {
				r.list[r.used] = (v.tot + s) << 1
				r.used++
			}
		}
		r.segs[i] = segment{int32(start), int32(r.used - start), v.tot}
	}
	r.ns = len(levels)
	r.tree(false)
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

// times multiplies accumulator i by l > 0.
func (r *reducer) times(i, l int) {
	r.acc.set(accTimes, i)
	bit := 1
	for 2*bit <= l {
		bit *= 2
	}
	for bit >>= 1; bit > 0; bit >>= 1 {
		r.acc.double(i)
		if l&bit != 0 {
			r.acc.add(i, accTimes)
		}
	}
}
