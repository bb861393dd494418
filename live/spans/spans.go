package spans

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/snarkline/snarkline/pipeline"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/snarkline/snarkline/live/spans"

// The attributes of spans.
const (
	AttrGraph    = attribute.Key("snarkline.graph")
	AttrJob      = attribute.Key("snarkline.job")      // of the item's key
	AttrPart     = attribute.Key("snarkline.part")     // of the item's key
	AttrStage    = attribute.Key("snarkline.stage")    //
	AttrWorker   = attribute.Key("snarkline.worker")   // from 0: the lowest that was free
	AttrAttempt  = attribute.Key("snarkline.attempt")  // at the item, or of the call: 1 is the first repetition
	AttrBytesIn  = attribute.Key("snarkline.bytes.in") // behind the references that the call was given
	AttrBytesOut = attribute.Key("snarkline.bytes.out")
	AttrWait     = attribute.Key("snarkline.admission.wait_seconds") // for the budget
)

// maxOpen bounds the items whose spans are open at once; those beyond it have
// none.
const maxOpen = 16 << 10

// Listener makes the spans. It is a pipeline.Listener for one run.
type Listener struct {
	tracer trace.Tracer

	mu    sync.Mutex
	began time.Time
	graph string
	items map[pipeline.Key]*item
	lanes map[string][]lane // by stage: its workers
}

// lane is a worker of a stage.
type lane struct {
	busy  bool
	until time.Duration // when it was last at work
}

// item is the root span of an item in flight.
type item struct {
	ctx   context.Context
	span  trace.Span
	calls map[uint64]call
}

// call is a call that has begun.
type call struct {
	worker  int
	bytes   int64
	retries []retry
}

type retry struct {
	at      time.Time
	err     error
	attempt int
}

// New makes spans by a tracer of the provider. Whoever made the provider
// flushes and closes it after the run.
func New(provider trace.TracerProvider) *Listener {
	return &Listener{tracer: provider.Tracer(Scope), items: make(map[pipeline.Key]*item), lanes: make(map[string][]lane)}
}

// OnStart is called by the pipeline.
func (l *Listener) OnStart(s pipeline.Start) {
	l.mu.Lock()
	l.began, l.graph = s.At, s.Graph.Name
	l.mu.Unlock()
}

// OnEvent is called by the pipeline.
func (l *Listener) OnEvent(e pipeline.Event) {
	switch e.Kind {
	case pipeline.Admitted, pipeline.Begin, pipeline.End, pipeline.Retried, pipeline.Restarted, pipeline.Failed, pipeline.Left:
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.began.Add(e.At)
	it := l.items[e.Key]
	switch e.Kind {
	case pipeline.Admitted:
		l.admit(it, e, at)
	case pipeline.Begin:
		worker := l.take(e)
		if it != nil {
			it.calls[e.Call] = call{worker: worker, bytes: e.Bytes}
		}
	case pipeline.End:
		l.end(it, e, at)
	case pipeline.Retried:
		if it != nil {
			c := it.calls[e.Call]
			c.retries = append(c.retries, retry{at, e.Err, e.Attempt})
			it.calls[e.Call] = c
		}
	case pipeline.Restarted:
		if it != nil {
			it.span.AddEvent("made again", trace.WithTimestamp(at), trace.WithAttributes(
				AttrStage.String(e.Stage), AttrAttempt.Int(e.Attempt), attribute.String("error", errorText(e.Err))))
		}
	case pipeline.Failed:
		if it != nil && e.Err != nil {
			it.span.RecordError(e.Err, trace.WithTimestamp(at), trace.WithAttributes(AttrStage.String(e.Stage)))
			it.span.SetStatus(codes.Error, e.Err.Error())
		}
	case pipeline.Left:
		if it != nil {
			if e.Err != nil {
				it.span.SetStatus(codes.Error, e.Err.Error())
			}
			it.span.End(trace.WithTimestamp(at))
			delete(l.items, e.Key)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (l *Listener) admit(it *item, e pipeline.Event, at time.Time) {
	if it != nil || len(l.items) >= maxOpen {
		return // made again: its span goes on
	}
	ctx, span := l.tracer.Start(context.Background(), "item", trace.WithNewRoot(), trace.WithTimestamp(at.Add(-e.Wait)), trace.WithAttributes(
		AttrGraph.String(l.graph), AttrJob.String(e.Key.Job), AttrPart.Int(e.Key.Part), AttrWait.Float64(e.Wait.Seconds())))
	span.AddEvent("admitted", trace.WithTimestamp(at))
	l.items[e.Key] = &item{ctx: ctx, span: span, calls: make(map[uint64]call)}
}

// take is the number of a worker that can have begun at the event's time: another
// one's end may be told before this beginning, and yet be later.
func (l *Listener) take(e pipeline.Event) int {
	lanes := l.lanes[e.Stage]
	for i := range lanes {
		if !lanes[i].busy && lanes[i].until <= e.At {
			lanes[i].busy = true
			return i
		}
	}
	l.lanes[e.Stage] = append(lanes, lane{busy: true})
	return len(lanes)
}

// end makes the span of a call that has ended.
func (l *Listener) end(it *item, e pipeline.Event, at time.Time) {
	if it == nil {
		// Its span was never begun, but its worker is free: which one is not
		// known, so it is the highest.
		lanes := l.lanes[e.Stage]
		for i := len(lanes) - 1; i >= 0; i-- {
			if lanes[i].busy {
				lanes[i] = lane{until: e.At}
				break
			}
		}
		return
	}
	c, known := it.calls[e.Call]
	delete(it.calls, e.Call)
	attrs := []attribute.KeyValue{AttrStage.String(e.Stage), AttrJob.String(e.Key.Job), AttrPart.Int(e.Key.Part), AttrBytesOut.Int64(e.Bytes)}
	if known {
		if lanes := l.lanes[e.Stage]; c.worker < len(lanes) {
			lanes[c.worker] = lane{until: e.At}
		}
		attrs = append(attrs, AttrWorker.Int(c.worker), AttrBytesIn.Int64(c.bytes))
	}
	_, span := l.tracer.Start(it.ctx, e.Stage, trace.WithTimestamp(at.Add(-e.Wait)), trace.WithAttributes(attrs...))
	for _, r := range c.retries {
		span.RecordError(r.err, trace.WithTimestamp(r.at), trace.WithAttributes(AttrAttempt.Int(r.attempt)))
	}
	if len(c.retries) > 0 {
		span.SetAttributes(AttrAttempt.Int(c.retries[len(c.retries)-1].attempt))
	}
	if e.Err != nil {
		span.RecordError(e.Err, trace.WithTimestamp(at))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End(trace.WithTimestamp(at))
}

// Close ends the spans of items that never left, when the run was cut off.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, it := range l.items {
		it.span.SetStatus(codes.Error, "the run ended before the item")
		it.span.End()
		delete(l.items, key)
	}
}
