package ifma

// directRows is how many rows are weighted one by one, outside the vectors.
const directRows = 32

// segmentsFor is the number of running sums that go side by side over m rows:
// enough to fill batches, few against m.
func segmentsFor(m int) int {
	s := directRows
	for s < 512 && s*s < 4*m {
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
	free uint32 // rows for running sums
}

// The accumulators of a reducer: two a level, and one to multiply with.
const (
	accTimes = 0
	accFirst = 1
	accCount = accFirst + 2*6
)

// weighted sets accumulator w to Σ i·X_i and w+1 to Σ X_i over rows first+i,
// i < m. Running sums over segments of length l, all segments side by side:
// Σ i·X_i = Σ_s (Σ_k k·X_{sl+k}) + l·Σ_s s·(Σ_k X_{sl+k}); the last sum is
// again one of this kind.
func (r *reducer) weighted(first uint32, m, w int) error {
	sum := w + 1
	r.acc.clear(w)
	r.acc.clear(sum)
	if m <= directRows {
		for i := m - 1; i >= 0; i-- {
			r.acc.add(w, sum)
			if !r.isInf(first + uint32(i)) {
				r.acc.addRow(sum, r.row(first+uint32(i)))
			}
		}
		return nil
	}
	segs := segmentsFor(m)
	l := (m + segs - 1) / segs
	run, tot := r.free, r.free+uint32(segs)
	r.free += 2 * uint32(segs)
	defer func() { r.free -= 2 * uint32(segs) }()
	for s := range uint32(segs) {
		r.setInf(run + s)
		r.setInf(tot + s)
	}
	r.fromPoints = false
	for k := l - 1; k >= 0; k-- {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		for s := range segs {
			// The total takes the running sum before that takes the row: in
			// this order a batch that is cut between the two is right as well.
			r.accumulate(tot+uint32(s), run+uint32(s))
			if i := s*l + k; i < m {
				r.accumulate(run+uint32(s), first+uint32(i))
			}
		}
		r.flush()
	}
	for i := range segs {
		if row := tot + uint32(i); !r.isInf(row) {
			r.list[r.used] = row << 1
			r.used++
		}
	}
	r.segs[0], r.ns = segment{0, int32(r.used), tot}, 1
	r.tree(false)
	if err := r.weighted(run, segs, w+2); err != nil {
		return err
	}
	r.acc.set(sum, w+3)
	r.times(w+2, l)
	r.acc.set(w, w+2)
	if !r.isInf(tot) {
		r.acc.addRow(w, r.row(tot))
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
