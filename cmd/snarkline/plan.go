package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// planCmd simulates what-ifs.
type planCmd struct {
	File     string   `arg:"" name:"trace|model" help:"A recording of a run (prove --trace), or a model (.toml)."`
	Try      []string `sep:"none" placeholder:"'SETTING …'" help:"A further what-if over the flags: settings separated by spaces, as 'ntt.workers=2 budget.host=4GiB cores=8'. Repeatable."`
	Items    int      `placeholder:"N" help:"Items that run (default: as recorded; 16 for a model)."`
	Cores    float64  `placeholder:"N" help:"Cores of the machine (default: as recorded or in the model)."`
	Memory   byteSize `placeholder:"SIZE" help:"Host memory of the machine: a run that needs more is killed."`
	Seed     uint64   `placeholder:"N" help:"Another seed for what is drawn (default: 0)."`
	Pipeline string   `placeholder:"FILE" help:"The pipeline that a model is of, as TOML (default: the standard one)."`
	Record   string   `placeholder:"FILE" help:"Write the simulated run (the last what-if) as a recording, for report."`
}

// Help is the longer text of `snarkline plan --help`.
func (*planCmd) Help() string {
	return `What a run would be like, without running it:

  snarkline plan run.trace --set ntt.workers=2 --budget 4GiB
  snarkline plan model.toml --items 40 --cores 96
  snarkline plan run.trace --try 'cores=8' --try 'cores=8 synthesize.workers=4'
  snarkline plan run.trace --try 'devices=2' --try 'devices=2 links=1 link=12GiB'
  snarkline plan run.trace --try 'device-memory=16GiB'

devices is how many cards like the first there are, links how many links they
share (default: one each), link what a link carries in a second, device-memory
what each card offers to keys and items.

The first row is the recorded run, the second the same run simulated, which
shows how far to trust the rest; then comes what the flags say, and each --try
over that. Peaks are of what the items hold, without key and tables.`
}

// planRow is one run for --json.
type planRow struct {
	Name       string            `json:"name"`
	Settings   pipeline.Settings `json:"settings"`
	Choices    map[string]string `json:"choices,omitempty"`
	Recorded   bool              `json:"recorded,omitempty"`
	Outcome    *plan.Outcome     `json:"outcome"`
	Limits     []plan.Limit      `json:"limits"`
	Prediction *plan.Prediction  `json:"prediction,omitempty"`
}

// planResult is the result for --json.
type planResult struct {
	OK   bool       `json:"ok"`
	File string     `json:"file"`
	Rows []*planRow `json:"rows"`
}

// Run simulates.
func (c *planCmd) Run(a *app) error {
	if c.Items < 0 || c.Cores < 0 {
		return usagef("--items and --cores: numbers below 0 mean nothing")
	}
	if c.Items > plan.MaxItems {
		return usagef("--items %d: at most %d can be simulated", c.Items, plan.MaxItems)
	}
	claims, err := a.claims(planned("", c.File), file{"--pipeline", c.Pipeline}, a.configFile())
	if err != nil {
		return err
	}
	if err := claimWrites(claims, file{"--record", c.Record}); err != nil {
		return err
	}
	if err := a.writable(file{"--record", c.Record}); err != nil {
		return err
	}
	p, err := openPlanFile(c.File, c.Pipeline)
	if err != nil {
		return err
	}
	points, names, err := c.points(a, p)
	if err != nil {
		return err
	}
	p.set.Seed = c.Seed
	sim, err := plan.NewSimulated(p.graph, p.costs, p.set)
	if err != nil {
		return inputError(fmt.Errorf("%s: %w", c.File, err))
	}
	res := planResult{OK: true, File: c.File}
	if p.trace != nil {
		o := p.recorded()
		res.Rows = append(res.Rows, &planRow{Name: "recorded", Settings: p.settings(), Recorded: true, Outcome: o, Limits: plan.LimitsOf(o)})
	}
	for i, pt := range points {
		if err := sim.Knows(pt); err != nil {
			return usagef("%s: %w", names[i], err)
		}
		opts := []plan.Option{plan.Until(a.ctx)}
		record := c.Record != "" && i == len(points)-1
		if record {
			opts = append(opts, plan.Record())
		}
		pred, err := sim.Predict(pt, opts...)
		if err != nil {
			return inputError(fmt.Errorf("simulate %s: %w", names[i], err))
		}
		o := pred.Outcome()
		res.Rows = append(res.Rows, &planRow{Name: names[i], Settings: p.settings().Merge(pt.Settings), Choices: pt.Choices,
			Outcome: o, Limits: plan.LimitsOf(o), Prediction: pred})
		if record {
			if err := writeTrace(a, c.Record, pred.Trace); err != nil {
				return fmt.Errorf("--record: %w", err)
			}
		}
	}
	return a.result(res, func(w io.Writer) error { return writePlan(w, p, &res) })
}

// points are the runs to simulate, and what to call them.
func (c *planCmd) points(a *app, p *planFile) (points []plan.Point, names []string, err error) {
	base := plan.Point{}
	points, names = append(points, base), append(names, "as it is, simulated")
	if p.trace == nil {
		names[0] = "the model"
	}
	if base.Settings, err = a.flags.settings(pipeline.Settings{}, true); err != nil {
		return nil, nil, err
	}
	if err := p.known(base.Settings); err != nil {
		return nil, nil, err
	}
	base.Choices = map[string]string{}
	if c.Items > 0 {
		base.Choices["items"] = fmt.Sprint(c.Items)
	}
	if c.Cores > 0 {
		base.Choices["cores"] = fmt.Sprint(c.Cores)
	} else if n := a.flags.Workers; n > 0 { // what a run with it would have
		base.Choices["cores"] = fmt.Sprint(n)
	}
	if c.Memory > 0 {
		base.Choices["memory"] = fmt.Sprint(int64(c.Memory))
	}
	if key := base.Key(); key != "" {
		points, names = append(points, base), append(names, key)
	}
	for _, text := range c.Try {
		pt, err := c.try(base, text)
		if err != nil {
			return nil, nil, err
		}
		if err := p.known(pt.Settings); err != nil {
			return nil, nil, fmt.Errorf("--try: %w", err)
		}
		points, names = append(points, pt), append(names, text)
	}
	return points, names, nil
}

// try is base with the settings of a --try.
func (c *planCmd) try(base plan.Point, text string) (plan.Point, error) {
	space := plan.Space{Base: base.Settings}
	for _, word := range strings.Fields(text) {
		axis, err := plan.ParseAxis(word)
		if err != nil {
			return base, usagef("--try: %w", err)
		}
		if len(axis.Values) != 1 {
			return base, usagef("--try %s: one value each; sweep takes several", word)
		}
		space.Axes = append(space.Axes, axis)
	}
	if len(space.Axes) == 0 {
		return base, usagef("--try: no setting in %q", text)
	}
	pt, err := space.At(0)
	if err != nil {
		return base, usagef("--try: %w", err)
	}
	for k, v := range base.Choices {
		if _, set := pt.Choices[k]; !set {
			if pt.Choices == nil {
				pt.Choices = make(map[string]string)
			}
			pt.Choices[k] = v
		}
	}
	return pt, nil
}

// shownSpaces are those in which any row took memory, host always.
func (r *planResult) shownSpaces() []alloc.Space {
	list := []alloc.Space{alloc.Host}
	for s := alloc.Host + 1; s.Valid(); s++ {
		for _, row := range r.Rows {
			if row.Outcome.Peak[s] > 0 {
				list = append(list, s)
				break
			}
		}
	}
	return list
}
