package plan

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/pipeline"
)

// Space is the settings that a sweep tries: every combination of the values of
// its axes, over Base. An axis later in the list wins over one before it that
// moves the same, so that "all.workers=1..4" can be followed by an exception.
type Space struct {
	Axes   []Axis            `json:"axes"`
	Base   pipeline.Settings `json:"base"`             // what the axes leave alone
	Stages []string          `json:"stages,omitempty"` // of the graph: what "all" and "each" stand for
}

// ParseSpace reads axes as ParseAxis does, over base. An axis "each.workers=1..2"
// becomes one for each of the stages. An axis that names a stage not among them,
// and two axes of one name, are errors.
func ParseSpace(stages []string, base pipeline.Settings, axes ...string) (Space, error) {
	s := Space{Base: base, Stages: slices.Clone(stages)}
	for _, text := range axes {
		a, err := ParseAxis(text)
		if err != nil {
			return Space{}, err
		}
		if who, knob := a.split(); who == EachStage {
			for _, name := range stages {
				s.Axes = append(s.Axes, Axis{Name: name + "." + knob, Values: a.Values})
			}
			continue
		}
		s.Axes = append(s.Axes, a)
	}
	return s, s.check()
}

func (s Space) check() error {
	seen := make(map[string]bool)
	for _, a := range s.Axes {
		if seen[a.Name] {
			return fmt.Errorf("space: two axes are called %q", a.Name)
		}
		seen[a.Name] = true
		if len(a.Values) == 0 {
			return fmt.Errorf("space: axis %s has no values", a.Name)
		}
		if err := a.check(s.Stages); err != nil {
			return fmt.Errorf("space: axis %s: %w", a.Name, err)
		}
		if who, _ := a.split(); who == AllStages && len(s.Stages) == 0 {
			return fmt.Errorf("space: axis %s: the space knows no stages", a.Name)
		}
	}
	return nil
}

// Size is the number of points.
func (s Space) Size() int {
	n := 1
	for _, a := range s.Axes {
		if len(a.Values) > 0 && n > (1<<40)/len(a.Values) {
			return 1 << 40 // more than anybody runs
		}
		n *= len(a.Values)
	}
	return n
}

// Choices are the names of the axes that are neither of stages nor budgets.
func (s Space) Choices() []string {
	var out []string
	for _, a := range s.Axes {
		if a.kind() == choiceAxis {
			out = append(out, a.Name)
		}
	}
	return out
}

// At is the i-th point, the last axis moving fastest.
func (s Space) At(i int) (Point, error) {
	at := make([]int, len(s.Axes))
	for k := len(s.Axes) - 1; k >= 0; k-- {
		n := len(s.Axes[k].Values)
		at[k] = i % n
		i /= n
	}
	return s.pick(at)
}

// pick is the point of the values with these indices, one for each axis.
func (s Space) pick(at []int) (Point, error) {
	p := Point{Values: make([]string, len(s.Axes)), Settings: s.Base.Merge(pipeline.Settings{})}
	for k, a := range s.Axes {
		p.Values[k] = a.Values[at[k]]
	}
	for k, a := range s.Axes {
		if err := a.apply(&p, s.Stages, p.Values[k]); err != nil {
			return Point{}, fmt.Errorf("axis %s: %w", a.Name, err)
		}
	}
	return p, nil
}

// Points are all points in order. The space must have been checked, as
// ParseSpace and Sweep do.
func (s Space) Points() iter.Seq[Point] {
	return func(yield func(Point) bool) {
		for i := range s.Size() {
			p, err := s.At(i)
			if err != nil || !yield(p) {
				return
			}
		}
	}
}

// Point is one setting that is tried.
type Point struct {
	Values   []string          `json:"values,omitempty"` // of the axes of the sweep, in their order
	Settings pipeline.Settings `json:"settings"`         // all of it, the base included
	Choices  map[string]string `json:"choices,omitempty"`
}

// Key is equal for points that mean the same run: the settings as
// pipeline.ParseSettings reads them, sorted, then the choices.
func (p Point) Key() string {
	list := p.Settings.List()
	for _, k := range slices.Sorted(maps.Keys(p.Choices)) {
		list = append(list, k+"="+p.Choices[k])
	}
	return strings.Join(list, " ")
}
