package pipeline

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
)

// TestDrawsBesideEnds: stages of one branch draw what they stated, end, and the
// reservation shrinks by that, while a stage of another branch draws and frees, all
// the time, what it stated. Some attempts at an item fail after they have drawn, and
// the next one states other needs. Nobody who draws no more than was stated is
// refused. (Where the reservation alone is at fault, alloc's TestDrawBesideShrink
// sees it sooner.)
func TestDrawsBesideEnds(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("the branches must run at once")
	}
	end := time.Now().Add(500 * time.Millisecond)
	rapid.Check(t, func(rt *rapid.T) {
		if time.Now().After(end) {
			return
		}
		size := func(most int) int64 { return int64(rapid.IntRange(1, most).Draw(rt, "bytes")) }
		own, part := size(100), size(3000)
		chain := rapid.SliceOfN(rapid.Int64Range(1, 5000), 1, 20).Draw(rt, "chain")
		failing := rapid.IntRange(0, len(chain)).Draw(rt, "failing") // none, if it is the last
		drawsBesideEnds(rt, own, part, chain, failing)
	})
}

// drawsBesideEnds runs items of which the even ones fail once in stage failing of
// the chain. An attempt that is not the first takes twice as much of everything.
func drawsBesideEnds(t *rapid.T, own, part int64, chain []int64, failing int) {
	const items = 40
	const last = "last"
	amount := func(ctx context.Context, n int64) int64 { return n << len(PastOf(ctx)) }
	scratch := func(n int64) func(context.Context) Need {
		return func(ctx context.Context) Need { return Need{Scratch: host(amount(ctx, n))} }
	}
	g := New("beside", Budget(alloc.Host, 17_000)) // for few items, so that branches of one meet
	src := FromSlice(g, count0(items), intKey, Restart(1))
	x := Via(src, needsBy(NewStage("x", func(ctx context.Context, _ int) (*alloc.Buffer[byte], error) {
		return alloc.Make[byte](alloc.ScopeOf(ctx), int(amount(ctx, part)), alloc.Witness, alloc.Dirty)
	}), func(ctx context.Context) Need { return Need{Makes: []Part{{"x", host(amount(ctx, part))}}} }))

	once := func(ctx context.Context, n int64) error {
		b, err := alloc.Make[byte](alloc.ScopeOf(ctx), int(amount(ctx, n)), alloc.Bucket, alloc.Dirty)
		if err == nil {
			b.Release()
		}
		return err
	}
	beside := Via(x, needsBy(NewStage("beside", func(ctx context.Context, _ *alloc.Buffer[byte]) (int, error) {
		for more := true; more && ctx.Err() == nil; {
			more = !finished(ctx, last)
			for range 20 { // most of the time it draws
				if err := once(ctx, own); err != nil {
					return 0, err
				}
			}
		}
		return 0, ctx.Err()
	}), scratch(own)))

	step := func(i int, name string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			if err := once(ctx, chain[i]); err != nil {
				return 0, err
			}
			if i == failing && KeyOf(ctx).Part%2 == 0 && len(PastOf(ctx)) == 0 {
				return 0, scrap{errors.New(name)}
			}
			return 0, nil
		}
	}
	first := step(0, "first")
	line := Via(x, needsBy(NewStage("first", func(ctx context.Context, _ *alloc.Buffer[byte]) (int, error) {
		return first(ctx)
	}), scratch(chain[0])))
	for i := 1; i < len(chain); i++ {
		name := string(rune('a' + i))
		run := step(i, name)
		line = Via(line, needsBy(NewStage(name, func(ctx context.Context, _ int) (int, error) { return run(ctx) }), scratch(chain[i])))
	}
	line = Via(line, NewStage(last, func(_ context.Context, n int) (int, error) { return n, nil }))
	drain(Via(Join2(line, beside), NewStage("behind", func(context.Context, Pair[int, int]) (int, error) { return 0, nil })))
	rep, err := g.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(items / 2); failing < len(chain) && rep.Restarted != want || rep.Items != items {
		t.Errorf("%d items, %d made again", rep.Items, rep.Restarted)
	}
	if s := g.run.budget.Stats(); !s.Charged.IsZero() {
		t.Errorf("%v stays charged", s.Charged)
	}
}

// finished reports whether a stage has finished with the item of ctx.
func finished(ctx context.Context, name string) bool {
	it := callOf(ctx).item
	for _, s := range it.run.stations {
		if s.node.name == name {
			it.mu.Lock()
			defer it.mu.Unlock()
			return it.done&s.bit != 0
		}
	}
	return false
}

// needing is a stage whose needs depend on the attempt.
type needing[In, Out any] struct {
	Stage[In, Out]
	needs func(context.Context) Need
}

func needsBy[In, Out any](s Stage[In, Out], needs func(context.Context) Need) Stage[In, Out] {
	return needing[In, Out]{s, needs}
}

func (s needing[In, Out]) NeedsIn(ctx context.Context, _ any) Need { return s.needs(ctx) }
