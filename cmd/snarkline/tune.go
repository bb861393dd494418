package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// tuneCmd searches for a setting.
type tuneCmd struct {
	Axes []string `arg:"" optional:"" name:"axis=values" help:"What may be changed, as for sweep (default: workers of each stage up to --max-workers, capacities 1, 2, 4 and unbounded)."`

	From       string `placeholder:"FILE" help:"Search by this recording or model (default: record a run of the workload first)."`
	Pipeline   string `placeholder:"FILE" help:"The pipeline that a model is of, as TOML (default: the standard one)."`
	MaxWorkers int    `placeholder:"N" help:"Workers that a stage may get (default: as many as there are cores, 32 at most)."`
	Items      int    `placeholder:"N" help:"Items in each run, simulated or real (default: those of the workload or the recording; 16 for a model)."`
	Runs       int    `default:"500" placeholder:"N" help:"Simulated runs at most (default: 500)."`
	Record     string `placeholder:"FILE" help:"Keep the recording that is made."`
	Output     string `short:"o" default:"snarkline.toml" placeholder:"FILE" help:"Where the setting goes (default: snarkline.toml)."`
	Force      bool   `help:"Overwrite that file."`
	NoRun      bool   `help:"Do not prove the choice in a real run."`
}

// Help is the longer text of `snarkline tune --help`.
func (*tuneCmd) Help() string {
	return `Finds workers and capacities for this machine and a budget, and writes them down:

  snarkline tune --budget 24GiB --device-memory 16GiB -- prove --key c.slk --witness w/
  snarkline tune --budget 4GiB --from run.trace
  snarkline prove --config snarkline.toml --key c.slk --witness w/

It records one run of the workload (what stands behind --: prove or demo with
its flags; default: demo), simulates others with what that cost, and follows the
bottleneck: what limits gets more, what brings nothing is taken back. It says
what limits the choice and what one more core or GiB would bring, and then makes
a real run of it, to show what was predicted beside what came.

With --from it records nothing, and makes a real run only if there is a workload.`
}

// tuneResult is the result for --json.
type tuneResult struct {
	OK     bool         `json:"ok"`
	File   string       `json:"file"`
	Tuning *plan.Tuning `json:"tuning"`
}

// tuning is one invocation at work.
type tuning struct {
	*tuneCmd
	a    *app
	w    *workload // nil: no real run
	real *childRunner
	p    *planFile
}

// Run tunes.
func (c *tuneCmd) Run(a *app) error {
	t := &tuning{tuneCmd: c, a: a}
	if err := t.check(); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return err
	}
	space, set, err := t.space()
	if err != nil {
		return err
	}
	sim, err := plan.NewSimulated(t.p.graph, t.p.costs, set)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", t.p.path, err))
	}
	opts := []plan.SearchOption{plan.MaxRuns(c.Runs), plan.Within(t.within())}
	r, err := t.search(space, sim, opts)
	if err != nil {
		return sweepError(err)
	}
	if err := t.prove(r); err != nil {
		return sweepError(err)
	}
	if err := writeSettingsFile(c.Output, c.Force, t.settingsText(r)); err != nil {
		return err
	}
	if outfile.IsStream(c.Output) {
		a.answered = true // the file itself is what was asked for; the rest is beside it
		if a.flags.Quiet {
			return nil
		}
		return t.text(r)(a.stderr)
	}
	return a.result(tuneResult{OK: true, File: c.Output, Tuning: r}, t.text(r))
}

func (t *tuning) check() error {
	switch {
	case t.MaxWorkers < 0 || t.Items < 0 || t.Runs < 1:
		return usagef("--max-workers, --items and --runs: numbers below 1 mean nothing")
	case t.Record != "" && t.From != "":
		return usagef("--record keeps the recording that is made, and with --from none is made")
	}
	if err := outputFree(t.Output, t.Force); err != nil {
		return err
	}
	read := []file{{"--from", t.From}, {"--pipeline", t.Pipeline}, t.a.configFile()}
	claims, err := t.a.claims(append(read, workloadReads(t.a.workload)...)...)
	if err != nil {
		return err
	}
	if err := claimWrites(claims, file{"--output", t.Output}, file{"--record", t.Record}); err != nil {
		return err
	}
	return t.a.writable(file{"--output", t.Output}, file{"--record", t.Record})
}

// open gets the recording or the model.
func (t *tuning) open() (err error) {
	if t.From == "" || t.a.workload != nil {
		if t.w, err = newWorkload(t.a.workload); err != nil {
			return err
		}
		if err := t.w.repeat(t.a.ctx, t.Items); err != nil {
			return err
		}
		if t.real, err = t.a.newChildRunner(t.w); err != nil {
			return err
		}
	}
	if t.From != "" {
		if t.p, err = openPlanFile(t.From, t.Pipeline); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		return nil
	}
	path := t.Record
	if path == "" {
		dir, err := os.MkdirTemp("", "snarkline-tune-")
		if err != nil {
			return fmt.Errorf("make a folder for the recording: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path = filepath.Join(dir, "run.trace")
	}
	base, err := t.base()
	if err != nil {
		return err
	}
	t.a.notef("recording a run of: %s", strings.Join(t.w.args, " "))
	o, err := t.run(plan.Point{Settings: base}, "--trace", path)
	if err != nil {
		return err
	}
	if !o.OK() {
		return &codedError{codeMemory, fmt.Errorf("record a run: %w", &plan.FailureError{Failure: o.Failure})}
	}
	t.p, err = openPlanFile(path, "")
	return err
}

// run makes a real run with a display.
func (t *tuning) run(p plan.Point, more ...string) (*plan.Outcome, error) {
	m := t.a.meter(progress.Options{Unit: "runs", Total: 1})
	defer m.Stop()
	o, err := t.real.run(t.a.ctx, p, more...)
	m.Done(1)
	return o, err
}

// base is what the flags set, of the workload and of this invocation.
func (t *tuning) base() (base pipeline.Settings, err error) {
	if t.w != nil {
		if base, err = t.w.settings(); err != nil {
			return base, err
		}
	}
	return t.a.flags.settings(base, true)
}

// space is what may be changed, and what simulations start from. Memory that
// the flags give to a card is put in place of what the recording had.
func (t *tuning) space() (plan.Space, plan.Settings, error) {
	set := t.p.set
	if t.Items > 0 {
		set.Items = t.Items
	}
	flags, err := t.base()
	if err != nil {
		return plan.Space{}, set, err
	}
	if err := t.p.known(flags); err != nil {
		return plan.Space{}, set, err
	}
	base := t.p.settings().Merge(flags)
	if n := int64(t.a.flags.DeviceMemory); n > 0 {
		m := &t.p.costs.Machine
		for _, d := range m.Devices {
			m.Memory[d.Space] = n
			room := n - m.Base[d.Space]
			if room <= 0 {
				return plan.Space{}, set, &codedError{codeMemory, fmt.Errorf("--device-memory: %s holds %s of keys alone", d.Name, humanize.IBytes(uint64(m.Base[d.Space])))}
			}
			if base.Budget == nil {
				base.Budget = make(map[string]pipeline.Size)
			}
			base.Budget[d.Space.String()] = pipeline.Size(room)
		}
	}
	if n := t.a.flags.Workers; n > 0 {
		t.p.costs.Machine.Cores = float64(n)
	}
	if t.MaxWorkers == 0 {
		cores := runtime.NumCPU()
		if n := int(t.p.costs.Machine.Cores); n > 0 {
			cores = n
		}
		t.MaxWorkers = min(cores, 32)
	}
	if set.Items == 0 {
		set.Items = t.p.set.Items
	}
	if set.Items == 1 && t.p.trace != nil {
		t.a.notef("one item meets no other, and workers bring it nothing: --items N searches for a batch")
	}
	axes := t.Axes
	if len(axes) == 0 {
		for _, name := range t.p.stages() {
			axes = append(axes, fmt.Sprintf("%s.workers=1..%d", name, t.MaxWorkers))
		}
		for _, name := range t.p.stages() {
			axes = append(axes, name+".capacity=1,2,4,unbounded")
		}
	}
	space, err := plan.ParseSpace(t.p.stages(), base, axes...)
	if err != nil {
		return space, set, usagef("%w", err)
	}
	return space, set, nil
}

// within is the memory that a setting may take: the machine's, but for what is
// taken all the time, and for a twentieth of host memory, which others need too.
func (t *tuning) within() (limit alloc.Amount) {
	m := t.p.costs.Machine
	for i, n := range m.Memory {
		if n > 0 {
			limit[i] = max(n-m.Base[i], 1)
		}
	}
	if n := m.Memory[alloc.Host]; n > 0 {
		limit[alloc.Host] = max(limit[alloc.Host]-n/20, 1)
	}
	return limit
}

// search runs Tune with a display.
func (t *tuning) search(space plan.Space, sim *plan.Simulated, opts []plan.SearchOption) (*plan.Tuning, error) {
	m := t.a.meter(progress.Options{Unit: "simulated runs", Total: -1})
	defer m.Stop()
	opts = append(opts, plan.OnProgress(func(p plan.Progress) { m.Set(p.Done, -1) }))
	return plan.Tune(t.a.ctx, space, sim, opts...)
}

// prove makes a real run of the choice.
func (t *tuning) prove(r *plan.Tuning) error {
	if t.real == nil || t.NoRun {
		return nil
	}
	p := r.Choice.Point
	if err := t.real.Check(r.Space); err != nil {
		return err
	}
	t.a.notef("proving the choice in a real run")
	o, err := t.run(p)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return fmt.Errorf("prove the choice: %w", err)
	}
	if !o.OK() {
		return fmt.Errorf("the choice failed in its real run, and is not written down: %w", &plan.FailureError{Failure: o.Failure})
	}
	r.Choice.Measured = o
	if s := r.Choice.Simulated; o.Throughput > 0 && math.Abs(s.Throughput/o.Throughput-1) > farOff {
		t.a.notef("the real run was far from the prediction: a short run, or a machine that does other things, makes both uncertain; more --items say more")
	}
	return nil
}

// farOff is from where on a prediction is said to be one: twice what the worst of
// the project's own predictions is allowed.
const farOff = 0.5
