package cuda

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// quotient is h of a job: QuotientOf's Held.
type quotient struct {
	e     *Engine
	h     *vector
	w     *vector // the witness, where it came before the others that need it
	where string
}

// Buffers is h, and w where that is kept on the card.
func (q *quotient) Buffers() []alloc.Ref {
	if q.w != nil {
		return []alloc.Ref{q.h, q.w}
	}
	return []alloc.Ref{q.h}
}

// String says where it is.
func (q *quotient) String() string { return q.where }

// QuotientOf is the quotient of what Prestage holds. b and c leave the card as
// soon as it is done with them, whoever still holds v.
func (e *Engine) QuotientOf(ctx context.Context, sc *alloc.Scope, v held) (held, error) {
	x, ok := v.(*evaluations)
	if !ok || x.e != e {
		return nil, fmt.Errorf("%s is given a %T that it did not make", e.card.name, v)
	}
	if x.used.Swap(true) {
		return nil, e.fail(&op{name: methodNames[mQuotient]}, errSpoiled, true)
	}
	if err := e.quotientOf(ctx, sc, x); err != nil {
		return nil, err
	}
	x.a.Retain()
	if x.w != nil {
		x.w.Retain()
	}
	return &quotient{e: e, h: x.a, w: x.w, where: e.card.name + ": h in device memory"}, nil
}

func (e *Engine) quotientOf(ctx context.Context, sc *alloc.Scope, x *evaluations) error {
	for _, y := range x.vectors() {
		if y.arrived(ctx) != nil {
			break // the operation finds the same
		}
	}
	ntt, err := e.loadNTT()
	if err != nil {
		return err
	}
	key := tableKey{x.domain, x.basis}
	tables := ntt.TableBytes(x.domain, x.basis)
	if tables == 0 {
		return fmt.Errorf("quotient on %s: the domain of 2^%d has no tables", e.card.name, x.domain.Log)
	}
	scratch := ntt.ScratchBytes(x.domain.Log, x.basis, x.c == nil)
	held, need := e.tables.hold(key, aligned(tables))
	defer e.tables.letGo(key, held)
	o := &op{name: methodNames[mQuotient], stat: mQuotient, spoils: true, stays: need}
	var vectors int64
	for _, y := range x.vectors() {
		if y.onDevice() == nil {
			vectors += y.bytes()
		}
	}
	o.stays += vectors
	o.most = need + scratch + vectors
	o.least = o.most
	parts := e.partsOf(x)
	if parts.bytes < scratch+vectors {
		o.least = need + parts.bytes
	}
	o.body = func(t *task) error {
		ntt, err := e.set.NTT()
		if err != nil {
			return err
		}
		whole := t.room >= o.most && (!e.o.unguarded.parts || o.least == o.most)
		tab, err := e.tables.use(t, ntt, key, held)
		if err != nil {
			return err
		}
		if !whole {
			parts.work = x.a.onDevice() != nil // an attempt before may have brought it
			for _, y := range x.vectors()[1:] {
				y.dropDevice(true)
			}
			return t.quotientInParts(ntt, tab, x, parts)
		}
		mem, err := t.take(scratch, alloc.Scratch)
		if err != nil {
			return err
		}
		for _, y := range x.vectors() {
			if err := t.fetch(y); err != nil {
				return err
			}
		}
		var at [3]gpu.Ptr
		for i, y := range x.vectors() {
			if at[i], err = y.ready(t.ctx, t.st); err != nil {
				return err
			}
		}
		if err := t.check(); err != nil {
			return err
		}
		t.touched = true
		return ntt.Quotient(t.st, t.args, tab, x.basis, at[0], at[1], at[2], mem)
	}
	err = e.run(ctx, sc, o)
	if !e.o.unguarded.late {
		for _, y := range x.vectors()[1:] {
			y.dropDevice(err == nil) // it came after the copies
		}
	}
	return err
}

// vectors are those that there are.
func (v *evaluations) vectors() []*vector {
	if v.c == nil {
		return []*vector{v.a, v.b}
	}
	return []*vector{v.a, v.b, v.c}
}

// fetch brings a vector that is not on the card, in memory that the task was
// granted. The vector keeps it when the task is over.
func (t *task) fetch(v *vector) error {
	if v.onDevice() != nil {
		return nil
	}
	host := v.onHost()
	if host == nil {
		return &gpu.StaleError{Device: t.e.card.name, What: "a vector"}
	}
	b, err := t.stand(v.bytes(), alloc.Evaluation)
	if err != nil {
		return err
	}
	if err := t.bounceScalars(b.ptr(), host); err != nil {
		t.after(b.free) // part of it may be there: not the vector, for whoever tries again
		return err
	}
	v.place(b)
	return nil
}

// stand is a block of what the task was granted that its job keeps.
func (t *task) stand(n int64, p alloc.Purpose) (*block, error) {
	if n > t.room {
		return nil, fmt.Errorf("%d bytes for %v, %d are left of what was granted: %w", n, p, t.room, gpu.ErrNoMemory)
	}
	t.e.card.mem.turn(working, standing, n)
	t.room -= n
	return t.e.newBlock(t.sc, standing, n, p, alloc.Secret|alloc.Dirty)
}

// loadNTT loads the kernels outside of a task, where their sizes are asked for.
func (e *Engine) loadNTT() (*kernels.NTT, error) {
	ntt, err := e.set.NTT()
	if err != nil {
		return nil, e.failed("load kernels", err)
	}
	return ntt, nil
}

// Quotient is the quotient of vectors in host memory, where the result goes too.
func (e *Engine) Quotient(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, a, b, c []curve.Scalar) error {
	if err := checkDomain(e.id, d, basis); err != nil {
		return fmt.Errorf("quotient: %w", err)
	}
	n := d.Size()
	if len(a) != n || len(b) != n || c != nil && len(c) != n {
		return fmt.Errorf("quotient: vectors of %d, %d and %d for a domain of %d", len(a), len(b), len(c), n)
	}
	ntt, err := e.loadNTT()
	if err != nil {
		return err
	}
	key := tableKey{d, basis}
	scratch := ntt.ScratchBytes(d.Log, basis, c == nil)
	size := int64(n) * curve.ScalarBytes
	vectors := [][]curve.Scalar{a, b}
	if c != nil {
		vectors = append(vectors, c)
	}
	need := aligned(scratch) + int64(len(vectors))*aligned(size)
	tables := ntt.TableBytes(d, basis)
	if tables == 0 {
		return fmt.Errorf("quotient on %s: the domain of 2^%d has no tables", e.card.name, d.Log)
	}
	held, missing := e.tables.hold(key, aligned(tables))
	defer e.tables.letGo(key, held)
	o := &op{name: methodNames[mQuotient], stat: mQuotient, least: need + missing, most: need + missing, stays: missing}
	o.body = func(t *task) error {
		ntt, err := e.set.NTT()
		if err != nil {
			return err
		}
		tab, err := e.tables.use(t, ntt, key, held)
		if err != nil {
			return err
		}
		mem, err := t.take(need, alloc.Evaluation)
		if err != nil {
			return err
		}
		cut := carved{mem, mem + gpu.Ptr(need)}
		var at [3]gpu.Ptr
		for i, v := range vectors {
			at[i] = cut.carve(size)
			if err := t.l.belt.scalars(t.check, at[i], v); err != nil {
				return err
			}
		}
		if err := t.afterBelt(); err != nil {
			return err
		}
		if err := ntt.Quotient(t.st, t.args, tab, basis, at[0], at[1], at[2], cut.carve(scratch)); err != nil {
			return err
		}
		t.touched = true
		return t.takeBack(curve.Bytes(a), at[0])
	}
	return e.run(ctx, sc, o)
}

// checkDomain is what a domain and a basis must be. Whether the generator is a
// root is seen when tables are made.
func checkDomain(id curve.ID, d curve.Domain, basis curve.Basis) error {
	if d.Log < 0 || d.Log > id.TwoAdicity() || d.Log > kernels.MaxNTT {
		return fmt.Errorf("no transforms on a domain of 2^%d on %v", d.Log, id)
	}
	if basis != curve.Monomial && basis != curve.Coset {
		return fmt.Errorf("%v", basis)
	}
	return nil
}
