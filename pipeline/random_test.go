package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
)

// block is a value that carries buffers, each filled with one byte.
type block struct {
	bufs []*alloc.Buffer[byte]
	dev  *alloc.Charge // memory of a device, which only counts; may be nil
}

func (b *block) Buffers() (refs []alloc.Ref) {
	for _, x := range b.bufs {
		refs = append(refs, x)
	}
	return append(refs, b.dev)
}

type flaky struct{ error }

func (flaky) Temporary() bool { return true }

// scrap says that the item must be made again from its source's value.
type scrap struct{ error }

func (scrap) Temporary() bool { return true }
func (scrap) FromStart() bool { return true }

// world is what the stages of a random graph share with the test.
type world struct {
	base  [2]int64 // live bytes before, on the host and on the device
	peak  [2]atomic.Int64
	seed  uint64
	mu    sync.Mutex
	seen  []map[Key]int // by sink
	fails map[Key]int
	bad   []string
	kept  atomic.Int64 // values of items that have not ended
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	w.bad = append(w.bad, fmt.Sprintf(format, args...))
	w.mu.Unlock()
}

var twoSpaces = [2]alloc.Space{alloc.Host, alloc.Device(0)}

func newWorld(seed uint64) *world {
	w := &world{seed: seed, fails: map[Key]int{}}
	for i, s := range twoSpaces {
		w.base[i] = alloc.Default().Live(s)
	}
	return w
}

func (w *world) made() {
	for i, s := range twoSpaces {
		raise(&w.peak[i], alloc.Default().Live(s)-w.base[i])
	}
}

// dice are those of a stage and an item: the same in every run.
func (w *world) dice(name string, k Key, attempt int) *rand.Rand {
	h := w.seed
	for _, c := range name {
		h = h*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(h, uint64(k.Part)*1000+uint64(attempt)))
}

// plot is a random stage: what it declares and does.
type plot struct {
	w        *world
	name     string
	parts    []int // bytes of each output buffer
	scratch  int
	dev      int  // bytes of device memory that the output carries
	uses     uint // which of the input's buffers it reads, by bits; 0 for all
	failPct  int
	panicPct int
	tempPct  int
	scrapPct int
	early    int // 0: nothing, 1: Done, 2: Drop of the first
	mu       sync.Mutex
	tries    map[Key]int
}

func (p *plot) pick(in []*alloc.Buffer[byte]) []*alloc.Buffer[byte] {
	if p.uses == 0 {
		return in
	}
	var out []*alloc.Buffer[byte]
	for i, b := range in {
		if p.uses&(1<<(i%8)) != 0 {
			out = append(out, b)
		}
	}
	return out
}

func (p *plot) need() (n Need) {
	n.Scratch = alloc.HostBytes(int64(p.scratch))
	for i, b := range p.parts {
		n.Makes = append(n.Makes, Part{fmt.Sprintf("%s.%d", p.name, i), alloc.HostBytes(int64(b))})
	}
	n.Makes = append(n.Makes, Part{p.name + ".dev", alloc.BytesIn(alloc.Device(0), int64(p.dev))})
	return n
}

func (p *plot) run(ctx context.Context, in []*alloc.Buffer[byte]) (*block, error) {
	k := KeyOf(ctx)
	p.mu.Lock()
	p.tries[k]++
	attempt := p.tries[k]
	p.mu.Unlock()
	d := p.w.dice(p.name, k, attempt)
	mine := p.pick(in)
	check := func() {
		for _, b := range mine {
			s := b.Slice()
			if len(s) > 0 && (s[0] != 7 || s[len(s)-1] != 7) {
				p.w.wrong("stage %s, %v: an input was overwritten", p.name, k)
			}
		}
	}
	check()
	if tries, ok := ItemValue(ctx, p.w, func(before any) (any, func()) {
		p.w.kept.Add(1)
		n, _ := before.(int)
		return n + 1, func() { p.w.kept.Add(-1) }
	}).(int); !ok || tries > len(PastOf(ctx))+1 {
		p.w.wrong("stage %s, %v: the item's value is %v after %d attempts", p.name, k, tries, len(PastOf(ctx)))
	}
	sc := alloc.ScopeOf(ctx)
	tmp, err := alloc.Make[byte](sc, p.scratch, alloc.Scratch, alloc.Dirty)
	if err != nil {
		p.w.wrong("stage %s, %v: reserved too little: %v", p.name, k, err)
		return nil, err
	}
	p.w.made()
	defer tmp.Release()
	out := &block{}
	undo := func() {
		for _, b := range out.bufs {
			b.Release()
		}
		if out.dev != nil {
			out.dev.Release()
		}
	}
	if p.dev > 0 {
		if out.dev, err = alloc.Foreign(sc.In(alloc.Device(0)), alloc.Witness, int64(p.dev)); err != nil {
			p.w.wrong("stage %s, %v: reserved too little: %v", p.name, k, err)
			return nil, err
		}
		p.w.made()
	}
	for _, n := range p.parts {
		b, err := alloc.Make[byte](sc, n, alloc.Witness, alloc.Dirty)
		if err != nil {
			p.w.wrong("stage %s, %v: reserved too little: %v", p.name, k, err)
			undo()
			return nil, err
		}
		p.w.made()
		for i := range b.Slice() {
			b.Slice()[i] = 7
		}
		out.bufs = append(out.bufs, b)
	}
	switch d.IntN(8) {
	case 0:
		time.Sleep(time.Duration(d.IntN(60)) * time.Microsecond)
	case 1, 2:
		runtime.Gosched()
	case 3:
		if ctx.Err() != nil {
			undo()
			return nil, ctx.Err()
		}
	case 4:
		t := time.NewTimer(time.Duration(d.IntN(60)) * time.Microsecond)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
	switch x := d.IntN(100); {
	case x < p.failPct:
		undo()
		return nil, errors.New("dice")
	case x < p.failPct+p.panicPct:
		undo()
		panic("dice")
	case x < p.failPct+p.panicPct+p.tempPct:
		check()
		undo()
		return nil, flaky{errors.New("dice, again")}
	case x < p.failPct+p.panicPct+p.tempPct+p.scrapPct:
		undo()
		return nil, fmt.Errorf("wrapped: %w", scrap{errors.New("dice, from the start")})
	}
	check()
	switch p.early {
	case 1:
		Done(ctx)
	case 2:
		if len(mine) > 0 {
			Drop(ctx, mine[0])
		}
	}
	return out, nil
}

type blockStage[In any] struct {
	*plot
	open func(In) []*alloc.Buffer[byte]
}

func (s blockStage[In]) Name() string   { return s.name }
func (s blockStage[In]) Needs(any) Need { return s.need() }
func (s blockStage[In]) Run(ctx context.Context, in In) (*block, error) {
	return s.run(ctx, s.open(in))
}
func (s blockStage[In]) Uses(in In) (refs []alloc.Ref) {
	for _, b := range s.pick(s.open(in)) {
		refs = append(refs, b)
	}
	return refs
}

func bufsOf(bs ...*block) (out []*alloc.Buffer[byte]) {
	for _, b := range bs {
		out = append(out, b.bufs...)
	}
	return out
}

// holding is a go-streams sink that keeps what it gets for a moment.
type holding struct {
	w    *world
	in   chan any
	done chan struct{}
}

func newHolding(w *world, sink int) *holding {
	h := &holding{w, make(chan any), make(chan struct{})}
	go func() {
		defer close(h.done)
		var kept []*block
		free := func() {
			for _, b := range kept {
				for _, x := range b.bufs {
					x.Release()
				}
				if b.dev != nil {
					b.dev.Release()
				}
			}
			kept = nil
		}
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case e, ok := <-h.in:
				if !ok {
					free()
					return
				}
				kept = append(kept, e.(*block))
			case <-tick.C:
				free()
			}
		}
	}()
	return h
}

func (h *holding) In() chan<- any   { return h.in }
func (h *holding) AwaitCompletion() { <-h.done }

// drawGraph makes a random graph of nStages stages.
func drawGraph(t *rapid.T, w *world, g *Graph, items int, faults bool) (sinks int, streams bool) {
	src := FromSlice(g, count0(items), intKey, Restart(rapid.IntRange(0, 3).Draw(t, "restarts")))
	pct := func(label string, most int) int {
		if !faults {
			return 0
		}
		return rapid.IntRange(0, most).Draw(t, label)
	}
	newPlot := func(i int) *plot {
		p := &plot{w: w, name: fmt.Sprintf("s%d", i), tries: map[Key]int{}}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			p.parts = append(p.parts, rapid.IntRange(0, 3000).Draw(t, "bytes"))
		}
		p.scratch = rapid.IntRange(0, 2000).Draw(t, "scratch")
		p.dev = rapid.SampledFrom([]int{0, 0, 1000}).Draw(t, "device")
		p.uses = uint(rapid.SampledFrom([]int{0, 0, 1, 2, 5, 255}).Draw(t, "uses"))
		p.failPct, p.panicPct, p.tempPct = pct("fail", 4), pct("panic", 2), pct("temp", 10)
		p.scrapPct = pct("scrap", 15)
		p.early = rapid.IntRange(0, 2).Draw(t, "early")
		return p
	}
	opts := func() (o []NodeOption) {
		o = append(o, Workers(rapid.IntRange(1, 4).Draw(t, "workers")),
			Capacity(rapid.SampledFrom([]int{0, 1, 1, 2, 5, Unbounded}).Draw(t, "capacity")))
		if rapid.Bool().Draw(t, "ordered") {
			o = append(o, Ordered())
		}
		if rapid.Bool().Draw(t, "retry") {
			o = append(o, Retry(rapid.IntRange(1, 3).Draw(t, "tries"), 20*time.Microsecond))
		}
		return o
	}
	first := newPlot(0)
	ports := []*Port[*block]{Via(src, blockStage[int]{first, func(int) []*alloc.Buffer[byte] { return nil }}, opts()...)}
	used := []int{0}
	n := rapid.IntRange(1, 9).Draw(t, "stages")
	take := func() *Port[*block] {
		i := rapid.IntRange(0, len(ports)-1).Draw(t, "port")
		used[i]++
		return ports[i]
	}
	for i := 1; i <= n; i++ {
		p := newPlot(i)
		var out *Port[*block]
		switch k := rapid.IntRange(1, 5).Draw(t, "inputs"); k {
		case 1:
			out = Via(take(), blockStage[*block]{p, func(b *block) []*alloc.Buffer[byte] { return b.bufs }}, opts()...)
		case 2:
			out = Via(Join2(take(), take()), blockStage[Tuple2[*block, *block]]{p,
				func(v Tuple2[*block, *block]) []*alloc.Buffer[byte] { return bufsOf(v.A, v.B) }}, opts()...)
		case 3:
			out = Via(Join3(take(), take(), take()), blockStage[Tuple3[*block, *block, *block]]{p,
				func(v Tuple3[*block, *block, *block]) []*alloc.Buffer[byte] { return bufsOf(v.A, v.B, v.C) }}, opts()...)
		case 4:
			out = Via(Join4(take(), take(), take(), take()), blockStage[Tuple4[*block, *block, *block, *block]]{p,
				func(v Tuple4[*block, *block, *block, *block]) []*alloc.Buffer[byte] {
					return bufsOf(v.A, v.B, v.C, v.D)
				}}, opts()...)
		case 5:
			out = Via(Join5(take(), take(), take(), take(), take()), blockStage[Tuple5[*block, *block, *block, *block, *block]]{p,
				func(v Tuple5[*block, *block, *block, *block, *block]) []*alloc.Buffer[byte] {
					return bufsOf(v.A, v.B, v.C, v.D, v.E)
				}}, opts()...)
		}
		ports, used = append(ports, out), append(used, 0)
	}
	for i, p := range ports {
		if used[i] > 0 && !rapid.Bool().Draw(t, "tap") {
			continue
		}
		at := sinks
		sinks++
		w.seen = append(w.seen, map[Key]int{})
		if rapid.IntRange(0, 3).Draw(t, "sink") == 0 {
			// A sink without keys: only what it holds is looked at.
			streams = true
			w.seen[at] = nil
			To(p, newHolding(w, at))
			continue
		}
		ToFunc(p, func(_ context.Context, k Key, b *block) error {
			for _, x := range b.bufs {
				if s := x.Slice(); len(s) > 0 && s[0] != 7 {
					w.wrong("sink %d, %v: a buffer was overwritten", at, k)
				}
			}
			w.mu.Lock()
			w.seen[at][k]++
			w.mu.Unlock()
			return nil
		}, Workers(rapid.IntRange(1, 2).Draw(t, "sink workers")))
	}
	return sinks, streams
}

// TestRandomGraphs runs random graphs with random faults, budgets, capacities,
// workers, cancellations and changes while they run: none hangs, none leaks,
// none goes over its budget, and every key is answered once.
func TestRandomGraphs(t *testing.T) {
	clean(t)
	rapid.Check(t, func(t *rapid.T) {
		ignore := goleak.IgnoreCurrent()
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		items := rapid.IntRange(0, 40).Draw(t, "items")
		policy := Policy(rapid.IntRange(0, 1).Draw(t, "policy"))
		var limit [2]int64
		for i := range limit {
			if rapid.IntRange(0, 3).Draw(t, "with budget") > 0 {
				limit[i] = rapid.Int64Range(1, 60_000).Draw(t, "budget")
			}
		}
		faults := rapid.Bool().Draw(t, "faults")
		opts := []Option{OnError(policy), Budget(alloc.Host, limit[0]), Budget(alloc.Device(0), limit[1]), OnFail(func(k Key, err error) {
			w.mu.Lock()
			w.fails[k]++
			w.mu.Unlock()
		})}
		if rapid.Bool().Draw(t, "listen") {
			opts = append(opts, Listen(ListenerFunc(func(Event) {})))
		}
		g := New("random", opts...)
		sinks, _ := drawGraph(t, w, g, items, faults)
		if err := g.Err(); err != nil {
			t.Fatalf("graph: %v", err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		gaveUp := errors.New("gave up")
		canceled := rapid.IntRange(0, 4).Draw(t, "cancel") == 0
		if canceled {
			timer := time.AfterFunc(time.Duration(rapid.IntRange(0, 800).Draw(t, "cancel after"))*time.Microsecond, func() { cancel(gaveUp) })
			defer timer.Stop()
		}
		fiddle := rapid.Bool().Draw(t, "fiddle")
		type result struct {
			rep *Report
			err error
		}
		done := make(chan result, 1)
		go func() {
			rep, err := g.Run(ctx)
			done <- result{rep, err}
		}()
		var res result
		deadline := time.After(20 * time.Second)
		d := rand.New(rand.NewPCG(w.seed, 1))
		names := g.Stages()
	wait:
		for {
			var tick <-chan time.Time
			if fiddle {
				tick = time.After(50 * time.Microsecond)
			}
			select {
			case res = <-done:
				break wait
			case <-tick:
				n := names[d.IntN(len(names))]
				if err := g.SetWorkers(n, 1+d.IntN(5)); err != nil {
					t.Fatal(err)
				}
				if err := g.SetCapacity(n, []int{1, 2, 7, Unbounded}[d.IntN(4)]); err != nil {
					t.Fatal(err)
				}
				g.Stats()
			case <-deadline:
				buf := make([]byte, 1<<20)
				t.Fatalf("the graph hangs\n%s\n%s", g.DOT(), buf[:runtime.Stack(buf, true)])
			}
		}
		for i, s := range twoSpaces {
			if live := alloc.Default().Live(s) - w.base[i]; live != 0 {
				t.Fatalf("%d bytes of %v are left", live, s)
			}
			if limit[i] > 0 && w.peak[i].Load() > limit[i] {
				t.Fatalf("peak of %d in %v is over the budget of %d", w.peak[i].Load(), s, limit[i])
			}
		}
		if err := goleak.Find(ignore); err != nil {
			t.Fatal(err)
		}
		if n := w.kept.Load(); n != 0 {
			t.Errorf("%d values of items have not ended", n)
		}
		for _, b := range w.bad {
			t.Error(b)
		}
		rep := res.rep
		for i := range rep.Stages {
			s := &rep.Stages[i]
			if !s.Held.Now.IsZero() || !s.Queued.Now.IsZero() || !s.Pending.Now.IsZero() || s.Queue != 0 && res.err == nil {
				t.Errorf("%s holds %v %v %v at the end", s.Name, s.Held.Now, s.Queued.Now, s.Pending.Now)
			}
		}
		if rep.InFlight != 0 {
			t.Errorf("%d items in flight at the end", rep.InFlight)
		}
		checkAnswers(t, w, g, res.rep, res.err, items, sinks, policy, canceled, gaveUp)
	})
}

func checkAnswers(t *rapid.T, w *world, g *Graph, rep *Report, err error, items, sinks int, policy Policy, canceled bool, gaveUp error) {
	for i := range sinks {
		for k, n := range w.seen[i] {
			if n != 1 {
				t.Errorf("sink %d got %v %d times", i, k, n)
			}
		}
	}
	for k, n := range w.fails {
		if n != 1 {
			t.Errorf("%v failed %d times", k, n)
		}
	}
	var stage *StageError
	var never *AdmitError
	switch {
	case err == nil:
	case canceled && errors.Is(err, gaveUp):
		return
	case policy == FailKey:
		t.Fatalf("run under fail-key: %v", err)
	case errors.As(err, &stage), errors.As(err, &never):
		return
	default:
		t.Fatalf("run: %v", err)
	}
	if rep.Items+rep.Failed != int64(items) || int64(len(w.fails)) != rep.Failed {
		t.Errorf("%d items: %d answered, %d failed, %d heard", items, rep.Items, rep.Failed, len(w.fails))
	}
	for _, f := range rep.Failures {
		if f.Stage == "" {
			t.Errorf("a failure without a stage: %+v", f)
		}
	}
	for i := range items {
		k := intKey(i)
		for s := range sinks {
			if w.seen[s] != nil && w.fails[k] == 0 && w.seen[s][k] != 1 {
				t.Errorf("sink %d did not get %v", s, k)
			}
		}
	}
}
