package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// checkRows is how many rows of C·w are made at a time where they are only
// compared.
const checkRows = 1 << 20

// evaluateBytes bounds the scratch of an evaluation on a domain of n.
func evaluateBytes(n int) int64 {
	return aligned(kernels.MatrixScratch) + aligned(curve.ScalarBytes*int64(min(n, checkRows))) + aligned(4)
}

// PrestageOf evaluates the matrices of s, which are held, on w: on the card, to
// which w alone is brought. It waits for that, and then gives what Prestage gives;
// w stays on the card for as long as that does, for the sums over it. With check
// it compares a∘b with C·w, and row is the first that differs, or −1. Where there
// is no room for the vectors it fails, and the job is made again from its input.
func (e *Engine) PrestageOf(ctx context.Context, sc *alloc.Scope, d curve.Domain, basis curve.Basis, s system, folded, check bool, w *alloc.Buffer[curve.Scalar]) (v held, row int, err error) {
	o := &op{name: methodNames[mEvaluate], stat: mEvaluate}
	if err := context.Cause(ctx); err != nil {
		return nil, -1, err
	}
	if err := checkDomain(e.id, d, basis); err != nil {
		return nil, -1, fmt.Errorf("evaluate: %w", err)
	}
	n := d.Size()
	if w == nil || w.Len() != s.Wires || s.Rows < 0 || s.Inputs < 0 || s.Inputs > s.Wires || s.Rows+s.Inputs > n {
		return nil, -1, fmt.Errorf("evaluate: %d and %d rows on %d wires do not go with the witness, or the domain's %d scalars", s.Rows, s.Inputs, s.Wires, n)
	}
	e.expectJobs(n)
	m, err := e.keys.evaluation(s, folded, check)
	if err != nil {
		return nil, -1, e.fail(o, err, true)
	}
	x, err := e.witnessOf(ctx, sc, o.name, w)
	if err == nil && x == nil {
		err = e.fail(o, noRoom(w.Bytes()), true)
	}
	if err != nil {
		return nil, -1, err
	}
	ev, err := e.newEvaluations(sc, d, basis, folded)
	if err != nil {
		e.wits.letGo(x)
		return nil, -1, err
	}
	ev.w = x
	if row, err = e.evaluate(ctx, sc, o, ev, m, x); err != nil || row >= 0 {
		for _, r := range ev.Buffers() {
			r.Release()
		}
		e.wup.end(x)
		return nil, row, err
	}
	x.letHostGo() // it was copied
	text := ev.String()
	e.lastTier.Store(&text)
	return ev, -1, nil
}

// noRoom is the error of a job whose vectors find no room on the card.
func noRoom(n int64) error { return &roomError{asked: n} }

// newEvaluations are the vectors of a job in device memory, with nothing in them.
func (e *Engine) newEvaluations(sc *alloc.Scope, d curve.Domain, basis curve.Basis, folded bool) (*evaluations, error) {
	v := &evaluations{e: e, domain: d, basis: basis, evaluated: true}
	v.host.start(1)
	v.host.down() // there is nothing on the host
	n := d.Size()
	v.a, v.b = newVector(e, n, nil, nil), newVector(e, n, nil, nil)
	if !folded {
		v.c = newVector(e, n, nil, nil)
	}
	err := v.place(sc)
	if isGone(err) && !e.o.unguarded.reset {
		if again := e.card.revive(); again == nil {
			err = fmt.Errorf("evaluate: %w", errReset) // the matrices went with it
		}
	}
	if err == nil {
		return v, nil
	}
	for _, r := range v.Buffers() {
		r.Release()
	}
	var over *alloc.OverdrawError
	if errors.As(err, &over) || errors.Is(err, gpu.ErrClosed) {
		return nil, fmt.Errorf("%s on %s: %w", methodNames[mEvaluate], e.card.name, err)
	}
	return nil, e.fail(&op{name: methodNames[mEvaluate]}, err, true)
}

// matrices are those of a system on the card, A, B and C.
type matrices struct {
	s       system
	plan    [3]*kernels.MatrixPlan
	kept    [3]*keptPoints // nil: it has no rows
	product bool           // c is a∘b
	check   bool
}

// evaluation finds what is held of s.
func (c *keyCache) evaluation(s system, folded, check bool) (*matrices, error) {
	m := &matrices{s: s, check: check && s.C.NumRows() > 0, product: !folded && s.C.NumRows() == 0}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, x := range []curve.Matrix{s.A, s.B, s.C} {
		if x.NumRows() == 0 {
			m.plan[i] = new(kernels.MatrixPlan)
			continue
		}
		k := c.m[idOfMatrix(x)]
		if k == nil || k.users == 0 || k.mem == nil || k.mem.live() != nil {
			return nil, &gpu.StaleError{Device: c.e.card.name, What: "a matrix"}
		}
		m.plan[i], m.kept[i] = k.plan, k
	}
	return m, nil
}

// evaluate fills the vectors of v, and looks for the first row that does not hold.
func (e *Engine) evaluate(ctx context.Context, sc *alloc.Scope, o *op, v *evaluations, m *matrices, w *vector) (row int, err error) {
	row = -1
	var sums int64
	for _, p := range m.plan {
		sums = max(sums, aligned(p.Scratch()))
	}
	piece := 0
	if m.check && v.c == nil {
		piece = min(m.s.Rows, checkRows)
	}
	pieces := aligned(curve.ScalarBytes * int64(piece))
	o.least = sums + pieces + aligned(4)
	o.most = o.least
	o.body = func(t *task) error {
		k, err := e.set.Matrix()
		if err != nil {
			return err
		}
		at, err := w.ready(t.ctx, t.st)
		if err != nil {
			return err
		}
		mem, err := t.take(o.least, alloc.Scratch)
		if err != nil {
			return err
		}
		cut := carved{mem, mem + gpu.Ptr(o.least)}
		scratch, part, first := cut.carve(sums), cut.carve(pieces), cut.carve(4)
		x := &evaluating{t: t, k: k, m: m, w: at, scratch: scratch}
		var out [3]gpu.Ptr
		for i, y := range v.vectors() {
			if out[i], err = y.ready(t.ctx, t.st); err != nil {
				return err
			}
		}
		if err := x.vectors(v, out); err != nil || !m.check {
			return err
		}
		res, err := t.l.results(4)
		if err != nil {
			return err
		}
		if err := t.st.Fill(first, 0xff, 4); err != nil {
			return err
		}
		if err := x.compare(out, part, piece, first); err != nil {
			return err
		}
		if err := t.bringBack(res, first); err != nil {
			return err
		}
		t.copyOut(res, func(b []byte) error {
			if bad := *(*uint32)(unsafe.Pointer(unsafe.SliceData(b))); bad != kernels.NoRow {
				row = int(bad)
			}
			return nil
		})
		return nil
	}
	if err = e.run(ctx, sc, o); err != nil {
		return -1, err
	}
	return row, nil
}

// evaluating is an evaluation in a task.
type evaluating struct {
	t          *task
	k          *kernels.Matrix
	m          *matrices
	w, scratch gpu.Ptr
}

// rows queues rows first … first + n − 1 of matrix i.
func (x *evaluating) rows(i int, out gpu.Ptr, first, n int, in kernels.InputRows) error {
	var mem gpu.Ptr
	if k := x.m.kept[i]; k != nil {
		b, err := k.there(&x.t.e.keys)
		if err != nil {
			return err
		}
		mem = b.ptr()
	}
	return x.k.Evaluate(x.t.st, x.t.args, x.m.plan[i], mem, x.w, x.scratch, out, first, n, in)
}

// vectors queues all of a, b and c.
func (x *evaluating) vectors(v *evaluations, out [3]gpu.Ptr) error {
	s := x.m.s
	for i := range v.vectors() {
		var in kernels.InputRows
		switch {
		case i == 0:
			in = kernels.InputRows{From: s.Rows, N: s.Inputs}
		case i == 2 && x.m.product:
			if err := x.k.Product(x.t.st, x.t.args, out[0], out[1], out[2], v.a.n); err != nil {
				return err
			}
			continue
		}
		if err := x.rows(i, out[i], 0, v.a.n, in); err != nil {
			return err
		}
	}
	return nil
}

// compare queues the search for the first row of a∘b that is not C·w, which is
// in out[2] or else made in part, so many rows at a time.
func (x *evaluating) compare(out [3]gpu.Ptr, part gpu.Ptr, piece int, row gpu.Ptr) error {
	rows := x.m.s.Rows
	if out[2] != 0 {
		return x.k.Check(x.t.st, x.t.args, out[0], out[1], out[2], 0, rows, row)
	}
	for from := 0; from < rows; from += piece {
		n, at := min(piece, rows-from), gpu.Ptr(from*curve.ScalarBytes)
		if err := x.rows(2, part, from, n, kernels.InputRows{}); err != nil {
			return err
		}
		if err := x.k.Check(x.t.st, x.t.args, out[0]+at, out[1]+at, part, from, n, row); err != nil {
			return err
		}
	}
	return nil
}
