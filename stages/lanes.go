package stages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// The workers of a stage are shared by the members of a set, and a queue is first
// in, first out. Were there as many workers as cards, jobs of a slow card could
// have them all and more in the queue, while a fast card had nothing to do. So
// each stage that works at a card has as many workers as jobs have places on all
// members together: none waits for a worker. What keeps the jobs of one member in
// order is that member's own: a lane for each stage.

// DefaultLanes is how many jobs of one member of a set are in a stage at once:
// one where the stage computes on the card; two where jobs wait for uploads, so
// that the card has work meanwhile.
func DefaultLanes() map[string]int {
	return map[string]int{
		NamePrestage: 1, NameNTT: 1, NameHMSM: 1, NameTailMSM: 1,
		NameBatchAdd: 2, NameBG2MSM: 2,
	}
}

// spareWorkers is how many jobs may be made elsewhere than in the set, or again
// before their turn, without taking a worker from those that have a place. With
// more than that, cards that go on wait for those on the CPU: it takes several cards
// that fail proof after proof and are not lost, since each proof that one fails is
// first made again on another.
const spareWorkers = 16

// SetWorkers is how many workers each stage named in DefaultLanes is to have where
// s proves, so that no job of one member waits for a job of another; Standard
// gives them that many.
func (s *Set) SetWorkers() int {
	if s.balance == nil {
		return 2*len(s.members) + spareWorkers
	}
	return s.balance.Places() + spareWorkers
}

// setOptions are the options of a stage where p proves on a set.
func (p *Prover) setOptions(name string, opts []pipeline.NodeOption) []pipeline.NodeOption {
	s, ok := p.Arith.(*Set)
	if !ok || len(s.members) < 2 || DefaultLanes()[name] == 0 {
		return opts
	}
	return append([]pipeline.NodeOption{pipeline.Workers(s.SetWorkers())}, opts...)
}

// lanes are those of a member, by stage.
type lanes map[string]chan struct{}

func newLanes(set map[string]int) lanes {
	l := lanes{}
	for name, n := range DefaultLanes() {
		if set[name] > 0 {
			n = set[name]
		}
		l[name] = make(chan struct{}, n)
	}
	return l
}

// begin waits until the job's member has a lane for the stage, and says that the
// job is worked on there. end is called with the stage's error, once. For the last
// stage, which needs no card, the job gives its place back.
func (p *Prover) begin(ctx context.Context, stage string) (end func(error), err error) {
	s, v, ok := p.seated(ctx)
	if !ok {
		return func(error) {}, nil
	}
	if stage == NameAssemble {
		if v.place != nil {
			v.place.Leave(true)
		}
		return func(err error) {
			var refused *VerifyError
			if v.place != nil && errors.As(err, &refused) {
				v.place.Fail()
			}
		}, nil
	}
	lane := s.lanes[v.at][stage]
	if lane == nil {
		return func(error) {}, nil
	}
	select {
	case lane <- struct{}{}:
	default:
		since := time.Now()
		select {
		case lane <- struct{}{}:
			pipeline.Waited(ctx, time.Since(since))
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: wait for %s: %w", stage, s.members[v.at].Name(), context.Cause(ctx))
		}
	}
	var worked func()
	if v.place != nil && stage != NameBG2MSM { // which may be made elsewhere: it says itself
		worked = v.place.Work()
	}
	return func(err error) {
		if worked != nil {
			worked()
		}
		if err != nil && v.place != nil && ctx.Err() == nil {
			v.place.Fail()
		}
		<-lane
	}, nil
}

// seated is the set that has the job of ctx, if one has it, and where.
func (p *Prover) seated(ctx context.Context) (*Set, seat, bool) {
	n := len(pipeline.PastOf(ctx))
	t, ok := pipeline.ItemValue(ctx, turnKey{p}, func(any) (any, func()) { return p.next(n), nil }).(turned)
	if !ok {
		return nil, seat{}, false
	}
	s, ok := t.ar.(*Set)
	if !ok {
		return nil, seat{}, false
	}
	v, ok := s.seat(ctx, p)
	return s, v, ok
}

// working says that ar works on the job in b_g2_msm, if it is the member that has
// it, until end is called.
func (p *Prover) working(ctx context.Context, ar groth16.Arithmetic) (end func()) {
	s, v, ok := p.seated(ctx)
	if !ok || v.place == nil || !contains([]groth16.Arithmetic{s.members[v.at]}, ar) {
		return func() {}
	}
	return v.place.Work()
}
