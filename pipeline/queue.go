package pipeline

import (
	"runtime"
	"sync"
	"time"

	"github.com/snarkline/snarkline/internal/rules"
)

// queue is the sized channel before a stage: its capacity can change while it is
// used, and it also holds how many workers read it, so that a change of either
// wakes whom it concerns.
type queue struct {
	mu       sync.Mutex
	notEmpty sync.Cond
	notFull  sync.Cond
	rules.Queue[message]
	closed bool // nothing more comes
	dead   bool // the run has stopped
	active int  // workers there are
	target int  // workers there should be
	bytes  *meter
}

func newQueue(capacity int, bytes *meter) *queue {
	q := &queue{bytes: bytes}
	q.Capacity = capacity
	q.notEmpty.L, q.notFull.L = &q.mu, &q.mu
	return q
}

// tryPush puts m in if there is room, or says that its item is gone.
func (q *queue) tryPush(m message) (done, gone bool) {
	q.mu.Lock()
	if q.dead || m.item.failed.Load() {
		q.mu.Unlock()
		return false, true
	}
	if q.Full() {
		q.mu.Unlock()
		return false, false
	}
	q.put(&m)
	q.mu.Unlock()
	return true, false
}

// push waits for room. It reports false if the item is gone; the caller keeps
// the message then.
func (q *queue) push(m message) bool {
	// One turn for whoever may be about to make room, as in pop.
	runtime.Gosched()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.dead || m.item.failed.Load() {
			return false
		}
		if !q.Full() {
			q.put(&m)
			return true
		}
		q.notFull.Wait()
	}
}

func (q *queue) put(m *message) {
	q.Put(m)
	// Under the lock, so that the peak is one that there was.
	q.bytes.add(&m.hold)
	q.notEmpty.Signal()
}

// verdict is what a worker is to do.
type verdict uint8

const (
	take   verdict = iota // work on the message
	retire                // there are too many workers
	over                  // nothing more comes
	last                  // nothing more comes, and no other worker is left
)

// pop waits for a message. waited is 0 if it did not have to.
func (q *queue) pop(r *run) (m message, waited time.Duration, v verdict) {
	var since time.Duration
	waiting := false
	q.mu.Lock()
	for {
		switch {
		case q.active > q.target:
			q.active--
			v = retire
			// The wake-up may have been meant for a message.
			q.notEmpty.Signal()
		case q.Len() > 0:
			q.Take(&m)
			q.bytes.sub(&m.hold)
			q.notFull.Signal()
			v = take
		case q.closed || q.dead:
			if q.active--; q.active == 0 {
				v = last
			} else {
				v = over
			}
		default:
			if !waiting {
				waiting, since = true, r.now()
				// One turn for whoever may be about to bring something: that
				// is cheaper than to sleep and be woken.
				q.mu.Unlock()
				runtime.Gosched()
				q.mu.Lock()
				continue
			}
			q.notEmpty.Wait()
			continue
		}
		q.mu.Unlock()
		if waiting {
			waited = r.now() - since
		}
		return m, waited, v
	}
}

// close says that nothing more comes.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.notEmpty.Broadcast()
	q.mu.Unlock()
}

// kill ends the queue and gives back what was in it.
func (q *queue) kill() []message {
	q.mu.Lock()
	q.dead = true
	out := q.filter(func(*message) bool { return true })
	q.notEmpty.Broadcast()
	q.notFull.Broadcast()
	q.mu.Unlock()
	return out
}

// remove takes out what belongs to a failed item, and wakes those who wait to
// put more of it in.
func (q *queue) remove(it *item) []message {
	q.mu.Lock()
	out := q.filter(func(m *message) bool { return m.item == it })
	q.notFull.Broadcast()
	q.mu.Unlock()
	return out
}

func (q *queue) filter(hit func(*message) bool) (out []message) {
	q.Filter(func(m *message) bool {
		if !hit(m) {
			return false
		}
		out = append(out, *m)
		q.bytes.sub(&m.hold)
		return true
	})
	return out
}

func (q *queue) setCapacity(n int) {
	q.mu.Lock()
	q.Capacity = n
	q.notFull.Broadcast()
	q.mu.Unlock()
}
