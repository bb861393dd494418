package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/plan"
)

// childRunner makes real runs for sweeps and tunings, each in a process of its
// own: peaks of memory are then those of the run, and a run that the system
// kills is a result and not the end of the sweep.
type childRunner struct {
	w       *workload
	flags   []string // for every run, before those of the point
	about   map[string]string
	program string
}

// childChoices are the axes that are neither of stages nor budgets, and the flags
// that they set.
var childChoices = map[string]string{
	"device": "--device", "device-memory": "--device-memory", "b2": "--b2",
	"no-elsewhere": "--no-elsewhere", "cores": "--workers",
}

// newChildRunner makes a runner of the workload with the flags of this
// invocation that its own do not set.
func (a *app) newChildRunner(w *workload) (*childRunner, error) {
	r := &childRunner{w: w}
	var err error
	if r.program, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find the program to run: %w", err)
	}
	if r.about, err = w.meaning(); err != nil {
		return nil, err
	}
	g := a.flags
	if g.Workers > 0 {
		r.flags = append(r.flags, "--workers", strconv.Itoa(g.Workers))
	}
	if d := g.Device.String(); d != "auto" && d != w.cli.Device.String() && d != os.Getenv("SNARKLINE_DEVICE") {
		r.flags = append(r.flags, "--device", d)
	}
	if g.DeviceMemory > 0 {
		r.flags = append(r.flags, "--device-memory", strconv.FormatInt(int64(g.DeviceMemory), 10))
	}
	if g.B2 != "auto" {
		r.flags = append(r.flags, "--b2", g.B2)
	}
	if g.NoElsewhere {
		r.flags = append(r.flags, "--no-elsewhere")
	}
	if len(r.flags) > 0 {
		r.about["flags"] = strings.Join(r.flags, " ")
	}
	if env := os.Getenv("SNARKLINE_DEVICE"); env != "" {
		r.about["SNARKLINE_DEVICE"] = env
	}
	return r, nil
}

// Simulates is false.
func (r *childRunner) Simulates() bool { return false }

// Meaning is the workload and the machine.
func (r *childRunner) Meaning() map[string]string { return r.about }

// Check finds axes that no flag stands for.
func (r *childRunner) Check(space plan.Space) error {
	for _, name := range space.Choices() {
		if childChoices[name] == "" {
			return usagef("axis %s: of a real run one can choose device, device-memory, b2, no-elsewhere and cores, besides workers and capacities of stages and budgets", name)
		}
	}
	return nil
}

// Run makes a run and reads its report.
func (r *childRunner) Run(ctx context.Context, p plan.Point) (*plan.Outcome, error) {
	return r.run(ctx, p)
}

// run is Run with further flags for the child.
func (r *childRunner) run(ctx context.Context, p plan.Point, more ...string) (*plan.Outcome, error) {
	dir, err := os.MkdirTemp("", "snarkline-run-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the run's results: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	report := filepath.Join(dir, "report.json")
	flags := slices.Clone(r.flags)
	for _, s := range p.Settings.List() {
		flags = append(flags, "--set", s)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Choices)) {
		flags = append(flags, childChoices[name]+"="+p.Choices[name])
	}
	flags = append(flags, "--quiet", "--no-progress", "--report", report)
	if r.w.name == "prove" {
		flags = append(flags, "--proof", filepath.Join(dir, "{n}.proof"), "--public", filepath.Join(dir, "{n}.public"))
	}
	cmd := exec.CommandContext(ctx, r.program, r.w.with(append(flags, more...)...)...)
	var errs tail
	cmd.Stderr = &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return failedRun(err, errs.last())
	}
	return readOutcome(report)
}

// failedRun is what a run that did not end well came to.
func failedRun(err error, said string) (*plan.Outcome, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, fmt.Errorf("start a run: %w", err)
	}
	fail := func(kind plan.FailureKind, text string) (*plan.Outcome, error) {
		return &plan.Outcome{Failure: &plan.Failure{Kind: kind, Text: text}}, nil
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		if status.Signal() == syscall.SIGKILL {
			return fail(plan.Killed, "the system killed the run, most likely for its memory")
		}
		return fail(plan.Broken, fmt.Sprintf("the run was ended by the signal %v", status.Signal()))
	}
	switch code := exit.ExitCode(); code {
	case codeMemory:
		return fail(plan.TooLarge, said)
	case 128 + int(syscall.SIGKILL): // through a shell
		return fail(plan.Killed, "the system killed the run, most likely for its memory")
	case codeUsage, codeInput, codeUnsatisfied, codeInterrupted:
		// No setting is to blame: the next run would end the same way.
		return nil, &codedError{code, fmt.Errorf("a run failed: %s", said)}
	default:
		return fail(plan.Broken, said)
	}
}

// readOutcome reads a report of prove or demo.
func readOutcome(path string) (*plan.Outcome, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the report of a run: %w", err)
	}
	var r struct {
		runReport
		Result struct {
			Processors *processorsReport `json:"processors"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the report of a run: %w", err)
	}
	if r.Pipeline == nil {
		return nil, errors.New("read the report of a run: it has no pipeline")
	}
	base := alloc.HostBytes(r.Resident.Before)
	if procs := r.Result.Processors; procs != nil {
		for _, c := range procs.Cards {
			if i, err := strconv.Atoi(strings.TrimPrefix(c.Device, "cuda:")); err == nil && alloc.Device(i).Valid() {
				base[alloc.Device(i)] = c.Resident
			}
		}
	}
	o := plan.OutcomeOf(r.Pipeline, base)
	o.Resident = r.Resident.AnonPeak
	return o, nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write takes p in.
func (t *tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	t.b = append(t.b, p...)
	if over := len(t.b) - most; over > 0 {
		t.b = t.b[:copy(t.b, t.b[over:])]
	}
	return len(p), nil
}

// last is the last message among the lines, without the program's name.
func (t *tail) last() string {
	lines := bytes.Split(bytes.TrimSpace(t.b), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if s, ok := strings.CutPrefix(string(line), "snarkline: "); ok && !strings.HasPrefix(s, "`snarkline --help`") {
			return s
		}
	}
	return string(lines[len(lines)-1])
}
