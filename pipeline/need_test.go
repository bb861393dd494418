package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
)

// planOf makes the plan of a graph with one source.
func planOf(t interface{ Fatal(...any) }, g *Graph) (*plan, map[string]int) {
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	r := &run{g: g, budget: alloc.NewBudget(alloc.Amount{})}
	r.build()
	at := map[string]int{}
	for i, s := range r.parts[0].plan.stages {
		at[s.node.name] = i
	}
	return r.parts[0].plan, at
}

func noop(name string, n Need) Stage[int, int] {
	return WithNeeds(NewStage(name, func(_ context.Context, n int) (int, error) { return n, nil }), func(any) Need { return n })
}

func host(n int64) alloc.Amount { return alloc.HostBytes(n) }

// TestPlanGroth16 is the standard pipeline in small numbers: w, a, b and c of 4
// each; h reuses a; buckets of 3 a MSM.
func TestPlanGroth16(t *testing.T) {
	g := New("groth16", Budget(alloc.Host, 1000))
	w := Via(FromSlice(g, []int{0}, nil), noop("synthesize", Need{Makes: []Part{{"w", host(4)}, {"a", host(4)}, {"bc", host(8)}}}))
	pre := Via(w, noop("prestage", Need{}))
	ntt := Via(pre, noop("ntt", Need{Scratch: host(1), Makes: []Part{{"h", host(4)}}, Ends: []string{"a", "bc"}}))
	h := Via(ntt, noop("h-msm", Need{Scratch: host(3)}))
	sums := Via(Via(w, noop("batch-add", Need{Scratch: host(1)})), noop("tail-msm", Need{Scratch: host(3), Ends: []string{"w"}}))
	b2 := Via(w, noop("b_g2_msm", Need{Scratch: host(6), Ends: []string{"w"}}))
	p := Via(Join3(h, sums, b2), WithNeeds(NewStage("assemble", func(context.Context, Tuple3[int, int, int]) (int, error) { return 0, nil }), func(any) Need { return Need{} }))
	ToFunc(p, func(context.Context, Key, int) error { return nil })
	pl, at := planOf(t, g)
	s, err := pl.shapeOf(0, &item{})
	if err != nil {
		t.Fatal(err)
	}
	bit := func(names ...string) (d uint64) {
		for _, n := range names {
			d |= 1 << at[n]
		}
		return d
	}
	for _, c := range []struct {
		done []string
		want int64
	}{
		// ntt (h and 1 of scratch) beside tail-msm (3) and b_g2_msm (6), w, a, bc.
		{nil, 16 + 4 + 1 + 3 + 6},
		{[]string{"synthesize", "b_g2_msm"}, 16 + 4 + 1 + 3},
		{[]string{"synthesize", "prestage", "ntt"}, 4 + 4 + 3 + 3 + 6},
		{[]string{"synthesize", "prestage", "ntt", "b_g2_msm", "batch-add", "tail-msm"}, 4 + 3},
		{[]string{"synthesize", "prestage", "ntt", "h-msm", "b_g2_msm", "batch-add", "tail-msm"}, 0},
	} {
		if got := s.After(bit(c.done...)); got != host(c.want) {
			t.Errorf("after %v: %v, want %d", c.done, got, c.want)
		}
	}
}

// TestPlanAgainstWalks: on random graphs no random walk through the orders in
// which stages can start and finish needs more than the plan says, the plan
// never grows on the way, and some walk from each state needs as much as the
// bound allows within its own model.
func TestPlanAgainstWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := New("walk", Budget(alloc.Host, 1))
		ports := []*Port[int]{FromSlice(g, []int{0}, nil)}
		used := []int{0}
		n := rapid.IntRange(1, 9).Draw(t, "n")
		for i := range n {
			need := Need{Scratch: host(rapid.Int64Range(0, 9).Draw(t, "scratch"))}
			for k := range rapid.IntRange(0, 2).Draw(t, "parts") {
				need.Makes = append(need.Makes, Part{fmt.Sprintf("p%d.%d", i, k), host(rapid.Int64Range(0, 9).Draw(t, "bytes"))})
			}
			if i > 0 && rapid.Bool().Draw(t, "ends") {
				need.Ends = append(need.Ends, fmt.Sprintf("p%d.0", rapid.IntRange(0, i-1).Draw(t, "whom")))
			}
			name := fmt.Sprintf("s%d", i)
			a := rapid.IntRange(0, len(ports)-1).Draw(t, "from")
			used[a]++
			if rapid.Bool().Draw(t, "join") {
				b := rapid.IntRange(0, len(ports)-1).Draw(t, "and")
				used[b]++
				j := Join2(ports[a], ports[b])
				ports = append(ports, Via(j, WithNeeds(NewStage(name, func(context.Context, Tuple2[int, int]) (int, error) { return 0, nil }), func(any) Need { return need })))
			} else {
				ports = append(ports, Via(ports[a], noop(name, need)))
			}
			used = append(used, 0)
		}
		for i, p := range ports {
			if used[i] == 0 {
				ToFunc(p, func(context.Context, Key, int) error { return nil })
			}
		}
		pl, _ := planOf(t, g)
		s, err := pl.shapeOf(0, &item{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := pl.shapeOf(1, &item{})
		if err != nil || again != s {
			t.Fatal("equal needs are evaluated twice")
		}
		d := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 30 {
			var done, running uint64
			left := s.After(0)
			for done != 1<<len(pl.stages)-1 {
				// Start or finish something at random.
				i := d.IntN(len(pl.stages))
				switch b := uint64(1) << i; {
				case running&b != 0:
					running &^= b
					done |= b
					now := s.After(done)
					if now != now.Max(alloc.Amount{}) || left.Max(now) != left {
						t.Fatalf("the need grows from %v to %v", left, now)
					}
					left = now
				case done&b == 0 && pl.Before[i]&^done == 0:
					running |= b
				}
				var live alloc.Amount
				for _, p := range s.Parts {
					if (done|running)&(1<<p.Maker) != 0 && p.Ends&^done != 0 {
						live = live.Add(p.Bytes)
					}
				}
				for i := range pl.stages {
					if running&(1<<i) != 0 {
						live = live.Add(s.Scratch[i])
					}
				}
				if left.Max(live) != left {
					t.Fatalf("%v are in use, %v reserved", live, left)
				}
			}
		}
	})
}

// TestPlanCoarse: with too many ideals, or too many stages, the bound is the sum
// of all, which still runs.
func TestPlanCoarse(t *testing.T) {
	for _, wide := range []int{20, 70} {
		t.Run(fmt.Sprint(wide), func(t *testing.T) {
			clean(t)
			g := New("wide", Budget(alloc.Host, int64(wide)*30))
			src := FromSlice(g, count0(10), intKey)
			for i := range wide {
				p := Via(src, WithNeeds(NewStage(fmt.Sprint(i), func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 10) }),
					makes(hostPart(fmt.Sprint(i), 10))))
				ToFunc(p, func(context.Context, Key, *block) error { return nil })
			}
			rep := mustRun(t, g)
			if !g.run.parts[0].plan.Coarse {
				t.Error("the plan is not coarse")
			}
			if rep.Items != 10 {
				t.Errorf("%d items", rep.Items)
			}
		})
	}
}

func TestNeedErrors(t *testing.T) {
	for _, f := range []func(any) Need{
		func(any) Need { panic("no idea") },
		func(any) Need { return Need{Scratch: host(-1)} },
		func(any) Need { return Need{Makes: []Part{{"x", host(-1)}}} },
	} {
		clean(t)
		g := New("need", Budget(alloc.Host, 1))
		ToFunc(Via(FromSlice(g, count0(1), intKey), WithNeeds(NewStage("s", double), f)), func(context.Context, Key, int) error { return nil })
		_, err := runFor(t, g, context.Background())
		var se *StageError
		if !errors.As(err, &se) || se.Stage != "s" || se.Key != intKey(0) {
			t.Errorf("%v", err)
		}
	}
}
