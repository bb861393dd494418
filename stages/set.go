package stages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Set is several processors of one kind, the cards of a machine, as one
// Arithmetic. Each attempt at a job is made on one of them: it is chosen when
// the job enters the pipeline, and given back when the job has left. Called
// outside of a pipeline's stages it is its first member.
type Set struct {
	groth16.Arithmetic // the first member
	members            []groth16.Arithmetic
	choose             Chooser
}

// Chooser chooses one of the processors of a set for a job: its index, and what
// is called once when the job has left it. failed says on which of them the job
// has failed before, and which are lost to the process. It is called by any
// goroutine and does not wait.
type Chooser func(failed []bool) (i int, done func())

// Spread makes a set. A nil choose takes the one with the fewest jobs, in turn
// among equals, and not one on which the job has failed if there is another.
func Spread(choose Chooser, members ...groth16.Arithmetic) (*Set, error) {
	if len(members) == 0 {
		return nil, errors.New("spread jobs over processors: there is none")
	}
	for _, m := range members {
		if m.Curve() != members[0].Curve() {
			return nil, fmt.Errorf("spread jobs over processors: %s is on %v, %s on %v",
				members[0].Name(), members[0].Curve(), m.Name(), m.Curve())
		}
	}
	if choose == nil {
		choose = fewest(len(members))
	}
	return &Set{members[0], members, choose}, nil
}

// Name is the names of the members: "cuda:0+cuda:1".
func (s *Set) Name() string {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.Name()
	}
	return strings.Join(names, "+")
}

// Members are the processors.
func (s *Set) Members() []groth16.Arithmetic { return append([]groth16.Arithmetic(nil), s.members...) }

// QuotientScratch is the most of any member.
func (s *Set) QuotientScratch(n int, basis curve.Basis, folded bool) (most alloc.Amount) {
	for _, m := range s.members {
		most = most.Max(m.QuotientScratch(n, basis, folded))
	}
	return most
}

// MSMScratch is the most of any member.
func (s *Set) MSMScratch(g curve.Group, n int) (most alloc.Amount) {
	for _, m := range s.members {
		most = most.Max(m.MSMScratch(g, n))
	}
	return most
}

// seat is where a job is, and where it has failed.
type seat struct {
	at     int
	failed []bool
}

// memberOf is ar, or that one of a set which has the job that ctx belongs to;
// the set itself where there is no job.
func memberOf(ctx context.Context, ar groth16.Arithmetic) groth16.Arithmetic {
	s, ok := ar.(*Set)
	if !ok {
		return ar
	}
	v, ok := pipeline.ItemValue(ctx, s, func(before any) (any, func()) {
		failed := make([]bool, len(s.members))
		if b, ok := before.(seat); ok {
			copy(failed, b.failed)
			failed[b.at] = true
		}
		i, done := s.pick(failed)
		return seat{i, failed}, done
	}).(seat)
	if !ok {
		return ar
	}
	return memberOf(ctx, s.members[v.at])
}

// fewest is the Chooser of Spread.
func fewest(n int) Chooser {
	var mu sync.Mutex
	jobs := make([]int, n)
	next := 0
	return func(failed []bool) (int, func()) {
		mu.Lock()
		defer mu.Unlock()
		best := -1
		for k := range n {
			i := (next + k) % n
			switch {
			case best < 0, failed[best] && !failed[i], failed[best] == failed[i] && jobs[i] < jobs[best]:
				best = i
			}
		}
		next = (best + 1) % n
		jobs[best]++
		return best, func() {
			mu.Lock()
			defer mu.Unlock()
			jobs[best]--
		}
	}
}
