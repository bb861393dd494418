package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// writeSettingsFile writes the file of tune. It does not take the place of
// another that came meanwhile, without --force.
func writeSettingsFile(path string, force bool, text []byte) error {
	if err := outputFree(path, force); err != nil {
		return err
	}
	if err := outfile.Write(path, text); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// outputFree is an error if a file is there that would be written over.
func outputFree(path string, force bool) error {
	if _, err := os.Stat(path); err == nil && !force && !outfile.IsStream(path) {
		return usagef("--output: %s is there already; --force overwrites it, -o names another file", path)
	}
	return nil
}

// settingsText is the choice as a file that --config reads: the flags that it
// was made with, and a table for each stage.
func (t *tuning) settingsText(r *plan.Tuning) []byte {
	var b bytes.Buffer
	b.WriteString("# Written by snarkline tune; read by --config.\n")
	o := r.Choice.Simulated
	fmt.Fprintf(&b, "# predicted: %s\n", outcomeText(o))
	if r.Choice.Measured != nil {
		fmt.Fprintf(&b, "# measured:  %s\n", outcomeText(r.Choice.Measured))
	}
	for _, l := range r.Limits[:min(1, len(r.Limits))] {
		fmt.Fprintf(&b, "# limited by %s\n", l.Text)
	}
	b.WriteByte('\n')
	flags := map[string]any{}
	s := r.Choice.Settings
	if budgets := t.budgets(r); len(budgets) > 1 {
		flags["budget"] = budgets
	} else if n := s.Budget[alloc.Host.String()]; n > 0 {
		flags["budget"] = n.String()
	}
	g := t.a.flags
	if g.DeviceMemory > 0 {
		flags["device-memory"] = pipeline.Size(g.DeviceMemory).String()
	}
	if d := g.Device.String(); d != "auto" {
		flags["device"] = d
	}
	if g.B2 != "auto" {
		flags["b2"] = g.B2
	}
	if g.Workers > 0 {
		flags["workers"] = g.Workers
	}
	for name, v := range r.Choice.Choices {
		if name == "cores" || childChoices[name] == "" {
			continue // of a simulation
		}
		flags[name] = v
		if name == "no-elsewhere" {
			flags[name] = v == "true"
		}
	}
	write := func(v any) {
		e := toml.NewEncoder(&b)
		e.Indent = ""
		_ = e.Encode(v) // to memory, of numbers and strings
	}
	write(flags)
	for _, name := range slices.Sorted(maps.Keys(s.Stages)) {
		b.WriteByte('\n')
		write(struct {
			Stages map[string]pipeline.StageSetting `toml:"stages"`
		}{map[string]pipeline.StageSetting{name: s.Stages[name]}})
	}
	text := strings.ReplaceAll(b.String(), "[stages]\n", "")
	return []byte(text)
}

// budgets are those of the choice that no other flag says: of host memory, and of
// the spaces that an axis moved.
func (t *tuning) budgets(r *plan.Tuning) map[string]pipeline.Size {
	out := make(map[string]pipeline.Size)
	for name, n := range r.Choice.Settings.Budget {
		moved := slices.ContainsFunc(r.Space.Axes, func(a plan.Axis) bool { return a.Name == "budget."+name })
		if n > 0 && (moved || name == alloc.Host.String()) {
			out[name] = n
		}
	}
	if out[alloc.Host.String()] == 0 && len(out) > 0 {
		out[alloc.Host.String()] = 0 // a table all the same
	}
	return out
}

// outcomeText is an outcome in one line.
func outcomeText(o *plan.Outcome) string {
	if o == nil {
		return "nothing"
	}
	if o.Failure != nil {
		return o.Failure.String()
	}
	return fmt.Sprintf("%s items/s (%s for %d), peak %v", rateText(o.Throughput), round(o.Wall), o.Items, o.Peak)
}

// text prints what was found.
func (t *tuning) text(r *plan.Tuning) func(w io.Writer) error {
	return func(w io.Writer) error {
		var b strings.Builder
		fmt.Fprintf(&b, "start:     %s\n", outcomeText(r.Start.Outcome()))
		fmt.Fprintf(&b, "predicted: %s\n", outcomeText(r.Choice.Simulated))
		if m := r.Choice.Measured; m != nil {
			fmt.Fprintf(&b, "measured:  %s%s\n", outcomeText(m), errorsText(r.Choice.Simulated, m))
		}
		fmt.Fprintf(&b, "found in %d simulated runs of %s\n", r.Runs, spaceText(r.Space.Size()))
		for i, l := range r.Limits {
			if i == 0 {
				fmt.Fprintf(&b, "limited by %s\n", l.Text)
			} else if i < 3 {
				fmt.Fprintf(&b, "  then by  %s\n", l.Text)
			}
		}
		for _, buy := range r.Buys {
			fmt.Fprintf(&b, "%s\n", buy.Text)
		}
		b.WriteByte('\n')
		for _, s := range r.Choice.Settings.List() {
			fmt.Fprintf(&b, "  %s\n", s)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Choice.Choices)) {
			fmt.Fprintf(&b, "  %s=%s\n", name, r.Choice.Choices[name])
		}
		fmt.Fprintf(&b, "written to %s\n", t.Output)
		_, err := io.WriteString(w, b.String())
		return err
	}
}

// spaceText is the size of a space in words.
func spaceText(n int) string {
	if n >= 1<<40 {
		return "more than a million million settings"
	}
	return humanize.Comma(int64(n)) + " settings"
}

// errorsText is how far a prediction was off.
func errorsText(p, m *plan.Outcome) string {
	if !p.OK() || !m.OK() || m.Throughput == 0 {
		return ""
	}
	text := fmt.Sprintf(" (throughput predicted %+.1f%%", 100*(p.Throughput/m.Throughput-1))
	if m.Peak[alloc.Host] > 0 {
		text += fmt.Sprintf(", host peak %+.1f%%", 100*(float64(p.Peak[alloc.Host])/float64(m.Peak[alloc.Host])-1))
	}
	return text + ")"
}
