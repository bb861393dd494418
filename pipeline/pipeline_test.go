package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clean checks at the end of a test that no buffer and no goroutine is left.
func clean(t *testing.T) {
	t.Helper()
	before := alloc.Default().Live(alloc.Host)
	t.Cleanup(func() {
		goleak.VerifyNone(t)
		if now := alloc.Default().Live(alloc.Host); now != before {
			t.Errorf("%d bytes are left, %d were there before", now, before)
		}
		alloc.CheckLeaks(t)
	})
}

// runFor runs a graph and fails the test if that does not end.
func runFor(t *testing.T, g *Graph, ctx context.Context) (*Report, error) {
	t.Helper()
	type result struct {
		rep *Report
		err error
	}
	ch := make(chan result, 1)
	go func() {
		rep, err := g.Run(ctx)
		ch <- result{rep, err}
	}()
	select {
	case r := <-ch:
		return r.rep, r.err
	case <-time.After(20 * time.Second):
		t.Fatalf("graph hangs: %+v", g.Stats())
		return nil, nil
	}
}

func mustRun(t *testing.T, g *Graph) *Report {
	t.Helper()
	rep, err := runFor(t, g, context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func count0(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func intKey(i int) Key { return Key{Job: "n", Part: i} }

func double(ctx context.Context, n int) (int, error) { return 2 * n, nil }

func TestLine(t *testing.T) {
	clean(t)
	g := New("line")
	p := FromSlice(g, count0(100), intKey)
	d := Via(p, NewStage("double", double), Workers(3), Ordered())
	s := Via(d, NewStage("text", func(_ context.Context, n int) (string, error) { return fmt.Sprint(n), nil }))
	c := Collect(s)
	rep := mustRun(t, g)
	vals := c.Values()
	if len(vals) != 100 {
		t.Fatalf("%d values", len(vals))
	}
	for i, v := range vals {
		if v != fmt.Sprint(2*i) {
			t.Fatalf("value %d is %s", i, v)
		}
	}
	if rep.Items != 100 || rep.Stage("double").Items != 100 {
		t.Errorf("report: %+v", rep)
	}
}

func TestFanOutJoin(t *testing.T) {
	clean(t)
	g := New("diamond")
	p := FromSlice(g, count0(50), intKey)
	a := Via(p, NewStage("a", double), Workers(2))
	b := Via(p, NewStage("b", func(_ context.Context, n int) (string, error) {
		if n%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		return fmt.Sprint(n), nil
	}), Workers(3))
	got := map[int]string{}
	ToFunc(Join2(a, b), func(_ context.Context, k Key, v Tuple2[int, string]) error {
		if v.A != 2*k.Part {
			return errors.New("wrong pair")
		}
		got[k.Part] = v.B
		return nil
	})
	mustRun(t, g)
	for i := range 50 {
		if got[i] != fmt.Sprint(i) {
			t.Errorf("%d: %q", i, got[i])
		}
	}
}
