package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// witness is the scalars of a job with their classes: on the card, if there was
// room, and otherwise in the host buffer that they came in. It is an alloc.Ref;
// several Helds share it.
type witness struct {
	e      *Engine
	w      *vector
	refs   atomic.Int32
	counts curve.Counts

	classes *block // nil: the scalars are on the host, without
}

// Retain takes another reference.
func (x *witness) Retain() { x.refs.Add(1) }

// Release ends one.
func (x *witness) Release() {
	if x.refs.Add(-1) == 0 {
		x.w.Release()
		x.classes.free()
	}
}

// Bytes is what it takes.
func (x *witness) Bytes() int64 {
	n := x.w.Bytes()
	if x.classes != nil {
		n += x.classes.bytes
	}
	return n
}

// Space is where it is.
func (x *witness) Space() alloc.Space { return x.w.Space() }

// where is the same for people.
func (x *witness) where() string {
	if x.classes == nil {
		return "witness in host memory"
	}
	return "witness and classes in device memory"
}

// split is Split's Held.
type split struct{ x *witness }

func (s *split) Buffers() []alloc.Ref { return []alloc.Ref{s.x} }
func (s *split) String() string       { return s.x.e.card.name + ": " + s.x.where() }

// rest is the Held of Others: which scalars are meant is told by their classes
// when they are summed.
type rest struct {
	x     *witness
	whole bool
}

func (s *rest) Buffers() []alloc.Ref { return []alloc.Ref{s.x} }
func (s *rest) String() string       { return s.x.e.card.name + ": " + s.x.where() }

// witnessCache knows which host buffers have a copy on the card or on its way
// there, so that a job brings its witness once, whoever asks for it first. It
// holds no reference: a copy goes with its last user. A buffer is told by its
// object and not by its address: the object is here as long as the copy, so no
// other comes to be in its place, and whoever asks for it holds it.
type witnessCache struct {
	e  *Engine
	mu sync.Mutex
	m  map[*alloc.Buffer[curve.Scalar]]*vector
	of map[*vector]*alloc.Buffer[curve.Scalar]
}

// find is the copy of w with a reference for the caller; nil if there is none
// that is good. Callers hold the lock.
func (c *witnessCache) find(w *alloc.Buffer[curve.Scalar]) *vector {
	v := c.m[w]
	if v == nil {
		return nil
	}
	if dev := v.onDevice(); dev == nil || dev.live() != nil || !v.tryRetain() {
		c.remove(v) // gone with a reset, or about to go
		return nil
	}
	return v
}

func (c *witnessCache) remove(v *vector) {
	if w := c.of[v]; w != nil {
		delete(c.of, v)
		delete(c.m, w)
	}
}

// forget makes v known no longer.
func (c *witnessCache) forget(v *vector) {
	c.mu.Lock()
	c.remove(v)
	c.mu.Unlock()
}

// abandon makes v known no longer if only the caller has a reference.
func (c *witnessCache) abandon(v *vector) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.refs.Load() != 1 {
		return false
	}
	c.remove(v)
	return true
}

// share is the copy of w on the card with a reference for the caller: the one
// that there is, or one that is brought now, in memory of sc. It is nil where
// there is no room for one.
func (c *witnessCache) share(sc *alloc.Scope, w *alloc.Buffer[curve.Scalar]) (*vector, error) {
	c.mu.Lock()
	v := c.find(w)
	c.mu.Unlock()
	if v != nil {
		return v, nil
	}
	n := max(int64(w.Len())*curve.ScalarBytes, 1)
	b, err := c.e.tryBlock(sc, standing, n, alloc.Witness, alloc.Secret|alloc.Dirty)
	if isNoMemory(err) {
		return nil, nil // somebody else was quicker
	}
	if b == nil || err != nil {
		return nil, err
	}
	c.mu.Lock()
	if v = c.find(w); v != nil { // brought by somebody else meanwhile
		c.mu.Unlock()
		b.free()
		return v, nil
	}
	defer c.mu.Unlock()
	v = newVector(c.e, w.Len(), w, nil)
	v.shared = c
	v.begin(b)
	if c.m == nil {
		c.m, c.of = map[*alloc.Buffer[curve.Scalar]]*vector{}, map[*vector]*alloc.Buffer[curve.Scalar]{}
	}
	c.m[w], c.of[v] = v, w
	c.e.wup.bring(v)
	return v, nil
}

// letGo ends the caller's reference on v after an error: a copy that nobody
// else needs ends, and its memory is free, when it returns.
func (c *witnessCache) letGo(v *vector) {
	v.Release()
	c.e.wup.end(v)
}

// witnessOf is share that waits until the copy is queued, and tries again once
// where it failed. No worker waits meanwhile, and no memory of an operation.
func (e *Engine) witnessOf(ctx context.Context, sc *alloc.Scope, name string, w *alloc.Buffer[curve.Scalar]) (*vector, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for again := true; ; again = false {
		v, err := e.wits.share(sc, w)
		switch {
		case err != nil && !isGone(err):
			return nil, e.failed(name, err)
		case err == nil && v == nil:
			return nil, nil
		case err == nil:
			if err = v.arrived(ctx); err == nil {
				return v, nil
			}
			e.wits.forget(v)
			e.wits.letGo(v)
		}
		var known *Error
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %s: %w", e.card.name, name, context.Cause(ctx))
		case errors.As(err, &known):
			return nil, err
		case isGone(err):
			// w is where it was: it can be brought once more.
			err = e.ended(err)
			if !again || e.o.unguarded.reset || errors.Is(err, gpu.ErrLost) {
				return nil, e.fail(&op{name: name}, err, false)
			}
			err = nil
		case !again:
			return nil, e.fail(&op{name: name}, err, false)
		}
		e.stats.again.Add(1)
		if isNoMemory(err) {
			if err := e.card.trim(); err != nil {
				return nil, e.failed(name, err)
			}
		}
	}
}

// Split brings w to the card and classifies it there. Where there is no room w
// stays where it is, and comes in pieces for each sum.
func (e *Engine) Split(ctx context.Context, sc *alloc.Scope, w *alloc.Buffer[curve.Scalar]) (held, curve.Counts, error) {
	v, err := e.witnessOf(ctx, sc, methodNames[mSplit], w)
	if err != nil {
		return nil, curve.Counts{}, err
	}
	x := &witness{e: e, w: v}
	x.refs.Store(1)
	if v != nil {
		x.classes, err = e.tryBlock(sc, standing, int64(max(w.Len(), 1)), alloc.Scratch, alloc.Secret|alloc.Dirty)
		if isNoMemory(err) {
			x.classes, err = nil, nil
		}
	}
	switch {
	case err != nil:
		err = e.failed(methodNames[mSplit], err)
	case x.classes == nil:
		if v != nil {
			e.wits.letGo(v)
		}
		x.w = newVector(e, w.Len(), w, nil)
		x.counts, err = e.countClasses(ctx, w.Slice())
	default:
		err = e.classify(ctx, sc, x)
	}
	if err != nil {
		x.Release()
		if x.w == v {
			e.wup.end(v)
		}
		return nil, curve.Counts{}, err
	}
	if x.classes != nil {
		v.letHostGo() // it was copied
	}
	return &split{x}, x.counts, nil
}

// classify fills in the classes and counts of x.
func (e *Engine) classify(ctx context.Context, sc *alloc.Scope, x *witness) error {
	const counts = 12
	o := &op{name: methodNames[mSplit], stat: mSplit, least: counts, most: counts}
	o.body = func(t *task) error {
		k, err := e.set.Wires()
		if err != nil {
			return err
		}
		at, err := x.w.ready(t.ctx, t.st)
		if err != nil {
			return err
		}
		mem, err := t.take(counts, alloc.Scratch)
		if err != nil {
			return err
		}
		res, err := t.l.results(counts)
		if err != nil {
			return err
		}
		if err := k.Classify(t.st, t.args, at, x.w.n, x.classes.ptr(), mem); err != nil {
			return err
		}
		if err := t.bringBack(res, mem); err != nil {
			return err
		}
		t.copyOut(res, func(b []byte) error {
			var sum int
			for c := range x.counts {
				x.counts[c] = int(*(*uint32)(unsafe.Pointer(&b[4*c])))
				sum += x.counts[c]
			}
			if sum != x.w.n {
				return fmt.Errorf("%d of %d scalars were classified", sum, x.w.n)
			}
			return nil
		})
		return nil
	}
	return e.run(ctx, sc, o)
}

// terms are the scalars of x with the points of q.
func (x *witness) terms(ctx context.Context, g curve.Group, q curve.Query) (*terms, error) {
	t := &terms{q: q}
	if x.classes != nil {
		t.dev, t.classes = x.w, x.classes
	} else if h := x.w.onHost(); h != nil {
		t.host = h.Slice()
	}
	var err error
	if t.kept, err = x.e.keys.hold(ctx, q.Points); err != nil {
		return nil, err
	}
	if err = t.check(&x.e.keys, g, x.w.n); err != nil {
		x.e.keys.letGo(t.kept)
	}
	return t, err
}

// SumOnes is the plain sum of the points of q whose scalar is 1.
func (e *Engine) SumOnes(ctx context.Context, sc *alloc.Scope, q curve.Query, v held) (curve.G1, error) {
	s, ok := v.(*split)
	if !ok || s.x.e != e {
		return curve.G1{}, fmt.Errorf("%s is given a %T that it did not make", e.card.name, v)
	}
	t, err := s.x.terms(ctx, curve.InG1, q)
	if err != nil {
		return curve.G1{}, fmt.Errorf("sum of ones: %w", err)
	}
	defer e.keys.letGo(t.kept)
	return e.ones(ctx, sc, methodNames[mOnes], t)
}

// Others makes of Split's Held what SumOthers reads: the same memory.
func (e *Engine) Others(ctx context.Context, _ *alloc.Scope, v held, whole bool, _ ...curve.Query) (held, error) {
	s, ok := v.(*split)
	if !ok || s.x.e != e {
		return nil, fmt.Errorf("%s is given a %T that it did not make", e.card.name, v)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.x.Retain()
	return &rest{x: s.x, whole: whole}, nil
}

// SumOthers is the sum over the scalars of q that Others took.
func (e *Engine) SumOthers(ctx context.Context, sc *alloc.Scope, q curve.Query, v held) (curve.G1, error) {
	s, ok := v.(*rest)
	if !ok || s.x.e != e {
		return curve.G1{}, fmt.Errorf("%s is given a %T that it did not make", e.card.name, v)
	}
	t, err := s.x.terms(ctx, curve.InG1, q)
	if err != nil {
		return curve.G1{}, fmt.Errorf("sum of others: %w", err)
	}
	defer e.keys.letGo(t.kept)
	p, err := e.msm(ctx, sc, methodNames[mOthers], mOthers, curve.InG1, t, !s.whole)
	return p.g1, err
}

// SumB2 is the sum over all points of q in G2. The copy of w on the card is
// Split's too, whoever comes first.
func (e *Engine) SumB2(ctx context.Context, sc *alloc.Scope, q curve.Query, w *alloc.Buffer[curve.Scalar]) (curve.G2, error) {
	if q.Len() == 0 {
		return e.MSMG2(ctx, sc, q, w.Slice(), nil)
	}
	v, err := e.witnessOf(ctx, sc, methodNames[mMSM2], w)
	if err != nil {
		return curve.G2{}, err
	}
	if v == nil {
		return e.MSMG2(ctx, sc, q, w.Slice(), nil)
	}
	p, err := e.sumB2(ctx, sc, q, v)
	if err != nil {
		e.wits.letGo(v)
	} else {
		v.Release()
	}
	return p.g2, err
}

func (e *Engine) sumB2(ctx context.Context, sc *alloc.Scope, q curve.Query, v *vector) (p point, err error) {
	t := &terms{q: q, dev: v}
	if t.kept, err = e.keys.hold(ctx, q.Points); err != nil {
		return p, err
	}
	defer e.keys.letGo(t.kept)
	if err := t.check(&e.keys, curve.InG2, v.n); err != nil {
		return p, fmt.Errorf("sum of B2: %w", err)
	}
	return e.msm(ctx, sc, methodNames[mMSM2], mMSM2, curve.InG2, t, false)
}

// SumH is Σ h[j]·points[j].
func (e *Engine) SumH(ctx context.Context, sc *alloc.Scope, points curve.Points, v held) (curve.G1, error) {
	s, ok := v.(*quotient)
	if !ok || s.e != e {
		return curve.G1{}, fmt.Errorf("%s is given a %T that it did not make", e.card.name, v)
	}
	t := &terms{q: curve.Query{Points: points}, dev: s.h}
	if s.h.onDevice() == nil {
		return curve.G1{}, e.fail(&op{name: methodNames[mSumH]}, errReset, true)
	}
	if err := t.check(&e.keys, curve.InG1, s.h.n); err != nil {
		return curve.G1{}, fmt.Errorf("sum of h: %w", err)
	}
	var err error
	if t.kept, err = e.keys.hold(ctx, points); err != nil {
		return curve.G1{}, err
	}
	defer e.keys.letGo(t.kept)
	p, err := e.msm(ctx, sc, methodNames[mSumH], mSumH, curve.InG1, t, false)
	return p.g1, err
}
