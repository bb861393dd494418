package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reugn/go-streams/extension"
	"github.com/reugn/go-streams/flow"

	"github.com/snarkline/snarkline/alloc"
)

func fillChan(vals ...any) chan any {
	ch := make(chan any, len(vals))
	for _, v := range vals {
		ch <- v
	}
	close(ch)
	return ch
}

// listSink is a go-streams sink that gathers.
type listSink struct {
	in   chan any
	done chan struct{}
	got  []any
}

func newListSink() *listSink {
	s := &listSink{in: make(chan any), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for v := range s.in {
			s.got = append(s.got, v)
		}
	}()
	return s
}

func (s *listSink) In() chan<- any   { return s.in }
func (s *listSink) AwaitCompletion() { <-s.done }

func TestStreamsEdges(t *testing.T) {
	clean(t)
	g := New("edges")
	// A go-streams source and flow in front, a sink behind.
	src := extension.NewChanSource(fillChan(1, 2, 3, 4)).Via(flow.NewMap(func(n int) int { return n * 10 }, 1))
	sink := newListSink()
	To(Via(From(g, src, intKey), NewStage("s", double), Ordered(), Workers(2)), sink)
	rep := mustRun(t, g)
	if !slices.Equal(sink.got, []any{20, 40, 60, 80}) || rep.Items != 4 {
		t.Errorf("%v", sink.got)
	}
}

func TestStreamsFlowInTheMiddle(t *testing.T) {
	clean(t)
	g := New("middle")
	f := flow.NewMap(func(n int) string { return fmt.Sprint(n) }, 1)
	To(FromSlice(g, count0(5), nil), f)
	c := Collect(From[string](g, f, nil))
	mustRun(t, g)
	if got := c.Values(); !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
		t.Errorf("%v", got)
	}
}

func TestStreamsWrongType(t *testing.T) {
	clean(t)
	g := New("wrong", OnError(FailKey))
	var heard []error
	g.onFail = append(g.onFail, func(_ Key, err error) { heard = append(heard, err) })
	c := Collect(From[int](g, extension.NewChanSource(fillChan(1, "two", 3, nil)), nil))
	rep := mustRun(t, g)
	var te *TypeError
	if len(heard) != 2 || !errors.As(heard[0], &te) || te.Got != "string" || te.Want != "int" || !slices.Equal(c.Values(), []int{1, 3}) {
		t.Errorf("heard %v, got %v", heard, c.Values())
	}
	if rep.Failed != 2 || rep.Items != 2 {
		t.Errorf("%+v", rep)
	}
	g = New("wrong")
	ToFunc(From[int](g, extension.NewChanSource(fillChan("two")), nil), ignore)
	if _, err := runFor(t, g, context.Background()); !errors.As(err, &te) {
		t.Errorf("%v", err)
	}
	// nil is a value of an interface.
	g = New("nil")
	e := Collect(From[error](g, extension.NewChanSource(fillChan(nil)), nil))
	mustRun(t, g)
	if v := e.Values(); len(v) != 1 || v[0] != nil {
		t.Errorf("%v", v)
	}
}

// TestStreamsSourceIsDrained: who feeds the outlet is not left waiting when the
// run stops, and the buffers that it still sends are freed.
func TestStreamsSourceIsDrained(t *testing.T) {
	clean(t)
	ch := make(chan any)
	go func() {
		defer close(ch)
		for range 100 {
			b, err := alloc.Make[byte](nil, 100, alloc.Other, 0)
			if err != nil {
				return
			}
			ch <- b
		}
	}()
	g := New("drain")
	ToFunc(From[*alloc.Buffer[byte]](g, extension.NewChanSource(ch), nil), func(_ context.Context, k Key, _ *alloc.Buffer[byte]) error {
		if k.Part == 3 {
			return errOdd
		}
		return nil
	})
	if _, err := runFor(t, g, context.Background()); !errors.Is(err, errOdd) {
		t.Errorf("%v", err)
	}
}

// TestStreamsSilentSource: a source that neither sends nor ends does not hang a
// run that is cancelled.
func TestStreamsSilentSource(t *testing.T) {
	clean(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
	defer cancel()
	g := New("silent")
	ToFunc(From[int](g, extension.NewChanSource(make(chan any)), nil), ignore)
	if _, err := runFor(t, g, ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestStreamsStuckSink: a sink that takes nothing does not hang a run that is
// cancelled, and what was meant for it is freed.
func TestStreamsStuckSink(t *testing.T) {
	clean(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
	defer cancel()
	g := New("stuck")
	w := Via(FromSlice(g, count0(9), nil), NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 100) }))
	To(w, extension.NewChanSink(make(chan any)))
	if _, err := runFor(t, g, ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestStreamsClosedSink(t *testing.T) {
	clean(t)
	ch := make(chan any)
	close(ch)
	g := New("closed")
	w := Via(FromSlice(g, count0(9), nil), NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 100) }))
	To(w, extension.NewChanSink(ch))
	if _, err := runFor(t, g, context.Background()); err == nil || !strings.Contains(err.Error(), "closed channel") {
		t.Errorf("%v", err)
	}
}

// TestStreamsSinkHolds: what a go-streams sink holds stays charged to the budget.
func TestStreamsSinkHolds(t *testing.T) {
	clean(t)
	const limit = 3
	var live, peak atomic.Int64
	in, done := make(chan any), make(chan struct{})
	go func() {
		defer close(done)
		for v := range in {
			// It lags: the next one is taken before this one is freed.
			time.AfterFunc(200*time.Microsecond, func() {
				live.Add(-1)
				v.(*block).bufs[0].Release()
			})
		}
		for live.Load() > 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}()
	g := New("lag", Budget(alloc.Host, limit*big))
	w := Via(FromSlice(g, count0(30), nil), WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) {
		b, err := makeBlock(ctx, big)
		raise(&peak, live.Add(1))
		return b, err
	}), makes(hostPart("w", big))), Workers(4))
	To(w, sinkOf{in, done})
	rep := mustRun(t, g)
	if peak.Load() > limit || rep.Items != 30 {
		t.Errorf("%d at once, %d items", peak.Load(), rep.Items)
	}
}

type sinkOf struct {
	in   chan any
	done chan struct{}
}

func (s sinkOf) In() chan<- any   { return s.in }
func (s sinkOf) AwaitCompletion() { <-s.done }

func TestAsFlow(t *testing.T) {
	clean(t)
	var errs []error
	f := AsFlow(NewStage("s", failOn(3)), FlowWorkers(2), FlowOrdered(), FlowOnError(func(err error) { errs = append(errs, err) }))
	sink := newListSink()
	extension.NewChanSource(fillChan(1, 2, 3, "four", 5)).Via(f).Via(flow.NewMap(func(n int) int { return n * 10 }, 1)).To(sink)
	if !slices.Equal(sink.got, []any{10, 20, 50}) {
		t.Errorf("%v", sink.got)
	}
	var te *TypeError
	if len(errs) != 2 || !errors.Is(errors.Join(errs...), errOdd) || !errors.As(errors.Join(errs...), &te) {
		t.Errorf("%v", errs)
	}
	// Directly into a sink.
	sink = newListSink()
	extension.NewChanSource(fillChan(1, 2)).Via(AsFlow(NewStage("s", double))).To(sink)
	if !slices.Equal(sink.got, []any{2, 4}) {
		t.Errorf("%v", sink.got)
	}
	// One that is never fed leaves nothing behind.
	_ = AsFlow(NewStage("s", double))
	// One that cannot run still ends.
	errs = nil
	sink = newListSink()
	extension.NewChanSource(fillChan(1)).Via(AsFlow(NewStage("s", double), FlowWorkers(0), FlowOnError(func(err error) { errs = append(errs, err) }))).To(sink)
	if len(errs) != 1 || len(sink.got) != 0 {
		t.Errorf("%v, %v", errs, sink.got)
	}
}

func TestAsFlowContext(t *testing.T) {
	clean(t)
	ctx, cancel := context.WithCancel(context.Background())
	f := AsFlow(NewStage("s", func(ctx context.Context, n int) (int, error) {
		if n == 2 {
			cancel()
		}
		return n, nil
	}), FlowContext(ctx))
	sink := newListSink()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.To(sink)
	}()
	for i := range 50 {
		f.In() <- i
	}
	close(f.In())
	<-done
	if len(sink.got) > 20 {
		t.Errorf("%d came after the end", len(sink.got))
	}
}
