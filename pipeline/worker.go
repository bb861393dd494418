package pipeline

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// work is a worker of a stage or function sink.
func (s *station) work() {
	ended := false
	defer func() {
		// Not ended: the stage ended the goroutine. Another takes its place.
		if !ended {
			s.run.wg.Add(1)
			go s.work()
		}
		s.run.wg.Done()
	}()
	for {
		m, waited, v := s.q.pop(s.run)
		s.addWait(&s.waitIn, WaitedIn, waited)
		switch v {
		case take:
			s.process(m)
			continue
		case last:
			s.over()
		}
		ended = true
		return
	}
}

// process runs the stage on one value.
func (s *station) process(m message) {
	r, it := s.run, m.item
	if it.gone() || s.node.kind == kindSink && !it.deliver() {
		r.drop(s, m)
		return
	}
	// The lease is counted before it begins: nobody else knows of it yet.
	s.held.add(&m.hold)
	c := &call{st: s, item: it, hold: m.hold}
	if r.heard {
		c.id = alloc.Default().NextTag()
	}
	if r.g.unsafe.endAtStart {
		c.end()
	}
	s.running.Add(1)
	c.begun = r.now()
	if r.heard {
		r.tell(Event{Kind: Begin, At: c.begun, Stage: s.node.name, Key: it.key, Bytes: m.hold.bytes(), Item: it.id, Call: c.id, hold: m.hold})
	}
	var out result
	for attempt := 1; ; attempt++ {
		c.mu.Lock()
		c.final = attempt > s.node.retries
		c.mu.Unlock()
		s.invoke(c, m.val, &out)
		if out.err == nil || attempt > s.node.retries || it.gone() || !temporary(out.err) || fromStart(out.err) {
			break
		}
		s.retries.Add(1)
		if r.heard {
			r.tell(Event{Kind: Retried, At: r.now(), Stage: s.node.name, Key: it.key, Err: out.err, Attempt: attempt, Item: it.id, Call: c.id})
		}
		if !backOff(c, s.node.backoff, attempt) {
			break
		}
	}
	c.end()
	s.settle(c, &out)
}

// settle does what is to be done with the result of a stage.
func (s *station) settle(c *call, out *result) {
	r, it := s.run, c.item
	now := r.now()
	s.running.Add(-1)
	took := now - c.begun
	waited := min(time.Duration(c.waited.Load()), took)
	s.busy.Add(int64(took - waited))
	s.waitIn.Add(int64(waited))
	if r.heard {
		if waited > 0 {
			r.tell(Event{Kind: WaitedIn, At: now, Stage: s.node.name, Key: it.key, Wait: waited, Item: it.id, Call: c.id})
		}
		r.tell(Event{Kind: End, At: now, Stage: s.node.name, Key: it.key, Wait: took, Bytes: out.hold.bytes(), Err: out.err, Item: it.id, Call: c.id, Device: alloc.Space(c.device.Load()), hold: out.hold})
	}
	if out.err != nil {
		if err := s.wrap(it, out); !r.again(s, it, err) {
			r.fail(s, it, err)
		}
		it.cut.Store(true)
		r.leave(it, 1)
		return
	}
	s.items.Add(1)
	it.finish(s)
	m := message{it, out.val, out.hold}
	switch {
	case s.node.kind == kindSink:
		r.leave(it, 1)
	case s.o != nil:
		s.o.put(m)
	default:
		s.emit(m)
	}
	if s.node.kind != kindSink {
		s.tellOf(Sent, it, c.id, nil)
	}
}

// result is what came of a call.
type result struct {
	val   any
	hold  hold
	err   error
	stack []byte
}

func (s *station) wrap(it *item, out *result) error {
	var se *StageError
	if errors.As(out.err, &se) && se.Stage == s.node.name && se.Key == it.key {
		return out.err
	}
	return &StageError{Stage: s.node.name, Key: it.key, Err: out.err, Stack: out.stack}
}

// invoke calls the stage. A panic becomes an error; if the stage ends the
// goroutine, the item is dealt with here and work starts a worker anew.
func (s *station) invoke(c *call, in any, out *result) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			*out = result{err: &PanicError{p}, stack: debug.Stack()}
			return
		}
		c.end()
		s.settle(c, &result{err: ErrGoexit})
	}()
	*out = result{}
	out.val, out.err = s.node.call(c, in)
	if out.err != nil {
		out.val = nil
	} else if s.node.out.t != nil {
		out.hold = holdOf(out.val)
	}
	returned = true
}

// backOff waits before a repetition; it reports false if there is to be none.
func backOff(c *call, first time.Duration, attempt int) bool {
	if first <= 0 {
		return !c.item.gone()
	}
	d := first << min(attempt-1, 20)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !c.item.gone()
	case <-c.Done():
		return false
	}
}
