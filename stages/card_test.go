package stages_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// card is a device in plain Go: a memory of its own that nobody can address,
// copies that go on in the background, and a context that an error can end. It
// computes with the host's arithmetic on copies of what its memory holds.
type card struct {
	groth16.Arithmetic // the host's, for what is not the device's
	name               string
	space              alloc.Space
	tier               int           // 1: a, b and c at prestage; 2: a; 3: nothing
	slow               time.Duration // how long a copy takes

	// before is called first by everything that can fail: what it returns is the
	// error. after may change a result.
	before func(ctx context.Context, c *card, op string) error
	after  func(ctx context.Context, op string, sum any)

	mu     sync.Mutex
	mem    map[uintptr][]byte
	gen    atomic.Uint64
	resets atomic.Int64
	copies sync.WaitGroup
}

// newCard puts a card in space n for as long as the test runs.
func newCard(t testing.TB, id curve.ID, n int) *card {
	t.Helper()
	register(t, offSpace, heap{})
	c := &card{Arithmetic: engine(t, id), name: fmt.Sprintf("card:%d", n), space: alloc.Device(n), tier: 1, mem: map[uintptr][]byte{}}
	t.Cleanup(func() {
		c.copies.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.mem) != 0 {
			t.Errorf("%d blocks are left on %s", len(c.mem), c.name)
		}
	})
	register(t, c.space, c)
	return c
}

// register makes p the provider of a space until the test ends.
func register(t testing.TB, s alloc.Space, p alloc.Provider) {
	before, err := alloc.Default().Register(s, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := alloc.Default().Register(s, before); err != nil {
			t.Error(err)
		}
	})
}

// off is where the host's arithmetic has the scratch that no device would have:
// apart, so that it is not counted as the host's.
var off = alloc.NewScope(alloc.StageOf("emulation"), offSpace, nil)

const offSpace = alloc.Space(alloc.MaxSpaces - 1)

// heap is memory of Go's.
type heap struct{}

func (heap) Alloc(n int64) (alloc.Region, error) {
	b := make([]byte, n+64)
	at := -uintptr(unsafe.Pointer(&b[0])) & 63
	b = b[at : at+uintptr(n)]
	return alloc.Region{Bytes: b, Addr: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Size: n, Zeroed: true}, nil
}
func (heap) Free(alloc.Region) error              { return nil }
func (heap) Fill(alloc.Region, int64, byte) error { return nil }

func (c *card) Name() string { return c.name }

// Alloc, Free and Fill are alloc.Provider.
func (c *card) Alloc(n int64) (alloc.Region, error) {
	b := make([]byte, n+64)
	addr := (uintptr(unsafe.Pointer(&b[0])) + 63) &^ 63
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mem[addr] = b
	return alloc.Region{Addr: addr, Size: n, Zeroed: true}, nil
}

func (c *card) Free(r alloc.Region) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mem[r.Addr] == nil {
		return errors.New("freed what is not there")
	}
	delete(c.mem, r.Addr)
	return nil
}

func (c *card) Fill(r alloc.Region, n int64, v byte) error {
	b := c.bytes(r.Addr, n)
	for i := range b {
		b[i] = v
	}
	return nil
}

func (c *card) bytes(addr uintptr, n int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.mem[addr]
	if b == nil {
		panic("an address that is not of this card")
	}
	off := addr - uintptr(unsafe.Pointer(&b[0]))
	return b[off : off+uintptr(n)]
}

// on is what a buffer of the card's memory holds.
func on[T any](c *card, b *alloc.Buffer[T]) []T {
	if b.Len() == 0 {
		return nil
	}
	v, err := curve.View[T](c.bytes(b.Addr(), b.Bytes()))
	if err != nil {
		panic(err)
	}
	return v
}

// devError is an error of the card.
type devError struct {
	card  string
	op    string
	start bool
	err   error
}

func (e *devError) Error() string   { return fmt.Sprintf("%s: %s: %v", e.card, e.op, e.err) }
func (e *devError) Unwrap() error   { return e.err }
func (e *devError) Temporary() bool { return true }
func (e *devError) FromStart() bool { return e.start }

// The errors that before may give.
var (
	errPass   = errors.New("injected: passes")           // temporary
	errSticky = errors.New("injected: ends the context") // resets the card
	errBroken = errors.New("injected: broken")           // for good
)

var errReset = errors.New("the device was reset")

// call is one operation: it fails if the card does, or if what it works on is
// of a time before a reset.
func (c *card) call(ctx context.Context, op string, gen uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if gen != c.gen.Load() {
		return &devError{c.name, op, true, errReset}
	}
	if c.before == nil {
		return nil
	}
	switch err := c.before(ctx, c, op); {
	case err == nil:
		if err := ctx.Err(); err != nil {
			return err
		}
		if gen != c.gen.Load() {
			return &devError{c.name, op, true, errReset}
		}
		return nil
	case errors.Is(err, errSticky):
		c.gen.Add(1)
		c.resets.Add(1)
		return &devError{c.name, op, true, err}
	case errors.Is(err, errPass):
		return &devError{c.name, op, false, err}
	default:
		return err
	}
}

// make takes device memory.
func take[T any](ctx context.Context, c *card, sc *alloc.Scope, n int, p alloc.Purpose) (*alloc.Buffer[T], error) {
	if err := c.call(ctx, "alloc", c.gen.Load()); err != nil {
		return nil, err
	}
	return alloc.Make[T](sc.In(c.space), n, p, alloc.Secret|alloc.Dirty)
}

func (c *card) leave(ctx context.Context, op string, sum any) {
	if c.after != nil {
		c.after(ctx, op, sum)
	}
}

// Needs is exact for what the card does.
func (c *card) Needs(l groth16.Load) groth16.Needs {
	dev := func(n int64) alloc.Amount { return alloc.BytesIn(c.space, n) }
	v := int64(l.Domain.Size()) * curve.ScalarBytes
	w := int64(l.Wires) * curve.ScalarBytes
	others := int64(1)
	if !l.Folded {
		others = 2
	}
	return groth16.Needs{
		Prestage: dev(0),
		NTT:      dev(v),
		HMSM:     dev(1000),
		BatchAdd: dev(int64(l.Wires) + 500),
		TailMSM:  dev(700),
		BG2MSM:   dev(w + 900),
		A:        dev(v),
		// The registration of the host's pages lasts as long as the copies.
		BC:        dev(others * v).Add(alloc.BytesIn(alloc.Pinned, (1+others)*v)),
		Wires:     dev(w + 4*int64(l.L+l.A+l.B1)),
		CopiesABC: true,
		CopiesW:   true,
	}
}

// evals are a, b and c on their way.
type evals struct {
	c      *card
	gen    uint64
	d      curve.Domain
	basis  curve.Basis
	host   [3]*alloc.Buffer[curve.Scalar] // until they are copied
	dev    [3]*alloc.Buffer[curve.Scalar] // nil: not taken yet, or there is none
	pinned *alloc.Charge
	n      int           // of vectors
	copied chan struct{} // closed when what prestage brings is there
	err    error         // of the copies; after copied
	refs   atomic.Int64  // but one
	mu     sync.Mutex
	given  bool // up: nobody holds them any more
	ready  bool // the copies have ended
	gone   bool
	when   []func()
}

func (v *evals) Buffers() (refs []alloc.Ref) {
	for _, b := range v.dev {
		if b != nil {
			refs = append(refs, b)
		}
	}
	return append(refs, (*evalsRef)(v))
}

func (v *evals) String() string { return fmt.Sprintf("%s, tier %d", v.c.name, v.c.tier) }

// evalsRef is the reference on what of the host has not been copied when the
// evaluations are given up. It has no bytes.
type evalsRef evals

func (r *evalsRef) Retain() { r.refs.Add(1) }

func (r *evalsRef) Release() {
	if r.refs.Add(-1) >= 0 {
		return
	}
	v := (*evals)(r)
	v.mu.Lock()
	v.given = true
	ready := v.ready
	v.mu.Unlock()
	if ready {
		v.letGo()
	}
}

func (r *evalsRef) Bytes() int64       { return 0 }
func (r *evalsRef) Space() alloc.Space { return r.c.space }

// letGo ends the references on the host's vectors.
func (v *evals) letGo() {
	v.mu.Lock()
	if v.gone {
		v.mu.Unlock()
		return
	}
	v.gone = true
	when := v.when
	v.mu.Unlock()
	for _, b := range v.host {
		if b != nil {
			b.Release()
		}
	}
	v.pinned.Release()
	for _, f := range when {
		f()
	}
}

func (v *evals) WhenCopied(f func()) {
	v.mu.Lock()
	if !v.gone {
		v.when = append(v.when, f)
		f = func() {}
	}
	v.mu.Unlock()
	f()
}

func (c *card) Prestage(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, cc *alloc.Buffer[curve.Scalar]) (groth16.Held, error) {
	gen := c.gen.Load()
	if err := c.call(ctx, "prestage", gen); err != nil {
		return nil, err
	}
	v := &evals{c: c, gen: gen, d: d, basis: basis, host: [3]*alloc.Buffer[curve.Scalar]{a, b, cc}, n: 3, copied: make(chan struct{})}
	if cc == nil {
		v.n = 2
	}
	var err error
	bytes := int64(v.n) * a.Bytes()
	if v.pinned, err = alloc.Foreign(sc.In(alloc.Pinned), alloc.Evaluation, bytes); err != nil {
		return nil, err
	}
	early := [4]int{0, v.n, 1, 0}[c.tier]
	for i := range early {
		if v.dev[i], err = take[curve.Scalar](ctx, c, sc, d.Size(), alloc.Evaluation); err != nil {
			for _, x := range v.dev[:i] {
				x.Release()
			}
			v.pinned.Release()
			return nil, err
		}
	}
	for _, x := range v.host[:v.n] {
		x.Retain()
	}
	for _, x := range v.dev[:early] {
		x.Retain() // the copy's
	}
	c.copies.Go(func() {
		time.Sleep(c.slow)
		v.err = c.call(context.WithoutCancel(ctx), "copy", gen)
		for i, x := range v.dev[:early] {
			if v.err == nil {
				copy(on(c, x), v.host[i].Slice())
			}
		}
		late := early < v.n
		for _, x := range v.dev[:early] {
			x.Release()
		}
		if v.err != nil && !errors.Is(v.err, errBroken) {
			v.err = &devError{c.name, "copy", true, v.err}
		}
		v.mu.Lock()
		v.ready = true
		given := v.given
		v.mu.Unlock()
		if !late || given {
			v.letGo()
		}
		close(v.copied)
	})
	return v, nil
}

// resident is a vector on the card.
type resident struct {
	c   *card
	gen uint64
	v   *alloc.Buffer[curve.Scalar]
}

func (r *resident) Buffers() []alloc.Ref { return []alloc.Ref{r.v} }
func (r *resident) String() string       { return r.c.name }

func (c *card) QuotientOf(ctx context.Context, sc *alloc.Scope, held groth16.Held) (groth16.Held, error) {
	v := held.(*evals)
	defer v.letGo() // the host's vectors are gone when this returns
	<-v.copied
	if v.err != nil {
		return nil, v.err
	}
	if err := c.call(ctx, "quotient", v.gen); err != nil {
		return nil, err
	}
	dev := v.dev
	var own []*alloc.Buffer[curve.Scalar] // what is taken here
	defer func() {
		for _, b := range own {
			b.Release()
		}
	}()
	for i := range v.n {
		if dev[i] != nil {
			continue
		}
		b, err := take[curve.Scalar](ctx, c, sc, v.d.Size(), alloc.Evaluation)
		if err != nil {
			return nil, err
		}
		own = append(own, b)
		dev[i] = b
		copy(on(c, b), v.host[i].Slice())
	}
	scratch, err := take[curve.Scalar](ctx, c, sc, v.d.Size(), alloc.Scratch)
	if err != nil {
		return nil, err
	}
	defer scratch.Release()
	var cs []curve.Scalar
	if v.n == 3 {
		cs = on(c, dev[2])
	}
	if err := c.Quotient(ctx, off, v.d, v.basis, on(c, dev[0]), on(c, dev[1]), cs); err != nil {
		return nil, err
	}
	c.leave(ctx, "quotient", on(c, dev[0]))
	dev[0].Retain()
	return &resident{c, v.gen, dev[0]}, nil
}

// sum runs an operation in scratch memory.
func (c *card) sum(ctx context.Context, sc *alloc.Scope, op string, gen uint64, scratch int, f func() error) error {
	if err := c.call(ctx, op, gen); err != nil {
		return err
	}
	b, err := take[byte](ctx, c, sc, scratch, alloc.Bucket)
	if err != nil {
		return err
	}
	defer b.Release()
	return f()
}

func (c *card) SumH(ctx context.Context, sc *alloc.Scope, points curve.Points, held groth16.Held) (s curve.G1, err error) {
	v := held.(*resident)
	err = c.sum(ctx, sc, "sum of h", v.gen, 1000, func() error {
		s, err = c.MSMG1(ctx, off, curve.Query{Points: points}, on(c, v.v), nil)
		return err
	})
	c.leave(ctx, "sum of h", &s)
	return s, err
}

// wires are a witness on the card, with classes or with picks.
type wires struct {
	c       *card
	gen     uint64
	w       *alloc.Buffer[curve.Scalar]
	classes *alloc.Buffer[curve.Class]
	whole   bool
	qs      []curve.Query
	picks   []*alloc.Buffer[uint32]
}

func (w *wires) String() string { return w.c.name }

func (w *wires) Buffers() []alloc.Ref {
	refs := []alloc.Ref{w.w}
	if w.classes != nil {
		refs = append(refs, w.classes)
	}
	for _, p := range w.picks {
		refs = append(refs, p)
	}
	return refs
}

func (c *card) Split(ctx context.Context, sc *alloc.Scope, w *alloc.Buffer[curve.Scalar]) (_ groth16.Held, counts curve.Counts, err error) {
	v := &wires{c: c, gen: c.gen.Load()}
	if err := c.call(ctx, "split", v.gen); err != nil {
		return nil, counts, err
	}
	if v.w, err = take[curve.Scalar](ctx, c, sc, w.Len(), alloc.Witness); err != nil {
		return nil, counts, err
	}
	if v.classes, err = take[curve.Class](ctx, c, sc, w.Len(), alloc.Scratch); err != nil {
		v.w.Release()
		return nil, counts, err
	}
	copy(on(c, v.w), w.Slice())
	if counts, err = c.Classify(ctx, on(c, v.w), on(c, v.classes)); err != nil {
		v.w.Release()
		v.classes.Release()
		return nil, counts, err
	}
	return v, counts, nil
}

func (c *card) SumOnes(ctx context.Context, sc *alloc.Scope, q curve.Query, held groth16.Held) (s curve.G1, err error) {
	v := held.(*wires)
	err = c.sum(ctx, sc, "sum of ones", v.gen, 500, func() error {
		s, err = c.SumG1(ctx, off, q, on(c, v.classes))
		return err
	})
	c.leave(ctx, "sum of ones", &s)
	return s, err
}

func (c *card) Others(ctx context.Context, sc *alloc.Scope, held groth16.Held, whole bool, qs ...curve.Query) (_ groth16.Held, err error) {
	v := held.(*wires)
	if err := c.call(ctx, "others", v.gen); err != nil {
		return nil, err
	}
	out := &wires{c: c, gen: v.gen, w: v.w, whole: whole, qs: qs}
	out.w.Retain()
	defer func() {
		if err != nil {
			for _, r := range out.Buffers() {
				r.Release()
			}
		}
	}()
	for _, q := range qs {
		if whole {
			break
		}
		room := make([]uint32, q.Len())
		n, err := c.Tail(ctx, q, on(c, v.classes), room)
		if err != nil {
			return nil, err
		}
		p, err := take[uint32](ctx, c, sc, n, alloc.Scratch)
		if err != nil {
			return nil, err
		}
		out.picks = append(out.picks, p)
		copy(on(c, p), room)
	}
	return out, nil
}

func (c *card) SumOthers(ctx context.Context, sc *alloc.Scope, q curve.Query, held groth16.Held) (s curve.G1, err error) {
	v := held.(*wires)
	err = c.sum(ctx, sc, "sum of others", v.gen, 700, func() error {
		if v.whole {
			s, err = c.MSMG1(ctx, off, q, on(c, v.w), nil)
			return err
		}
		for i := range v.qs {
			if len(v.qs[i].Points.Data) > 0 && &v.qs[i].Points.Data[0] == &q.Points.Data[0] {
				if v.picks[i].Len() > 0 {
					s, err = c.MSMG1(ctx, off, q, on(c, v.w), on(c, v.picks[i]))
				}
				return err
			}
		}
		return errors.New("an unknown query")
	})
	c.leave(ctx, "sum of others", &s)
	return s, err
}

func (c *card) SumB2(ctx context.Context, sc *alloc.Scope, q curve.Query, w *alloc.Buffer[curve.Scalar]) (s curve.G2, err error) {
	err = c.sum(ctx, sc, "sum of b2", c.gen.Load(), int(w.Bytes())+900, func() error {
		s, err = c.MSMG2(ctx, off, q, w.Slice(), nil)
		return err
	})
	c.leave(ctx, "sum of b2", &s)
	return s, err
}

// cardOps are the operations of a card, with the stage that calls them.
var cardOps = []struct{ stage, op string }{
	{"prestage", "prestage"}, {"prestage", "copy"}, {"ntt", "quotient"}, {"h-msm", "sum of h"},
	{"batch-add", "split"}, {"batch-add", "sum of ones"}, {"batch-add", "others"},
	{"tail-msm", "sum of others"}, {"b_g2_msm", "sum of b2"},
}

// partOf is the part of the job that a call is for.
func partOf(ctx context.Context) int { return pipeline.KeyOf(ctx).Part }
