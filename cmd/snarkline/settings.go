package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// byteSize is a number of bytes on the command line: 4GiB, 512MiB, 1e9.
type byteSize int64

// UnmarshalText reads sizes as alloc.ParseBytes does.
func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := alloc.ParseBytes(string(text))
	if err != nil {
		return err
	}
	if n <= 0 {
		return fmt.Errorf("%q: a size must be positive", text)
	}
	*b = byteSize(n)
	return nil
}

func stageNamesHelp() string { return strings.Join(stages.Names(), ", ") }

// knobs are what can be set of a stage.
var knobs = []string{"workers", "capacity"}

// setStage puts value in a knob of a stage, or in the budget of a space. own
// says that the pipeline is the user's own, with stages of any name.
func setStage(s *pipeline.Settings, stage, knob, value string, own bool) error {
	if stage != "budget" {
		if !own && !slices.Contains(stages.Names(), stage) {
			return usagef("there is no stage %q%s (stages: %s)", stage, didYouMean(stage, stages.Names()), stageNamesHelp())
		}
		if !slices.Contains(knobs, knob) {
			return usagef("%s has no %q%s (there are: %s)", stage, knob, didYouMean(knob, knobs), strings.Join(knobs, ", "))
		}
	}
	if err := s.Set(stage + "." + knob + "=" + value); err != nil {
		return &codedError{codeUsage, err}
	}
	return nil
}

// settings is base with what --config, --budget and --set say; the later wins.
func (g *globals) settings(base pipeline.Settings, own bool) (pipeline.Settings, error) {
	s := base.Merge(pipeline.Settings{})
	if g.Config.file != nil {
		for _, v := range g.Config.pipeline {
			key := v.Key[len(v.Key)-2:]
			if err := setStage(&s, key[0], key[1], fmt.Sprint(v.Data), own); err != nil {
				return s, g.Config.file.Errorf(v, "%v", err)
			}
		}
	}
	if g.Budget > 0 {
		if err := setStage(&s, "budget", alloc.Host.String(), fmt.Sprint(int64(g.Budget)), own); err != nil {
			return s, err
		}
	}
	for _, text := range g.Set {
		name, value, ok := strings.Cut(text, "=")
		stage, knob, dot := strings.Cut(name, ".")
		if !ok || !dot {
			return s, usagef("--set %s: want STAGE.KNOB=N, such as ntt.capacity=2", text)
		}
		if err := setStage(&s, stage, knob, value, own); err != nil {
			return s, fmt.Errorf("--set: %w", err)
		}
	}
	return s, nil
}

// parseCurve reads a --curve.
func parseCurve(name string) (curve.ID, error) {
	id, err := curve.Parse(name)
	if err != nil {
		return 0, usagef("--curve: %w", err)
	}
	return id, nil
}

// didYouMean is ` (did you mean "x"?)` for the nearest of the known names, or
// nothing when none is near.
func didYouMean(name string, known []string) string {
	best, at := 3, ""
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < best {
			best, at = d, k
		}
	}
	if at == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", at)
}

// distance is the Levenshtein distance of a and b in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
