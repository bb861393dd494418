package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// KeepWith is Keep of this engine and of others, which are *Engine of the same
// curve: each vector is read from where it lies, and copied to page-locked memory,
// once for all of them, and goes from there to each card. The results are in the
// order of the engines, this one first. One that fails, or has no room, holds
// nobody up.
func (e *Engine) KeepWith(ctx context.Context, others []any, points ...curve.Points) (drops []func(), errs []error) {
	all := []*Engine{e}
	for _, o := range others {
		x, ok := o.(*Engine)
		if !ok {
			x = nil
		}
		all = append(all, x)
	}
	drops, errs = make([]func(), len(all)), make([]error, len(all))
	held := make([][]*keptPoints, len(all))
	var at []int // engines that take part
	longest := 0
	for _, p := range points {
		longest = max(longest, p.Len())
	}
	for i, x := range all {
		if x == nil {
			errs[i] = fmt.Errorf("keep points together with %s: a %T is no engine", e.card.name, others[i-1])
			continue
		}
		for _, p := range points {
			if p.Curve != x.id && len(p.Data) > 0 {
				errs[i] = fmt.Errorf("keep points on %s: they are of %v, the engine of %v", x.card.name, p.Curve, x.id)
			}
		}
		if errs[i] == nil {
			at = append(at, i)
			drops[i] = x.keys.dropOnce(&held[i])
			x.expectJobs(longest)
		}
	}
	for _, p := range points {
		if len(p.Data) == 0 {
			continue
		}
		r := newReading(e, p.Data, len(at))
		var wait sync.WaitGroup
		for n, i := range at {
			k := all[i].keys.add(r.kept(p, n))
			held[i] = append(held[i], k)
			wait.Go(func() {
				defer r.members[n].leave()
				_, errs[i] = all[i].keys.bring(ctx, k)
			})
		}
		r.run(ctx)
		wait.Wait()
		r.close()
		left := at[:0:0]
		for _, i := range at {
			if errs[i] == nil {
				left = append(left, i)
				continue
			}
			drops[i]()
			drops[i] = nil
		}
		at = left
	}
	return drops, errs
}

// reading is memory of the host that goes to several cards. One goroutine copies
// it, piece by piece, into two page-locked buffers in turns, and each card copies
// from there.
type reading struct {
	e       *Engine // whose memory and sizes
	data    []byte
	members []*reader
	pins    [2]*gpu.Pinned
	read    int64 // bytes, by the one goroutine
}

// reader is a card that takes part.
type reader struct {
	joined chan struct{}
	once   sync.Once
	pieces chan []byte
	done   chan struct{} // a piece is copied, or could not be
	left   chan struct{} // it takes no more
	gone   sync.Once
}

func (m *reader) join()  { m.once.Do(func() { close(m.joined) }) }
func (m *reader) leave() { m.gone.Do(func() { close(m.left) }) }

func newReading(e *Engine, data []byte, n int) *reading {
	r := &reading{e: e, data: data}
	for range n {
		r.members = append(r.members, &reader{
			joined: make(chan struct{}), pieces: make(chan []byte), done: make(chan struct{}), left: make(chan struct{})})
	}
	return r
}

// kept is p as reader n brings it: from the reading while that lasts, and by itself
// when it is brought again later.
func (r *reading) kept(p curve.Points, n int) *keptPoints {
	m := r.members[n]
	first := true // fill is called under the lock of what it fills
	return &keptPoints{id: idOfPoints(p), bytes: int64(len(p.Data)), fill: func(t *task, mem gpu.Ptr) error {
		select {
		case <-m.left:
			first = false
		default:
		}
		if !first {
			return t.bounceIn(mem, p.Data, false)
		}
		first = false
		return m.take(t, mem, int64(len(p.Data)))
	}}
}

// take copies what the reading brings to mem. What it has copied from is free when
// it has said so.
func (m *reader) take(t *task, mem gpu.Ptr, n int64) error {
	defer m.leave()
	m.join()
	var at int64
	for piece := range m.pieces {
		k := int64(len(piece))
		err := t.st.CopyIn(mem+gpu.Ptr(at), unsafe.Pointer(unsafe.SliceData(piece)), k)
		if e := drain(t.st); err == nil {
			err = e
		}
		t.e.stats.up.Add(k)
		at += k
		m.done <- struct{}{}
		if err != nil {
			return err
		}
	}
	if at < n {
		return errors.Join(context.Cause(t.ctx), fmt.Errorf("%d bytes of %d came: the reading has ended", at, n))
	}
	return nil
}

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
	size := min(r.e.o.chunk, int64(len(r.data)))
	var copying []*reader // from the other buffer
	for turn := 0; len(r.data) > 0 && len(takes) > 0 && ctx.Err() == nil; turn = 1 - turn {
		p, err := r.pin(turn, size)
		if err != nil {
			break // those that wait for it bring the points by themselves
		}
		n := min(size, int64(len(r.data)))
		spread(p[:n], r.data[:n])
		r.data, r.read = r.data[n:], r.read+n
		copied(copying)
		copying = copying[:0]
		for _, m := range takes {
			select {
			case m.pieces <- p[:n]:
				copying = append(copying, m)
			case <-m.left:
			}
		}
		takes = append(takes[:0:0], copying...)
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
	for _, b := range r.pins {
		if b != nil {
			b.Release()
		}
	}
}
