package pipeline

import (
	"context"
	"testing"

	"github.com/snarkline/snarkline/alloc"
)

// TestEndParts: a stage that goes on reading its input in the background, as a
// copy to a device does, has the part reserved until it says that it is done,
// although the stage behind it, which names the part too, still runs. Until then
// the item's other stages can draw all that they stated.
func TestEndParts(t *testing.T) {
	for _, early := range []bool{true, false} {
		clean(t)
		copied, seen := make(chan struct{}), make(chan struct{})
		g := New("copies", Budget(alloc.Host, 10_000))
		charged := func() int64 { return g.run.budget.Stats().Charged[alloc.Host] }
		x := Via(FromSlice(g, []int{0}, intKey), bytesStage[int]("x", 1000, nil))
		copying := NewStage("copy", func(ctx context.Context, b *alloc.Buffer[byte]) (int, error) {
			b.Retain()
			end := EndParts(ctx)
			if early {
				end("x") // has no effect before the stage has returned
				if charged() < 1000 {
					t.Error("the part has ended while its reader runs")
				}
				b.Release()
				return 0, nil
			}
			go func() {
				<-copied
				b.Release()
				end("x")
				end("x")
				close(seen)
			}()
			return 0, nil
		})
		c := Via(x, WithNeeds(copying, func(any) Need { return Need{Ends: []string{"x"}} }))
		slow := NewStage("slow", func(ctx context.Context, _ int) (int, error) {
			if !early {
				if got := charged(); got != 1000+50 {
					t.Errorf("%d bytes are charged while the copy runs", got)
				}
				close(copied)
				<-seen
			}
			if got := charged(); got != 50 {
				t.Errorf("%d bytes are charged after the copy", got)
			}
			b, err := alloc.Make[byte](alloc.ScopeOf(ctx), 50, alloc.Scratch, 0)
			if err != nil {
				return 0, err
			}
			b.Release()
			return 0, nil
		})
		drain(Via(c, WithNeeds(slow, func(any) Need {
			return Need{Scratch: alloc.HostBytes(50), Ends: []string{"x"}}
		})))
		if _, err := g.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		EndParts(context.Background())("x")
	}
}

// TestEndPartsLeavesOthers: a stage beside the one that says so still has the
// part.
func TestEndPartsLeavesOthers(t *testing.T) {
	g := New("others", Budget(alloc.Host, 1000))
	x := Via(FromSlice(g, []int{0}, nil), noop("x", Need{Makes: []Part{{"x", host(4)}, {"y", host(8)}}}))
	ends := Need{Ends: []string{"x", "y"}}
	drain(Via(Via(x, noop("copy", ends)), noop("behind", ends)))
	drain(Via(x, noop("beside", Need{Ends: []string{"x"}})))
	pl, at := planOf(t, g)
	s, err := pl.shapeOf(0, &item{})
	if err != nil {
		t.Fatal(err)
	}
	less := s.Without(1<<at["copy"], []string{"x", "y"})
	if again := s.Without(1<<at["copy"], []string{"x", "y"}); again != less {
		t.Error("the same is evaluated twice")
	}
	made, copied := uint64(1)<<at["x"], uint64(1)<<at["x"]|1<<at["copy"]
	for _, c := range []struct {
		done         uint64
		before, then int64
	}{{made, 12, 12}, {copied, 12, 4}, {copied | 1<<at["beside"], 12, 0}} {
		if s.After(c.done) != host(c.before) || less.After(c.done) != host(c.then) {
			t.Errorf("after %b: %v and %v, want %d and %d", c.done, s.After(c.done), less.After(c.done), c.before, c.then)
		}
	}
}
