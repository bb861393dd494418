package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// held is what a job keeps between two calls.
type held = interface {
	Buffers() []alloc.Ref
	String() string
}

// evaluations are a, b and c of a job on their way to the card: Prestage's Held.
type evaluations struct {
	e       *Engine
	domain  curve.Domain
	basis   curve.Basis
	a, b, c *vector // c is nil for a folded key
	w       *vector // the witness that they were evaluated from on the card
	tier    gpu.Decision
	used    atomic.Bool // the quotient was taken, or tried

	evaluated bool // on the card: there is nothing on the host
	host      hostCount
}

// hostCount calls a function when the last of some host buffers is let go of.
type hostCount struct {
	left atomic.Int32
	gone chan struct{}
	when chan func() // of one: the function
}

// Buffers are a, b and c, and w where they were made of it.
func (v *evaluations) Buffers() []alloc.Ref {
	refs := []alloc.Ref{v.a, v.b}
	if v.c != nil {
		refs = append(refs, v.c)
	}
	if v.w != nil {
		refs = append(refs, v.w)
	}
	return refs
}

// String is "cuda:0, tier 1 of 3: a, b and c (12 GiB) in device memory, 120 GiB free".
func (v *evaluations) String() string {
	s := v.e.card.name + ", " + v.tier.String()
	if v.evaluated {
		s += "; evaluated there"
	}
	return s
}

// WhenCopied calls f when the host buffers have been let go of.
func (v *evaluations) WhenCopied(f func()) { v.host.set(f) }

func (h *hostCount) start(n int) {
	h.left.Store(int32(n))
	h.gone, h.when = make(chan struct{}), make(chan func(), 1)
}

func (h *hostCount) down() {
	if h.left.Add(-1) == 0 {
		close(h.gone)
		h.call()
	}
}

func (h *hostCount) set(f func()) {
	select {
	case h.when <- f:
	default: // once
		return
	}
	select {
	case <-h.gone:
		h.call()
	default:
	}
}

// call calls the function, if it is set, once: whoever takes it out.
func (h *hostCount) call() {
	select {
	case f := <-h.when:
		f()
	default:
	}
}

// Prestage begins to bring a, b and c (nil for a folded key) to the card, as
// many of them as there is room for; the others are brought by QuotientOf. It
// waits for no copy. The buffers are held until they are not read any more:
// those on the card until their copy is done, the others until QuotientOf ends.
func (e *Engine) Prestage(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c *alloc.Buffer[curve.Scalar]) (held, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := checkDomain(e.id, d, basis); err != nil {
		return nil, fmt.Errorf("prestage: %w", err)
	}
	n := d.Size()
	if a == nil || b == nil || a.Len() != n || b.Len() != n || c != nil && c.Len() != n {
		return nil, fmt.Errorf("prestage: vectors that are not of the domain's %d scalars", n)
	}
	e.expectJobs(n)
	e.restoreSystems(ctx)
	v := &evaluations{e: e, domain: d, basis: basis}
	v.host.start(2)
	if c != nil {
		v.host.start(3)
	}
	v.a, v.b = newVector(e, n, a, v.host.down), newVector(e, n, b, v.host.down)
	if c != nil {
		v.c = newVector(e, n, c, v.host.down)
	}
	err := v.place(sc)
	if isGone(err) && !e.o.unguarded.reset {
		// It was ended by somebody else's work: nothing of this job is lost.
		if again := e.card.revive(); again == nil {
			e.stats.again.Add(1)
			err = v.place(sc)
		}
	}
	if err != nil {
		for _, r := range v.Buffers() {
			r.Release()
		}
		return nil, e.failed("prestage", err)
	}
	s := v.String()
	e.lastTier.Store(&s)
	for _, x := range []*vector{v.a, v.b, v.c} {
		if x != nil && x.onDevice() != nil {
			e.up.bring(x)
		}
	}
	return v, nil
}

// failed is the error of what is no operation on a worker, which may have to be
// answered by a reset.
func (e *Engine) failed(what string, err error) error {
	var over *alloc.OverdrawError
	var known *Error
	switch {
	case errors.As(err, &known), errors.As(err, &over), errors.Is(err, gpu.ErrClosed):
		return fmt.Errorf("%s on %s: %w", what, e.card.name, err)
	case isGone(err):
		err = e.ended(err)
	}
	return e.fail(&op{name: what}, err, false)
}

// orReset is what became of a reset, as an error.
func orReset(err error) error {
	if err == nil {
		return errReset
	}
	return err
}

// place takes device memory for the best tier that there is room for.
func (v *evaluations) place(sc *alloc.Scope) error {
	size := v.a.bytes()
	r := gpu.Vectors(size, v.c == nil, v.e.tables.coming(tableKey{v.domain, v.basis}))
	var failed error
	for first := 0; ; {
		d, err := v.e.card.mem.place(r, first)
		if err != nil {
			return err
		}
		if v.evaluated && (d.Tier > 0 || first > 0) {
			v.e.card.mem.give(standing, d.Chosen().Bytes)
			return noRoom(r.Tiers[0].Bytes)
		}
		all := d
		all.Request, all.Tier, all.Failed = r, first+d.Tier, failed
		v.tier = all
		want := []*vector{v.a, v.b, v.c}[:d.Chosen().Bytes/size]
		err = v.take(sc, want, size)
		if err == nil {
			return nil
		}
		first = all.Tier + 1
		if v.e.card.mem.naive || !isNoMemory(err) || first >= len(r.Tiers) {
			return err
		}
		failed = err
	}
}

// take makes the blocks of want, which are granted. On an error none is left.
func (v *evaluations) take(sc *alloc.Scope, want []*vector, size int64) error {
	for i, x := range want {
		b, err := v.e.newBlock(sc, standing, size, alloc.Evaluation, alloc.Secret|alloc.Dirty)
		if err != nil {
			if !v.e.o.unguarded.leak {
				for _, y := range want[:i] {
					y.dropDevice(true)
					y.first = y.e.card.space
					if y.host != nil {
						y.first = y.host.Space()
					}
				}
			}
			v.e.card.mem.give(standing, size*int64(len(want)-i-1))
			return err
		}
		x.begin(b)
	}
	return nil
}
