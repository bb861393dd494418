package report

import "sort"

// steps are quantities that hold from one moment to the next: Rows[k][i] is what
// the k-th quantity was from X[i] on. X rises; End is where the last step ends.
type steps struct {
	X    []float64
	End  float64
	Rows [][]float64
}

func (s *steps) total(i int) (sum float64) {
	for _, r := range s.Rows {
		sum += r[i]
	}
	return sum
}

// thin is s in at most bins steps of one width. A step is the moment within it
// at which the sum was highest: what is shown was there at one moment, and no
// peak is lost. With few moments it is s itself.
func (s *steps) thin(bins int) *steps {
	if len(s.X) <= bins || bins < 1 || s.End <= 0 {
		return s
	}
	out := &steps{End: s.End, Rows: make([][]float64, len(s.Rows))}
	for b := range bins {
		from, to := s.End*float64(b)/float64(bins), s.End*float64(b+1)/float64(bins)
		i := sort.SearchFloat64s(s.X, from) // the first that begins in the bin
		best := i
		if i > 0 && (i == len(s.X) || s.X[i] > from) {
			best = i - 1 // what holds when the bin begins
		}
		for ; i < len(s.X) && s.X[i] < to; i++ {
			if s.total(i) > s.total(best) {
				best = i
			}
		}
		if best == len(s.X) {
			break
		}
		out.X = append(out.X, from)
		for k, r := range s.Rows {
			out.Rows[k] = append(out.Rows[k], r[best])
		}
	}
	return out
}

// peak is the highest sum.
func (s *steps) peak() (top float64) {
	for i := range s.X {
		top = max(top, s.total(i))
	}
	return top
}

// used drops the quantities that are never above zero; it gives the indices of
// those that stay.
func (s *steps) used() (kept []int) {
	var rows [][]float64
	for k, r := range s.Rows {
		for _, v := range r {
			if v > 0 {
				kept, rows = append(kept, k), append(rows, r)
				break
			}
		}
	}
	s.Rows = rows
	return kept
}
