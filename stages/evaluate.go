package stages

import (
	"context"

	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// evaluation is what an attempt at a job has of a processor that evaluates the
// circuit's matrices where it keeps vectors: then synthesize makes the witness
// alone, and prestage has the rest made of it.
type evaluation struct {
	ev groth16.Evaluator
	s  groth16.System
}

type evaluationKey struct{ p *Prover }

// evaluation decides, once for an attempt at the job of ctx, whether its
// processor evaluates; nil if not. A job that is made again has the host's
// evaluations: a wrong witness is then told with its constraint, and a processor
// that lacked the room, or computed wrongly, is not asked for the same again.
func (p *Prover) evaluation(ctx context.Context) *evaluation {
	e, _ := p.evaluates(ctx)
	return e
}

// evaluates is evaluation; it is not known outside of a job.
func (p *Prover) evaluates(ctx context.Context) (e *evaluation, known bool) {
	if p.HostEvaluation || len(pipeline.PastOf(ctx)) > 0 {
		return nil, true
	}
	ar, _ := p.turn(ctx)
	ev, _ := ar.(groth16.Evaluator)
	e, known = pipeline.ItemValue(ctx, evaluationKey{p}, func(any) (any, func()) {
		s, ok := p.system()
		if ev == nil || !ok {
			return (*evaluation)(nil), nil
		}
		end, ok := ev.HoldSystem(p.load(true), s)
		if !ok {
			return (*evaluation)(nil), nil
		}
		return &evaluation{ev, s}, end
	}).(*evaluation)
	return e, known
}

// system is the matrices that a processor has to have: C only where it is
// wanted, or checked.
func (p *Prover) system() (groth16.System, bool) {
	s, ok := groth16.SystemOf(p.Circuit)
	if ok && p.Key.Folded && p.NoCheck {
		s.C.Rows, s.C.Terms, s.C.Coeffs = nil, nil, nil
	}
	return s, ok
}

// load is how large a job is, with a, b and c evaluated by the processor or not.
func (p *Prover) load(evaluates bool) groth16.Load {
	l := p.Key.Load()
	l.Evaluates = evaluates
	return l
}

// mayEvaluate reports whether some job may be evaluated by ar, or a member of it.
func (p *Prover) mayEvaluate(ar groth16.Arithmetic) bool {
	if s, ok := ar.(*Set); ok {
		for _, m := range s.members {
			if p.mayEvaluate(m) {
				return true
			}
		}
		return false
	}
	if _, ok := ar.(groth16.Evaluator); !ok || p.HostEvaluation {
		return false
	}
	_, ok := p.system()
	return ok
}
