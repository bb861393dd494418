package cuda

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
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
		x.e.wits.remove(x)
		x.w.Release()
		x.classes.free()
	}
}

// Bytes is what it takes.
func (x *witness) Bytes() int64 {
	if x.classes == nil {
		return x.w.Bytes()
	}
	return x.w.Bytes() + x.classes.bytes
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

// witnessCache knows which host buffers have a copy on the card, so that sums
// over the same witness need not bring it again. It holds no reference.
type witnessCache struct {
	e  *Engine
	mu sync.Mutex
	m  map[*alloc.Buffer[curve.Scalar]]*witness
	of map[*witness]*alloc.Buffer[curve.Scalar]
}

// add makes x known as the copy of w.
func (c *witnessCache) add(w *alloc.Buffer[curve.Scalar], x *witness) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m, c.of = map[*alloc.Buffer[curve.Scalar]]*witness{}, map[*witness]*alloc.Buffer[curve.Scalar]{}
	}
	if c.m[w] == nil {
		// The map keeps the Buffer, so no other can come to be at its address.
		c.m[w], c.of[x] = x, w
	}
}

// find is the copy of w on the card, with a reference for the caller; nil if
// there is none.
func (c *witnessCache) find(w *alloc.Buffer[curve.Scalar]) *witness {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.m[w]
	if x == nil {
		return nil
	}
	for {
		n := x.refs.Load()
		if n <= 0 {
			return nil // about to go
		}
		if x.refs.CompareAndSwap(n, n+1) {
			return x
		}
	}
}

func (c *witnessCache) remove(x *witness) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.of[x]; w != nil {
		delete(c.of, x)
		delete(c.m, w)
	}
}

// Split brings w to the card and classifies it there. Where there is no room w
// stays where it is, and comes in pieces for each sum.
func (e *Engine) Split(ctx context.Context, sc *alloc.Scope, w *alloc.Buffer[curve.Scalar]) (held, curve.Counts, error) {
	x := &witness{e: e, w: newVector(e, w.Len(), w, nil)}
	x.refs.Store(1)
	if err := e.classify(ctx, sc, w, x); err != nil {
		x.Release()
		return nil, curve.Counts{}, err
	}
	if x.classes != nil {
		x.w.letHostGo()
		e.wits.add(w, x)
	}
	return &split{x}, x.counts, nil
}

// classify fills x in.
func (e *Engine) classify(ctx context.Context, sc *alloc.Scope, w *alloc.Buffer[curve.Scalar], x *witness) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ok, err := e.standingWitness(sc, w, x)
	if err != nil {
		return e.failed(methodNames[mSplit], err)
	}
	if !ok {
		x.counts, err = e.countClasses(ctx, w.Slice())
		return err
	}
	n := w.Len()
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
		if err := t.bounceIn(at, curve.Bytes(w.Slice()), w.Space() == alloc.Pinned); err != nil {
			return err
		}
		if err := k.Classify(t.st, t.args, at, n, x.classes.ptr(), mem); err != nil {
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
			if sum != n {
				return fmt.Errorf("%d of %d scalars were classified", sum, n)
			}
			return nil
		})
		return nil
	}
	return e.run(ctx, sc, o)
}

// standingWitness takes device memory for x, if there is room.
func (e *Engine) standingWitness(sc *alloc.Scope, w *alloc.Buffer[curve.Scalar], x *witness) (bool, error) {
	n := max(x.w.bytes(), 1)
	classes := int64(max(x.w.n, 1))
	ok, err := e.card.mem.try(standing, n+classes)
	if err != nil || !ok {
		return false, err
	}
	b, err := e.newBlock(sc, standing, n, alloc.Witness, alloc.Secret|alloc.Dirty)
	if err != nil {
		e.card.mem.give(standing, classes)
	} else {
		x.w.begin(b)
		if x.classes, err = e.newBlock(sc, standing, classes, alloc.Scratch, alloc.Secret|alloc.Dirty); err != nil {
			x.w.dropDevice(true)
			x.w.first = w.Space()
		}
	}
	if isNoMemory(err) {
		return false, nil // somebody else was quicker
	}
	return err == nil, err
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

// SumB2 is the sum over all points of q in G2. A copy of w that Split has made
// is read, if there is one.
func (e *Engine) SumB2(ctx context.Context, sc *alloc.Scope, q curve.Query, w *alloc.Buffer[curve.Scalar]) (curve.G2, error) {
	x := e.wits.find(w)
	if x == nil {
		return e.MSMG2(ctx, sc, q, w.Slice(), nil)
	}
	defer x.Release()
	t, err := x.terms(ctx, curve.InG2, q)
	if err != nil {
		return curve.G2{}, fmt.Errorf("sum of B2: %w", err)
	}
	defer e.keys.letGo(t.kept)
	p, err := e.msm(ctx, sc, methodNames[mMSM2], mMSM2, curve.InG2, t, false)
	return p.g2, err
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
