package cuda

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
)

// uploader brings vectors to the card on a stream of its own, one after
// another, while operations run. Nobody waits for it but those who need a
// vector: they wait, on the device, for its event.
type uploader struct {
	e       *Engine
	workers *gpu.Workers // one
	made    bool
	gen     uint64
	belt    *belt

	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	queue []upload
	busy  bool
	going int        // host buffers that are being let go of
	idle  *sync.Cond // the queue is empty and nothing is at work or going
	wake  chan struct{}
	done  chan struct{}
	stop  bool
}

// upload is a vector that the uploader holds a reference on, and the mark that
// tells when it is on the card.
type upload struct {
	v *vector
	m *mark
}

func newUploader(e *Engine) (*uploader, error) {
	w, err := e.card.Workers(1, true)
	if err != nil {
		return nil, err
	}
	u := &uploader{e: e, workers: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
	u.idle = sync.NewCond(&u.mu)
	u.ctx, u.cancel = context.WithCancel(context.Background())
	go u.run()
	return u, nil
}

// close ends it. Vectors that still wait are not brought.
func (u *uploader) close() error {
	u.mu.Lock()
	u.stop = true
	u.mu.Unlock()
	u.cancel()
	u.nudge()
	<-u.done
	u.mu.Lock()
	for u.going > 0 {
		u.idle.Wait()
	}
	u.mu.Unlock()
	err := u.workers.Close()
	u.e.card.Reaper.Flush()
	u.belt.close()
	return err
}

func (u *uploader) nudge() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// flush waits until all that was given to bring is over.
func (u *uploader) flush() {
	u.mu.Lock()
	for len(u.queue) > 0 || u.busy || u.going > 0 {
		u.idle.Wait()
	}
	u.mu.Unlock()
	u.e.card.Reaper.Flush()
}

// bring queues the copy of v's host buffer to its device memory. It keeps a
// reference on v until the copy is done, or never will be, and lets go of the
// host buffer as soon as it is not read any more.
func (u *uploader) bring(v *vector) {
	v.Retain()
	j := upload{v, newMark()}
	v.expectCopy(j.m)
	u.mu.Lock()
	stop := u.stop
	if !stop {
		u.queue = append(u.queue, j)
	}
	u.mu.Unlock()
	if stop {
		u.drop(j, errClosed)
		return
	}
	u.nudge()
}

// end gives up on v, which the caller has let go of, unless somebody else needs
// it: then it waits until the card does not touch it any more.
func (u *uploader) end(v *vector) {
	if !v.abandoned() {
		return
	}
	u.mu.Lock()
	for i, j := range u.queue {
		if j.v == v {
			u.queue = append(u.queue[:i], u.queue[i+1:]...)
			u.mu.Unlock()
			u.drop(j, context.Canceled)
			return
		}
	}
	u.mu.Unlock()
	<-v.over
}

// drop gives up on a vector that was not begun.
func (u *uploader) drop(j upload, err error) {
	_ = j.m.record(u.e.card, nil, err) // err, which those who need the vector get
	j.v.came()
}

func (u *uploader) next() (j upload, stop bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	if len(u.queue) == 0 {
		u.idle.Broadcast()
		return j, u.stop
	}
	j, u.queue[0], u.queue = u.queue[0], upload{}, u.queue[1:]
	u.busy = true
	return j, u.stop
}

func (u *uploader) run() {
	defer close(u.done)
	for {
		j, stop := u.next()
		switch {
		case j.v == nil && stop:
			return
		case j.v == nil:
			<-u.wake
			continue
		case stop:
			u.drop(j, errClosed)
			continue
		case j.v.abandoned():
			u.drop(j, context.Canceled)
			continue
		}
		err := u.workers.Do(u.ctx, func(w *gpu.Worker) error { u.copy(w, j); return nil })
		if err != nil { // it was not begun: the card has to be reset, say
			u.drop(j, err)
		}
	}
}

// copy queues the copy of a vector and the end of what it needs.
func (u *uploader) copy(w *gpu.Worker, j upload) {
	st, err := u.ready(w)
	dev := j.v.onDevice()
	if err == nil && dev != nil {
		err = dev.live()
	}
	if err != nil || dev == nil {
		u.drop(j, orReset(err))
		return
	}
	since := time.Now()
	held, err := u.queueCopy(j.v, dev)
	u.e.stats.brought(j.v.bytes(), time.Since(since))
	switch {
	case u.e.o.unguarded.hold, !held && j.v.shared != nil: // whoever shares it holds the buffer
		j.v.letHostGo()
	case !held:
		u.letHostGo(j.v)
	}
	if j.m.record(u.e.card, st, err) != nil {
		// Part of it may be under way, and no event will tell.
		_ = u.belt.drain()
		j.v.came()
		return
	}
	u.e.card.Reaper.After(st, func(error) { j.v.came() })
}

// letHostGo lets go of v's host buffer. The last reference wipes it, which takes
// as long as the copy did: the next vector is not to wait for that, nor this one.
func (u *uploader) letHostGo(v *vector) {
	u.mu.Lock()
	u.going++
	u.mu.Unlock()
	go func() {
		v.letHostGo()
		u.mu.Lock()
		u.going--
		u.idle.Broadcast()
		u.mu.Unlock()
	}()
}

// ready makes what the worker's generation lacks.
func (u *uploader) ready(w *gpu.Worker) (gpu.Stream, error) {
	if u.made && u.gen == w.Generation() {
		return u.belt.stream, nil
	}
	u.e.card.Reaper.Flush()
	u.belt.close()
	u.made, u.belt = false, nil
	b, err := newBelt(u.e)
	if err != nil {
		return nil, err
	}
	b.fresh = true // a vector's memory has no other user before it is there
	u.belt, u.made, u.gen = b, true, w.Generation()
	return b.stream, nil
}

// queueCopy queues the copy on the belt's stream. held says that the host buffer
// is still read when it returns.
func (u *uploader) queueCopy(v *vector, dev *block) (held bool, err error) {
	host, dst := v.onHost(), dev.ptr()
	src := curve.Bytes(host.Slice())
	if host.Space() == alloc.Pinned {
		return true, u.belt.straight(dst, src)
	}
	if u.e.o.transfer == Registered && registrable {
		reg, err := u.e.card.Registry.PinBuffer(u.e.card, u.e.card.own, host)
		if err == nil {
			if err = reg.CopyIn(u.belt.stream, dst, 0, int64(len(src))); err == nil {
				u.e.stats.up.Add(int64(len(src)))
			}
			u.e.card.Reaper.After(u.belt.stream, nil, reg)
			return true, err
		}
		if isGone(err) {
			return false, err
		}
		u.e.stats.refused.Add(1)
	}
	return false, u.belt.scalars(func() error {
		if v.abandoned() {
			return context.Canceled
		}
		return context.Cause(u.ctx)
	}, dst, host.Slice())
}

// bounceIn copies src to the device on a task's belt and makes the task's work
// from now on wait for it. src has been read when it returns, unless it is
// page-locked (pinned): then it must stay until the task ends.
func (t *task) bounceIn(dst gpu.Ptr, src []byte, pinned bool) error {
	b := t.l.belt
	var err error
	if pinned {
		err = b.straight(dst, src)
	} else {
		err = b.carry(t.ctx, dst, src)
	}
	if err != nil {
		return err
	}
	return t.afterBelt()
}

// bounceScalars is bounceIn of a host buffer of scalars.
func (t *task) bounceScalars(dst gpu.Ptr, host *alloc.Buffer[curve.Scalar]) error {
	if host.Space() == alloc.Pinned {
		return t.bounceIn(dst, curve.Bytes(host.Slice()), true)
	}
	if err := t.l.belt.scalars(t.check, dst, host.Slice()); err != nil {
		return err
	}
	return t.afterBelt()
}

// afterBelt makes the task's work from now on wait for what its belt has.
func (t *task) afterBelt() error {
	if err := t.l.belt.stream.Record(t.l.landed[0]); err != nil {
		return err
	}
	return t.st.Wait(t.l.landed[0])
}

// bringBack queues a copy from the device to page-locked memory.
func (t *task) bringBack(dst []byte, src gpu.Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	if err := t.st.CopyOut(unsafe.Pointer(unsafe.SliceData(dst)), src, int64(len(dst))); err != nil {
		return err
	}
	t.e.stats.down.Add(int64(len(dst)))
	return nil
}

// takeBack copies n bytes from the device to dst, of any memory, through the
// belt's page-locked buffers. It waits for each.
func (t *task) takeBack(dst []byte, src gpu.Ptr) error {
	if err := drain(t.st); err != nil {
		return err
	}
	b := t.l.belt
	if err := b.drain(); err != nil {
		return err
	}
	for len(dst) > 0 {
		if err := t.check(); err != nil {
			return err
		}
		_, p, err := b.pin(min(b.size, int64(len(dst))))
		if err != nil {
			return err
		}
		n := min(len(p), len(dst))
		if err := t.bringBack(p[:n], src); err != nil {
			return err
		}
		if err := drain(t.st); err != nil {
			return fmt.Errorf("bring %d bytes back: %w", n, err)
		}
		spread(dst[:n], p[:n])
		dst, src = dst[n:], src+gpu.Ptr(n)
	}
	return nil
}
