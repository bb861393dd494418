package cuda

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
)

// msmPlans are the plans of sums by size, since making one takes a while.
type msmPlans struct {
	mu sync.Mutex
	m  map[planKey]planSize
}

type planKey struct {
	g     curve.Group
	n     int
	limit int64
}

// planSize is the scratch of the best plan, and of one that it can be cut to.
type planSize struct{ most, least int64 }

// sizeOfPlan is what an MSM of n terms takes within limit: the scratch of the
// plan chosen, and of the smallest that is worth trying.
func (e *Engine) sizeOfPlan(g curve.Group, n int, limit int64) planSize {
	key := planKey{g, n, limit}
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	if s, ok := e.plans.m[key]; ok {
		return s
	}
	p, err := e.plan(g, n, limit)
	for err != nil && limit < 1<<50 { // a small card: a share of it is too little
		limit *= 2
		p, err = e.plan(g, n, limit)
	}
	s := planSize{limit, limit}
	if err == nil {
		s.most, s.least = p.Scratch, p.Scratch
		for smaller := p.Scratch / 2; ; smaller = p.Scratch / 2 {
			if p, err = e.plan(g, n, smaller); err != nil {
				break
			}
			s.least = p.Scratch
		}
	}
	if e.plans.m == nil {
		e.plans.m = map[planKey]planSize{}
	}
	e.plans.m[key] = s
	return s
}

// plan is the plan of an MSM of n terms in at most limit bytes.
func (e *Engine) plan(g curve.Group, n int, limit int64) (kernels.Plan, error) {
	return kernels.PlanMSM(e.card.Info().SMs, e.id, g, n, limit)
}

// sumBytes bounds the device memory of an MSM of n terms in g.
func (e *Engine) sumBytes(g curve.Group, n int) int64 {
	if n == 0 {
		return 0
	}
	return e.sizeOfPlan(g, n, e.card.share).most + e.mostLayout(g, n)
}

// onesBytes bounds the device memory of a plain sum of n points.
func (e *Engine) onesBytes(n int) int64 {
	if n == 0 {
		return 0
	}
	return aligned(kernels.PlanSum(e.card.Info().SMs, e.id, curve.InG1, n).Scratch) + e.mostLayout(curve.InG1, n)
}

// point is a sum in either group.
type point struct {
	g1 curve.G1
	g2 curve.G2
}

// msm is Σ scalar·point over x, or over those of x whose scalar is neither 0
// nor 1.
func (e *Engine) msm(ctx context.Context, sc *alloc.Scope, name string, stat method, g curve.Group, x *terms, others bool) (out point, err error) {
	n := x.n()
	if n == 0 {
		return out, context.Cause(ctx)
	}
	size := e.sizeOfPlan(g, n, e.card.share)
	lists := e.keys.wiresMissing(x.q, x.kept)
	if x.dev == nil || x.kept == nil {
		lists = 0 // they come in pieces
	}
	o := &op{name: name, stat: stat}
	o.most = size.most + e.layoutOf(x, g, others, 1<<62).bytes + lists
	o.least = size.least + e.layoutOf(x, g, others, 0).bytes + lists
	o.body = func(t *task) error {
		m, err := e.set.MSM(g)
		if err != nil {
			return err
		}
		wires, err := e.set.Wires()
		if err != nil {
			return err
		}
		l := e.layoutOf(x, g, others, t.room-size.least)
		p, err := e.plan(g, n, t.room-l.bytes-lists)
		if err != nil {
			return err
		}
		res, err := t.l.results(p.Out)
		if err != nil {
			return err
		}
		s, err := t.newStream(x, g, l)
		if err != nil {
			return err
		}
		mem, err := t.take(p.Scratch, alloc.Bucket)
		if err != nil {
			return err
		}
		run := m.Begin(t.st, t.args, p, mem)
		err = s.each(wires, func(_ int, part pieceOn) error {
			terms := kernels.Terms{Scalars: part.scalars, List: part.list, Most: part.n}
			if others {
				if err := wires.Split(t.st, t.args, part.classes, part.list, 0, 0, s.list, s.count); err != nil {
					return err
				}
				terms.Pick, terms.Count = s.list, s.count
			}
			return run.Add(part.points, terms)
		})
		if err != nil {
			return err
		}
		at := unsafe.Pointer(unsafe.SliceData(res))
		if err := run.End(at); err != nil {
			return err
		}
		t.broughtBack(p.Out)
		t.copyOut(res, func(b []byte) error {
			if at := unsafe.Pointer(unsafe.SliceData(b)); g == curve.InG2 {
				out.g2 = m.Value2(p, at)
			} else {
				out.g1 = m.Value1(p, at)
			}
			return nil
		})
		return nil
	}
	err = e.run(ctx, sc, o)
	return out, err
}

// ones is the plain sum of the points of x whose scalar is 1.
func (e *Engine) ones(ctx context.Context, sc *alloc.Scope, name string, x *terms) (out curve.G1, err error) {
	n := x.n()
	if n == 0 {
		return out, context.Cause(ctx)
	}
	lists := e.keys.wiresMissing(x.q, x.kept)
	if x.dev == nil || x.kept == nil {
		lists = 0
	}
	sms := e.card.Info().SMs
	scratch := func(l layout) int64 { return aligned(kernels.PlanSum(sms, e.id, curve.InG1, l.piece).Scratch) }
	o := &op{name: name, stat: mOnes}
	l := e.layoutOf(x, curve.InG1, true, 1<<62)
	o.most = l.bytes + scratch(l) + lists
	l = e.layoutOf(x, curve.InG1, true, 0)
	o.least = l.bytes + scratch(l) + lists
	o.body = func(t *task) error {
		m, err := e.set.MSM(curve.InG1)
		if err != nil {
			return err
		}
		wires, err := e.set.Wires()
		if err != nil {
			return err
		}
		l := e.layoutOf(x, curve.InG1, true, 1<<62)
		for room := t.room; l.bytes+scratch(l)+lists > t.room && room > 0; room /= 2 {
			l = e.layoutOf(x, curve.InG1, true, room)
		}
		p := m.SumPlan(l.piece)
		parts := int64((n + l.piece - 1) / l.piece)
		res, err := t.l.results(p.Out * parts)
		if err != nil {
			return err
		}
		s, err := t.newStream(x, curve.InG1, l)
		if err != nil {
			return err
		}
		mem, err := t.take(p.Scratch, alloc.Scratch)
		if err != nil {
			return err
		}
		err = s.each(wires, func(i int, part pieceOn) error {
			if err := wires.Split(t.st, t.args, part.classes, part.list, s.list, s.count, 0, 0); err != nil {
				return err
			}
			at := unsafe.Pointer(unsafe.SliceData(res[int64(i)*p.Out:]))
			t.broughtBack(p.Out)
			return m.Sum(t.st, t.args, p, part.points, s.list, s.count, part.n, mem, at)
		})
		if err != nil {
			return err
		}
		t.copyOut(res, func(b []byte) error {
			for i := range parts {
				v := m.SumValue1(p, unsafe.Pointer(unsafe.SliceData(b[i*p.Out:])))
				out = addG1(e.id, out, v)
			}
			return nil
		})
		return nil
	}
	err = e.run(ctx, sc, o)
	return out, err
}

// addG1 is a + b.
func addG1(id curve.ID, a, b curve.G1) curve.G1 {
	if id == curve.BN254 {
		p, q := (*bn254.G1Affine)(unsafe.Pointer(&a)), (*bn254.G1Affine)(unsafe.Pointer(&b))
		p.Add(p, q)
		return a
	}
	p, q := (*bls12381.G1Affine)(unsafe.Pointer(&a)), (*bls12381.G1Affine)(unsafe.Pointer(&b))
	p.Add(p, q)
	return a
}

// copyOut hands a copy of results to f when the task is over and has left its
// worker: what is left to do on the host should not keep the card waiting.
func (t *task) copyOut(res []byte, f func([]byte) error) {
	var mine []byte
	t.after(func() { mine = append(make([]byte, 0, len(res)+8), res...) })
	t.finish = func() error { return f(mine) }
}

func (t *task) broughtBack(n int64) { t.e.stats.down.Add(n) }

// MSMG1 is Σ w[q.Wire(j)]·q.Points[j] over the j in pick, or all j.
func (e *Engine) MSMG1(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G1, error) {
	p, err := e.hostMSM(ctx, sc, mMSM1, curve.InG1, q, w, pick)
	return p.g1, err
}

// MSMG2 is the same in G2.
func (e *Engine) MSMG2(ctx context.Context, sc *alloc.Scope, q curve.Query, w []curve.Scalar, pick []uint32) (curve.G2, error) {
	p, err := e.hostMSM(ctx, sc, mMSM2, curve.InG2, q, w, pick)
	return p.g2, err
}

func (e *Engine) hostMSM(ctx context.Context, sc *alloc.Scope, stat method, g curve.Group, q curve.Query, w []curve.Scalar, pick []uint32) (p point, err error) {
	x := &terms{q: q, pick: pick, host: w}
	if err := x.check(&e.keys, g, len(w)); err != nil {
		return p, fmt.Errorf("%v multi-scalar multiplication: %w", g, err)
	}
	if pick == nil {
		if x.kept, err = e.keys.hold(ctx, q.Points); err != nil {
			return p, err
		}
		defer e.keys.letGo(x.kept)
	}
	return e.msm(ctx, sc, methodNames[stat], stat, g, x, false)
}

// MSMScratch bounds what MSMG1 or MSMG2 of n terms draws, and SumG1 of n points.
func (e *Engine) MSMScratch(g curve.Group, n int) alloc.Amount {
	a := alloc.BytesIn(e.card.space, e.sumBytes(g, n))
	if g == curve.InG1 {
		a = a.Max(e.host.MSMScratch(g, n))
	}
	return a
}

// QuotientScratch bounds what Quotient draws on a domain of n.
func (e *Engine) QuotientScratch(n int, basis curve.Basis, folded bool) alloc.Amount {
	log := 0
	for 1<<log < n {
		log++
	}
	vectors := int64(3)
	if folded {
		vectors = 2
	}
	size := aligned(int64(curve.ScalarBytes) << log)
	return alloc.BytesIn(e.card.space, vectors*size+aligned(new(kernels.NTT).ScratchBytes(log, basis, folded)))
}
