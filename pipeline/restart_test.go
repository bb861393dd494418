package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// lost is a failure that has the item made again.
func lost(n int) error { return scrap{fmt.Errorf("lost %d", n)} }

// tries counts how often a stage was run on a key.
type tries struct {
	mu sync.Mutex
	n  map[Key]int
}

func (t *tries) next(ctx context.Context) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[Key]int{}
	}
	t.n[KeyOf(ctx)]++
	return t.n[KeyOf(ctx)]
}

// bytesStage is a stage that makes a buffer of n bytes, which it states.
func bytesStage[In any](name string, n int, fn func(ctx context.Context) error) Stage[In, *alloc.Buffer[byte]] {
	s := NewStage(name, func(ctx context.Context, _ In) (*alloc.Buffer[byte], error) {
		b, err := alloc.Make[byte](alloc.ScopeOf(ctx), n, alloc.Witness, 0)
		if err != nil {
			return nil, err
		}
		if fn != nil {
			if err := fn(ctx); err != nil {
				b.Release()
				return nil, err
			}
		}
		return b, nil
	})
	return WithNeeds(s, func(any) Need {
		return Need{Makes: []Part{{name, alloc.HostBytes(int64(n))}}}
	})
}

// TestRestart: items that fail from the start are made again under a budget for
// one of them, and come out once each, in order, with all attempts told.
func TestRestart(t *testing.T) {
	for _, policy := range []Policy{StopAll, FailKey} {
		t.Run(policy.String(), func(t *testing.T) {
			clean(t)
			var left tries
			var events []Event
			var mu sync.Mutex
			g := New("again", OnError(policy), Budget(alloc.Host, 1500), Listen(ListenerFunc(func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == Restarted || e.Kind == Left || e.Kind == Admitted || e.Kind == Failed {
					events = append(events, e)
				}
			})))
			src := FromSlice(g, count0(6), intKey, Restart(2))
			a := Via(src, bytesStage[int]("a", 1000, nil), Workers(3))
			b := Via(a, bytesStage[*alloc.Buffer[byte]]("b", 500, func(ctx context.Context) error {
				if n := left.next(ctx); n <= KeyOf(ctx).Part%3 {
					if got := len(PastOf(ctx)); got != n-1 {
						t.Errorf("try %d knows of %d attempts", n, got)
					}
					return lost(n)
				}
				return nil
			}), Retry(5))
			c := Via(b, NewStage("c", func(context.Context, *alloc.Buffer[byte]) (int, error) { return 0, nil }), Ordered())
			var got []int
			ToFunc(c, func(_ context.Context, k Key, _ int) error {
				got = append(got, k.Part)
				return nil
			})
			rep, err := g.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
				t.Errorf("the sink got %v", got)
			}
			if rep.Items != 6 || rep.Failed != 0 || rep.Restarted != 6 || len(rep.Restarts) != 6 || rep.Stage("b").Restarts != 6 || rep.Stage("b").Retries != 0 {
				t.Errorf("the report says %+v", rep)
			}
			if rep.Restarts[0].Stage != "b" || !strings.Contains(rep.Restarts[0].Error, "lost 1") {
				t.Errorf("the report says why: %+v", rep.Restarts[0])
			}
			count := map[EventKind]int{}
			for _, e := range events {
				count[e.Kind]++
				if e.Kind == Restarted && (e.Stage != "b" || e.Err == nil || e.Attempt < 1 || e.Attempt > 2) {
					t.Errorf("event %+v", e)
				}
				if e.Kind == Left && e.Err != nil {
					t.Errorf("item %v has left with %v", e.Key, e.Err)
				}
			}
			if count[Restarted] != 6 || count[Admitted] != 12 || count[Left] != 6 || count[Failed] != 0 {
				t.Errorf("events: %v", count)
			}
		})
	}
}

// TestRestartGivesUp: after so many attempts the item fails, once, and the
// error tells them all.
func TestRestartGivesUp(t *testing.T) {
	for _, policy := range []Policy{StopAll, FailKey} {
		t.Run(policy.String(), func(t *testing.T) {
			clean(t)
			var n tries
			var heard []error
			g := New("gives up", OnError(policy), OnFail(func(_ Key, err error) { heard = append(heard, err) }))
			src := FromSlice(g, count0(3), intKey, Restart(2))
			// The second branch fails for good when the first has taken the item
			// back: that must not be the item's answer.
			a := Via(src, NewStage("a", func(ctx context.Context, v int) (int, error) {
				if k := n.next(ctx); v == 1 {
					return 0, lost(k)
				}
				return v, nil
			}))
			b := Via(src, NewStage("b", func(ctx context.Context, v int) (int, error) {
				if v == 1 {
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return v, nil
			}))
			got := Collect(Join2(a, b))
			rep, err := g.Run(context.Background())
			if policy == FailKey {
				if err != nil || len(heard) != 1 || len(got.Values()) != 2 {
					t.Fatalf("%v, %d failures, %d values", err, len(heard), len(got.Values()))
				}
				err = heard[0]
			}
			var all *AttemptsError
			var at *StageError
			if !errors.As(err, &all) || len(all.Errs) != 3 || !errors.As(err, &at) || !strings.Contains(at.Error(), "lost 3") {
				t.Errorf("the failure is told as %v", err)
			}
			for i := 1; i <= 3; i++ {
				if !strings.Contains(err.Error(), fmt.Sprintf("attempt %d: stage a, item n/1: lost %d", i, i)) {
					t.Errorf("attempt %d is not in %v", i, err)
				}
			}
			if rep.Failed != 1 || rep.Restarted != 2 {
				t.Errorf("%d failed, %d made again", rep.Failed, rep.Restarted)
			}
		})
	}
}

// TestRestartThenAnotherError: what fails an item after a restart comes with
// the attempt before.
func TestRestartThenAnotherError(t *testing.T) {
	clean(t)
	broken := errors.New("broken")
	g := New("another")
	src := FromSlice(g, count0(1), intKey, Restart(5))
	drain(Via(src, NewStage("a", func(ctx context.Context, v int) (int, error) {
		if len(PastOf(ctx)) == 0 {
			return 0, lost(1)
		}
		return 0, broken
	})))
	_, err := g.Run(context.Background())
	var all *AttemptsError
	if !errors.Is(err, broken) || !errors.As(err, &all) || len(all.Errs) != 2 {
		t.Errorf("told as %v", err)
	}
}

func drain[T any](p *Port[T]) {
	ToFunc(p, func(context.Context, Key, T) error { return nil })
}

// TestNoRestartOnceSeen: an item of which a sink has a value, or that has passed
// an ordered stage, fails.
func TestNoRestartOnceSeen(t *testing.T) {
	for _, how := range []string{"function", "collect", "stream", "ordered"} {
		t.Run(how, func(t *testing.T) {
			clean(t)
			g := New("seen")
			src := FromSlice(g, count0(1), intKey, Restart(3))
			seen := make(chan struct{})
			switch how {
			case "function":
				ToFunc(src, func(context.Context, Key, int) error { close(seen); return nil })
			case "collect":
				Collect(src)
				go func() {
					for g.Stats() == nil || g.Stats().Stage("sink").Items == 0 {
						time.Sleep(time.Millisecond)
					}
					close(seen)
				}()
			case "stream":
				in := make(chanInlet)
				To(src, in)
				go func() {
					<-in
					close(seen)
				}()
			case "ordered":
				id := Via(src, NewStage("id", func(_ context.Context, v int) (int, error) { return v, nil }), Ordered())
				drain(Via(id, NewStage("behind", func(context.Context, int) (int, error) {
					close(seen)
					return 0, lost(1)
				})))
			}
			drain(Via(src, NewStage("a", func(context.Context, int) (int, error) {
				<-seen
				return 0, lost(1)
			})))
			rep, err := g.Run(context.Background())
			if err == nil || rep.Restarted != 0 {
				t.Errorf("%v, %d restarts", err, rep.Restarted)
			}
		})
	}
}

// TestRestartBehindItsTurn: a value that waits for an item's turn leaves no room
// for it to be made again. It fails, and the other comes.
func TestRestartBehindItsTurn(t *testing.T) {
	clean(t)
	var failure error
	g := New("turn", OnError(FailKey), Budget(alloc.Host, 1000), OnFail(func(_ Key, err error) { failure = err }))
	src := FromSlice(g, count0(2), intKey, Restart(3))
	a := Via(src, bytesStage[int]("a", 600, func(ctx context.Context) error {
		if KeyOf(ctx).Part == 0 {
			for g.run.budget.Stats().Waiting == 0 {
				time.Sleep(100 * time.Microsecond)
			}
			return lost(1)
		}
		return nil
	}), Ordered())
	got := Collect(Via(a, NewStage("b", func(_ context.Context, v *alloc.Buffer[byte]) (int, error) { return v.Len(), nil })))
	if _, err := g.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var never *AdmitError
	if !errors.As(failure, &never) || !never.Turn || never.Held != alloc.HostBytes(600) || len(got.Values()) != 1 {
		t.Errorf("%d values; it failed with %v", len(got.Values()), failure)
	}
}

// TestRestartOfAnOpenSource: items of a source that has more to give, but not
// now, are made again all the same, and a run that is cancelled in between ends.
func TestRestartOfAnOpenSource(t *testing.T) {
	clean(t)
	ch := make(chan int)
	g := New("open")
	src := FromChan(g, ch, intKey, Restart(1000))
	var n atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := make(chan int, 10)
	ToFunc(Via(src, NewStage("a", func(ctx context.Context, v int) (int, error) {
		if v == 1 && n.Add(1) == 500 {
			cancel()
		}
		if v == 1 || len(PastOf(ctx)) < 3 {
			return 0, lost(1)
		}
		return v, nil
	})), func(_ context.Context, _ Key, v int) error { got <- v; return nil })
	go func() {
		ch <- 0
		<-got
		ch <- 1
	}()
	rep, err := g.Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if rep.Items != 1 || rep.Failed != 0 || rep.Stopped != 1 || rep.Restarted < 400 || rep.InFlight != 0 {
		t.Errorf("%+v", rep)
	}
}

// TestRestartGraph: what a restart cannot be asked of.
func TestRestartGraph(t *testing.T) {
	g := New("two")
	a, b := FromSlice(g, count0(3), intKey, Restart(1), Name("x")), FromSlice(g, count0(3), intKey, Name("y"))
	drain(Join2(a, b))
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "items of x can be restarted") {
		t.Errorf("two sources: %v", err)
	}
	g = New("stage")
	drain(Via(FromSlice(g, count0(3), intKey, Restart(-1)), NewStage("a", func(_ context.Context, v int) (int, error) { return v, nil }), Restart(1)))
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "only the items of a source") || !strings.Contains(err.Error(), "less than 0") {
		t.Errorf("odd options: %v", err)
	}
}

// TestRestartKeepsTheValue: the buffers of a source's value live until the item
// has left for good.
func TestRestartKeepsTheValue(t *testing.T) {
	clean(t)
	g := New("value")
	var made []*alloc.Buffer[byte]
	src := FromFunc(g, func(context.Context) (*alloc.Buffer[byte], error) {
		if len(made) == 3 {
			return nil, io.EOF
		}
		b, err := alloc.Make[byte](nil, 10, alloc.Witness, 0)
		if err == nil {
			b.Slice()[0] = 42
			made = append(made, b)
		}
		return b, err
	}, nil, Restart(2))
	drain(Via(src, NewStage("a", func(ctx context.Context, b *alloc.Buffer[byte]) (int, error) {
		if b.Slice()[0] != 42 {
			t.Error("the value is gone")
		}
		Done(ctx)
		if len(PastOf(ctx)) < 2 {
			return 0, lost(1)
		}
		return 0, nil
	})))
	rep, err := g.Run(context.Background())
	if err != nil || rep.Restarted != 6 {
		t.Fatalf("%v, %d restarts", err, rep.Restarted)
	}
	for _, b := range made {
		if b.Refs() != 0 {
			t.Errorf("%d references are left", b.Refs())
		}
	}
}

// TestItemValue: made once an attempt, known to what states needs, ended once
// when the attempt has left, whatever ends it.
func TestItemValue(t *testing.T) {
	clean(t)
	type entry struct{ key, try int }
	var mu sync.Mutex
	live, most := map[entry]int{}, 0
	of := func(ctx context.Context) int {
		v, _ := ItemValue(ctx, "place", func(before any) (any, func()) {
			n, _ := before.(int)
			e := entry{KeyOf(ctx).Part, n}
			mu.Lock()
			live[e]++
			most = max(most, live[e])
			mu.Unlock()
			return n + 1, func() {
				mu.Lock()
				live[e] -= 100
				mu.Unlock()
			}
		}).(int)
		return v
	}
	g := New("values", OnError(FailKey), Budget(alloc.Host, 1<<20))
	src := FromSlice(g, count0(20), intKey, Restart(2))
	s := stating{NewStage("a", func(ctx context.Context, v int) (int, error) {
		if of(ctx) != len(PastOf(ctx))+1 {
			t.Errorf("attempt %d has value %d", len(PastOf(ctx))+1, of(ctx))
		}
		switch v % 4 {
		case 0:
			return 0, lost(1)
		case 1:
			return 0, errors.New("broken")
		case 2:
			panic("broken")
		}
		return v, nil
	}), of}
	drain(Via(src, s, Workers(3)))
	if _, err := g.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if most != 1 || len(live) != 20+5*2 {
		t.Errorf("%d values, made %d times", len(live), most)
	}
	for e, n := range live {
		if n != 1-100 {
			t.Errorf("%+v: %d", e, n)
		}
	}
	if ItemValue(context.Background(), 1, nil) != nil || PastOf(context.Background()) != nil {
		t.Error("there is an item outside of a graph")
	}
}

// stating is a stage that states needs by the item.
type stating struct {
	Stage[int, int]
	of func(context.Context) int
}

func (s stating) NeedsIn(ctx context.Context, job any) Need {
	if KeyOf(ctx).Part != job.(int) || StageOf(ctx) != "a" {
		panic("the context is another item's")
	}
	s.of(ctx)
	return Need{}
}
