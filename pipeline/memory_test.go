package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

const big = 64 << 10

func makeBlock(ctx context.Context, sizes ...int) (*block, error) {
	b := &block{}
	for _, n := range sizes {
		x, err := alloc.Make[byte](alloc.ScopeOf(ctx), n, alloc.Witness, 0)
		if err != nil {
			for _, y := range b.bufs {
				y.Release()
			}
			return nil, err
		}
		b.bufs = append(b.bufs, x)
	}
	return b, nil
}

func makes(parts ...Part) func(any) Need { return func(any) Need { return Need{Makes: parts} } }

func hostPart(name string, n int64) Part { return Part{name, alloc.HostBytes(n)} }

// TestF7PileUp: finished items queue up before a slow stage. The reservation
// holds as long as the memory does, so they stay within the budget; if it ended
// with the first stage, they would not.
func TestF7PileUp(t *testing.T) {
	pile := func(t *testing.T, releaseEarly bool) int64 {
		clean(t)
		const parts, fit = 12, 4
		base := alloc.Default().Live(alloc.Host)
		var made atomic.Int64
		var peak atomic.Int64
		g := New("f7", Budget(alloc.Host, fit*big))
		g.unsafe.releaseEarly = releaseEarly
		src := FromSlice(g, count0(parts), intKey)
		synth := WithNeeds(NewStage("synthesize", func(ctx context.Context, n int) (*block, error) {
			b, err := makeBlock(ctx, big)
			made.Add(1)
			raise(&peak, alloc.Default().Live(alloc.Host)-base)
			return b, err
		}), makes(hostPart("w", big)))
		slow := NewStage("slow", func(ctx context.Context, b *block) (int, error) {
			// Wait until as many have piled up as ever will.
			for last, same := int64(-1), 0; made.Load() < parts && same < 5; {
				if n := made.Load(); n == last {
					same++
				} else {
					last, same = n, 0
				}
				time.Sleep(2 * time.Millisecond)
			}
			return len(b.bufs), nil
		})
		out := Via(Via(src, synth, Workers(12)), slow, Capacity(Unbounded))
		ToFunc(out, func(context.Context, Key, int) error { return nil })
		rep := mustRun(t, g)
		if rep.Items != parts {
			t.Fatalf("%d items", rep.Items)
		}
		if !releaseEarly && (rep.Budget.Waits == 0 || rep.Budget.Peak[alloc.Host] > fit*big) {
			t.Errorf("budget: %+v", rep.Budget)
		}
		return peak.Load()
	}
	t.Run("in place", func(t *testing.T) {
		if p := pile(t, false); p > 4*big {
			t.Errorf("peak of %d is over the budget", p)
		}
	})
	t.Run("taken away", func(t *testing.T) {
		if p := pile(t, true); p <= 4*big {
			t.Errorf("peak of %d is within the budget without the protection", p)
		}
	})
}

// TestF8PendingBranch: a branch that waits holds what it uses and nothing else.
func TestF8PendingBranch(t *testing.T) {
	held := func(t *testing.T, allBuffers bool) (refs int) {
		clean(t)
		g := New("f8")
		g.unsafe.allBuffers = allBuffers
		src := FromSlice(g, count0(1), intKey)
		abc := make(chan *alloc.Buffer[byte], 1)
		w := Via(src, NewStage("synthesize", func(ctx context.Context, n int) (*block, error) {
			b, err := makeBlock(ctx, big, 100)
			if err == nil {
				abc <- b.bufs[0]
			}
			return b, err
		}))
		gpuDone := make(chan struct{})
		gpu := Via(w, WithUses(NewStage("gpu", func(_ context.Context, b *block) (int, error) { return b.bufs[0].Len(), nil }),
			func(b *block) []alloc.Ref { return []alloc.Ref{b.bufs[0]} }))
		ToFunc(gpu, func(context.Context, Key, int) error { close(gpuDone); return nil })
		cpu := Via(w, WithUses(NewStage("cpu", func(_ context.Context, b *block) (int, error) {
			<-gpuDone
			refs = (<-abc).Refs()
			if b.bufs[1].Refs() != 1 {
				return 0, errors.New("its own buffer is gone")
			}
			return 0, nil
		}), func(b *block) []alloc.Ref { return []alloc.Ref{b.bufs[1]} }))
		ToFunc(cpu, func(context.Context, Key, int) error { return nil })
		mustRun(t, g)
		return refs
	}
	t.Run("in place", func(t *testing.T) {
		if n := held(t, false); n != 0 {
			t.Errorf("the pending branch keeps %d references on what it does not use", n)
		}
	})
	t.Run("taken away", func(t *testing.T) {
		if n := held(t, true); n == 0 {
			t.Error("nothing was held without the protection")
		}
	})
}

// TestF9UseAfterFree: a stage's input lives as long as the stage runs.
func TestF9UseAfterFree(t *testing.T) {
	read := func(t *testing.T, endAtStart bool) error {
		clean(t)
		g := New("f9")
		g.unsafe.endAtStart = endAtStart
		w := Via(FromSlice(g, count0(1), intKey), NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, big) }))
		ToFunc(w, func(_ context.Context, _ Key, b *block) error {
			if b.bufs[0].Slice()[big-1] != 0 {
				return errors.New("overwritten")
			}
			return nil
		})
		_, err := runFor(t, g, context.Background())
		return err
	}
	t.Run("in place", func(t *testing.T) {
		if err := read(t, false); err != nil {
			t.Error(err)
		}
	})
	t.Run("taken away", func(t *testing.T) {
		var freed *alloc.UseAfterFreeError
		if err := read(t, true); !errors.As(err, &freed) {
			t.Errorf("the use after free was not noticed: %v", err)
		}
	})
}

// TestEarlyRelease: Drop and Done end the lease while the stage runs, and the
// end of the stage does not end it again.
func TestEarlyRelease(t *testing.T) {
	clean(t)
	g := New("early")
	var dropped atomic.Int64
	g.listeners = append(g.listeners, ListenerFunc(func(e Event) {
		if e.Kind == Dropped {
			dropped.Add(e.Bytes)
		}
	}))
	w := Via(FromSlice(g, count0(3), intKey), NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 10, 20, 30) }))
	ToFunc(w, func(ctx context.Context, k Key, b *block) error {
		if KeyOf(ctx) != k || StageOf(ctx) != "sink" {
			t.Errorf("context of %v in %s", KeyOf(ctx), StageOf(ctx))
		}
		if !Drop(ctx, b.bufs[1]) || Drop(ctx, b.bufs[1]) {
			t.Error("Drop does not tell what it did")
		}
		if b.bufs[0].Refs() != 1 || b.bufs[1].Refs() != 0 {
			t.Error("Drop dropped something else")
		}
		sub, cancel := context.WithCancel(ctx)
		defer cancel()
		Done(sub)
		Done(ctx)
		for _, x := range b.bufs {
			if x.Refs() != 0 {
				t.Error("Done left a reference")
			}
		}
		return nil
	})
	mustRun(t, g)
	if dropped.Load() != 3*60 {
		t.Errorf("events of %d dropped bytes", dropped.Load())
	}
	Done(context.Background())
	if Drop(context.Background(), nil) || KeyOf(context.Background()) != (Key{}) || StageOf(context.Background()) != "" {
		t.Error("outside of a stage there is something")
	}
}

// TestPassOn: a stage passes a buffer on by retaining it; the part is ended by
// its true last reader.
func TestPassOn(t *testing.T) {
	clean(t)
	g := New("pass", Budget(alloc.Host, big+150))
	src := FromSlice(g, count0(20), intKey)
	a := Via(src, WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, big, 100) }),
		makes(hostPart("a", big), hostPart("w", 100))), Workers(3))
	p := Via(a, NewStage("pass", func(_ context.Context, b *block) (*alloc.Buffer[byte], error) {
		b.bufs[0].Retain()
		return b.bufs[0], nil
	}), Workers(2))
	e := Via(p, WithNeeds(NewStage("end", func(ctx context.Context, b *alloc.Buffer[byte]) (*block, error) {
		return makeBlock(ctx, 50)
	}), func(any) Need {
		return Need{Makes: []Part{hostPart("r", 50)}, Ends: []string{"a"}}
	}))
	ToFunc(e, func(context.Context, Key, *block) error { return nil })
	mustRun(t, g)
}

func TestCollectBuffers(t *testing.T) {
	collect := func(limit int64) (*Collected[*block], error) {
		g := New("collect", Budget(alloc.Host, limit))
		w := Via(FromSlice(g, count0(5), intKey), WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 1000) }),
			makes(hostPart("w", 1000))))
		c := Collect(w, Capacity(Unbounded))
		if c.Values() != nil {
			t.Error("values before the run")
		}
		_, err := runFor(t, g, context.Background())
		return c, err
	}
	clean(t)
	c, err := collect(5000)
	if err != nil || len(c.Results()) != 5 {
		t.Fatalf("%d results, %v", len(c.Results()), err)
	}
	for _, b := range c.Values() {
		b.bufs[0].Release()
	}
	// What is collected leaves no room for the last items: an error, no hang.
	c, err = collect(3500)
	var never *AdmitError
	if !errors.As(err, &never) || never.Held != alloc.HostBytes(3000) || never.Need != alloc.HostBytes(1000) {
		t.Fatalf("%v", err)
	}
	if len(c.Values()) != 0 {
		t.Error("values of a run that failed")
	}
}

// TestSinkThatKeeps: a sink that retains what it gets starves the graph, which
// is an error after the patience; one that releases it late does not.
func TestSinkThatKeeps(t *testing.T) {
	clean(t)
	run := func(patience time.Duration, after time.Duration) (*Report, error) {
		g := New("keeps", Budget(alloc.Host, 2500), Patience(patience))
		w := Via(FromSlice(g, count0(5), intKey), WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 1000) }),
			makes(hostPart("w", 1000))))
		var kept []*block
		var late sync.WaitGroup
		ToFunc(w, func(_ context.Context, _ Key, b *block) error {
			b.bufs[0].Retain()
			if after == 0 {
				kept = append(kept, b)
				return nil
			}
			late.Go(func() {
				time.Sleep(after)
				b.bufs[0].Release()
			})
			return nil
		})
		rep, err := runFor(t, g, context.Background())
		late.Wait()
		for _, b := range kept {
			b.bufs[0].Release()
		}
		return rep, err
	}
	_, err := run(60*time.Millisecond, 0)
	var never *AdmitError
	if !errors.As(err, &never) || never.Held != alloc.HostBytes(2000) || never.Need != alloc.HostBytes(1000) || never.Waited < 60*time.Millisecond {
		t.Fatalf("%v", err)
	}
	for _, patience := range []time.Duration{0, DefaultPatience} {
		if rep, err := run(patience, 50*time.Millisecond); err != nil || rep.Items != 5 {
			t.Errorf("patience %v: %v", patience, err)
		}
	}
	if _, err := New("negative", Patience(-1)).Run(context.Background()); err == nil {
		t.Error("a negative patience is taken")
	}
}

func TestNeverFits(t *testing.T) {
	clean(t)
	g := New("never", Budget(alloc.Host, 999), OnError(FailKey))
	var heard []error
	g.onFail = append(g.onFail, func(_ Key, err error) { heard = append(heard, err) })
	w := Via(FromSlice(g, []int{10, 2000, 20}, func(n int) Key { return Key{Job: "bytes", Part: n} }),
		WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, n) }),
			func(job any) Need { return Need{Makes: []Part{hostPart("w", int64(job.(int)))}} }))
	ToFunc(w, func(context.Context, Key, *block) error { return nil })
	rep := mustRun(t, g)
	var never *AdmitError
	if len(heard) != 1 || !errors.As(heard[0], &never) || never.Key.Part != 2000 ||
		never.Need != alloc.HostBytes(2000) || never.Limit != alloc.HostBytes(999) {
		t.Fatalf("heard %v", heard)
	}
	if rep.Items != 2 || rep.Failed != 1 {
		t.Errorf("%d items, %d failed", rep.Items, rep.Failed)
	}
}

// TestOverdraw: a stage that states too little is told so, not obeyed.
func TestOverdraw(t *testing.T) {
	clean(t)
	g := New("overdraw", Budget(alloc.Host, 999))
	w := Via(FromSlice(g, count0(1), nil), NewStage("silent", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 10) }))
	ToFunc(w, func(context.Context, Key, *block) error { return nil })
	_, err := runFor(t, g, context.Background())
	var over *alloc.OverdrawError
	if !errors.As(err, &over) || over.Stage.String() != "silent" {
		t.Fatal(err)
	}
}

func TestDoubleRelease(t *testing.T) {
	g := New("double")
	w := Via(FromSlice(g, count0(1), nil), NewStage("make", func(ctx context.Context, n int) (*block, error) { return makeBlock(ctx, 10) }))
	ToFunc(w, func(_ context.Context, _ Key, b *block) error {
		b.bufs[0].Release()
		return nil
	})
	_, err := runFor(t, g, context.Background())
	var twice *alloc.DoubleReleaseError
	if !errors.As(err, &twice) {
		t.Fatal(err)
	}
}

// TestSharedBudget: two graphs that reserve from one budget stay within it
// together.
func TestSharedBudget(t *testing.T) {
	clean(t)
	base := alloc.Default().Live(alloc.Host)
	var peak atomic.Int64
	b := alloc.NewBudget(alloc.HostBytes(3 * big))
	ends := make(chan error, 2)
	for range 2 {
		g := New("shared", WithBudget(b))
		w := Via(FromSlice(g, count0(30), intKey), WithNeeds(NewStage("make", func(ctx context.Context, n int) (*block, error) {
			x, err := makeBlock(ctx, big)
			raise(&peak, alloc.Default().Live(alloc.Host)-base)
			return x, err
		}), makes(hostPart("w", big))), Workers(4))
		ToFunc(w, func(context.Context, Key, *block) error { return nil }, Workers(4))
		go func() {
			rep, err := g.Run(context.Background())
			if err == nil && rep.Items != 30 {
				err = errors.New("items are missing")
			}
			ends <- err
		}()
	}
	for range 2 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	// How much of it the two get to use at once is the scheduler's to say.
	if p := b.Stats().Peak[0]; peak.Load() > 3*big || p > 3*big || p == 0 {
		t.Errorf("peak %d, reserved %v", peak.Load(), b.Stats().Peak)
	}
}
