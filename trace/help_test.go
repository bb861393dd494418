package trace

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

const ms = time.Millisecond

func clean(t testing.TB) {
	t.Helper()
	mark := alloc.Marked()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, ignore)
		mark.CheckLeaks(t)
	})
}

// pair is a value of two buffers.
type pair struct{ a, b *alloc.Buffer[byte] }

func (p *pair) Buffers() []alloc.Ref { return []alloc.Ref{p.a, p.b} }

func makePair(ctx context.Context, a, b int) (*pair, error) {
	sc := alloc.ScopeOf(ctx)
	x, err := alloc.Make[byte](sc, a, alloc.Witness, 0)
	if err != nil {
		return nil, err
	}
	y, err := alloc.Make[byte](sc, b, alloc.Evaluation, 0)
	if err != nil {
		x.Release()
		return nil, err
	}
	return &pair{x, y}, nil
}

func intKey(n int) pipeline.Key { return pipeline.Key{Job: "job", Part: n} }

func counted(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// recordRun records a graph that build makes and runs it.
func recordRun(t testing.TB, build func(opts ...pipeline.Option) *pipeline.Graph, opts ...RecorderOption) (*Trace, *pipeline.Report, []byte) {
	t.Helper()
	var file bytes.Buffer
	rec := NewRecorder(&file, opts...)
	rep, err := build(rec.Option()).Run(context.Background())
	if err != nil {
		t.Logf("the run: %v", err)
	}
	if err := rec.Close(rep); err != nil {
		t.Fatal(err)
	}
	tr, err := Read(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	check(t, tr)
	return tr, rep, file.Bytes()
}

// check fails the test if the trace contradicts itself.
func check(t testing.TB, tr *Trace) {
	t.Helper()
	index := func(what string, i, n int) {
		t.Helper()
		if i < None || i >= n {
			t.Errorf("%s: index %d of %d", what, i, n)
		}
	}
	for i := range tr.Items {
		it := &tr.Items[i]
		if it.Admitted != Never && it.Admitted < it.Arrived || it.Left != Never && it.Left < it.Arrived {
			t.Errorf("item %d: %+v", i, it)
		}
	}
	type worker struct{ node, worker int }
	last := make(map[worker][]Call)
	for i := range tr.Calls {
		c := &tr.Calls[i]
		index("item of a call", c.Item, len(tr.Items))
		index("node of a call", c.Node, len(tr.Graph.Nodes))
		index("device of a call", c.Device, len(tr.Meta.Devices))
		if c.Queued < 0 || c.Begin < c.Queued || c.End < c.Begin || c.Out < c.End {
			t.Errorf("call %d: times %+v", i, c)
		}
		if i > 0 && c.End < tr.Calls[i-1].End {
			t.Errorf("call %d ends before the one before", i)
		}
		for _, r := range c.Reads {
			index("read", r.Buffer, len(tr.Buffers))
		}
		for _, m := range c.Makes {
			index("made", m, len(tr.Buffers))
		}
		w := worker{c.Node, c.Worker}
		for _, o := range last[w] {
			if c.Begin < o.Out && o.Begin < c.Out {
				t.Errorf("worker %+v has two calls at once: %+v, %+v", w, o, c)
			}
		}
		last[w] = append(last[w], *c)
	}
	for i := range tr.Visits {
		v := &tr.Visits[i]
		index("item of a visit", v.Item, len(tr.Items))
		index("node of a visit", v.Node, len(tr.Graph.Nodes))
		if v.Until < v.From {
			t.Errorf("visit %d: %+v", i, v)
		}
		for _, b := range v.Buffers {
			index("buffer of a visit", b, len(tr.Buffers))
		}
	}
	for i := range tr.Buffers {
		b := &tr.Buffers[i]
		index("item of a buffer", b.Item, len(tr.Items))
		index("call of a buffer", b.Call, len(tr.Calls))
		if b.Died != 0 && b.Died < b.Born {
			t.Errorf("buffer %d: %+v", i, b)
		}
		if b.Call != None && tr.Calls[b.Call].Item != b.Item {
			t.Errorf("buffer %d is of item %d and of a call of item %d", i, b.Item, tr.Calls[b.Call].Item)
		}
	}
	for _, s := range tr.Spaces() {
		_, peak := tr.CountTracked(s)
		if _, bytes, shares := tr.Peak(s); bytes != peak {
			t.Errorf("%v: the levels peak at %d, what lives at %d", s, bytes, peak)
		} else if sum(shares) != bytes {
			t.Errorf("%v: the shares of the peak are %d of %d", s, sum(shares), bytes)
		}
		for _, p := range tr.Levels(s) {
			if sum(p.Shares) != p.Bytes {
				t.Fatalf("%v at %v: shares are %d of %d", s, p.At, sum(p.Shares), p.Bytes)
			}
		}
	}
}

func sum(shares []Share) (n int64) {
	for _, s := range shares {
		n += s.Bytes
	}
	return n
}

var errTest = errors.New("it is broken")

type flaky struct{ error }

func (flaky) Temporary() bool { return true }
