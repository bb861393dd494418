package pipeline

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	streams "github.com/reugn/go-streams"
)

// From yields what comes from a go-streams outlet (a source or a flow). An
// element of another type than T is a *TypeError that fails its item, whose key
// is its number, counted from 0. go-streams has no cancellation: a run that
// stops early goes on reading the outlet for a moment and throws away what
// comes, so that whoever feeds it is not left waiting; it gives up when nothing
// has come for 50 ms, or after a second.
func From[T any](g *Graph, outlet streams.Outlet, keyOf func(T) Key, opts ...NodeOption) *Port[T] {
	if g == nil {
		return &Port[T]{}
	}
	if outlet == nil {
		g.fault(fmt.Errorf("nil outlet as a source"))
		return &Port[T]{g: g}
	}
	return addSource[T](g, func(f *feeder) error {
		ch := outlet.Out()
		defer func() {
			if f.run.ctx.Err() != nil {
				f.drain(ch)
			}
		}()
		for {
			select {
			case e, ok := <-ch:
				if !ok {
					return nil
				}
				v, fits := e.(T)
				if !fits && (e != nil || !isInterface[T]()) {
					f.throwAway(e)
					f.reject(Key{Part: f.count}, &TypeError{From: "outlet " + fmt.Sprintf("%T", outlet), To: f.st.node.name,
						Got: fmt.Sprintf("%T", e), Want: reflect.TypeFor[T]().String()})
					f.count++
					if f.run.stopped.Load() {
						return nil
					}
					continue
				}
				if !feed(f, v, keyOf) {
					return nil
				}
			case <-f.run.ctx.Done():
				return nil
			}
		}
	}, opts)
}

func isInterface[T any]() bool { return reflect.TypeFor[T]().Kind() == reflect.Interface }

// throwAway releases the buffers of an element that does not enter.
func (f *feeder) throwAway(e any) {
	var h hold
	if guard(func() { h = holdOf(e) }) == nil {
		f.run.release(f.st, &item{}, &h)
	}
}

const (
	drainIdle = 50 * time.Millisecond
	drainMost = time.Second
)

// drain reads a channel to its end, within reason.
func (f *feeder) drain(ch <-chan any) {
	most := time.NewTimer(drainMost)
	defer most.Stop()
	idle := time.NewTimer(drainIdle)
	defer idle.Stop()
	for {
		select {
		case e, ok := <-ch:
			if !ok {
				return
			}
			f.throwAway(e)
			idle.Reset(drainIdle)
		case <-idle.C:
			return
		case <-most.C:
			return
		}
	}
}

// inlet is a go-streams sink or flow.
type inlet = streams.Inlet

// To sends the values of p into a go-streams inlet: a sink, whose completion is
// awaited, or a flow. The inlet is closed when no value is left or the run
// stops. It owns what it is given, with one reference on each of the value's
// buffers; these stay charged to a budget until it releases them, so that later
// items wait for it (see Patience). The value is
// answered when the inlet has taken it: go-streams has no error path. Options:
// Capacity, Name ("sink"), OnFail.
func To[T any](p *Port[T], sink streams.Inlet, opts ...NodeOption) {
	g := p.Graph()
	if g == nil {
		return
	}
	if sink == nil {
		g.fault(fmt.Errorf("nil sink after %s", p.Name()))
		return
	}
	g.attach(&node{kind: kindStream, in: typeOf[T](), inlet: sink}, []*node{p.node()}, opts)
}

// pour is the goroutine of a go-streams sink.
func (s *station) pour() {
	defer s.run.wg.Done()
	r := s.run
	var holding *message
	err := guard(func() {
		in := s.node.inlet.In()
		for {
			m, waited, v := s.q.pop(r)
			s.addWait(&s.waitIn, WaitedIn, waited)
			if v != take {
				break
			}
			if m.item.gone() || !m.item.deliver() {
				r.drop(s, m)
				continue
			}
			holding = &m
			s.running.Add(1)
			s.send(in, &m)
			s.running.Add(-1)
			holding = nil
		}
		close(in)
		if sink, ok := s.node.inlet.(streams.Sink); ok {
			sink.AwaitCompletion()
		}
	})
	if err != nil {
		r.stop(&StageError{Stage: s.node.name, Err: err})
		if holding != nil {
			r.drop(s, *holding)
		}
	}
}

// send hands one value over.
func (s *station) send(in chan<- any, m *message) {
	r := s.run
	select {
	case in <- m.val:
	default:
		var during meterMark
		during.enter(&s.held, &m.hold)
		since := r.now()
		var sent bool
		func() {
			defer during.leave(&s.held)
			select {
			case in <- m.val:
				sent = true
			case <-r.ctx.Done():
			}
		}()
		s.addWait(&s.waitOut, WaitedOut, r.now()-since)
		if !sent {
			r.stopIfDone()
			r.drop(s, *m)
			return
		}
	}
	s.items.Add(1)
	s.tellOf(Taken, m.item, 0, &m.hold)
	// The references are the sink's now.
	r.leave(m.item, 1)
}

// FlowOption is an option of AsFlow.
type FlowOption func(*stageFlow)

// FlowWorkers is how many goroutines run the stage; 1 if it is not given.
func FlowWorkers(n int) FlowOption { return func(f *stageFlow) { f.workers = n } }

// FlowOrdered makes the flow yield in the order of its input.
func FlowOrdered() FlowOption { return func(f *stageFlow) { f.ordered = true } }

// FlowContext ends the flow's work when ctx ends. What comes afterwards is
// thrown away, so that whoever feeds the flow is not left waiting.
func FlowContext(ctx context.Context) FlowOption { return func(f *stageFlow) { f.ctx = ctx } }

// FlowOnError is told of every element that failed, by its number in the
// stream; the others go on. A *TypeError is an element of a wrong type. Without
// it, such elements vanish, since go-streams has no error path.
func FlowOnError(fn func(error)) FlowOption { return func(f *stageFlow) { f.onError = fn } }

// AsFlow is a stage as a go-streams flow. It begins when it is first fed and
// ends when its input is closed and its output has been read: as with every
// go-streams flow, somebody has to read it. Whoever reads owns the buffers of
// what comes.
func AsFlow[In, Out any](s Stage[In, Out], opts ...FlowOption) streams.Flow {
	f := &stageFlow{in: make(chan any), out: make(chan any), ctx: context.Background(), workers: 1}
	for _, o := range opts {
		o(f)
	}
	f.start = func() {
		g := New("flow", OnError(FailKey), OnFail(func(_ Key, err error) { f.fail(err) }))
		vo := []NodeOption{Workers(f.workers)}
		if f.ordered {
			vo = append(vo, Ordered())
		}
		To(Via(From[In](g, chanOutlet(f.in), nil), s, vo...), chanInlet(f.out))
		_, err := g.Run(f.ctx)
		if err != nil {
			f.fail(err)
		}
		var wrong *GraphError
		if errors.As(err, &wrong) {
			close(f.out)
		}
		for e := range f.in {
			releaseValue(e)
		}
	}
	return f
}

type stageFlow struct {
	in, out chan any
	ctx     context.Context
	workers int
	ordered bool
	onError func(error)
	once    sync.Once
	start   func()
}

func (f *stageFlow) fail(err error) {
	if f.onError != nil {
		f.onError(err)
	}
}

// In is the channel to feed; whoever feeds it closes it.
func (f *stageFlow) In() chan<- any {
	f.once.Do(func() { go f.start() })
	return f.in
}

// Out is the channel to read.
func (f *stageFlow) Out() <-chan any { return f.out }

// Via sends the output into another flow and returns that.
func (f *stageFlow) Via(next streams.Flow) streams.Flow {
	go f.transmit(next)
	return next
}

// To sends the output into a sink and waits for it.
func (f *stageFlow) To(sink streams.Sink) {
	f.transmit(sink)
	sink.AwaitCompletion()
}

func (f *stageFlow) transmit(to streams.Inlet) {
	in := to.In()
	for e := range f.out {
		in <- e
	}
	close(in)
}

type chanOutlet chan any

func (c chanOutlet) Out() <-chan any { return c }

type chanInlet chan any

func (c chanInlet) In() chan<- any { return c }
