package stages

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// A device can be lost to the process: after some errors its driver makes no
// other context (gpu.ErrLost). What was on it is made again from its input on
// another processor, as after any failure of a device; what comes later is not
// sent there any more, nor is memory of it reserved.

// loser is a processor that can be lost to the process. Once Lost is not nil it
// stays so.
type loser interface{ Lost() error }

// lost is why nothing can be made on ar any more; nil if something can.
func lost(ar groth16.Arithmetic) error {
	switch ar := ar.(type) {
	case *Set:
		var all []error
		for _, m := range ar.members {
			err := lost(m)
			if err == nil {
				return nil
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	case loser:
		return ar.Lost()
	}
	return nil
}

// Lost is why processors of p are lost to the process, one error for each that
// is: with gpu.ErrLost in its chain for a device. Jobs are not sent to those.
func Lost(p *Prover) (errs []error) {
	for _, ar := range p.everyone() {
		if err := lost(ar); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// turned is the processor of an attempt at a job. It stays what it was when the
// job was admitted, whatever is lost meanwhile: the job's reservation is for it.
type turned struct {
	ar    groth16.Arithmetic
	first bool // Arith
}

type turnKey struct{ p *Prover }

// places are the processors of the attempts at a job, in order; the first own
// of them are Arith.
func (p *Prover) places() (all []groth16.Arithmetic, own int) {
	for i, ar := range append([]groth16.Arithmetic{p.Arith}, p.Elsewhere...) {
		all = append(all, ar)
		if s, ok := ar.(*Set); ok && len(s.members) > 1 {
			all = append(all, ar)
		}
		if i == 0 {
			own = len(all)
		}
	}
	return all, own
}

// next is where attempt n (0 is the first) at a job that begins now is made: in
// its turn, or in the next one after it whose processor is not lost.
func (p *Prover) next(n int) turned {
	all, own := p.places()
	n %= len(all)
	for k := range all {
		if i := (n + k) % len(all); lost(all[i]) == nil {
			return turned{all[i], i < own}
		}
	}
	return turned{all[n], n < own}
}

// nowhere is why no processor of p can make a job any more; nil if one can.
func (p *Prover) nowhere() error {
	var all []error
	for _, ar := range append([]groth16.Arithmetic{p.Arith}, p.Elsewhere...) {
		err := lost(ar)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// displaced is the failure of a job whose processor is lost: it is made again
// from its input.
type displaced struct{ error }

func (displaced) Temporary() bool { return false }
func (displaced) FromStart() bool { return true }
func (d displaced) Unwrap() error { return d.error }

// stranded is the failure of a job that no processor is left for.
type stranded struct{ error }

// Error says so.
func (s stranded) Error() string {
	return s.error.Error() + "; there is no other processor to make the proof on"
}

func (stranded) Temporary() bool { return false }
func (stranded) FromStart() bool { return false }
func (s stranded) Unwrap() error { return s.error }

// stands reports, before anything is made of a job, that it was placed on a
// processor which is lost by now.
func (p *Prover) stands(ctx context.Context) error {
	ar, _ := p.turn(ctx)
	err := lost(ar)
	if one, two := p.forB2(ctx); err == nil && two == nil {
		err = lost(one)
	}
	if err == nil {
		return nil
	}
	return displaced{err}
}

// verdict is what a stage's error means for the job: one that could be made
// again, but has no processor left, is told so instead.
func (p *Prover) verdict(err error) error {
	var passing interface{ Temporary() bool }
	var again interface{ FromStart() bool }
	passes := errors.As(err, &passing) && passing.Temporary()
	if !passes && (!errors.As(err, &again) || !again.FromStart()) {
		return err
	}
	why := p.nowhere()
	switch {
	case why == nil:
		return err
	case !tells(err, why):
		err = fmt.Errorf("%w; %w", err, why)
	}
	return stranded{err}
}

// tells reports whether err tells of all that why is joined of.
func tells(err, why error) bool {
	j, ok := why.(interface{ Unwrap() []error }) //nolint:errorlint // what errors.Join made
	if !ok {
		return errors.Is(err, why)
	}
	for _, e := range j.Unwrap() {
		if !tells(err, e) {
			return false
		}
	}
	return true
}

// pick chooses the member for a job that has failed on some: one that is not
// lost, if there is one.
func (s *Set) pick(failed []bool) (int, func()) {
	gone, live, fresh := make([]bool, len(failed)), -1, false
	for i, m := range s.members {
		if gone[i] = lost(m) != nil; !gone[i] {
			if live < 0 {
				live = i
			}
			fresh = fresh || !failed[i]
		}
	}
	marked := make([]bool, len(failed))
	for i := range marked {
		// Where the job has failed on all that are left, each of them will do.
		marked[i] = gone[i] || failed[i] && fresh
	}
	if live < 0 {
		copy(marked, failed)
	}
	i, done := s.choose(marked)
	if gone[i] && live >= 0 { // by a Chooser that does not look
		if done != nil {
			done()
		}
		return live, nil
	}
	return i, done
}

// b2Key is under what an attempt keeps whether Prover.B2 has its sum.
type b2Key struct{ p *Prover }

// b2 is Prover.B2 for the job, or nil where that was lost when it was placed.
func (p *Prover) b2(ctx context.Context) groth16.Arithmetic {
	now := p.B2
	if lost(now) != nil {
		now = nil
	}
	v, ok := pipeline.ItemValue(ctx, b2Key{p}, func(any) (any, func()) { return turned{ar: now}, nil }).(turned)
	if !ok {
		return now
	}
	return v.ar
}
