package pipeline

import (
	"context"
	"runtime"
	"testing"

	"github.com/snarkline/snarkline/alloc"
)

// TestNeedsOfJoin: what waits in a join is held by it, also if only a stage beside
// it reads the part and names it; so the item's other stages can still draw all
// that they stated. The part comes from its maker, or is passed on by a stage; it
// waits in one join, or in another one's tuple too.
func TestNeedsOfJoin(t *testing.T) {
	for _, passed := range []bool{false, true} {
		for _, twice := range []bool{false, true} {
			if err := needsOfJoin(t, passed, twice); err != nil {
				t.Errorf("passed on %v, two joins %v: %v", passed, twice, err)
			}
		}
	}
}

func needsOfJoin(t *testing.T, passed, twice bool) error {
	type buffer = *alloc.Buffer[byte]
	clean(t)
	g := New("join", Budget(alloc.Host, 10_000))
	x := Via(FromSlice(g, []int{0}, intKey), bytesStage[int]("x", 1000, nil))
	from := x
	if passed {
		from = Via(x, NewStage("pass", func(_ context.Context, b buffer) (buffer, error) {
			b.Retain()
			return b, nil
		}))
	}
	reader := NewStage("reader", func(context.Context, buffer) (int, error) { return 0, nil })
	drain(Via(from, WithNeeds(reader, func(any) Need { return Need{Ends: []string{"x"}} })))
	none := func(buffer) []alloc.Ref { return nil }
	late := Via(x, WithUses(NewStage("late", func(ctx context.Context, _ buffer) (int, error) {
		return 0, untilFinished(ctx, g, "reader")
	}), none))
	draw := Via(late, WithNeeds(NewStage("draw", func(ctx context.Context, _ int) (int, error) {
		b, err := alloc.Make[byte](alloc.ScopeOf(ctx), 50, alloc.Scratch, 0)
		if err == nil {
			b.Release()
		}
		return 0, err
	}), func(any) Need { return Need{Scratch: host(50)} }))
	charged := func() {
		if got := g.run.budget.Stats().Charged[alloc.Host]; got != 0 {
			t.Errorf("%d bytes are charged behind the join", got)
		}
	}
	if twice {
		type in = Pair[Pair[buffer, int], int]
		drain(Via(Join2(Join2(from, late), draw), WithUses(NewStage("behind", func(context.Context, in) (int, error) {
			charged()
			return 0, nil
		}), func(v in) []alloc.Ref { return none(v.A.A) })))
	} else {
		type in = Pair[buffer, int]
		drain(Via(Join2(from, draw), WithUses(NewStage("behind", func(context.Context, in) (int, error) {
			charged()
			return 0, nil
		}), func(v in) []alloc.Ref { return none(v.A) })))
	}
	_, err := runFor(t, g, context.Background())
	return err
}

// untilFinished waits until a stage has finished with the item.
func untilFinished(ctx context.Context, g *Graph, name string) error {
	it := callOf(ctx).item
	for _, s := range g.run.stations {
		for s.node.name == name && ctx.Err() == nil {
			it.mu.Lock()
			done := it.done&s.bit != 0
			it.mu.Unlock()
			if done {
				break
			}
			runtime.Gosched()
		}
	}
	return ctx.Err()
}
