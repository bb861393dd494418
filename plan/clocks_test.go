package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// sketch is a random graph that both clocks run: real stages that allocate what
// the model says, and the model.
type sketch struct {
	nodes []sketched
	sinks []int // nodes whose values are given away
	costs *plan.Costs
}

type sketched struct {
	from     []int // nodes; −1: the source
	parts    []int64
	reads    [][]int // parts that it reads of each of from; nil: all, without Uses
	scratch  int64
	workers  int
	capacity int
	ordered  bool
}

func name(i int) string { return fmt.Sprintf("s%d", i) }

func drawSketch(t *rapid.T) *sketch {
	s := &sketch{costs: &plan.Costs{Nodes: map[string]plan.Node{}, Machine: plan.Machine{Cores: float64(rapid.IntRange(0, 3).Draw(t, "cores"))}}}
	n := rapid.IntRange(1, 9).Draw(t, "stages")
	used := make([]bool, n)
	for i := range n {
		d := sketched{
			workers: rapid.IntRange(1, 3).Draw(t, "workers"), capacity: rapid.SampledFrom([]int{1, 1, 2, 5, pipeline.Unbounded}).Draw(t, "capacity"),
			ordered: rapid.Bool().Draw(t, "ordered"), scratch: rapid.Int64Range(0, 2000).Draw(t, "scratch"), from: []int{-1},
		}
		if i > 0 {
			d.from = nil
			for range rapid.IntRange(1, 3).Draw(t, "inputs") {
				f := rapid.IntRange(0, i-1).Draw(t, "from")
				d.from = append(d.from, f)
				used[f] = true
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			d.parts = append(d.parts, rapid.Int64Range(1, 3000).Draw(t, "bytes"))
		}
		s.nodes = append(s.nodes, d)
	}
	for i := range n {
		if !used[i] || rapid.IntRange(0, 3).Draw(t, "tap") == 0 {
			s.sinks = append(s.sinks, i)
		}
	}
	s.uses(t)
	s.cost(t)
	return s
}

// uses draws which parts each stage reads. Each part has a reader.
func (s *sketch) uses(t *rapid.T) {
	for i := range s.nodes {
		d := &s.nodes[i]
		if i == 0 || rapid.IntRange(0, 2).Draw(t, "with uses") == 0 {
			continue
		}
		for _, f := range d.from {
			read := []int{}
			for k := range s.nodes[f].parts {
				if rapid.Bool().Draw(t, "reads") {
					read = append(read, k)
				}
			}
			d.reads = append(d.reads, read)
		}
	}
	for i := range s.nodes {
		for k := range s.nodes[i].parts {
			if len(s.readers(i, k)) > 0 {
				continue
			}
			for j := range s.nodes {
				if at := slices.Index(s.nodes[j].from, i); at >= 0 {
					s.nodes[j].reads[at] = append(s.nodes[j].reads[at], k)
					break
				}
			}
		}
	}
}

// readers are the nodes that read a part.
func (s *sketch) readers(maker, part int) (out []plan.Reader) {
	for j, d := range s.nodes {
		for at, f := range d.from {
			if f == maker && (d.reads == nil || slices.Contains(d.reads[at], part)) {
				out = append(out, plan.Reader{Node: name(j)})
				break
			}
		}
	}
	for k, i := range s.sinks {
		if i == maker {
			out = append(out, plan.Reader{Node: fmt.Sprintf("sink%d", k)})
		}
	}
	return out
}

func (s *sketch) cost(t *rapid.T) {
	seconds := rapid.Float64Range(0, 3)
	for i, d := range s.nodes {
		n := plan.Node{Scratch: []plan.Buffer{{Name: "scratch", Bytes: d.scratch, From: 0.1, Until: 0.9}}}
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			n.Steps = append(n.Steps, plan.Step{Seconds: seconds.Draw(t, "seconds"), Spread: 0.3, Cores: float64(rapid.IntRange(0, 2).Draw(t, "cores"))})
		}
		for k, b := range d.parts {
			n.Makes = append(n.Makes, plan.Buffer{Name: fmt.Sprint(k), Bytes: b, Readers: s.readers(i, k)})
		}
		s.costs.Nodes[name(i)] = n
	}
}

// parcel is a value with the buffers that its stage made.
type parcel struct{ bufs []*alloc.Buffer[byte] }

func (p *parcel) Buffers() (refs []alloc.Ref) {
	for _, b := range p.bufs {
		refs = append(refs, b)
	}
	return refs
}

// tally is what a real run came to.
type tally struct {
	base, made, peak atomic.Int64
	calls            []atomic.Int64
	mu               sync.Mutex
	got              []map[pipeline.Key]int
	wrong            []error
}

func (w *tally) level() {
	for now := alloc.Default().Live(alloc.Host) - w.base.Load(); ; {
		p := w.peak.Load()
		if now <= p || w.peak.CompareAndSwap(p, now) {
			return
		}
	}
}

// realStage is a stage of the sketch.
type realStage[In any] struct {
	s    *sketch
	i    int
	w    *tally
	open func(In) []*parcel
}

func (r realStage[In]) Name() string { return name(r.i) }

func (r realStage[In]) Needs(any) (n pipeline.Need) {
	d := &r.s.nodes[r.i]
	n.Scratch = host(d.scratch)
	for k, b := range d.parts {
		n.Makes = append(n.Makes, pipeline.Part{Name: fmt.Sprint(r.i, ".", k), Bytes: host(b)})
	}
	for at, f := range d.from {
		// A sink states nothing: what it reads too ends with all direct consumers.
		if f < 0 || slices.Contains(r.s.sinks, f) {
			continue
		}
		for k := range r.s.nodes[f].parts {
			if d.reads == nil || slices.Contains(d.reads[at], k) {
				n.Ends = append(n.Ends, fmt.Sprint(f, ".", k))
			}
		}
	}
	return n
}

func (r realStage[In]) Run(ctx context.Context, in In) (*parcel, error) {
	d := &r.s.nodes[r.i]
	r.w.calls[r.i].Add(1)
	make1 := func(n int64) (*alloc.Buffer[byte], error) {
		b, err := alloc.Make[byte](alloc.ScopeOf(ctx), int(n), alloc.Other, alloc.Dirty)
		if err != nil {
			r.w.mu.Lock()
			r.w.wrong = append(r.w.wrong, err)
			r.w.mu.Unlock()
			return nil, err
		}
		r.w.made.Add(n)
		r.w.level()
		return b, nil
	}
	tmp, err := make1(d.scratch)
	if err != nil {
		return nil, err
	}
	defer tmp.Release()
	out := &parcel{}
	for _, n := range d.parts {
		b, err := make1(n)
		if err != nil {
			for _, b := range out.bufs {
				b.Release()
			}
			return nil, err
		}
		out.bufs = append(out.bufs, b)
	}
	return out, nil
}

func (r realStage[In]) uses(in In) (refs []alloc.Ref) {
	d := &r.s.nodes[r.i]
	for at, p := range r.open(in) {
		for _, k := range d.reads[at] {
			refs = append(refs, p.bufs[k])
		}
	}
	return refs
}

// build makes the graph. Sinks read everything.
func (s *sketch) build(w *tally, items int, budget int64) *pipeline.Graph {
	g := pipeline.New("sketch", pipeline.Budget(alloc.Host, budget))
	list := make([]int, items)
	for i := range list {
		list[i] = i
	}
	src := pipeline.FromSlice(g, list, nil)
	w.calls = make([]atomic.Int64, len(s.nodes))
	var ports []*pipeline.Port[*parcel]
	for i, d := range s.nodes {
		o := []pipeline.NodeOption{pipeline.Workers(d.workers), pipeline.Capacity(d.capacity)}
		if d.ordered {
			o = append(o, pipeline.Ordered())
		}
		var p *pipeline.Port[*parcel]
		switch {
		case d.from[0] < 0:
			p = via(src, realStage[int]{s, i, w, func(int) []*parcel { return nil }}, o)
		case len(d.from) == 1:
			p = via(ports[d.from[0]], realStage[*parcel]{s, i, w, func(v *parcel) []*parcel { return []*parcel{v} }}, o)
		case len(d.from) == 2:
			p = via(pipeline.Join2(ports[d.from[0]], ports[d.from[1]]), realStage[pipeline.Pair[*parcel, *parcel]]{s, i, w,
				func(v pipeline.Pair[*parcel, *parcel]) []*parcel { return []*parcel{v.A, v.B} }}, o)
		default:
			p = via(pipeline.Join3(ports[d.from[0]], ports[d.from[1]], ports[d.from[2]]), realStage[pipeline.Tuple3[*parcel, *parcel, *parcel]]{s, i, w,
				func(v pipeline.Tuple3[*parcel, *parcel, *parcel]) []*parcel { return []*parcel{v.A, v.B, v.C} }}, o)
		}
		ports = append(ports, p)
	}
	for k, i := range s.sinks {
		w.got = append(w.got, map[pipeline.Key]int{})
		pipeline.ToFunc(ports[i], func(_ context.Context, key pipeline.Key, _ *parcel) error {
			w.mu.Lock()
			w.got[k][key]++
			w.mu.Unlock()
			return nil
		}, pipeline.Name(fmt.Sprintf("sink%d", k)))
	}
	return g
}

func via[In any](p *pipeline.Port[In], st realStage[In], o []pipeline.NodeOption) *pipeline.Port[*parcel] {
	if st.s.nodes[st.i].reads == nil {
		return pipeline.Via(p, pipeline.Stage[In, *parcel](st), o...)
	}
	return pipeline.Via(p, pipeline.WithUses(pipeline.Stage[In, *parcel](st), st.uses), o...)
}

// TestTwoClocks runs random graphs in real time and in virtual time: both stay
// within the budget, answer every item once, call each stage as often, allocate as
// much, and end; or both say that an item can never fit.
func TestTwoClocks(t *testing.T) {
	mark := alloc.Default().Live(alloc.Host)
	rapid.Check(t, func(t *rapid.T) {
		ignore := goleak.IgnoreCurrent()
		s := drawSketch(t)
		items := rapid.IntRange(0, 20).Draw(t, "items")
		budget := int64(0)
		if rapid.IntRange(0, 4).Draw(t, "with budget") > 0 {
			budget = rapid.Int64Range(1, 60_000).Draw(t, "budget")
		}
		w := &tally{}
		w.base.Store(alloc.Default().Live(alloc.Host))
		g := s.build(w, items, budget)
		if items == 0 {
			return // the simulator takes 0 as its own number
		}
		set := plan.Settings{Items: items, Seed: rapid.Uint64().Draw(t, "seed")}
		derived, err := plan.Simulate(g, s.costs, set)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.nodes {
			n := s.costs.Nodes[name(i)]
			n.Need = realStage[int]{s: s, i: i}.Needs(0)
			s.costs.Nodes[name(i)] = n
		}
		sim, err := plan.NewSimulator(g.Topology(), s.costs)
		if err != nil {
			t.Fatal(err)
		}
		p, err := sim.Run(set)
		if err != nil {
			t.Fatal(err)
		}
		// What follows from the costs is at most what the stages state, and enough.
		if derived.Err != "" && p.Err == "" || !derived.Overdrawn.IsZero() || budget > 0 && derived.Peak[alloc.Host] > budget {
			t.Errorf("with derived needs: %q, a peak of %v, overdrawn by %v", derived.Err, derived.Peak, derived.Overdrawn)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		rep, err := g.Run(ctx)
		if e := goleak.Find(ignore); e != nil {
			t.Fatal(e)
		}
		for _, e := range w.wrong {
			t.Errorf("the real engine: %v", e)
		}
		var never *pipeline.AdmitError
		if (err != nil) != (p.Err != "") || err != nil && !errors.As(err, &never) {
			t.Fatalf("the real engine: %v; the simulator: %q", err, p.Err)
		}
		if budget > 0 && (w.peak.Load() > budget || p.Peak[alloc.Host] > budget || p.Reserved[alloc.Host] > budget) {
			t.Errorf("a budget of %d: peaks of %d for real, %d simulated, %d reserved", budget, w.peak.Load(), p.Peak[alloc.Host], p.Reserved[alloc.Host])
		}
		if !p.Overdrawn.IsZero() {
			t.Errorf("overdrawn by %v", p.Overdrawn)
		}
		if err != nil {
			return
		}
		if p.Items != items || rep.Items != int64(items) || p.Failed != 0 {
			t.Errorf("%d items: %d for real, %d simulated", items, rep.Items, p.Items)
		}
		for k := range w.got {
			for key, n := range w.got[k] {
				if n != 1 {
					t.Errorf("sink %d got %v %d times", k, key, n)
				}
			}
			if st := p.Stage(fmt.Sprintf("sink%d", k)); st.Items != items || len(w.got[k]) != items {
				t.Errorf("sink %d got %d items, %d simulated", k, len(w.got[k]), st.Items)
			}
		}
		for i := range s.nodes {
			if st := p.Stage(name(i)); int64(st.Calls) != w.calls[i].Load() {
				t.Errorf("%s: %d calls for real, %d simulated", st.Name, w.calls[i].Load(), st.Calls)
			}
		}
		if made := w.made.Load(); made != p.Allocated[alloc.Host] {
			t.Errorf("%d bytes allocated for real, %d simulated", made, p.Allocated[alloc.Host])
		}
		again, err := sim.Run(set)
		if err != nil || fmt.Sprint(*again) != fmt.Sprint(*p) {
			t.Errorf("the same run once more: %v\n%+v\n%+v", err, p, again)
		}
	})
	if now := alloc.Default().Live(alloc.Host); now != mark {
		t.Errorf("%d bytes are left", now-mark)
	}
	alloc.CheckLeaks(t)
	goleak.VerifyNone(t)
}
