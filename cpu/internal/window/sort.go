package window

// Sort is the counting sort of the terms of one round by bucket. An entry is
// index<<1 | sign. Bucket g·Buckets + m − 1 holds the terms whose digit in the
// round's window g has magnitude m.
//
// The work is cut by scalars into Parts, each of which counts and places its
// own range, so that nothing is shared while it runs.
type Sort struct {
	Plan    Plan
	Parts   int
	Scalars []Scalar
	Index   []uint32 // the point of scalar i; nil when that is i
	Counts  []uint32 // Parts × RoundBuckets
	Start   []uint32 // RoundBuckets + 1: where each bucket begins in Entries
	Entries []uint32
}

// part is the range of scalars of a part.
func (s *Sort) part(i int) (from, to int) {
	n := len(s.Scalars)
	return i * n / s.Parts, (i + 1) * n / s.Parts
}

// Count counts part i's terms in the windows [low, low+group).
func (s *Sort) Count(i, low, group int) {
	nb := s.Plan.RoundBuckets()
	counts := s.Counts[i*nb : (i+1)*nb]
	clear(counts)
	from, to := s.part(i)
	b := s.Plan.Buckets()
	for g := range group {
		d := s.Plan.digit(low + g)
		c := counts[g*b : (g+1)*b]
		for j := from; j < to; j++ {
			if m, _ := d.of(&s.Scalars[j]); m != 0 {
				c[m-1]++
			}
		}
	}
}

// Prefix turns the counts of the first group windows into places and returns
// how many terms there are.
func (s *Sort) Prefix(group int) int {
	nb := s.Plan.RoundBuckets()
	used := group * s.Plan.Buckets()
	at := uint32(0)
	for k := range used {
		s.Start[k] = at
		for i := range s.Parts {
			c := &s.Counts[i*nb+k]
			n := *c
			*c = at
			at += n
		}
	}
	s.Start[used] = at
	return int(at)
}

// Place writes part i's entries to their places.
func (s *Sort) Place(i, low, group int) {
	nb := s.Plan.RoundBuckets()
	counts := s.Counts[i*nb : (i+1)*nb]
	from, to := s.part(i)
	b := s.Plan.Buckets()
	for g := range group {
		d := s.Plan.digit(low + g)
		c := counts[g*b : (g+1)*b]
		if s.Index == nil {
			for j := from; j < to; j++ {
				if m, neg := d.of(&s.Scalars[j]); m != 0 {
					s.Entries[c[m-1]] = uint32(j)<<1 | uint32(neg)
					c[m-1]++
				}
			}
			continue
		}
		for j := from; j < to; j++ {
			if m, neg := d.of(&s.Scalars[j]); m != 0 {
				s.Entries[c[m-1]] = s.Index[j]<<1 | uint32(neg)
				c[m-1]++
			}
		}
	}
}

// Bucket is the bucket that entry e belongs to, when the first used windows
// hold any. Empty buckets are never returned.
func (s *Sort) Bucket(e uint32, used int) int {
	// the last k with Start[k] ≤ e
	lo, hi := 0, used
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); s.Start[mid] <= e {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
