package stages

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// DefaultAgain is how often at most a job is made again from its input where
// that can help. See Prover.Again.
const DefaultAgain = 2

// turn is the processor of the job that ctx belongs to, and whether it is Arith
// or a member of it. This is the one place where stages ask for one. The
// attempts at a job are made on Arith and Elsewhere in turn; a set of several
// comes twice, for its second member may do what the first could not. Those that
// are lost are passed over.
func (p *Prover) turn(ctx context.Context) (ar groth16.Arithmetic, first bool) {
	n := len(pipeline.PastOf(ctx))
	v, ok := pipeline.ItemValue(ctx, turnKey{p}, func(any) (any, func()) { return p.next(n), nil }).(turned)
	if !ok {
		v = p.next(n)
	}
	return p.member(ctx, v.ar), v.first
}

// staging is the processor as the stages call it.
func (p *Prover) staging(ctx context.Context) groth16.Staging {
	ar, _ := p.turn(ctx)
	return groth16.StagingOf(ar)
}

// needs is what the job takes of its processor.
func (p *Prover) needs(ctx context.Context) groth16.Needs {
	ar, _ := p.turn(ctx)
	e, known := p.evaluates(ctx)
	return needsOf(ar, p.load(e != nil || !known && p.mayEvaluate(ar)))
}

// needsOf is what a job takes of ar: of a set, the most of any member, for
// where nothing says which job it is.
func needsOf(ar groth16.Arithmetic, l groth16.Load) groth16.Needs {
	s, ok := ar.(*Set)
	if !ok {
		return groth16.StagingOf(ar).Needs(l)
	}
	var most groth16.Needs
	none, all := true, lost(s) != nil
	for _, m := range s.members {
		if !all && lost(m) != nil {
			continue
		}
		n := needsOf(m, l)
		if none {
			most.CopiesABC, most.CopiesW, none = n.CopiesABC, n.CopiesW, false
		}
		most.Prestage, most.NTT, most.HMSM = most.Prestage.Max(n.Prestage), most.NTT.Max(n.NTT), most.HMSM.Max(n.HMSM)
		most.BatchAdd, most.TailMSM, most.BG2MSM = most.BatchAdd.Max(n.BatchAdd), most.TailMSM.Max(n.TailMSM), most.BG2MSM.Max(n.BG2MSM)
		most.A, most.BC, most.Wires = most.A.Max(n.A), most.BC.Max(n.BC), most.Wires.Max(n.Wires)
		most.CopiesABC, most.CopiesW = most.CopiesABC && n.CopiesABC, most.CopiesW && n.CopiesW
	}
	return most
}

// forB2 is the processor that makes the sum of b_g2_msm for the job, or the two
// of which one will. A job that is made elsewhere is made there whole.
func (p *Prover) forB2(ctx context.Context) (one groth16.Arithmetic, two *either) {
	ar, first := p.turn(ctx)
	if p.B2 == nil || !first {
		return ar, nil
	}
	b2 := p.b2(ctx)
	if b2 == nil {
		return ar, nil
	}
	if e, ok := b2.(*either); ok {
		return nil, e
	}
	return memberOf(ctx, b2), nil
}

// Restarts is how often at most a job of this prover is made again: what a
// source of a graph that is not made by Batch gives to pipeline.Restart.
func (p *Prover) Restarts() int {
	switch {
	case p.Again != 0:
		return max(p.Again, 0)
	case p.canFail():
		return DefaultAgain
	}
	return 0
}

// canFail reports whether a result may come out right if it is made again:
// elsewhere, or on a processor with a memory of its own, which can be lost. One
// that works on the host's slices would compute the same.
func (p *Prover) canFail() bool {
	return len(p.Elsewhere) > 0 || ownMemory(p.Arith) || ownMemory(p.B2)
}

func ownMemory(ar groth16.Arithmetic) bool {
	switch ar := ar.(type) {
	case nil:
		return false
	case *Set:
		return ownMemory(ar.members[0])
	case *either:
		return ownMemory(ar.device)
	case groth16.Staging:
		return true
	}
	return false
}

// keeper is a processor that can keep points of a key in memory of its own.
type keeper interface {
	Keep(ctx context.Context, points ...curve.Points) (drop func(), err error)
}

// Keep has every processor of p that can keep points of p's key where it reads
// them do so, as far as there is room, until the key is closed: those of the
// queries that it may have to sum, and before them the matrices of p's circuit,
// where it evaluates those. It is called once, before the key is used; the circuit
// is in use until the key is closed. A processor that is lost keeps nothing, and
// that is no error.
func Keep(ctx context.Context, p *Prover) error {
	k := p.Key
	stay := everyone(append([]groth16.Arithmetic{p.Arith}, p.Elsewhere...)...)
	b2 := stay
	if p.B2 != nil {
		b2 = everyone(append([]groth16.Arithmetic{p.B2}, p.Elsewhere...)...)
	}
	var groups []*keeping
	join := func(g *keeping, ar groth16.Arithmetic) {
		i := slices.IndexFunc(groups, func(x *keeping) bool { return x.joins(g, ar) })
		if i < 0 {
			i, groups = len(groups), append(groups, g)
		}
		groups[i].at = append(groups[i].at, ar)
	}
	for _, ar := range p.everyone() { // what is kept last is given up first
		if _, ok := ar.(groth16.Evaluator); ok && lost(ar) == nil && contains(stay, ar) && p.mayEvaluate(ar) {
			s, _ := p.system()
			join(&keeping{system: &s}, ar)
		}
	}
	for _, ar := range p.everyone() {
		if _, ok := ar.(keeper); !ok || lost(ar) != nil {
			continue
		}
		g := &keeping{}
		if contains(stay, ar) {
			g.points = append(g.points, k.H, k.L.Points, k.A.Points, k.B1.Points)
		}
		if contains(b2, ar) {
			g.points = append(g.points, k.B2.Points)
		}
		join(g, ar)
	}
	var errs []error
	for _, g := range groups {
		drops, es := g.keep(ctx)
		for i, at := range g.at {
			errs = append(errs, p.kept(at, drops[i], es[i]))
		}
	}
	return errors.Join(errs...)
}

// kept ties the end of what ar keeps to the key's. An error of a processor that is
// lost is none.
func (p *Prover) kept(ar groth16.Arithmetic, drop func(), err error) error {
	if drop != nil {
		p.Key.OnClose(func() error { drop(); return nil })
	}
	if lost(ar) != nil {
		return nil //nolint:nilerr // the report says that it is lost
	}
	return err
}

// jointly is a keeper that reads points once for itself and others of its kind. What
// it gives is in their order, its own first.
type jointly interface {
	KeepWith(ctx context.Context, others []any, points ...curve.Points) (drops []func(), errs []error)
}

// systemJointly is the same of an evaluator, and of matrices.
type systemJointly interface {
	KeepSystemWith(ctx context.Context, others []any, s groth16.System) (drops []func(), errs []error)
}

// keeping are processors that keep the same: a system's matrices, or points.
type keeping struct {
	system *groth16.System
	points []curve.Points
	at     []groth16.Arithmetic
}

// joins reports whether ar, which keeps what x does, can be kept for with those of g.
func (g *keeping) joins(x *keeping, ar groth16.Arithmetic) bool {
	var together bool
	if g.system != nil {
		_, together = ar.(systemJointly)
	} else {
		_, together = ar.(jointly)
	}
	return together && (g.system == nil) == (x.system == nil) && len(g.points) == len(x.points) && reflect.TypeOf(ar) == reflect.TypeOf(g.at[0])
}

func (g *keeping) keep(ctx context.Context) (drops []func(), errs []error) {
	var others []any
	for _, ar := range g.at[1:] {
		others = append(others, ar)
	}
	var drop func()
	var err error
	switch ar := g.at[0]; {
	case g.system != nil && len(others) > 0:
		return ar.(systemJointly).KeepSystemWith(ctx, others, *g.system) // joins has looked
	case g.system != nil:
		drop, err = ar.(groth16.Evaluator).KeepSystem(ctx, *g.system)
	case len(others) > 0:
		return ar.(jointly).KeepWith(ctx, others, g.points...)
	default:
		drop, err = ar.(keeper).Keep(ctx, g.points...)
	}
	return []func(){drop}, []error{err}
}

// everyone is every processor that may do anything for p, each once.
func (p *Prover) everyone() []groth16.Arithmetic {
	return everyone(append([]groth16.Arithmetic{p.Arith, p.B2}, p.Elsewhere...)...)
}

// everyone is the processors behind some arithmetics, each once.
func everyone(ars ...groth16.Arithmetic) (out []groth16.Arithmetic) {
	for _, ar := range ars {
		switch ar := ar.(type) {
		case nil:
		case *Set:
			out = append(out, everyone(ar.members...)...)
		case *either:
			out = append(out, everyone(ar.device, ar.host)...)
		default:
			out = append(out, ar)
		}
	}
	var once []groth16.Arithmetic
	for _, ar := range out {
		if !contains(once, ar) {
			once = append(once, ar)
		}
	}
	return once
}

// contains reports whether ar is one of list. What cannot be compared is not.
func contains(list []groth16.Arithmetic, ar groth16.Arithmetic) bool {
	if !reflect.ValueOf(ar).Comparable() {
		return false
	}
	for _, x := range list {
		if x == ar {
			return true
		}
	}
	return false
}
