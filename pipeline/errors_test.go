package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var errOdd = errors.New("odd")

func failOn(bad int) func(context.Context, int) (int, error) {
	return func(_ context.Context, n int) (int, error) {
		if n == bad {
			return 0, errOdd
		}
		return n, nil
	}
}

func ignore(context.Context, Key, int) error { return nil }

func TestStopAll(t *testing.T) {
	clean(t)
	g := New("stop")
	ToFunc(Via(FromSlice(g, count0(200_000), intKey), NewStage("s", failOn(7)), Workers(2)), ignore)
	rep, err := runFor(t, g, context.Background())
	var se *StageError
	if !errors.As(err, &se) || se.Stage != "s" || se.Key != intKey(7) || !errors.Is(err, errOdd) {
		t.Fatalf("%v", err)
	}
	if rep.Error == "" || rep.Failed != 1 || rep.Stage("s").Failed != 1 || rep.Items > 190_000 {
		t.Errorf("report: %+v", rep)
	}
}

func TestFailKey(t *testing.T) {
	clean(t)
	var fails []string
	g := New("fail", OnError(FailKey))
	src := FromSlice(g, count0(20), intKey)
	a := Via(src, NewStage("a", failOn(7)))
	b := Via(src, NewStage("b", func(_ context.Context, n int) (int, error) {
		if n == 11 {
			panic("eleven")
		}
		return n, nil
	}), Workers(3))
	var got atomic.Int64
	ToFunc(Join2(a, b), func(_ context.Context, k Key, v Pair[int, int]) error {
		got.Add(1)
		if k.Part == 13 {
			return errOdd
		}
		return nil
	}, OnFail(func(k Key, err error) { fails = append(fails, fmt.Sprint(k.Part, " ", err)) }))
	rep := mustRun(t, g)
	if rep.Items != 17 || rep.Failed != 3 || got.Load() != 18 || len(fails) != 3 || len(rep.Failures) != 3 {
		t.Fatalf("%d items, %d failed, %d got, heard %q", rep.Items, rep.Failed, got.Load(), fails)
	}
	all := strings.Join(fails, "\n")
	for _, s := range []string{"7 stage a, item n/7: odd", "11 stage b, item n/11: panic: eleven", "13 stage sink, item n/13: odd"} {
		if !strings.Contains(all, s) {
			t.Errorf("%q does not tell %q", all, s)
		}
	}
}

func TestPanicHasStack(t *testing.T) {
	clean(t)
	g := New("panic")
	ToFunc(Via(FromSlice(g, count0(1), nil), NewStage("s", func(context.Context, int) (int, error) { panic(errOdd) })), ignore)
	_, err := runFor(t, g, context.Background())
	var se *StageError
	if !errors.As(err, &se) || !errors.Is(err, errOdd) || !bytes.Contains(se.Stack, []byte("TestPanicHasStack")) {
		t.Fatalf("%v %s", err, se.Stack)
	}
}

func TestGoexit(t *testing.T) {
	for _, policy := range []Policy{StopAll, FailKey} {
		clean(t)
		g := New("exit", OnError(policy))
		ToFunc(Via(FromSlice(g, count0(10), nil), NewStage("s", func(_ context.Context, n int) (int, error) {
			if n%3 == 2 {
				runtime.Goexit()
			}
			return n, nil
		}), Workers(2)), ignore)
		rep, err := runFor(t, g, context.Background())
		switch {
		case policy == StopAll && !errors.Is(err, ErrGoexit):
			t.Errorf("%v", err)
		case policy == FailKey && (err != nil || rep.Failed != 3 || rep.Items != 7):
			t.Errorf("%v, %+v", err, rep)
		}
	}
}

func TestRetry(t *testing.T) {
	clean(t)
	var tries sync.Map
	g := New("retry", OnError(FailKey))
	w := Via(FromSlice(g, count0(6), intKey), NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 10) }))
	ToFunc(w, func(ctx context.Context, k Key, b *block) error {
		n, _ := tries.LoadOrStore(k, new(atomic.Int64))
		if b.bufs[0].Slice()[0] != 0 {
			t.Error("the input is gone")
		}
		Done(ctx) // must not end it while a retry may follow
		if int(n.(*atomic.Int64).Add(1)) <= k.Part {
			return flaky{errOdd}
		}
		if k.Part == 0 {
			return errOdd // not temporary
		}
		return nil
	}, Retry(3, 10*time.Microsecond))
	rep := mustRun(t, g)
	// 1 to 3 succeed after as many repetitions; 4 and 5 use up theirs.
	if s := rep.Stage("sink"); s.Retries != 1+2+3+3+3 || rep.Failed != 3 || rep.Items != 3 {
		t.Errorf("%d retries, %d failed, %d items", s.Retries, rep.Failed, rep.Items)
	}
}

func TestCancelCause(t *testing.T) {
	clean(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	g := New("cancel")
	endless := FromSeq(g, func(yield func(int) bool) {
		for i := 0; yield(i); i++ {
		}
	}, nil)
	a := Via(endless, NewStage("a", func(ctx context.Context, n int) (int, error) {
		if n == 50 {
			cancel(cause)
		}
		if n >= 50 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return n, nil
	}), Workers(2), Ordered())
	b := Via(endless, NewStage("b", double), Capacity(3))
	ToFunc(Join2(a, b), func(context.Context, Key, Pair[int, int]) error { return nil })
	_, err := runFor(t, g, ctx)
	if !errors.Is(err, cause) {
		t.Fatalf("%v", err)
	}
}

func TestDeadline(t *testing.T) {
	clean(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	g := New("deadline")
	ch := make(chan int)
	ToFunc(FromChan(g, ch, nil), func(ctx context.Context, _ Key, _ int) error { return nil })
	if _, err := runFor(t, g, ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
}

// TestItemContext: when an item fails, the stages that still work on it are told,
// and nobody else is.
func TestItemContext(t *testing.T) {
	clean(t)
	g := New("told", OnError(FailKey))
	src := FromSlice(g, []int{0, 1}, intKey)
	started := make(chan struct{})
	ToFunc(src, func(ctx context.Context, k Key, n int) error {
		if n == 1 {
			return ctx.Err()
		}
		if ctx.Err() != nil {
			t.Error("told too early")
		}
		close(started)
		sub, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		<-sub.Done()
		if sub.Err() != context.Canceled || ctx.Err() != context.Canceled {
			t.Errorf("%v, %v", sub.Err(), ctx.Err())
		}
		return sub.Err()
	}, Workers(2))
	ToFunc(src, func(_ context.Context, k Key, n int) error {
		if n == 0 {
			<-started
			return errOdd
		}
		return nil
	})
	rep := mustRun(t, g)
	if rep.Failed != 1 || rep.Items != 1 || len(rep.Failures) != 1 || !strings.Contains(rep.Failures[0].Error, "odd") {
		t.Errorf("%+v", rep.Failures)
	}
}

func TestSourceErrors(t *testing.T) {
	for _, policy := range []Policy{StopAll, FailKey} {
		clean(t)
		g := New("source", OnError(policy))
		n := 0
		c := Collect(FromFunc(g, func(context.Context) (int, error) {
			if n++; n > 5 {
				return 0, errOdd
			}
			return n, nil
		}, nil, Name("numbers")), Capacity(Unbounded))
		rep, err := runFor(t, g, context.Background())
		var se *StageError
		if !errors.As(err, &se) || se.Stage != "numbers" || !errors.Is(err, errOdd) {
			t.Fatalf("%v", err)
		}
		if policy == FailKey && rep.Items != 5 {
			t.Errorf("%d items were answered", rep.Items)
		}
		if c.Values() != nil && len(c.Values()) != 0 {
			t.Error("values of a run that failed")
		}
	}
	clean(t)
	g := New("key")
	ToFunc(FromSlice(g, count0(3), func(int) Key { panic("no key") }), ignore)
	if _, err := runFor(t, g, context.Background()); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("%v", err)
	}
	g = New("eof")
	ToFunc(FromFunc(g, func(context.Context) (int, error) { return 0, io.EOF }, nil), ignore)
	mustRun(t, g)
}

func TestJoinErrors(t *testing.T) {
	clean(t)
	// A key that comes twice while it is in flight.
	run := func(policy Policy) (*Report, error) {
		g := New("twice", OnError(policy))
		hold := make(chan struct{})
		src := FromFunc(g, func() func(context.Context) (int, error) {
			n := 0
			return func(context.Context) (int, error) {
				if n++; n == 3 {
					close(hold)
					return 0, io.EOF
				}
				return 5, nil
			}
		}(), intKey)
		a := Via(src, NewStage("a", func(ctx context.Context, n int) (int, error) {
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return n, nil
		}))
		b := Via(src, NewStage("b", double))
		ToFunc(Join2(a, b, Name("both")), func(context.Context, Key, Pair[int, int]) error { return nil })
		return runFor(t, g, context.Background())
	}
	var je *JoinError
	if _, err := run(StopAll); !errors.As(err, &je) || je.Reason != Duplicate || je.Key != intKey(5) || je.Join != "both" {
		t.Errorf("%v", err)
	}
	rep, err := run(FailKey)
	if err != nil || rep.Failed != 1 || rep.Items != 0 {
		t.Errorf("%v %+v", err, rep)
	}
	// A key of one source that the other has not.
	g := New("missing", OnError(FailKey))
	got := 0
	ToFunc(Join2(FromSlice(g, count0(10), intKey, Name("l")), FromSlice(g, count0(7), intKey, Name("r"))),
		func(context.Context, Key, Pair[int, int]) error { got++; return nil })
	rep = mustRun(t, g)
	if got != 7 || rep.Failed != 3 || rep.Items != 7 || !strings.Contains(rep.Failures[0].Error, "r ended without a value") {
		t.Errorf("%d got, %+v", got, rep)
	}
}

// TestTwoSources: sources in any order, of different length, with failures; each
// key is answered once.
func TestTwoSources(t *testing.T) {
	clean(t)
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 20, rapid.ID[int]).Draw(t, "l")
		r := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 20, rapid.ID[int]).Draw(t, "r")
		bad := rapid.IntRange(0, 60).Draw(t, "bad")
		fails := map[int]int{}
		got := map[int]int{}
		g := New("two", OnError(FailKey), OnFail(func(k Key, _ error) { fails[k.Part]++ }))
		mk := func(name string, s []int) *Port[*block] {
			o := []NodeOption{Workers(rapid.IntRange(1, 3).Draw(t, "w"))}
			if rapid.Bool().Draw(t, "ordered") {
				o = append(o, Ordered())
			}
			return Via(FromSlice(g, s, intKey), NewStage(name, func(ctx context.Context, n int) (*block, error) {
				if n == bad {
					return nil, errOdd
				}
				return makeBlock(ctx, 100)
			}), o...)
		}
		o := []NodeOption{}
		if rapid.Bool().Draw(t, "ordered too") {
			o = append(o, Ordered(), Workers(2))
		}
		j := Via(Join2(mk("left", l), mk("right", r)), NewStage("both", func(ctx context.Context, v Pair[*block, *block]) (int, error) {
			return KeyOf(ctx).Part, nil
		}), o...)
		ToFunc(j, func(_ context.Context, k Key, n int) error { got[n]++; return nil })
		done := make(chan error, 1)
		var rep *Report
		go func() {
			var err error
			rep, err = g.Run(context.Background())
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("hangs: %+v", g.Stats())
		}
		in := map[int]int{}
		for _, n := range append(append([]int{}, l...), r...) {
			in[n]++
		}
		for n, c := range in {
			want := c == 2 && n != bad
			if got[n] != b2i(want) || fails[n] != b2i(!want) {
				t.Fatalf("key %d in %d sources (bad: %d): got %d, failed %d", n, c, bad, got[n], fails[n])
			}
		}
		if rep.InFlight != 0 || len(g.run.parts[0].items) != 0 {
			// Keys that failed and that a source had not yielded stay known.
			for k, it := range g.run.parts[0].items {
				if !it.failed.Load() || it.seen == it.part.all {
					t.Fatalf("item %v is left", k)
				}
			}
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestGraphErrors(t *testing.T) {
	other := New("other")
	foreign := FromSlice(other, count0(1), nil)
	for _, c := range []struct {
		build func(g *Graph)
		want  string
	}{
		{func(*Graph) {}, "no source"},
		{func(g *Graph) { FromSlice(g, count0(1), nil) }, "nothing reads what source source yields"},
		{func(g *Graph) { Via(FromSlice(g, count0(1), nil), NewStage("s", double)) }, "nothing reads what stage s yields"},
		{func(g *Graph) {
			p := FromSlice(g, count0(1), nil)
			ToFunc(Via(Via(p, NewStage("s", double)), NewStage("s", double)), ignore)
		}, `two nodes have the name "s"`},
		{func(g *Graph) {
			ToFunc(Join2(FromSlice(g, count0(1), nil), foreign), func(context.Context, Key, Pair[int, int]) error { return nil })
		}, "ports of two graphs, bad and other"},
		{func(g *Graph) {
			ToFunc(Join2(FromSlice(g, count0(1), nil), (*Port[int])(nil)), func(context.Context, Key, Pair[int, int]) error { return nil })
		}, "nil port"},
		{func(g *Graph) { ToFunc(Via[int, int](FromSlice(g, count0(1), nil), nil), ignore) }, "nil stage"},
		{func(g *Graph) { ToFunc(FromSlice(g, count0(1), nil), nil) }, "nil function"},
		{func(g *Graph) { To(FromSlice(g, count0(1), nil), nil) }, "nil sink"},
		{func(g *Graph) { ToFunc(From[int](g, nil, nil), ignore) }, "nil outlet"},
		{func(g *Graph) { ToFunc(Via(FromSlice(g, count0(1), nil), NewStage("s", double), Workers(0)), ignore) }, "0 workers"},
		{func(g *Graph) { ToFunc(FromSlice(g, count0(1), nil), ignore, Capacity(-5)) }, "negative"},
		{func(g *Graph) { ToFunc(FromSlice(g, count0(1), nil, Workers(2)), ignore) }, "no workers to set"},
		{func(g *Graph) { ToFunc(FromSlice(g, count0(1), nil, Capacity(2)), ignore, Ordered()) }, "no queue"},
		{func(g *Graph) { ToFunc(FromSlice(g, count0(1), nil), ignore, Ordered(), Retry(-1)) }, "only stages can be ordered"},
		{func(g *Graph) {
			ToFunc(FromSlice(g, count0(1), nil), ignore)
			_ = g.Apply(Settings{Stages: map[string]StageSetting{"typo": {Workers: 2}}})
		}, `"typo"`},
		{func(g *Graph) {
			Budget(0, 1000).applyGraph(g)
			ToFunc(Join2(FromSlice(g, count0(1), nil), FromSlice(g, count0(1), nil)), func(context.Context, Key, Pair[int, int]) error { return nil })
		}, "inputs from 2 sources (source, source-2)"},
		{func(g *Graph) { Budget(0, -1).applyGraph(g) }, "out of range"},
	} {
		g := New("bad")
		c.build(g)
		rep, err := g.Run(context.Background())
		var ge *GraphError
		if rep != nil || !errors.As(err, &ge) || !strings.Contains(err.Error(), c.want) || g.Err() == nil {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
	g := New("once")
	ToFunc(FromSlice(g, count0(1), nil), ignore)
	mustRun(t, g)
	if _, err := g.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "run already") {
		t.Errorf("%v", err)
	}
	// Ports of no graph at all are quiet: there is nowhere to complain.
	var none *Port[int]
	ToFunc(Via(Via(none, NewStage("s", double)), NewStage("t", double)), ignore)
	Collect(none)
	To(none, nil)
	if none.Name() != "" || none.Graph() != nil {
		t.Error("a nil port has something")
	}
	if err := g.SetWorkers("nobody", 1); err == nil {
		t.Error("SetWorkers of nobody")
	}
	if err := g.SetCapacity("sink", 0); err == nil {
		t.Error("SetCapacity 0")
	}
}

func TestCallbackPanics(t *testing.T) {
	clean(t)
	g := New("listener", Listen(ListenerFunc(func(Event) { panic("listener") })))
	ToFunc(FromSlice(g, count0(3), nil), ignore)
	if _, err := runFor(t, g, context.Background()); err == nil || !strings.Contains(err.Error(), "listener") {
		t.Errorf("%v", err)
	}
	g = New("onfail", OnError(FailKey), OnFail(func(Key, error) { panic("on fail") }))
	ToFunc(Via(FromSlice(g, count0(3), nil), NewStage("s", failOn(1))), ignore)
	if _, err := runFor(t, g, context.Background()); err == nil || !strings.Contains(err.Error(), "on fail") {
		t.Errorf("%v", err)
	}
}
