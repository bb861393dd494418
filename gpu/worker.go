package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/snarkline/snarkline/alloc"
)

// Worker is a goroutine with a stream of its own, locked to its OS thread, on
// which the device's context is current. It runs functions one after another,
// each to its end. Its methods are for the function that it runs.
type Worker struct {
	card   *Card
	pool   *Workers
	index  int
	own    chan *job
	stream Stream
	gen    uint64
	args   *Args
	hold   []alloc.Ref
}

type job struct {
	f    func(*Worker) error
	err  error
	done chan struct{}
}

// errExit is a function that ended its goroutine, as testing.T.FailNow does.
var errExit = errors.New("a function on a device's worker ended its goroutine")

// Workers is some workers of one card.
type Workers struct {
	card   *Card
	high   bool
	list   []*Worker
	any    chan *job
	ended  chan struct{}
	once   sync.Once
	wait   sync.WaitGroup
	mu     sync.Mutex
	errs   []error
	closed bool
	calls  sync.WaitGroup // of Do
}

// Workers starts n workers. The streams of high ones go first where several
// could. They end with Close, or with the card's.
func (c *Card) Workers(n int, high bool) (*Workers, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d workers of %s", n, c.Name())
	}
	p := &Workers{card: c, high: high, any: make(chan *job), ended: make(chan struct{})}
	for i := range n {
		p.list = append(p.list, &Worker{card: c, pool: p, index: i, own: make(chan *job)})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("workers of %s: %w", c.Name(), ErrClosed)
	}
	c.workers = append(c.workers, p)
	for _, w := range p.list {
		p.wait.Add(1)
		go w.run()
	}
	return p, nil
}

// Len is the number of workers.
func (p *Workers) Len() int { return len(p.list) }

// At is worker i, for work that must stay on one stream.
func (p *Workers) At(i int) *Worker { return p.list[i] }

// Do runs f on the first worker that is free, and returns what it returns. Only
// the wait for a worker ends with ctx: f runs to its end, since a device cannot
// be stopped either. A panic of f is a *PanicError. While the context is ended
// by a sticky error, f is not run, and the error is that.
func (p *Workers) Do(ctx context.Context, f func(*Worker) error) error { return p.do(ctx, p.any, f) }

// Do is Workers.Do on this worker.
func (w *Worker) Do(ctx context.Context, f func(*Worker) error) error {
	return w.pool.do(ctx, w.own, f)
}

func (p *Workers) do(ctx context.Context, to chan *job, f func(*Worker) error) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fmt.Errorf("a worker of %s: %w", p.card.Name(), ErrClosed)
	}
	p.calls.Add(1)
	p.mu.Unlock()
	defer p.calls.Done()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("wait for a worker of %s: %w", p.card.Name(), err)
	}
	j := &job{f: f, done: make(chan struct{})}
	select {
	case to <- j:
		<-j.done
		return j.err
	case <-ctx.Done():
		return fmt.Errorf("wait for a worker of %s: %w", p.card.Name(), context.Cause(ctx))
	}
}

// Close waits for what was given to the workers, and ends them and their
// streams. A second Close does nothing.
func (p *Workers) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.calls.Wait()
	p.once.Do(func() { close(p.ended) })
	p.wait.Wait()
	p.card.mu.Lock()
	if i := slices.Index(p.card.workers, p); i >= 0 {
		p.card.workers = slices.Delete(p.card.workers, i, i+1)
	}
	p.card.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.errs...)
	p.errs = nil
	return err
}

func (w *Worker) run() {
	// Never unlocked: the thread, with a context that is current on it, ends
	// with the goroutine.
	runtime.LockOSThread()
	exit := true
	defer func() {
		if exit {
			go w.run() // a function ended the goroutine; the worker goes on
			return
		}
		w.end()
		w.pool.wait.Done()
	}()
	for {
		var j *job
		select {
		case j = <-w.own:
		case j = <-w.pool.any:
		case <-w.pool.ended:
			exit = false
			return
		}
		w.serve(j)
	}
}

func (w *Worker) serve(j *job) {
	defer close(j.done)
	if j.err = w.card.enter(); j.err != nil {
		return
	}
	defer w.card.leave()
	if j.err = w.prepare(); j.err != nil {
		return
	}
	normal := false
	defer func() {
		if !normal {
			j.err = errExit
			if v := recover(); v != nil {
				j.err = &PanicError{Value: v, Stack: string(debug.Stack())}
			}
		}
		if hold := w.hold; len(hold) > 0 {
			w.hold = nil
			w.card.Reaper.After(w.stream, nil, hold...)
		}
	}()
	j.err = j.f(w)
	normal = true
}

// prepare makes the stream and the arguments when they are first needed, and
// the stream again after a Reset.
func (w *Worker) prepare() error {
	if w.args == nil {
		w.args = NewArgs()
	}
	w.args.Reset()
	gen := w.card.Generation()
	if w.stream != nil && w.gen == gen {
		return nil
	}
	w.shut()
	if err := w.card.Bind(); err != nil {
		return fmt.Errorf("a worker of %s: %w", w.card.Name(), err)
	}
	st, err := w.card.NewStream(w.pool.high)
	if err != nil {
		return fmt.Errorf("a stream for a worker of %s: %w", w.card.Name(), err)
	}
	w.stream, w.gen = st, gen
	return nil
}

// shut closes the stream, which the reaper may still wait for.
func (w *Worker) shut() {
	if w.stream == nil {
		return
	}
	w.card.Reaper.Flush()
	err := w.stream.Sync()
	if isGone(err) {
		err = nil
	}
	if e := w.stream.Close(); e != nil && !isGone(e) {
		err = errors.Join(err, e)
	}
	w.stream = nil
	if err != nil {
		w.pool.mu.Lock()
		w.pool.errs = append(w.pool.errs, fmt.Errorf("close a stream of %s: %w", w.card.Name(), err))
		w.pool.mu.Unlock()
	}
}

func (w *Worker) end() {
	w.shut()
	if w.args != nil {
		w.args.Close()
	}
}

// Card is the card that the worker is of.
func (w *Worker) Card() *Card { return w.card }

// Stream is the worker's stream. After a Reset it is another one, so it must
// not be kept from one function to the next.
func (w *Worker) Stream() Stream { return w.stream }

// Args are arguments for launches, kept by the worker.
func (w *Worker) Args() *Args { return w.args }

// Index says which of its Workers this is.
func (w *Worker) Index() int { return w.index }

// Generation is the device's, in which this function runs: a Reset waits for it.
func (w *Worker) Generation() uint64 { return w.gen }

// Check is a *StaleError if what was made in generation gen is gone: its
// addresses may be somebody else's now. what names it.
func (w *Worker) Check(gen uint64, what string) error {
	if gen != w.gen {
		return &StaleError{Device: w.card.Name(), What: what}
	}
	return nil
}

// Hold ends references, which the caller gives up, once the work is done that
// is in the stream when the function returns, fails or panics.
func (w *Worker) Hold(refs ...alloc.Ref) { w.hold = append(w.hold, refs...) }
