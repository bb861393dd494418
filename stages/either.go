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
// The one that is not used is measured again now and then: while the jobs in
// flight keep the device busy for longer than that takes, so that the end of a
// batch does not wait for it, and not where it was found to be several times
// slower, as long as the other one's sums take what they took then.
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
	left     int  // jobs in flight that the device is not done with
	tried    bool // the host has had one

	was        bool          // where the last sum belonged: the host
	row        int           // how many belonged there in a row since the other one had one
	hostThen   time.Duration // onDevice when the host was last measured
	deviceThen time.Duration // onHost when the device was
}

// eitherJob is an attempt at a job, from the first stage on that an either sees.
type eitherJob struct {
	e    *either
	came bool // as far as batch-add, before its sum had begun
	did  bool // its sum has begun
	gone bool // the device is done with it, but for that sum
}

// job is that of the stage; nil outside of a graph.
func (e *either) job(ctx context.Context) *eitherJob {
	j, _ := pipeline.ItemValue(ctx, e, func(any) (any, func()) {
		j := &eitherJob{e: e}
		e.mu.Lock()
		e.left++
		e.mu.Unlock()
		return j, func() { j.begun(); j.leave() }
	}).(*eitherJob)
	return j
}

// arrived says that the job has come as far as batch-add.
func (j *eitherJob) arrived() {
	if j == nil {
		return
	}
	j.e.mu.Lock()
	defer j.e.mu.Unlock()
	if !j.did && !j.came {
		j.came = true
		j.e.waiting++
	}
}

// begun says that the job waits for its sum no more.
func (j *eitherJob) begun() {
	if j == nil {
		return
	}
	j.e.mu.Lock()
	defer j.e.mu.Unlock()
	if j.came && !j.did {
		j.e.waiting--
	}
	j.did = true
}

// leave says that the device is done with the job.
func (j *eitherJob) leave() {
	if j == nil {
		return
	}
	j.e.mu.Lock()
	defer j.e.mu.Unlock()
	if !j.gone {
		j.gone = true
		j.e.left--
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
	// measured again, at the earliest.
	eitherProbe = 32
	// eitherFar is how many times slower it is then not measured any more.
	eitherFar = 3
	// eitherChange is by what factor the sums of the one that is used have to
	// change until it is.
	eitherChange = 2
	// eitherBusy is the share of time from which on a device is the bottleneck.
	eitherBusy = 0.85
)

// enter says that a stage begins; what it gives is called when the stage ends.
func (e *either) enter(ctx context.Context, stage string) func() {
	j := e.job(ctx)
	if stage == NameBatchAdd {
		j.arrived()
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
		return func() {
			e.leave(stage)
			if stage == NameHMSM {
				j.leave()
			}
		}
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
	e.job(ctx).begun()
	if lost(memberOf(ctx, e.device)) != nil {
		return e.host, true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.decide() {
		e.tried = true
		return e.host, true
	}
	return e.device, false
}

// decide is where the next sum goes: to the better place, or to the other one to
// measure it. Callers hold mu.
func (e *either) decide() (host bool) {
	host = e.better()
	if host != e.was {
		e.was, e.row = host, 0
	}
	if e.row++; e.row < eitherProbe || !e.worth(host) {
		return host
	}
	e.row = 0
	return !host
}

// worth reports whether the processor that is not used, the host or the device,
// is to be measured now. Callers hold mu.
func (e *either) worth(host bool) bool {
	used, other, then := e.onDevice, e.onHost, e.hostThen
	if host {
		used, other, then = e.onHost, e.onDevice, e.deviceThen
	}
	// One measurement says little: it has in it what is made once.
	far := other.n > 1 && other.d > eitherFar*used.d
	same := used.d <= eitherChange*then && then <= eitherChange*used.d
	if far && same {
		return false
	}
	return other.d <= time.Duration(e.left)*e.rest.d
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
		e.hostThen = e.onDevice.d
	} else {
		e.onDevice.add(d)
		e.deviceThen = e.onHost.d
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
