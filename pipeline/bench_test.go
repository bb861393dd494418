package pipeline

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/reugn/go-streams/extension"
	"github.com/reugn/go-streams/flow"

	"github.com/snarkline/snarkline/alloc"
)

const (
	benchStages   = 5
	benchCapacity = 64
)

// benchWork is what every stage does in all three: as good as nothing, so that
// what is measured is what brings a value from one stage to the next.
func benchWork(n int) int { return n + 1 }

// rawChannels is a line of goroutines with channels between them.
func rawChannels(items, capacity int) {
	in := make(chan int, capacity)
	first := in
	for range benchStages {
		out := make(chan int, capacity)
		go func(in, out chan int) {
			for v := range in {
				out <- benchWork(v)
			}
			close(out)
		}(in, out)
		in = out
	}
	go func() {
		for i := range items {
			first <- i
		}
		close(first)
	}()
	for range in {
	}
}

// goStreams is the same line of go-streams flows. They have no capacities.
func goStreams(items int) {
	src := make(chan any, benchCapacity)
	go func() {
		for i := range items {
			src <- i
		}
		close(src)
	}()
	f := extension.NewChanSource(src).Via(flow.NewMap(benchWork, 1))
	for range benchStages - 1 {
		f = f.Via(flow.NewMap(benchWork, 1))
	}
	for range f.Out() {
	}
}

// engine is the same line in a graph.
func engine(b *testing.B, items, capacity int, opts ...Option) {
	g := New("bench", opts...)
	p := FromSeq(g, func(yield func(int) bool) {
		for i := range items {
			if !yield(i) {
				return
			}
		}
	}, nil)
	for i := range benchStages {
		p = Via(p, NewStage(fmt.Sprint(i), func(_ context.Context, n int) (int, error) { return benchWork(n), nil }), Capacity(capacity))
	}
	ToFunc(p, func(context.Context, Key, int) error { return nil }, Capacity(capacity))
	if _, err := g.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLine runs five stages that do nothing, three ways, in turns within
// one run. It reports what each costs an item and stage, and what the engine
// adds to raw channels.
func BenchmarkLine(b *testing.B) {
	for _, capacity := range []int{benchCapacity, 1} {
		b.Run(fmt.Sprintf("capacity=%d", capacity), func(b *testing.B) {
			var raw, streams, ours time.Duration
			for range b.N {
				const items = 20_000
				t := time.Now()
				rawChannels(items, capacity)
				raw += time.Since(t)
				t = time.Now()
				goStreams(items)
				streams += time.Since(t)
				t = time.Now()
				engine(b, items, capacity)
				ours += time.Since(t)
			}
			per := func(d time.Duration) float64 { return float64(d) / float64(b.N) / 20_000 / benchStages }
			b.ReportMetric(per(raw), "raw-ns/item-stage")
			b.ReportMetric(per(streams), "go-streams-ns/item-stage")
			b.ReportMetric(per(ours), "engine-ns/item-stage")
			b.ReportMetric(per(ours)-per(raw), "added-ns/item-stage")
			b.ReportMetric(float64(ours)/float64(streams), "of-go-streams")
		})
	}
}

// bufferEvents hands one buffer to three consumers: it is retained for each,
// queued, taken, leased and released by each.
func bufferEvents(tb testing.TB) (once func(), free func()) {
	buf, err := alloc.Make[byte](nil, 1024, alloc.Other, 0)
	if err != nil {
		tb.Fatal(err)
	}
	s := &station{node: &node{}, run: &run{g: New("bench")}}
	s.q = newQueue(4, &s.queued)
	it := &item{run: s.run, part: &component{run: s.run}}
	it.live.Store(1 << 30)
	return func() {
		h := holdOf(buf)
		for range 3 {
			h.retain()
		}
		for range 3 {
			m := message{item: it, hold: h}
			s.q.tryPush(m)
			m, _, _ = s.q.pop(s.run)
			s.held.add(&m.hold)
			s.held.sub(&m.hold)
			s.run.release(s, it, &m.hold)
		}
	}, buf.Release
}

// BenchmarkBuffers is the cost of the events of one buffer in the engine.
func BenchmarkBuffers(b *testing.B) {
	once, free := bufferEvents(b)
	defer free()
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

func TestBufferEventsAllocateNothing(t *testing.T) {
	if alloc.Debug {
		t.Skip("in debug mode every reference is recorded")
	}
	clean(t)
	once, free := bufferEvents(t)
	defer free()
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkAdmission is the cost of a budget to an item of a line of stages.
func BenchmarkAdmission(b *testing.B) {
	for range b.N {
		engine(b, 20_000, benchCapacity, Budget(alloc.Host, alloc.GiB))
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/20_000/benchStages, "ns/item-stage")
}
