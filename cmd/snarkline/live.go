package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/metrics"
	"github.com/snarkline/snarkline/live/tui"
	"github.com/snarkline/snarkline/live/web"
	"github.com/snarkline/snarkline/pipeline"
)

// liveFlags are the flags of commands whose run can be watched while it goes on.
type liveFlags struct {
	Live    bool   `group:"output" help:"Show the run in the terminal while it goes on: stages, queues, memory, what happened last. q stops it."`
	LiveWeb string `group:"output" name:"live-web" placeholder:"ADDR" help:"Show the run in a browser, read-only, at an address such as 127.0.0.1:0 (any free port)."`
	Metrics string `group:"measure" placeholder:"ADDR" help:"Metrics for Prometheus at an address such as 127.0.0.1:9500, while the command runs."`
	OTLP    string `group:"measure" name:"otlp" placeholder:"URL" help:"Send a span for each item and each call of a stage to an OpenTelemetry collector, such as http://127.0.0.1:4318."`
}

// goodbye is how long servers may take to serve what they have begun.
const goodbye = 2 * time.Second

// watching is a run that is shown while it goes on. A nil one shows nothing.
type watching struct {
	a       *app
	parent  context.Context // of the app before
	cancel  context.CancelCauseFunc
	inTerm  bool // there is to be a view in the terminal
	keys    bool // it reads keys
	state   *live.State
	metrics *metrics.Metrics
	page    *web.Server
	scraped *metrics.Server
	traced  *tracing
	view    *tui.View
	back    []func() // undo what the view has changed
}

// watch opens what the flags ask for; name is an item's for the reader, keys
// whether standard input is free for keys. Close ends it, and must be called
// after the command has no more to say about its run.
func (f *liveFlags) watch(a *app, name func(pipeline.Key) string, keys bool) (*watching, error) {
	if !f.Live && f.LiveWeb == "" && f.Metrics == "" && f.OTLP == "" {
		return nil, nil
	}
	w := &watching{a: a, parent: a.ctx, state: live.New(live.Options{NameOf: name}), keys: keys}
	if f.Live && a.terminal {
		w.inTerm = true
	} else if f.Live {
		a.messagef("--live: standard error is no terminal; the run goes on without the view")
	}
	a.ctx, w.cancel = context.WithCancelCause(a.ctx)
	if err := f.open(w); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (f *liveFlags) open(w *watching) (err error) {
	if f.OTLP != "" {
		if w.traced, err = traceTo(w.a.ctx, f.OTLP); err != nil {
			return usagef("--otlp %s: %w", f.OTLP, err)
		}
	}
	if f.Metrics != "" {
		if w.metrics, err = metrics.New(w.state); err != nil {
			return err
		}
		if w.scraped, err = metrics.Listen(f.Metrics, w.metrics); err != nil {
			return usagef("--metrics: %w", err)
		}
		w.a.messagef("metrics: %s", w.scraped.URL())
	}
	if f.LiveWeb != "" {
		if w.page, err = web.Listen(f.LiveWeb, w.state, web.Options{}); err != nil {
			return usagef("--live-web: %w", err)
		}
		w.a.messagef("live: %s", w.page.URL())
	}
	return nil
}

// options make a graph tell whoever watches.
func (w *watching) options() []pipeline.Option {
	if w == nil {
		return nil
	}
	ls := []pipeline.Listener{w.state}
	if w.metrics != nil {
		ls = append(ls, w.metrics)
	}
	if w.traced != nil {
		ls = append(ls, w.traced.listener)
	}
	return []pipeline.Option{pipeline.Listen(ls...)}
}

// hasView reports whether the terminal shows the run, so that no bar is to.
func (w *watching) hasView() bool { return w != nil && w.inTerm }

// begin shows a run of so many items that is about to begin.
func (w *watching) begin(total int) {
	if w == nil {
		return
	}
	w.state.SetTotal(total)
	w.state.SetBase(live.BaseNow())
	if !w.inTerm {
		return
	}
	var in io.Reader // not a nil *os.File
	if f, ok := w.a.stdin.(*os.File); ok && w.keys && progress.IsTerminal(f) {
		in = f
	}
	w.view = tui.Start(w.state, tui.Options{In: in, Out: w.a.stderr.writer(), Stop: w.stop})
	w.back = append(w.back, w.a.stderr.divert(w.view), beforeExit(w.a.ctx, w.view.Release))
	if w.a.terminals {
		w.back = append(w.back, w.a.stdout.divert(w.view)) // what is printed must go above it
	}
}

// ready takes the graph that is about to run.
func (w *watching) ready(g *pipeline.Graph) {
	if w != nil {
		w.state.Watch(g)
	}
}

// stop is what q and Ctrl-C in the view do: the same as SIGINT.
func (w *watching) stop(again bool) {
	if again {
		w.view.Release()
		os.Exit(codeInterrupted)
	}
	w.a.messagef("%s", interruptedText)
	w.cancel(errInterrupted)
}

// end says how the run ended, and leaves its last state on the terminal.
func (w *watching) end(report *pipeline.Report, err error) {
	if w == nil {
		return
	}
	w.state.End(report, err)
	if w.view == nil {
		return
	}
	err = w.view.Close()
	for _, f := range w.back {
		f()
	}
	w.back = nil
	if err != nil {
		w.a.messagef("--live: %s", errorText(err))
	}
}

// close ends what is left. What cannot be sent or served to its end is not a
// failure of the command.
func (w *watching) close() {
	if w == nil {
		return
	}
	w.state.End(nil, nil) // of a run that has not begun
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.parent), goodbye)
	defer cancel()
	if w.page != nil {
		if err := w.page.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.a.messagef("--live-web: %s", errorText(err))
		}
	}
	if w.scraped != nil {
		if err := w.scraped.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			w.a.messagef("--metrics: %s", errorText(err))
		}
	}
	if w.traced != nil {
		if err := w.traced.close(context.WithoutCancel(w.parent)); err != nil {
			w.a.messagef("--otlp: %s", err)
		}
	}
	if w.a.ctx.Err() == nil {
		w.a.ctx = w.parent
	}
	w.cancel(nil)
}
