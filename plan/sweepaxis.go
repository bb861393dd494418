package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Axis is one thing that a sweep moves, and the values that it takes. Its name
// says what it is:
//
//	ntt.workers, ntt.capacity    of a stage
//	ntt+h-msm.workers            of several stages, which move together
//	all.workers, all.capacity    of all stages, which move together
//	budget.host                  the budget of a space, in bytes; 0 is none
//	device                       any other word: a choice that the Runner understands
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// The names in an axis that stand for the stages of the graph: all of them at
// once, or, in ParseSpace, an axis for each.
const (
	AllStages  = "all"
	EachStage  = "each"
	budgetAxis = "budget"
)

// maxAxis is how many values an axis can have. A range with more is a slip.
const maxAxis = 10_000

// ParseAxis reads "NAME=VALUES". Values are a list, whose members may be ranges:
//
//	1,2,4              a list
//	1..4               1,2,3,4
//	1..8*2             1,2,4,8
//	2..10+4            2,6,10
//	1GiB..8GiB*2       sizes, with budgets; +SIZE or *N is needed
//	1..4,unbounded     with capacities
//
// The values of an axis that is neither of stages nor a budget are only split at
// commas. Errors quote the text.
func ParseAxis(text string) (Axis, error) {
	name, list, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	bad := func(format string, args ...any) (Axis, error) {
		return Axis{}, fmt.Errorf("axis %q: %s", text, fmt.Sprintf(format, args...))
	}
	if !ok || name == "" || strings.TrimSpace(list) == "" {
		return bad("want NAME=VALUES, such as ntt.workers=1..4")
	}
	a := Axis{Name: name}
	for _, part := range strings.Split(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return bad("an empty value")
		}
		values, err := expand(a.kind(), part)
		if err != nil {
			return bad("%v", err)
		}
		for _, v := range values {
			if slices.Contains(a.Values, v) {
				continue // 1,1..4
			}
			if a.Values = append(a.Values, v); len(a.Values) > maxAxis {
				return bad("more than %d values", maxAxis)
			}
		}
	}
	if err := a.check(nil); err != nil {
		return bad("%v", err)
	}
	return a, nil
}

// String is the axis as ParseAxis reads it.
func (a Axis) String() string { return a.Name + "=" + strings.Join(a.Values, ",") }

type axisKind uint8

const (
	choiceAxis axisKind = iota
	workersAxis
	capacityAxis
	bytesAxis
)

// split is the part before the last dot, and that behind it.
func (a Axis) split() (who, knob string) {
	if i := strings.LastIndexByte(a.Name, '.'); i > 0 {
		return a.Name[:i], a.Name[i+1:]
	}
	return "", a.Name
}

func (a Axis) kind() axisKind {
	who, knob := a.split()
	switch {
	case who == budgetAxis:
		return bytesAxis
	case who != "" && knob == "workers":
		return workersAxis
	case who != "" && knob == "capacity":
		return capacityAxis
	}
	return choiceAxis
}

// expand is what one member of a list stands for.
func expand(kind axisKind, text string) ([]string, error) {
	from, rest, ranged := strings.Cut(text, "..")
	if kind == choiceAxis || !ranged {
		v, err := canonical(kind, text)
		return []string{v}, err
	}
	read := func(s string) (int64, error) {
		s = strings.TrimSpace(s)
		if kind == bytesAxis {
			return alloc.ParseBytes(s)
		}
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is no number", s)
		}
		return n, nil
	}
	op, by := byte('+'), int64(1)
	to := rest
	if i := strings.IndexAny(rest, "*+"); i >= 0 {
		op, to = rest[i], rest[:i]
		var err error
		if op == '*' {
			by, err = strconv.ParseInt(strings.TrimSpace(rest[i+1:]), 10, 32)
		} else {
			by, err = read(rest[i+1:])
		}
		if err != nil {
			return nil, fmt.Errorf("range %s: the step: %w", text, err)
		}
	} else if kind == bytesAxis {
		return nil, fmt.Errorf("range %s: say how sizes grow: %s+1GiB or %s*2", text, text, text)
	}
	lo, err := read(from)
	if err != nil {
		return nil, fmt.Errorf("range %s: %w", text, err)
	}
	hi, err := read(to)
	if err != nil {
		return nil, fmt.Errorf("range %s: %w", text, err)
	}
	switch {
	case hi < lo:
		return nil, fmt.Errorf("range %s ends before it begins", text)
	case op == '+' && by < 1, op == '*' && (by < 2 || lo < 1):
		return nil, fmt.Errorf("range %s does not grow", text)
	}
	var out []string
	for n := lo; n <= hi; {
		v, err := canonical(kind, strconv.FormatInt(n, 10))
		if err != nil {
			return nil, err
		}
		if out = append(out, v); len(out) > maxAxis {
			return nil, fmt.Errorf("range %s has more than %d values", text, maxAxis)
		}
		if op == '+' {
			n += by
		} else {
			n *= by
		}
	}
	return out, nil
}

// canonical is a value as it is shown: "4GiB" for "4096MiB", 0 for "none".
func canonical(kind axisKind, text string) (string, error) {
	switch kind {
	case bytesAxis:
		if text == "none" {
			return "0", nil
		}
		var s pipeline.Size
		if err := s.UnmarshalTOML(text); err != nil {
			return "", err
		}
		return s.String(), nil
	case capacityAxis:
		var c pipeline.Count
		if err := c.UnmarshalTOML(text); err != nil {
			return "", err
		}
		if c == 0 {
			return "", fmt.Errorf("a capacity of 0: the least is 1")
		}
		return c.String(), nil
	case workersAxis:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return "", fmt.Errorf("workers %q: want a number of at least 1", text)
		}
		return strconv.Itoa(n), nil
	}
	return text, nil
}

// check finds what no value of the axis could be applied to. Unknown stages are
// found where stages is not nil.
func (a Axis) check(stages []string) error {
	who, knob := a.split()
	switch a.kind() {
	case bytesAxis:
		_, err := alloc.ParseSpace(knob)
		return err
	case choiceAxis:
		if who != "" {
			return fmt.Errorf("a stage has workers and capacity, not %q", knob)
		}
		return nil
	}
	if stages == nil || who == AllStages {
		return nil
	}
	for _, name := range strings.Split(who, "+") {
		if !slices.Contains(stages, name) {
			return fmt.Errorf("there is no stage %q (stages: %s)", name, strings.Join(stages, ", "))
		}
	}
	return nil
}

// apply sets value v in the settings, or notes the choice.
func (a Axis) apply(p *Point, stages []string, v string) error {
	who, knob := a.split()
	switch a.kind() {
	case choiceAxis:
		if p.Choices == nil {
			p.Choices = make(map[string]string)
		}
		p.Choices[a.Name] = v
		return nil
	case bytesAxis:
		return p.Settings.Set(a.Name + "=" + v)
	}
	names := strings.Split(who, "+")
	if who == AllStages {
		names = stages
	}
	for _, name := range names {
		if err := p.Settings.Set(name + "." + knob + "=" + v); err != nil {
			return err
		}
	}
	return nil
}
