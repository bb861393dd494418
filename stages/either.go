package stages

import (
	"context"
	"sync"
	"time"

	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// Either, as Prover.B2, decides for each job where the sum of b_g2_msm is made:
// on device, which is that of the other stages, or on host. It measures both
// and takes the host when that keeps up with the device and nothing else wants
// the host's cores, for then the device has the less to do; otherwise the
// device, which has the first sums. The result says which it was (Result.B2On).
//
// Elsewhere than in Prover.B2 it is host.
func Either(device, host groth16.Arithmetic) groth16.Arithmetic {
	return &either{Arithmetic: host, device: device, host: host, now: time.Now}
}

type either struct {
	groth16.Arithmetic
	device, host groth16.Arithmetic
	now          func() time.Time

	mu       sync.Mutex
	onHost   mean // time of a sum on the host
	onDevice mean // and on the device
	rest     mean // time that the device is busy with a job's other stages
	period   mean // time from one job to the next
	busy     time.Duration
	working  int       // stages on the device
	from     time.Time // since when there are any
	last     time.Time // the end of the job before
	lastBusy time.Duration
	synth    int  // jobs in synthesize
	waiting  int  // jobs at batch-add or behind it whose sum has not begun
	sums     int  // for how many it was decided
	tried    bool // the host has had one
}

// waiter is a job that has come as far as batch-add, or whose sum has begun.
type waiter struct {
	e   *either
	did bool
}

func (e *either) waiter(ctx context.Context) *waiter {
	w, _ := pipeline.ItemValue(ctx, e, func(any) (any, func()) {
		w := &waiter{e: e}
		e.mu.Lock()
		e.waiting++
		e.mu.Unlock()
		return w, w.done
	}).(*waiter)
	return w
}

// done says that the job waits no more.
func (w *waiter) done() {
	if w == nil {
		return
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	if !w.did {
		w.did = true
		w.e.waiting--
	}
}

// mean is an average in which the last quarter counts as much as all before. The
// first value gives way to the second: it has in it what is made once, kernels
// that are compiled and tables, which is seconds where a sum takes milliseconds.
type mean struct {
	d time.Duration
	n int
}

func (m *mean) add(d time.Duration) {
	if m.n++; m.n <= 2 {
		m.d = d
		return
	}
	m.d += (d - m.d) / 4
}

const (
	// eitherLag is how many jobs may wait for their sum on the host until the
	// device helps.
	eitherLag = 3
	// eitherProbe is after how many jobs the processor that is not used is
	// measured again.
	eitherProbe = 32
	// eitherBusy is the share of time from which on a device is the bottleneck.
	eitherBusy = 0.85
)

// enter says that a stage begins; what it gives is called when the stage ends.
func (e *either) enter(ctx context.Context, stage string) func() {
	if stage == NameBatchAdd {
		e.waiter(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	switch stage {
	case NameSynthesize:
		e.synth++
		return func() {
			e.mu.Lock()
			e.synth--
			e.mu.Unlock()
		}
	case NamePrestage, NameNTT, NameHMSM, NameBatchAdd, NameTailMSM:
		if e.working++; e.working == 1 {
			e.from = now
		}
		return func() { e.leave(stage) }
	}
	return func() {}
}

func (e *either) leave(stage string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if e.working--; e.working == 0 {
		e.busy += now.Sub(e.from)
	}
	if stage != NameHMSM {
		return
	}
	busy := e.busy
	if e.working > 0 {
		busy += now.Sub(e.from)
	}
	if !e.last.IsZero() {
		e.period.add(now.Sub(e.last))
		e.rest.add(busy - e.lastBusy)
	} else {
		e.rest.add(busy)
	}
	e.last, e.lastBusy = now, busy
}

// pick decides for one job.
func (e *either) pick(ctx context.Context) (ar groth16.Arithmetic, host bool) {
	e.waiter(ctx).done()
	if lost(memberOf(ctx, e.device)) != nil {
		return e.host, true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	host = e.better()
	if e.sums++; e.sums%eitherProbe == 0 {
		host = !host
	}
	if host {
		e.tried = true
		return e.host, true
	}
	return e.device, false
}

// better reports whether the host is the better place now. Callers hold mu.
func (e *either) better() bool {
	switch {
	case e.onDevice.n < 2:
		return false // the first two sums measure the device
	case e.onHost.n == 0:
		return !e.tried // the next one the host
	case e.waiting > eitherLag:
		return false // the host does not keep up
	case e.synth > 0 && e.period.n > 0 && float64(e.rest.d) < eitherBusy*float64(e.period.d):
		return false // the host is the bottleneck
	}
	return e.onHost.d <= e.rest.d+e.onDevice.d
}

// took says how long a sum took.
func (e *either) took(host bool, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if host {
		e.onHost.add(d)
	} else {
		e.onDevice.add(d)
	}
}

// watched is run, seen by an either if the prover has one.
func watched[In, Out any](p *Prover, name string, run func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		if e, ok := p.B2.(*either); ok {
			defer e.enter(ctx, name)()
		}
		return run(ctx, in)
	}
}
