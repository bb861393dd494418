package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

const (
	flushEvery  = 250 * time.Millisecond // what a killed run loses at most
	sampleEvery = time.Millisecond
	rssEvery    = 20 * time.Millisecond
	askShare    = 1000 // of the run's time: 1/1000 may go to asking for needs
)

// Recorder writes a recording of one run of a graph. It is a pipeline.Listener;
// Option makes a graph tell it. While the graph runs it observes alloc's tracker.
// It takes memory and processor time in small amounts only: what it is told is
// put into a buffer, which a goroutine compresses and writes when it is full, or
// a quarter of a second old.
//
// The graph waits for the recorder only if the writer is more than 32 MiB behind.
// An error of the writer ends the recording, not the run; Close returns it.
type Recorder struct {
	file  *os.File // that Create opened
	w     *frameWriter
	meta  Meta
	begun atomic.Bool
	twice atomic.Bool // a second graph ran

	base      time.Time // set once, before the first event
	cpuBase   time.Duration
	observed  func() // ends the observation
	ticks     chan struct{}
	wg        sync.WaitGroup
	usage     usage
	asked     atomic.Int64 // ns that stages took to state needs that nobody else asks for
	unbounded bool         // there is no budget
	sampled   atomic.Int64 // when the last sample was taken
	sampling  sync.Mutex   // so that of two samples the later says more

	mu   sync.Mutex
	over bool // Close was called, or the writer has failed
	enc  encoder

	devices []Device // that were measured
	links   []Link
}

// RecorderOption is an option of NewRecorder.
type RecorderOption func(*Recorder)

// WithMeta says what is recorded. Program, Labels, Devices and Links are the
// caller's; Started, Cores and Memory are filled in where they are not set, and
// Settings and Budget are the graph's.
func WithMeta(m Meta) RecorderOption { return func(r *Recorder) { r.meta = m } }

// NewRecorder makes a recorder that writes to w. Nothing is written before the
// graph runs. Close ends it.
func NewRecorder(w io.Writer, opts ...RecorderOption) *Recorder {
	r := &Recorder{ticks: make(chan struct{})}
	for _, o := range opts {
		o(r)
	}
	var err error
	if r.w, err = newFrameWriter(w); err != nil {
		r.w = &frameWriter{err: err}
		r.over = true
	}
	return r
}

// Create is NewRecorder for a file, which it makes, or empties if there is one.
// Close closes it.
func Create(path string, opts ...RecorderOption) (*Recorder, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create a recording: %w", err)
	}
	r := NewRecorder(f, opts...)
	r.file = f
	return r, nil
}

// ErrSecondGraph is what Close returns of a recorder that a second graph ran with.
// It has recorded the first alone.
var ErrSecondGraph = errors.New("a recorder records one graph, and a second one ran with it")

// Option makes a graph record itself. A recorder records one graph: the first that
// runs.
func (r *Recorder) Option() pipeline.Option { return pipeline.Listen(&ear{r: r}) }

// ear is the recorder in one graph.
type ear struct {
	r    *Recorder
	mine bool // it is the graph that is recorded; set before the first event
}

// OnStart begins the recording, if no other graph has.
func (e *ear) OnStart(s pipeline.Start) { e.mine = e.r.start(s) }

// OnEvent records an event.
func (e *ear) OnEvent(v pipeline.Event) {
	if e.mine {
		e.r.OnEvent(v)
	}
}

// header is what the first record says.
type header struct {
	Meta  Meta
	Graph pipeline.Topology
}

// footer is what the last one says.
type footer struct {
	Wall time.Duration
	Err  string `json:",omitempty"`

	Devices []Device `json:",omitempty"` // in place of those of the beginning
	Links   []Link   `json:",omitempty"`
}

// OnStart begins the recording.
func (r *Recorder) OnStart(s pipeline.Start) { r.start(s) }

// start is OnStart, and reports whether it has begun.
func (r *Recorder) start(s pipeline.Start) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun.Load() {
		r.twice.Store(true)
		return false
	}
	if r.over {
		return false
	}
	r.base = s.At
	r.unbounded = s.Graph.Budget.IsZero() && !s.Graph.Shared
	m := r.meta
	m.Settings, m.Budget = s.Settings, s.Graph.Budget
	if m.Started == "" {
		m.Started = s.At.UTC().Format(time.RFC3339Nano)
	}
	if m.Cores == 0 {
		m.Cores = cores()
	}
	if m.Memory == 0 {
		m.Memory = machineMemory()
	}
	text, err := json.Marshal(header{m, s.Graph})
	if err != nil {
		r.w.fail(fmt.Errorf("describe the graph: %w", err))
	}
	r.cpuBase = processTime()
	r.usage.open()
	r.enc.begin(r.w.fresh(), s.Graph)
	r.enc.text(recStart, 0, text)
	r.begun.Store(true)
	go r.w.run()
	r.wg.Go(r.tick)
	r.mu.Unlock() // what is there is told at once
	observed := alloc.Default().Observe(r)
	r.mu.Lock()
	r.observed = observed
	r.flush() // so that a run that is killed soon is known
	return true
}

// tick hands over frames that have become old.
func (r *Recorder) tick() {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-r.ticks:
			return
		case <-t.C:
			r.mu.Lock()
			if !r.over && len(r.enc.buf) > 0 {
				r.flush()
			}
			r.mu.Unlock()
		}
	}
}

// flush hands the frame over. Callers hold mu.
func (r *Recorder) flush() {
	r.w.put(r.enc.next(r.w.fresh()))
}

// now is the time since the run began.
func (r *Recorder) now() time.Duration { return time.Since(r.base) }

// OnEvent records an event. It is called by the graph.
func (r *Recorder) OnEvent(e pipeline.Event) {
	switch e.Kind {
	case pipeline.WaitedOut:
		return // other events say as much
	case pipeline.WaitedIn:
		if e.Call == 0 {
			return
		}
	}
	var needs []NodeNeed
	if e.Kind == pipeline.Admitted {
		needs = r.needsOf(&e)
	}
	if e.Kind == pipeline.End && e.Device != alloc.Host {
		e.Slot = 1 + slices.IndexFunc(r.meta.Devices, func(d Device) bool { return d.Space == e.Device })
	}
	r.mu.Lock()
	if !r.over {
		r.enc.event(&e, needs)
		if len(r.enc.buf) >= frameSize {
			r.flush()
		}
	}
	r.mu.Unlock()
	r.sample(e.At)
}

// needsOf is what the stages state of an item that was admitted. Without a budget
// nobody has asked them before; that may cost more than all else here, so it is
// done for as long as it takes less than a thousandth of the run.
func (r *Recorder) needsOf(e *pipeline.Event) []NodeNeed {
	if asked := r.asked.Load(); asked > 0 && asked > int64(e.At)/askShare {
		return nil
	}
	since := r.now()
	needs := e.Needs()
	if r.unbounded {
		r.asked.Add(int64(r.now() - since))
	}
	return needs
}

// OnMemory records a change of what is counted. It is called by alloc.
func (r *Recorder) OnMemory(c alloc.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.enc.memory(r.now(), &c)
	if len(r.enc.buf) >= frameSize {
		r.flush()
	}
}

// sample records what the process has used, if the last time was long ago.
func (r *Recorder) sample(at time.Duration) {
	last := r.sampled.Load()
	if int64(at)-last < int64(sampleEvery) || !r.sampled.CompareAndSwap(last, int64(at)) {
		return
	}
	if !r.sampling.TryLock() {
		return
	}
	cpu, rss := processTime()-r.cpuBase, int64(0)
	now := r.now() // of the reading, not of the event
	if r.usage.due(now) {
		rss = r.usage.resident()
	}
	r.sampling.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.enc.sample(now, cpu, rss)
	}
}

// Measured says of devices and links what is known only at the end of the run, such as
// what went over them. It takes the place of what Meta has of them.
func (r *Recorder) Measured(devices []Device, links []Link) {
	r.mu.Lock()
	r.devices, r.links = devices, links
	r.mu.Unlock()
}

// Close ends the recording: report is what Run gave, and may be nil. It writes
// what is left and returns the first error of writing, if there was one. A
// recorder whose graph never ran leaves an empty file. A second Close does
// nothing. Close is called once Run has returned; a graph that runs later is not
// recorded.
func (r *Recorder) Close(report *pipeline.Report) error {
	r.mu.Lock()
	observed := r.observed
	r.mu.Unlock()
	if observed != nil {
		observed() // with nothing locked: a change may be waiting to be told
	}
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return r.ended(r.w.failed())
	}
	r.over = true
	if r.begun.Load() {
		f := footer{Wall: r.now(), Devices: r.devices, Links: r.links}
		if report != nil {
			f.Wall, f.Err = report.Wall, report.Error
		}
		text, err := json.Marshal(f)
		if err != nil {
			r.w.fail(err)
		}
		r.enc.text(recEnd, r.now(), text)
		r.flush()
	}
	r.mu.Unlock()
	close(r.ticks)
	r.wg.Wait()
	r.usage.close()
	if !r.begun.Load() {
		return r.ended(nil)
	}
	return r.ended(r.w.close())
}

// ended closes the file.
func (r *Recorder) ended(err error) error {
	if f := r.file; f != nil {
		r.file = nil
		err = errors.Join(err, f.Close())
	}
	if r.twice.Load() {
		err = errors.Join(err, ErrSecondGraph)
	}
	if err != nil {
		return fmt.Errorf("write a recording: %w", err)
	}
	return nil
}
