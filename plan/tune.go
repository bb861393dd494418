package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Tuning is what Tune found.
type Tuning struct {
	Space  Space         `json:"space"`
	Choice Row           `json:"choice"` // with Measured if Verify was given
	Start  Row           `json:"start"`  // the base, where the axes have its values, and else their first ones
	Limits []Limit       `json:"limits"` // what holds the choice back, the tightest first
	Buys   []Buy         `json:"buys"`   // what more of something would bring; with a Simulated runner
	Steps  []TuneStep    `json:"steps"`  // how the choice was come by
	Runs   int           `json:"runs"`   // that it took to find the choice, known ones included
	Within alloc.Amount  `json:"within"`
	Took   time.Duration `json:"took_ns"`
}

// TuneStep is one setting that was tried.
type TuneStep struct {
	Point   Point    `json:"point"`
	Why     string   `json:"why"`
	Kept    bool     `json:"kept"`
	Outcome *Outcome `json:"outcome"`
}

// Tune searches the space for the setting of the highest throughput within the
// memory that is allowed. It is no grid: from the outcome of a run it reads what
// limits, moves what could relieve that, keeps what helps, and stops when nothing
// does; then it takes back what brings nothing. Axes are moved in the order of
// their numbers, however they are written.
//
// With Verify it makes a real run of its choice, which Choice.Measured holds. If
// no setting that was tried fits, that is an error with the reason of one.
func Tune(ctx context.Context, space Space, run Runner, opts ...SearchOption) (_ *Tuning, err error) {
	begin := time.Now()
	s := &sweeping{repeat: 1}
	for _, o := range opts {
		o(s)
	}
	meaning, err := s.prepare(space, run)
	if err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	if s.most <= 0 {
		s.most = 500
	}
	if s.file, err = openResults(s.path, meaning); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	defer func() {
		if e := s.file.close(); err == nil && e != nil {
			err = fmt.Errorf("tune: %w", e)
		}
	}()
	t := &tuner{sweeping: s, ctx: ctx, space: space.ascending(), run: run, seen: make(map[string]*try),
		out: &Tuning{Space: space, Within: s.within}}
	if err := t.search(); err != nil {
		return t.out, fmt.Errorf("tune: %w", err)
	}
	t.out.Took = time.Since(begin)
	return t.out, nil
}

// ascending is the space with the values of numbers in order.
func (s Space) ascending() Space {
	axes := slices.Clone(s.Axes)
	for i, a := range axes {
		if a.kind() != choiceAxis {
			axes[i].Values = slices.Clone(a.Values)
			slices.SortStableFunc(axes[i].Values, func(x, y string) int {
				return cmp.Compare(a.number(x), a.number(y))
			})
		}
	}
	s.Axes = axes
	return s
}

// number is a value by which values of the axis are ordered: no bound is the most.
func (a Axis) number(v string) float64 {
	if v == "unbounded" || a.kind() == bytesAxis && v == "0" {
		return math.Inf(1)
	}
	if a.kind() == bytesAxis {
		var s pipeline.Size
		_ = s.UnmarshalTOML(v) // the space was checked
		return float64(s)
	}
	n, _ := strconv.ParseFloat(v, 64)
	return n
}

// baseValue is what settings have for the axis, if it is of one stage or a budget.
func (a Axis) baseValue(s pipeline.Settings) string {
	who, knob := a.split()
	switch st := s.Stages[who]; a.kind() {
	case workersAxis:
		return strconv.Itoa(st.Workers)
	case capacityAxis:
		return st.Capacity.String()
	case bytesAxis:
		return s.Budget[knob].String()
	}
	return ""
}

// gain is by how much throughput must rise for a step to be kept, and what is
// let go for a smaller setting: less than that is noise.
const (
	gain  = 0.003
	slack = 0.005
)

// try is a setting with its outcome.
type try struct {
	at  []int // which value of each axis
	p   Point
	o   *Outcome
	fit bool
}

// rate is what is compared: 0 if the setting cannot be used.
func (t *try) rate() float64 {
	if t == nil || !t.fit {
		return 0
	}
	return t.o.Throughput
}

type tuner struct {
	*sweeping
	ctx   context.Context
	space Space
	run   Runner
	seen  map[string]*try
	out   *Tuning
}

// eval runs a setting, once.
func (t *tuner) eval(at []int, why string) (*try, error) {
	p, err := t.space.pick(at)
	if err != nil {
		return nil, err
	}
	key := p.Key()
	if known := t.seen[key]; known != nil {
		return known, nil
	}
	simulated := t.run.Simulates()
	o := t.file.get(p, simulated)
	if o == nil {
		if o, err = t.one(t.ctx, t.run, p); err != nil {
			return nil, err
		}
		if err := t.file.put(p, simulated, o); err != nil {
			return nil, err
		}
	}
	n := &try{at: slices.Clone(at), p: p, o: o, fit: o.OK() && o.Peak.Fits(t.within)}
	t.seen[key] = n
	t.out.Runs++
	t.out.Steps = append(t.out.Steps, TuneStep{Point: p, Why: why, Outcome: o})
	if t.progress != nil {
		row := Row{Point: p}
		row.set(simulated, o)
		t.progress(Progress{Done: t.out.Runs, Simulated: simulated, Row: row})
	}
	return n, context.Cause(t.ctx)
}

// keep marks the step of a setting as kept.
func (t *tuner) keep(n *try) *try {
	for i := range t.out.Steps {
		if t.out.Steps[i].Outcome == n.o {
			t.out.Steps[i].Kept = true
		}
	}
	return n
}

func (t *tuner) search() error {
	first := make([]int, len(t.space.Axes))
	for i, a := range t.space.Axes {
		if first[i] = slices.Index(a.Values, a.baseValue(t.space.Base)); first[i] < 0 { // the first as it was written
			first[i] = slices.Index(a.Values, t.out.Space.Axes[i].Values[0])
		}
	}
	low, high := slices.Clone(first), slices.Clone(first)
	for i, a := range t.space.Axes {
		if a.kind() != choiceAxis {
			low[i], high[i] = 0, len(a.Values)-1
		}
	}
	var starts []*try
	for _, s := range []struct {
		at  []int
		why string
	}{{first, "where it starts"}, {low, "the least of everything"}, {high, "the most of everything"}} {
		n, err := t.eval(s.at, s.why)
		if err != nil {
			return err
		}
		if !slices.Contains(starts, n) {
			starts = append(starts, n)
		}
	}
	simulated := t.run.Simulates()
	t.out.Start = Row{Point: starts[0].p}
	t.out.Start.set(simulated, starts[0].o)
	slices.SortStableFunc(starts, func(a, b *try) int { return cmp.Compare(b.rate(), a.rate()) })

	var best *try
	for _, s := range starts {
		n, err := t.climb(t.keep(s))
		if err != nil {
			return err
		}
		if best == nil || n.rate() > best.rate() {
			best = n
		}
		if t.out.Runs >= t.most {
			break
		}
	}
	if best.rate() == 0 {
		return t.nothingFits()
	}
	best, err := t.shrink(best)
	if err != nil {
		return err
	}
	t.out.Choice = Row{Point: best.p}
	t.out.Choice.set(simulated, best.o)
	t.out.Limits = LimitsOf(best.o)
	runs := t.out.Runs
	if err := t.buys(best); err != nil {
		return err
	}
	t.out.Runs = runs // what more would bring is another question
	return t.prove()
}

// nothingFits is the error when every setting failed: that of the smallest one.
func (t *tuner) nothingFits() error {
	o := t.out.Start.Outcome()
	for _, s := range t.out.Steps {
		if o.OK() && !s.Outcome.OK() || !s.Outcome.OK() && total(s.Outcome.Peak) < total(o.Peak) {
			o = s.Outcome
		}
	}
	if o.Failure == nil {
		return &FailureError{&Failure{Kind: TooLarge, Text: fmt.Sprintf("every setting takes more than %v: the first %v", t.within, o.Peak)}}
	}
	return fmt.Errorf("no setting of %d fits: %w", t.out.Runs, &FailureError{o.Failure})
}

// prove makes the real run of the choice.
func (t *tuner) prove() error {
	if t.real == nil || t.verify < 1 {
		return nil
	}
	p := t.out.Choice.Point
	o := t.file.get(p, false)
	if o == nil {
		var err error
		if o, err = t.one(t.ctx, t.real, p); err != nil {
			return fmt.Errorf("prove the choice: %w", err)
		}
		if err := t.file.put(p, false, o); err != nil {
			return err
		}
	}
	t.out.Choice.Measured = o
	return nil
}

// climb goes from a setting to better ones until none is near.
func (t *tuner) climb(cur *try) (*try, error) {
	for t.out.Runs < t.most {
		next, err := t.step(cur)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return cur, nil
		}
		cur = t.keep(next)
	}
	return cur, nil
}

// step is a better setting near cur, nil if there is none: what its bottleneck
// asks for first, then several of these together, then every axis by itself.
func (t *tuner) step(cur *try) (*try, error) {
	better := func(n *try) bool { return n.rate() > cur.rate()*(1+gain) || cur.rate() == 0 && n.rate() > 0 }
	moves := t.moves(cur)
	for _, m := range append(moves, together(moves)...) {
		n, err := t.apply(cur, m)
		if err != nil {
			return nil, err
		}
		if n != nil && better(n) {
			return n, nil
		}
	}
	for axis := range t.space.Axes {
		for _, to := range t.neighbours(cur, axis) {
			n, err := t.apply(cur, move{[]int{axis}, []int{to}, "try what is beside it"})
			if err != nil {
				return nil, err
			}
			if n != nil && better(n) {
				return n, nil
			}
		}
	}
	return nil, nil
}

// neighbours are the values of an axis that are one step away; of a choice, all
// others.
func (t *tuner) neighbours(cur *try, axis int) (list []int) {
	n := len(t.space.Axes[axis].Values)
	for to := range n {
		if d := to - cur.at[axis]; d == 1 || d == -1 || d != 0 && t.space.Axes[axis].kind() == choiceAxis {
			list = append(list, to)
		}
	}
	return list
}

// move sets some axes to other values.
type move struct {
	axes []int
	to   []int
	why  string
}

// apply runs cur with the move; nil if there are no runs left.
func (t *tuner) apply(cur *try, m move) (*try, error) {
	if t.out.Runs >= t.most {
		return nil, nil
	}
	at := slices.Clone(cur.at)
	for i, a := range m.axes {
		at[a] = m.to[i]
	}
	return t.eval(at, m.why+": "+t.describe(m))
}

func (t *tuner) describe(m move) string {
	var parts []string
	for i, a := range m.axes {
		parts = append(parts, t.space.Axes[a].Name+"="+t.space.Axes[a].Values[m.to[i]])
	}
	return strings.Join(parts, " ")
}

// together are the first few moves done at once: two stages that are both full
// gain nothing one by one.
func together(moves []move) (out []move) {
	for n := 2; n <= min(4, len(moves)); n++ {
		var m move
		for _, one := range moves[:n] {
			for i, a := range one.axes {
				if !slices.Contains(m.axes, a) {
					m.axes, m.to = append(m.axes, a), append(m.to, one.to[i])
				}
			}
		}
		if len(m.axes) > 1 {
			m.why = "several that are nearly full, together"
			out = append(out, m)
		}
	}
	return out
}
