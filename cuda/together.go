package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/kernels"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// KeepWith is Keep of this engine and of others, which are *Engine of the same
// curve: each vector is read from where it lies, and copied to page-locked memory,
// once for all of them, and goes from there to each card. The results are in the
// order of the engines, this one first. One that fails, or has no room, holds
// nobody up.
func (e *Engine) KeepWith(ctx context.Context, others []any, points ...curve.Points) (drops []func(), errs []error) {
	j := e.jointly(others)
	longest := 0
	for _, p := range points {
		longest = max(longest, p.Len())
	}
	for _, i := range slices.Clone(j.at) {
		x := j.all[i]
		for _, p := range points {
			if p.Curve != x.id && len(p.Data) > 0 {
				j.fail(i, fmt.Errorf("keep points on %s: they are of %v, the engine of %v", x.card.name, p.Curve, x.id))
				break
			}
		}
		if j.errs[i] == nil {
			x.expectJobs(longest)
		}
	}
	for _, p := range points {
		if len(p.Data) == 0 {
			continue
		}
		j.bring(ctx, []part{{0, p.Data}}, func() *keptPoints {
			return &keptPoints{id: idOfPoints(p), bytes: int64(len(p.Data))}
		})
	}
	return j.drops, j.errs
}

// KeepSystemWith is KeepSystem of this engine and of others, as KeepWith is Keep:
// the matrices are looked through and read once for all cards.
func (e *Engine) KeepSystemWith(ctx context.Context, others []any, s system) (drops []func(), errs []error) {
	j := e.jointly(others)
	for _, m := range matricesOf(s) {
		plan, err := kernels.PlanMatrix(e.id, m, s.Wires)
		if err != nil {
			for _, i := range slices.Clone(j.at) {
				j.fail(i, fmt.Errorf("keep matrices on %s: %w", j.all[i].card.name, err))
			}
			break
		}
		var parts []part
		_ = plan.Parts(func(at int64, b []byte) error { parts = append(parts, part{at, b}); return nil })
		j.bring(ctx, parts, func() *keptPoints {
			return &keptPoints{id: idOfMatrix(m), bytes: plan.Bytes(), plan: plan}
		})
	}
	return j.drops, j.errs
}

// joint is a call of several engines.
type joint struct {
	e     *Engine   // who reads
	all   []*Engine // nil: is none
	at    []int     // those that take part still
	held  [][]*keptPoints
	drops []func()
	errs  []error
}

func (e *Engine) jointly(others []any) *joint {
	n := 1 + len(others)
	j := &joint{e: e, all: []*Engine{e}, held: make([][]*keptPoints, n), drops: make([]func(), n), errs: make([]error, n)}
	for _, o := range others {
		x, _ := o.(*Engine)
		j.all = append(j.all, x)
	}
	for i, x := range j.all {
		switch {
		case x == nil:
			j.errs[i] = fmt.Errorf("keep what a key has together with %s: a %T is no engine", e.card.name, others[i-1])
		case x.id != e.id:
			j.errs[i] = fmt.Errorf("keep what a key has on %s and %s: the engines are of %v and %v", e.card.name, x.card.name, e.id, x.id)
		default:
			j.at = append(j.at, i)
			j.drops[i] = x.keys.dropOnce(&j.held[i])
		}
	}
	return j
}

// fail says that engine i takes part no more.
func (j *joint) fail(i int, err error) {
	j.errs[i] = err
	j.drops[i]()
	j.drops[i] = nil
	j.at = slices.DeleteFunc(j.at, func(x int) bool { return x == i })
}

// bring brings what the parts are of to every engine that takes part. what makes
// the entry of one, all but how it is filled.
func (j *joint) bring(ctx context.Context, parts []part, what func() *keptPoints) {
	if len(j.at) == 0 {
		return
	}
	r := newReading(j.e, parts, len(j.at))
	errs := make([]error, len(j.all))
	var wait sync.WaitGroup
	for n, i := range j.at {
		keys := &j.all[i].keys
		k := keys.add(r.kept(what(), n))
		j.held[i] = append(j.held[i], k)
		wait.Go(func() {
			defer r.members[n].leave()
			_, errs[i] = keys.bring(ctx, k)
		})
	}
	r.run(ctx)
	wait.Wait()
	r.close()
	for i, err := range errs {
		if err != nil {
			j.fail(i, err)
		}
	}
}

// part is memory of the host that goes to a place in a block of a card.
type part struct {
	at    int64
	bytes []byte
}

// reading is memory of the host that goes to several cards. One goroutine copies
// it, piece by piece, into two page-locked buffers in turns, and each card copies
// from there.
type reading struct {
	e       *Engine // whose memory and sizes
	parts   []part
	size    int64 // bytes of all parts
	members []*reader
	pins    [2]*gpu.Pinned
	read    int64 // bytes, by the one goroutine
}

// reader is a card that takes part.
type reader struct {
	joined chan struct{}
	once   sync.Once
	pieces chan part     // page-locked
	done   chan struct{} // a piece is copied, or could not be
	left   chan struct{} // it takes no more
	gone   sync.Once
}

func (m *reader) join()  { m.once.Do(func() { close(m.joined) }) }
func (m *reader) leave() { m.gone.Do(func() { close(m.left) }) }

func newReading(e *Engine, parts []part, n int) *reading {
	r := &reading{e: e, parts: parts}
	for _, p := range parts {
		r.size += int64(len(p.bytes))
	}
	for range n {
		r.members = append(r.members, &reader{
			joined: make(chan struct{}), pieces: make(chan part), done: make(chan struct{}), left: make(chan struct{})})
	}
	return r
}

// kept is k as reader n brings it: from the reading while that lasts, and by itself
// when it is brought again later.
func (r *reading) kept(k *keptPoints, n int) *keptPoints {
	m, parts, size := r.members[n], r.parts, r.size
	first := true // fill is called under the lock of what it fills
	k.fill = func(t *task, mem gpu.Ptr) error {
		select {
		case <-m.left:
			first = false
		default:
		}
		if first {
			first = false
			if err := m.take(t, mem, size); !errors.Is(err, errReading) {
				return err
			}
		}
		for _, p := range parts {
			if err := t.bounceIn(mem+gpu.Ptr(p.at), p.bytes, false); err != nil {
				return err
			}
		}
		return nil
	}
	return k
}

// take copies what the reading brings to mem. What it has copied from is free when
// it has said so.
func (m *reader) take(t *task, mem gpu.Ptr, n int64) error {
	defer m.leave()
	m.join()
	var came int64
	for piece := range m.pieces {
		k := int64(len(piece.bytes))
		err := t.st.CopyIn(mem+gpu.Ptr(piece.at), unsafe.Pointer(unsafe.SliceData(piece.bytes)), k)
		if e := drain(t.st); err == nil {
			err = e
		}
		t.e.stats.up.Add(k)
		came += k
		m.done <- struct{}{}
		if err != nil {
			return err
		}
	}
	if err := context.Cause(t.ctx); err != nil && came < n {
		return fmt.Errorf("%d bytes of %d came: %w", came, n, err)
	}
	if came < n {
		return errReading
	}
	return nil
}

// errReading is that a reading has ended before its end, for want of page-locked
// memory: who takes part goes on alone.
var errReading = errors.New("the reading has ended")

// run reads for those that take part, until the end or until nobody is left.
func (r *reading) run(ctx context.Context) {
	var takes []*reader
	for _, m := range r.members {
		select {
		case <-m.joined:
			takes = append(takes, m)
		case <-m.left: // there already, or no room
		}
	}
	defer func() {
		for _, m := range r.members {
			close(m.pieces)
		}
	}()
	size := min(r.e.o.chunk, r.size)
	var copying []*reader // from the other buffer
	turn := 0
	for _, p := range r.parts {
		for at := int64(0); at < int64(len(p.bytes)) && len(takes) > 0 && ctx.Err() == nil; turn = 1 - turn {
			pin, err := r.pin(turn, size)
			if err != nil {
				copied(copying)
				r.close()
				return // those that wait for it bring it by themselves
			}
			n := min(size, int64(len(p.bytes))-at)
			spread(pin[:n], p.bytes[at:at+n])
			piece := part{p.at + at, pin[:n]}
			at, r.read = at+n, r.read+n
			copied(copying)
			copying = copying[:0]
			for _, m := range takes {
				select {
				case m.pieces <- piece:
					copying = append(copying, m)
				case <-m.left:
				}
			}
			takes = append(takes[:0:0], copying...)
		}
	}
	copied(copying)
}

// copied waits until each has copied its piece. One that failed says so too.
func copied(by []*reader) {
	for _, m := range by {
		<-m.done
	}
}

// pin is one of the two buffers.
func (r *reading) pin(i int, n int64) ([]byte, error) {
	if r.pins[i] == nil {
		b, err := r.e.card.Pinned(r.e.card.own, n, alloc.Scratch)
		if err != nil {
			return nil, fmt.Errorf("page-locked memory to bring points through: %w", err)
		}
		r.pins[i] = b
	}
	return r.pins[i].Slice(), nil
}

func (r *reading) close() {
	for i, b := range r.pins {
		if b != nil {
			b.Release()
		}
		r.pins[i] = nil
	}
}
