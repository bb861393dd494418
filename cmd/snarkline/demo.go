package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/internal/democircuit"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// demoCmd proves a batch of SHA-256 partitions under a budget.
type demoCmd struct {
	recordFlags `embed:""`
	liveFlags   `embed:""`

	Partitions     int    `default:"12" placeholder:"N" help:"Proofs to make (default: 12)."`
	Curve          string `default:"bls12-381" placeholder:"NAME" help:"bls12-381 (default) or bn254."`
	LogConstraints int    `placeholder:"K" help:"Use a SHA-256 chain of about 2^K constraints (default: two blocks, 2^16)."`
}

// Help is the longer text of `snarkline demo --help`.
func (*demoCmd) Help() string {
	return `Compiles a SHA-256 circuit, makes keys for it on the spot, and proves as many
partitions as asked, each with a message of its own, all at once: as many
workers synthesize as there are partitions, every channel holds one item, and
the budget holds four partitions at their largest. Whatever does not fit waits
at the door; a partition that needs less as it moves on lets the next one in,
so that more than four are under way. Every proof is verified before it counts.`
}

// demoItems is how many items, at their largest, the demo's budget holds unless
// --budget says.
const demoItems = 4

// demoResult is the result for --json.
type demoResult struct {
	OK         bool    `json:"ok"`
	Code       int     `json:"code"`
	Partitions int     `json:"partitions"`
	Verified   int     `json:"verified"`
	Seconds    float64 `json:"seconds"`
	Budget     int64   `json:"budget_bytes"`
	Peak       int64   `json:"peak_bytes"`
	Resident   int64   `json:"resident_peak_bytes"`
	Waited     int64   `json:"waited"`
	Within     bool    `json:"within_budget"`

	Processors *processorsReport `json:"processors"`
}

// Run makes the circuit, the keys and the proofs.
func (c *demoCmd) Run(a *app) error {
	circuit, err := c.circuit()
	if err != nil {
		return err
	}
	if err := a.writable(c.traceFile()); err != nil {
		return err
	}
	name := func(key pipeline.Key) string { return fmt.Sprintf("partition %d", key.Part) }
	watch, err := c.watch(a, name, true)
	if err != nil {
		return err
	}
	defer watch.close()
	a.notef("circuit: %s on %v, %s constraints", circuit.Name, circuit.Curve, humanize.Comma(int64(circuit.CCS.GetNbConstraints())))
	procs, err := a.openProcessors()
	if err != nil {
		return err
	}
	defer procs.close()
	begin := time.Now()
	step, done := a.stepper("points of the key")
	keys, err := circuit.Setup(a.scope("setup"), step)
	done()
	if err != nil {
		return err
	}
	defer func() { _ = keys.Key.Close() }()
	// The compiler and the set-up leave garbage that would be counted as the
	// pipeline's.
	debug.FreeOSMemory()
	a.notef("keys:    %s, made in %.1f s (for this demonstration only: the set-up knew its secrets)",
		humanize.IBytes(uint64(keys.Key.Bytes())), time.Since(begin).Seconds())

	prover := &stages.Prover{Key: keys.Key, VK: keys.VK, Circuit: keys.Circuit, Arith: keys.Arith}
	if err := procs.take(prover, c.Partitions); err != nil {
		return err
	}
	need, err := stages.Need(prover, stages.BatchOptions{})
	if err != nil {
		return err
	}
	settings, err := a.flags.settings(procs.suited(c.settings(need), stages.NameSynthesize), false)
	if err != nil {
		return err
	}
	settings = procs.budgets(settings)
	budget := int64(settings.Budget[alloc.Host.String()])
	if budget < need[alloc.Host] {
		return &codedError{codeMemory, fmt.Errorf("--budget: a partition needs %s at its largest, the budget is %s",
			humanize.IBytes(uint64(need[alloc.Host])), humanize.IBytes(uint64(budget)))}
	}
	a.notef("budget:  %s, room for %d partitions at their largest, %s each; more are under way as those inside need less",
		humanize.IBytes(uint64(budget)), budget/max(need[alloc.Host], 1), humanize.IBytes(uint64(need[alloc.Host])))

	procs.announce()
	var mu sync.Mutex
	var verified int
	var failure error
	out, err := a.prove(&batch{
		command: "demo", trace: c.Trace, watch: watch,
		prover: prover, procs: procs, settings: settings, total: c.Partitions,
		name: name,
		jobs: c.jobs(circuit, func(err error) { mu.Lock(); failure = err; mu.Unlock() }),
		done: func(r *stages.Result) error {
			// The pipeline has verified it; a demonstration does not rest on that.
			if err := keys.VK.Verify(r.Proof, r.Public); err != nil {
				return fmt.Errorf("partition %d: %w", r.Key.Part, err)
			}
			verified++
			a.notef("partition %2d verified: %s", r.Key.Part, circuit.Describe(r.Key.Part))
			return nil
		},
		failed: func(pipeline.Key, error) {},
	})
	if err == nil {
		mu.Lock()
		err = failure
		mu.Unlock()
	}
	if err != nil {
		return err
	}
	return c.report(a, out, verified, budget)
}

// circuit compiles what the flags ask for.
func (c *demoCmd) circuit() (*democircuit.Circuit, error) {
	id, err := parseCurve(c.Curve)
	if err != nil {
		return nil, err
	}
	if c.Partitions < 1 {
		return nil, usagef("--partitions %d: there must be one at least", c.Partitions)
	}
	if c.LogConstraints == 0 && id == curve.BLS12381 {
		return democircuit.Demo()
	}
	log := c.LogConstraints
	if log == 0 {
		log = 16
	}
	if log < democircuit.MinLog || log > democircuit.MaxLog {
		return nil, usagef("--log-constraints %d: want %d to %d", log, democircuit.MinLog, democircuit.MaxLog)
	}
	return democircuit.BitHeavy(id, log)
}

// settings are those of the demonstration: everything comes at once, and the
// budget alone keeps order.
func (c *demoCmd) settings(need alloc.Amount) pipeline.Settings {
	s := pipeline.Settings{
		Budget: map[string]pipeline.Size{alloc.Host.String(): pipeline.Size(demoItems * need[alloc.Host])},
		Stages: map[string]pipeline.StageSetting{stages.NameSynthesize: {Workers: c.Partitions, Capacity: 1}},
	}
	for _, name := range stages.Names()[1:] {
		s.Stages[name] = pipeline.StageSetting{Workers: 1, Capacity: 1}
	}
	return s
}

// jobs yields the partitions.
func (c *demoCmd) jobs(circuit *democircuit.Circuit, fail func(error)) func(yield func(stages.Job) bool) {
	return func(yield func(stages.Job) bool) {
		for part := range c.Partitions {
			w, err := circuit.Witness(part)
			if err != nil {
				fail(err)
				return
			}
			if !yield(stages.Job{Key: pipeline.Key{Job: "demo", Part: part}, Input: w}) {
				return
			}
		}
	}
}

// report prints the outcome.
func (c *demoCmd) report(a *app, out *outcome, verified int, budget int64) error {
	res := demoResult{
		OK: true, Partitions: c.Partitions, Verified: verified, Seconds: out.seconds,
		Budget: budget, Peak: out.peak(), Resident: out.anon,
		Processors: out.procs,
	}
	if b := out.report.Budget; b != nil {
		res.Waited = b.Waits
		res.Within = b.Peak.Fits(b.Limit)
	}
	if err := a.showTable(out); err != nil {
		return err
	}
	if err := a.writeReport("demo", out, nil, res); err != nil {
		return err
	}
	return a.result(res, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d of %d partitions proved and verified in %.1f s\n", verified, c.Partitions, out.seconds)
		return err
	})
}
