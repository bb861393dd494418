package spans

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/snarkline/snarkline/live/internal/synth"
	"github.com/snarkline/snarkline/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ran is the spans of a run that is over.
func ran(t *testing.T, run func(pipeline.Option) (*pipeline.Report, error)) (tracetest.SpanStubs, *pipeline.Report) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(out))
	l := New(p)
	r, err := run(pipeline.Listen(l))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	spans := out.GetSpans()
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return spans, r
}

func attr(s tracetest.SpanStub, key attribute.Key) attribute.Value {
	for _, kv := range s.Attributes {
		if kv.Key == key {
			return kv.Value
		}
	}
	return attribute.Value{}
}

// TestSpansOfARun: an item is a root, its calls are its children and lie within
// it, workers do not overlap, the failure is recorded.
func TestSpansOfARun(t *testing.T) {
	began := time.Now()
	spans, r := ran(t, func(o pipeline.Option) (*pipeline.Report, error) {
		return synth.Graph(synth.Options{Items: 12, Step: 2 * time.Millisecond, Bytes: 1 << 16, Budget: 1 << 20, FailAt: 5, Options: []pipeline.Option{o}}).Run(context.Background())
	})
	roots := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		if !s.Parent.IsValid() {
			roots[s.SpanContext.SpanID().String()] = s
			if s.Name != "item" || attr(s, AttrGraph).AsString() != "prove" || attr(s, AttrJob).AsString() != "w" {
				t.Errorf("root %s: %v", s.Name, s.Attributes)
			}
			if failed := attr(s, AttrPart).AsInt64() == 5; failed != (s.Status.Code == codes.Error) {
				t.Errorf("item %d: %v", attr(s, AttrPart).AsInt64(), s.Status)
			}
		}
	}
	if len(roots) != 12 {
		t.Fatalf("%d roots", len(roots))
	}
	calls := map[string]int64{}
	type lane struct {
		stage  string
		worker int64
	}
	lanes := map[lane][]tracetest.SpanStub{}
	for _, s := range spans {
		if !s.Parent.IsValid() {
			continue
		}
		root, ok := roots[s.Parent.SpanID().String()]
		if !ok {
			t.Fatalf("%s has no item", s.Name)
		}
		if attr(root, AttrPart) != attr(s, AttrPart) {
			t.Errorf("%s of another item", s.Name)
		}
		if s.StartTime.Before(root.StartTime) || s.EndTime.After(root.EndTime) || s.StartTime.Before(began) {
			t.Errorf("%s from %v to %v is not within its item from %v to %v", s.Name, s.StartTime, s.EndTime, root.StartTime, root.EndTime)
		}
		if s.Status.Code == codes.Error {
			if s.Name != "h-msm" || len(s.Events) == 0 || !strings.Contains(s.Status.Description, "row 17") {
				t.Errorf("%s: %v, %v", s.Name, s.Status, s.Events)
			}
		} else {
			calls[s.Name]++
		}
		l := lane{s.Name, attr(s, AttrWorker).AsInt64()}
		for _, o := range lanes[l] {
			if s.StartTime.Before(o.EndTime) && o.StartTime.Before(s.EndTime) {
				t.Errorf("worker %d of %s is at two items at once", l.worker, s.Name)
			}
		}
		lanes[l] = append(lanes[l], s)
	}
	for _, st := range r.Stages {
		if st.Workers > 0 && calls[st.Name] != st.Items {
			t.Errorf("%d spans of %s, which did %d items", calls[st.Name], st.Name, st.Items)
		}
	}
	if attr(lanes[lane{"ntt", 0}][0], AttrBytesIn).AsInt64() == 0 || attr(lanes[lane{"ntt", 0}][0], AttrBytesOut).AsInt64() == 0 {
		t.Error("ntt has no bytes")
	}
}

// again is an error after which the stage, or the item, is tried anew.
type again struct{}

func (again) Error() string   { return "for the moment" }
func (again) Temporary() bool { return true }

func TestRetries(t *testing.T) {
	tried := 0
	spans, _ := ran(t, func(o pipeline.Option) (*pipeline.Report, error) {
		g := pipeline.New("retry", o)
		in := pipeline.FromSlice(g, []int{1}, func(n int) pipeline.Key { return pipeline.Key{Part: n} })
		out := pipeline.Via(in, pipeline.NewStage("shaky", func(context.Context, int) (int, error) {
			if tried++; tried < 3 {
				return 0, again{}
			}
			return 1, nil
		}), pipeline.Retry(3))
		pipeline.ToFunc(out, func(context.Context, pipeline.Key, int) error { return nil })
		return g.Run(context.Background())
	})
	for _, s := range spans {
		if s.Name == "shaky" {
			if attr(s, AttrAttempt).AsInt64() != 2 || len(s.Events) != 2 || s.Status.Code == codes.Error {
				t.Errorf("attempt %v, %d events, %v", attr(s, AttrAttempt).AsInt64(), len(s.Events), s.Status)
			}
			return
		}
	}
	t.Error("no span of the stage")
}

// TestBounded: items that never leave have spans up to a number, and Close ends
// them.
func TestBounded(t *testing.T) {
	out := tracetest.NewSpanRecorder()
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(out))
	l := New(p)
	for i := range maxOpen + 100 {
		l.OnEvent(pipeline.Event{Kind: pipeline.Admitted, Key: pipeline.Key{Part: i}})
	}
	l.OnEvent(pipeline.Event{Kind: pipeline.Begin, Key: pipeline.Key{Part: maxOpen + 5}, Stage: "s"})
	l.OnEvent(pipeline.Event{Kind: pipeline.End, Key: pipeline.Key{Part: maxOpen + 5}, Stage: "s"})
	if w := l.take(pipeline.Event{Stage: "s"}); w != 0 {
		t.Errorf("the worker of an item without a span stays taken: the next is %d", w)
	}
	if n := len(out.Started()); n != maxOpen {
		t.Errorf("%d spans", n)
	}
	l.Close()
	if n := len(out.Ended()); n != maxOpen {
		t.Errorf("%d have ended", n)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndToldFirst: a call that began before the last one of a worker ended was
// another worker's, also where its beginning is told later.
func TestEndToldFirst(t *testing.T) {
	out := tracetest.NewSpanRecorder()
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(out))
	l := New(p)
	for part, es := range [][]pipeline.Event{{{Kind: pipeline.Begin, At: 10}, {Kind: pipeline.End, At: 30, Wait: 20}}, {{Kind: pipeline.Begin, At: 29}}} {
		l.OnEvent(pipeline.Event{Kind: pipeline.Admitted, Key: pipeline.Key{Part: part}})
		for _, e := range es {
			e.Key.Part, e.Stage, e.Call = part, "s", uint64(part+1)
			l.OnEvent(e)
		}
	}
	if w := l.take(pipeline.Event{Stage: "s", At: 31}); w != 0 {
		t.Errorf("the first worker is at work: the next is %d", w)
	}
	l.Close()
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
