package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/rss"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// batch is what is proved in one run of the pipeline.
type batch struct {
	prover    *stages.Prover
	procs     *processors
	settings  pipeline.Settings
	jobs      iter.Seq[stages.Job]
	total     int // of the jobs, below 0 if unknown
	keepGoing bool
	ordered   bool
	command   string // "prove"
	trace     string // the file of the recording; empty: none
	watch     *watching

	description string // of a pipeline other than the standard one
	pipeline    string // the file that it is in

	name   func(pipeline.Key) string  // of a job, for the reader
	done   func(*stages.Result) error // takes a proof; one call at a time
	failed func(pipeline.Key, error)  // hears of a job that failed; likewise
}

// outcome is what a run of the pipeline came to.
type outcome struct {
	report   *pipeline.Report // nil if the graph did not run
	procs    *processorsReport
	settings pipeline.Settings
	memory   alloc.Snapshot
	seconds  float64
	base     int64 // tracked before the run: key and circuit
	anon     int64 // peak of resident memory apart from mapped files, bytes
}

// prove runs the batch with progress, and measures it.
func (a *app) prove(b *batch) (*outcome, error) {
	rec, err := a.record(b)
	if err != nil {
		return &outcome{settings: b.settings}, err
	}
	alloc.Default().ResetPeaks()
	base := alloc.Default().Live(alloc.Host)
	m := a.meterFor(b, base)
	b.watch.cards(b.procs)
	b.watch.begin(b.total)
	sampler := rss.Sample(20 * time.Millisecond)
	begin := time.Now()
	opts := []pipeline.Option{
		pipeline.Listen(listener{m, b.total == 1, func(e pipeline.Event) { a.again(b, e) }}),
		pipeline.OnFail(func(key pipeline.Key, err error) {
			b.failed(key, err)
			b.procs.tellLost(true)
		}),
	}
	opts = append(append(opts, rec.options()...), b.watch.options()...)
	if b.keepGoing {
		opts = append(opts, pipeline.OnError(pipeline.FailKey))
	}
	report, err := stages.Batch(a.ctx, b.prover, b.jobs, func(_ context.Context, r *stages.Result) error {
		b.procs.tally.count(r)
		if r.Attempts > 1 {
			a.notef("%s: made on %s at attempt %d", b.name(r.Key), r.On, r.Attempts)
		}
		return b.done(r)
	}, stages.BatchOptions{Name: "prove", Settings: b.settings, Ordered: b.ordered, Description: b.description, Options: opts, Ready: func(g *pipeline.Graph) {
		b.procs.tellFew(g)
		b.watch.ready(g)
	}})
	out := &outcome{report: report, settings: b.settings, base: base, seconds: time.Since(begin).Seconds(), anon: sampler.Stop()}
	out.memory = alloc.Default().Snapshot()
	out.procs = b.procs.report(out.memory, out.seconds)
	b.watch.end(report, lastAttempt(err))
	m.Stop()
	b.procs.tellLost(false)
	if e := rec.end(report); e != nil && err != nil {
		a.messagef("%s", errorText(e))
	} else if e != nil {
		err = e
	}
	if report == nil && b.description != "" && a.ctx.Err() == nil {
		err = usagef("--pipeline %s: %w", b.pipeline, err) // the graph could not be built
	}
	var bad *pipeline.GraphError
	if errors.As(err, &bad) {
		err = usagef("%w", err)
	}
	if key, ok := failedKey(err); ok && !b.keepGoing {
		b.failed(key, err) // OnFail hears of nothing then
	}
	return out, lastAttempt(err)
}

// again tells that an attempt at a job has failed and that it is made again.
func (a *app) again(b *batch, e pipeline.Event) {
	b.procs.tally.repeat()
	a.messagef("%s: attempt %d: %s; it is made again", b.name(e.Key), e.Attempt, advised(attemptText(e.Err), e.Err))
	b.procs.tellLost(true)
}

// failedKey is the item whose failure ended a run.
func failedKey(err error) (pipeline.Key, bool) {
	var stage *pipeline.StageError
	var admit *pipeline.AdmitError
	var join *pipeline.JoinError
	switch {
	case errors.As(err, &stage):
		return stage.Key, true
	case errors.As(err, &admit):
		return admit.Key, true
	case errors.As(err, &join):
		return join.Key, true
	}
	return pipeline.Key{}, false
}

// meterFor is the display of a batch: proofs of many, stages of one.
func (a *app) meterFor(b *batch, base int64) *progress.Meter {
	opt := progress.Options{Unit: "proofs", Total: b.total}
	if b.total == 1 {
		opt.Unit, opt.Total = "stages", len(stages.Names())
	}
	limit := int64(b.settings.Budget[alloc.Host.String()])
	opt.Memory = func() (int64, int64) { return alloc.Default().Live(alloc.Host) - base, limit }
	opt.Off = b.watch.hasView()
	return a.meter(opt)
}

// listener shows the events of a run.
type listener struct {
	m      *progress.Meter
	single bool
	again  func(pipeline.Event)
}

// OnEvent is called by the pipeline.
func (l listener) OnEvent(e pipeline.Event) {
	switch e.Kind {
	case pipeline.Begin:
		l.m.Begin(e.Stage)
	case pipeline.End:
		l.m.End(e.Stage)
		if l.single && e.Err == nil {
			l.m.Done(1)
		}
	case pipeline.Restarted:
		l.again(e)
	case pipeline.Left:
		switch {
		case l.single:
		case e.Err != nil:
			l.m.Fail()
		default:
			l.m.Done(1)
		}
	}
}
