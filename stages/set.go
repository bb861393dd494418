package stages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Set is several processors of one kind, the cards of a machine, as one
// Arithmetic. Each attempt at a job is made on one of them: it is chosen when
// the job enters the pipeline, which waits until one has a place for it, and
// given back when the last of its sums is made. Called outside of a pipeline's
// stages it is its first member.
type Set struct {
	groth16.Arithmetic // the first member
	members            []groth16.Arithmetic
	choose             Chooser // nil: balance
	balance            *gpu.Balance
	lanes              []lanes // of each member
}

// Chooser chooses one of the processors of a set for a job: its index, and what
// is called once when the job has left it. failed says on which of them the job
// has failed before, and which are lost to the process. It is called by any
// goroutine and does not wait.
type Chooser func(failed []bool) (i int, done func())

// SpreadOptions say how jobs are spread. The zero value will do.
type SpreadOptions struct {
	Choose  Chooser            // chooses the member; nil is a gpu.Balance
	Balance gpu.BalanceOptions // of that
	// Lanes are how many jobs a member has at once in a stage, by the stage's
	// name, in place of DefaultLanes.
	Lanes map[string]int
}

// Spread makes a set. A nil choose is a gpu.Balance: a job goes to the member
// that will be done with it first, and not to one on which it has failed if there
// is another.
func Spread(choose Chooser, members ...groth16.Arithmetic) (*Set, error) {
	return SpreadOptions{Choose: choose}.Spread(members...)
}

// Spread makes a set.
func (o SpreadOptions) Spread(members ...groth16.Arithmetic) (*Set, error) {
	if len(members) == 0 {
		return nil, errors.New("spread jobs over processors: there is none")
	}
	s := &Set{Arithmetic: members[0], members: members, choose: o.Choose}
	var cards []gpu.Member
	for _, m := range members {
		if m.Curve() != members[0].Curve() {
			return nil, fmt.Errorf("spread jobs over processors: %s is on %v, %s on %v",
				members[0].Name(), members[0].Curve(), m.Name(), m.Curve())
		}
		c := gpu.Member{Name: m.Name(), Lost: func() error { return lost(m) }}
		if d, ok := m.(interface{ Device() gpu.Device }); ok {
			c.Room = func() (int64, error) { return gpu.Available(d.Device()) }
			c.Size = float64(d.Device().Info().SMs)
		}
		cards, s.lanes = append(cards, c), append(s.lanes, newLanes(o.Lanes))
	}
	if o.Choose == nil {
		s.balance = gpu.NewBalance(o.Balance, cards...)
	}
	return s, nil
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

// Balance is what places jobs; nil where a Chooser does.
func (s *Set) Balance() *gpu.Balance { return s.balance }

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
	place  *gpu.Place // nil where a Chooser chose
}

// memberOf is ar, or that one of a set which has the job that ctx belongs to;
// the set itself where there is no job.
func memberOf(ctx context.Context, ar groth16.Arithmetic) groth16.Arithmetic {
	s, ok := ar.(*Set)
	if !ok {
		return ar
	}
	v, ok := s.seat(ctx, nil)
	if !ok {
		return ar
	}
	return memberOf(ctx, s.members[v.at])
}

// member is memberOf, where the job may have no member yet.
func (p *Prover) member(ctx context.Context, ar groth16.Arithmetic) groth16.Arithmetic {
	if s, ok := ar.(*Set); ok {
		s.seat(ctx, p)
	}
	return memberOf(ctx, ar)
}

// seat is where the job is that ctx belongs to. If it has none yet it waits for
// one; p, if it is known, says what the job needs.
func (s *Set) seat(ctx context.Context, p *Prover) (seat, bool) {
	v, ok := pipeline.ItemValue(ctx, s, func(before any) (any, func()) {
		failed := make([]bool, len(s.members))
		if b, ok := before.(seat); ok {
			copy(failed, b.failed)
			failed[b.at] = true
		}
		if s.balance == nil {
			i, done := s.pick(failed)
			return seat{at: i, failed: failed}, done
		}
		ask := s.ask(ctx, p, failed)
		if asksNeed(ctx) {
			return seat{at: s.balance.Peek(ask), failed: failed}, nil
		}
		place, err := s.balance.Take(ctx, ask)
		if err != nil { // the job ends
			return seat{at: s.balance.Peek(ask), failed: failed}, nil
		}
		return seat{place.Member(), failed, place}, func() { place.Leave(false) }
	}).(seat)
	return v, ok
}

// ask is what a job asks the balance.
func (s *Set) ask(ctx context.Context, p *Prover, failed []bool) gpu.Ask {
	// A job that is made again does not wait: values may wait for it that have
	// places, where a stage is ordered.
	a := gpu.Ask{Failed: failed, Now: len(pipeline.PastOf(ctx)) > 0}
	if p == nil {
		return a
	}
	need := make([]alloc.Amount, len(s.members))
	for i, m := range s.members {
		need[i] = most(needsOf(m, p.Key.Load()))
	}
	a.Need = func(i int) (n int64) {
		for sp, b := range need[i] {
			if alloc.Space(sp).DeviceIndex() >= 0 {
				n += b
			}
		}
		return n
	}
	if budget := pipeline.BudgetOf(ctx); budget != nil {
		// A job that waits for room in a card's budget holds up those behind it:
		// it is not placed there before there is room.
		a.Fits = func(i int) bool {
			b := budget.Stats()
			for sp, n := range need[i] {
				if alloc.Space(sp).DeviceIndex() >= 0 && n > 0 && b.Limit[sp] > 0 && b.Charged[sp] > 0 && b.Charged[sp]+n > b.Limit[sp] {
					return false
				}
			}
			return true
		}
	}
	return a
}

// most is about what a job has of its processor at one moment, at most.
func most(n groth16.Needs) (a alloc.Amount) {
	chain := n.Prestage.Max(n.NTT).Max(n.HMSM)
	sums := n.BatchAdd.Max(n.TailMSM)
	for i := range a {
		a[i] = n.A[i] + n.BC[i] + n.Wires[i] + chain[i] + sums[i] + n.BG2MSM[i]
	}
	return a
}

// needKey marks the context of a graph that is only asked what a job needs.
type needKey struct{}

func asksNeed(ctx context.Context) bool { return ctx.Value(needKey{}) != nil }
