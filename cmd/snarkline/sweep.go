package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
	"github.com/snarkline/snarkline/report"
	"github.com/snarkline/snarkline/stages"
)

// sweepCmd tries many settings.
type sweepCmd struct {
	Axes []string `arg:"" name:"axis=values" help:"What to try: ntt.workers=1..4, all.capacity=1,2,4, budget.host=1GiB..8GiB*2, device=cpu,cuda:0."`

	From     []string `sep:"none" placeholder:"FILE" help:"Simulate, from a recording or a model. AXIS=VALUE@FILE is for points with that choice, as device=cpu@cpu.trace. Repeatable."`
	Pipeline string   `placeholder:"FILE" help:"The pipeline that a model is of, as TOML (default: the standard one)."`
	Verify   int      `placeholder:"N" help:"Make real runs of the best N simulated settings."`
	Repeat   int      `default:"1" placeholder:"N" help:"Make every real run N times and keep the median (default: 1)."`
	Items    int      `placeholder:"N" help:"Items in each run (default: those of the workload or the recording; 16 for a model)."`
	Within   byteSize `placeholder:"SIZE" help:"Host memory that a setting may take to count as one of the best."`
	Results  string   `placeholder:"FILE" help:"Append every result to this file, and do not run again what is in it."`

	CSV  string `name:"csv" placeholder:"FILE" help:"Write all rows as CSV."`
	HTML string `name:"html" placeholder:"FILE" help:"Draw the sweep as one HTML page: throughput against memory, heat maps, every setting."`
	Rows int    `default:"20" placeholder:"N" help:"Rows of the table, 0 for all (default: 20)."`
}

// Help is the longer text of `snarkline sweep --help`.
func (*sweepCmd) Help() string {
	return `Runs a workload with every combination of the values of the axes:

  snarkline sweep synthesize.workers=1..4 all.capacity=1,2,4 -- prove --key c.slk --witness w/
  snarkline sweep each.workers=1,2 budget.host=1GiB..4GiB*2 --from run.trace
  snarkline sweep each.workers=1..3 --from run.trace --verify 5 -- prove --key c.slk --witness w/

An axis is STAGE.workers, STAGE.capacity, budget.SPACE, or device, device-memory,
b2, no-elsewhere or cores; a simulation has cores, memory, items and those that
--from names. STAGE may be several joined by +, or all, which move together, or
each, for an axis each. Values are a list, whose members may be ranges: 1..4,
1..8*2 (doubling), 2..10+4 (in steps of 4).

What stands behind -- is the workload: prove or demo with its flags (default:
demo). Each real run is a process of its own, so that its peak is its own and a
run that the system kills is a result. With --from nothing is run but what
--verify asks for. --budget, --set, --config and the flags of devices set what
the axes leave alone.

With --results a sweep that was interrupted goes on where it was. A file of
another workload, machine or model is refused.`
}

// sweepOutput is the result for --json.
type sweepOutput struct {
	OK    bool              `json:"ok"`
	Code  int               `json:"code,omitempty"`
	Error string            `json:"error,omitempty"`
	Best  *plan.Row         `json:"best"`
	Front []int             `json:"front"` // indices of rows, by host memory ascending
	Sweep *plan.SweepResult `json:"sweep"`
}

// Run makes the sweep.
func (c *sweepCmd) Run(a *app) error {
	if err := c.check(a); err != nil {
		return err
	}
	run, real, space, err := c.runners(a)
	if err != nil {
		return err
	}
	show := &sweepMeter{}
	m := a.meter(progress.Options{Unit: "runs", Total: space.Size(), Note: show.note})
	opts := []plan.SearchOption{
		plan.Repeat(c.Repeat),
		plan.Within(alloc.HostBytes(int64(c.Within))),
		plan.OnProgress(func(p plan.Progress) { m.Set(p.Done, p.Total); show.set(p) }),
	}
	if c.Results != "" {
		opts = append(opts, plan.ResultsFile(c.Results))
	}
	if real != nil {
		opts = append(opts, plan.Verify(c.Verify, real))
	}
	r, err := plan.Sweep(a.ctx, space, run, opts...)
	m.Stop()
	if err != nil {
		if r != nil && r.Ran > 0 && c.Results != "" {
			a.notef("%d results are in %s; the same command goes on from there", r.Ran+r.Known, c.Results)
		}
		return sweepError(err)
	}
	return c.report(a, r)
}

// check finds what is wrong with the flags before anything runs.
func (c *sweepCmd) check(a *app) error {
	switch {
	case c.Verify < 0 || c.Repeat < 1 || c.Items < 0 || c.Rows < 0:
		return usagef("--verify, --repeat, --items and --rows: numbers below 0 (below 1 for --repeat) mean nothing")
	case c.Verify > 0 && len(c.From) == 0:
		return usagef("--verify makes real runs of simulated settings: it needs --from")
	case len(c.From) > 0 && c.Verify == 0 && a.workload != nil:
		return usagef("with --from nothing is run but what --verify asks for; leave out what stands behind --, or give --verify")
	}
	read := []file{{"--pipeline", c.Pipeline}, a.configFile()}
	for _, text := range c.From {
		_, _, path := cutFrom(text)
		read = append(read, file{"--from", path})
	}
	claims, err := a.claims(append(read, workloadReads(a.workload)...)...)
	if err != nil {
		return err
	}
	files := []file{{"--csv", c.CSV}, {"--html", c.HTML}}
	if err := claimWrites(claims, append(files, file{"--results", c.Results})...); err != nil {
		return err
	}
	return a.writable(files...)
}

// runners are what makes the runs, and over which space.
func (c *sweepCmd) runners(a *app) (run, real plan.Runner, space plan.Space, err error) {
	var names []string
	var base pipeline.Settings
	var sim *plan.Simulated
	if len(c.From) == 0 || c.Verify > 0 {
		w, err := newWorkload(a.workload)
		if err != nil {
			return nil, nil, space, err
		}
		if err := w.repeat(a.ctx, c.Items); err != nil {
			return nil, nil, space, err
		}
		if base, err = w.settings(); err != nil {
			return nil, nil, space, err
		}
		if names, err = w.stages(); err != nil {
			return nil, nil, space, err
		}
		if real, err = a.newChildRunner(w); err != nil {
			return nil, nil, space, err
		}
	}
	if len(c.From) > 0 {
		var p *planFile
		if sim, p, err = c.simulated(); err != nil {
			return nil, nil, space, err
		}
		if n := a.flags.Workers; n > 0 { // what runs with it would have
			p.costs.Machine.Cores = float64(n)
		}
		run, names, base = sim, p.stages(), p.settings().Merge(base)
	} else {
		run, real = real, nil
	}
	if base, err = a.flags.settings(base, true); err != nil {
		return nil, nil, space, err
	}
	if space, err = plan.ParseSpace(names, base, c.Axes...); err != nil {
		return nil, nil, space, usagef("%w", err)
	}
	if n := space.Size(); n > plan.MaxPoints {
		return nil, nil, space, usagef("the axes make %s, and a sweep tries %s at most; tune searches a larger space", spaceText(n), humanize.Comma(plan.MaxPoints))
	}
	if sim != nil {
		if err := sim.Check(space); err != nil {
			return nil, nil, space, usagef("%w", err)
		}
	}
	for name := range base.Stages {
		if !slices.Contains(names, name) {
			return nil, nil, space, usagef("there is no stage %q%s (stages: %s)", name, didYouMean(name, names), strings.Join(names, ", "))
		}
	}
	return run, real, space, nil
}

// stages are the names of the workload's stages.
func (w *workload) stages() ([]string, error) {
	if w.cli.Prove.Pipeline == "" {
		return stages.Names(), nil
	}
	text, err := w.cli.Prove.description()
	if err != nil {
		return nil, err
	}
	t, err := plan.TopologyOf(text)
	if err != nil {
		return nil, usagef("--pipeline %s: %w", w.cli.Prove.Pipeline, err)
	}
	return (&planFile{graph: t}).stages(), nil
}

// cutFrom is a value of --from: a file, or AXIS=VALUE@FILE.
func cutFrom(text string) (axis, value, path string) {
	if name, rest, ok := strings.Cut(text, "="); ok {
		if v, f, ok := strings.Cut(rest, "@"); ok {
			return name, v, f
		}
	}
	return "", "", text
}

// simulated is the runner of --from.
func (c *sweepCmd) simulated() (*plan.Simulated, *planFile, error) {
	type choice struct {
		axis, value string
		p           *planFile
	}
	var first *planFile
	var choices []choice
	for _, text := range c.From {
		axis, value, path := cutFrom(text)
		p, err := openPlanFile(path, c.Pipeline)
		if err != nil {
			return nil, nil, fmt.Errorf("--from: %w", err)
		}
		if axis != "" {
			choices = append(choices, choice{axis, value, p})
		} else if first != nil {
			return nil, nil, usagef("--from: of several files all but one must say what they are for, as device=cpu@%s", path)
		} else {
			first = p
		}
	}
	if first == nil {
		first = choices[0].p
	}
	set := first.set
	if c.Items > 0 {
		set.Items = c.Items
	}
	sim, err := plan.NewSimulated(first.graph, first.costs, set)
	if err != nil {
		return nil, nil, inputError(fmt.Errorf("--from %s: %w", first.path, err))
	}
	for _, ch := range choices {
		if err := sim.When(ch.axis, ch.value, ch.p.costs); err != nil {
			return nil, nil, inputError(fmt.Errorf("--from %s: %w", ch.p.path, err))
		}
	}
	return sim, first, nil
}

// report writes what was found.
func (c *sweepCmd) report(a *app, r *plan.SweepResult) error {
	if c.CSV != "" {
		if err := outfile.Stream(c.CSV, r.WriteCSV); err != nil {
			return err
		}
	}
	if c.HTML != "" {
		if err := outfile.Stream(c.HTML, func(w io.Writer) error { return report.Sweep(w, r) }); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	out := sweepOutput{OK: true, Best: r.Best(), Front: r.Pareto(alloc.Host), Sweep: r}
	nothing := noBest(r)
	if nothing != nil {
		out.OK, out.Code, out.Error = false, exitCode(nothing), errorText(nothing)
	}
	err := a.result(out, func(w io.Writer) error {
		if err := r.WriteTable(w, c.Rows); err != nil || out.Best == nil {
			return err
		}
		_, err := fmt.Fprintf(w, "best: %s\n", bestText(r.Space, out.Best))
		return err
	})
	return errors.Join(err, nothing)
}

// noBest is the error of a sweep that found no setting to use: with the code of
// memory, unless a run failed for another reason.
func noBest(r *plan.SweepResult) error {
	if r.Best() != nil {
		return nil
	}
	for i := range r.Rows {
		switch o := r.Rows[i].Outcome(); {
		case o == nil:
		case o.OK():
			return &codedError{codeMemory, fmt.Errorf("no setting keeps within --within %v", r.Within)}
		case o.Failure.Kind == plan.Broken:
			return fmt.Errorf("no setting came to its end: %s", o.Failure.Text)
		}
	}
	return &codedError{codeMemory, errors.New("no setting came to its end")}
}

// bestText is the values of a row by their axes.
func bestText(space plan.Space, row *plan.Row) string {
	var parts []string
	for i, a := range space.Axes {
		parts = append(parts, a.Name+"="+row.Values[i])
	}
	return strings.Join(parts, " ")
}

// sweepMeter is what a display says of a sweep besides its count.
type sweepMeter struct {
	mu   sync.Mutex
	last plan.Progress
	at   time.Time
}

func (s *sweepMeter) set(p plan.Progress) {
	s.mu.Lock()
	s.last, s.at = p, time.Now()
	s.mu.Unlock()
}

func (s *sweepMeter) note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() {
		return ""
	}
	kind := "measured"
	if s.last.Simulated {
		kind = "simulated"
	}
	if left := s.last.Left - time.Since(s.at); s.last.Total > 0 && left > 0 {
		return fmt.Sprintf("%s, %v left", kind, left.Round(time.Second))
	}
	return kind
}
