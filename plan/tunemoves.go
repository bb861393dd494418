package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Limit is something that holds a run back.
type Limit struct {
	Kind  string  `json:"kind"` // "stage", "cores", "link", "device" or "memory"
	Name  string  `json:"name"` // of the stage, the link, the device or the space
	Share float64 `json:"share"`
	Text  string  `json:"text"`
}

// LimitsOf are the limits of a run, the tightest first: what is in use for more
// than half of it.
func LimitsOf(o *Outcome) []Limit {
	var list []Limit
	for _, s := range o.Stages {
		who := "its worker is"
		if s.Workers != 1 {
			who = fmt.Sprintf("its %d workers are", s.Workers)
		}
		list = append(list, Limit{"stage", s.Name, s.Busy, fmt.Sprintf("%s: %s busy %.0f%% of the time", s.Name, who, 100*s.Busy)})
	}
	for _, u := range o.Use {
		list = append(list, Limit{u.Kind, u.Name, u.Busy, fmt.Sprintf("%s: in use %.0f%%", u.Name, 100*u.Busy)})
	}
	if share := doorShare(o); share > 0 {
		list = append(list, Limit{"memory", "budget", share,
			fmt.Sprintf("the budget: for %.0f%% of the time an item waits for memory at the door", 100*share)})
	}
	list = slices.DeleteFunc(list, func(l Limit) bool { return l.Share < 0.5 })
	slices.SortStableFunc(list, func(a, b Limit) int { return cmp.Compare(b.Share, a.Share) })
	return list
}

// doorShare is for how much of a run an item waited for the budget.
func doorShare(o *Outcome) float64 {
	if o.Wall <= 0 {
		return 0
	}
	return min(o.Door.Seconds()/o.Wall.Seconds(), 1)
}

// axisOf is the axis that moves a knob of a stage, the last where several do; −1
// without one.
func (t *tuner) axisOf(stage string, kind axisKind) int {
	for i := len(t.space.Axes) - 1; i >= 0; i-- {
		a := t.space.Axes[i]
		who, _ := a.split()
		if a.kind() == kind && (who == AllStages || slices.Contains(strings.Split(who, "+"), stage)) {
			return i
		}
	}
	return -1
}

// moves are what could relieve the limits of a setting, the tightest first.
func (t *tuner) moves(cur *try) (list []move) {
	add := func(axis, by int, why string) {
		if axis < 0 {
			return
		}
		to := cur.at[axis] + by
		if to < 0 || to >= len(t.space.Axes[axis].Values) {
			return
		}
		for _, m := range list {
			if m.axes[0] == axis && m.to[0] == to {
				return
			}
		}
		list = append(list, move{[]int{axis}, []int{to}, why})
	}
	o := cur.o
	if !cur.fit {
		t.smaller(cur, add)
		return list
	}
	busy := slices.Clone(o.Stages)
	slices.SortStableFunc(busy, func(a, b StageOutcome) int { return cmp.Compare(b.Busy, a.Busy) })
	for i, s := range busy {
		if s.Busy < 0.5 && i > 1 {
			break
		}
		why := fmt.Sprintf("%s is busy %.0f%% of the time", s.Name, 100*s.Busy)
		add(t.axisOf(s.Name, workersAxis), 1, why)
		if s.Full { // values wait for it, and hold up who makes them
			add(t.axisOf(s.Name, capacityAxis), 1, "the queue of "+s.Name+" is full")
		}
	}
	for _, s := range busy {
		if s.Full {
			add(t.axisOf(s.Name, capacityAxis), 1, "the queue of "+s.Name+" is full")
		}
	}
	if doorShare(o) > 0.05 {
		for i, a := range t.space.Axes {
			if a.kind() == bytesAxis {
				add(i, 1, "items wait for memory at the door")
			}
		}
		for _, s := range bySize(o.Stages) {
			add(t.axisOf(s.Name, workersAxis), -1, "items wait for memory at the door, and "+s.Name+" makes the most of it")
		}
	}
	for i, a := range t.space.Axes {
		if a.kind() == choiceAxis {
			for _, to := range t.neighbours(cur, i) {
				add(i, to-cur.at[i], "another choice")
			}
		}
	}
	return list
}

// smaller adds moves for a setting that does not fit.
func (t *tuner) smaller(cur *try, add func(axis, by int, why string)) {
	for _, s := range bySize(cur.o.Stages) {
		add(t.axisOf(s.Name, workersAxis), -1, "too much memory, and "+s.Name+" makes the most of it")
		add(t.axisOf(s.Name, capacityAxis), -1, "too much memory, and "+s.Name+" makes the most of it")
	}
	for i, a := range t.space.Axes {
		if a.kind() == bytesAxis {
			for _, by := range []int{1, -1} { // an item that never fits, or too many that do
				add(i, by, "too much memory")
			}
		}
	}
}

// bySize are the stages that make something, those that make the most first.
func bySize(list []StageOutcome) []StageOutcome {
	list = slices.DeleteFunc(slices.Clone(list), func(s StageOutcome) bool { return s.Made.IsZero() })
	slices.SortStableFunc(list, func(a, b StageOutcome) int { return cmp.Compare(total(b.Made), total(a.Made)) })
	return list[:min(3, len(list))]
}

// shrink takes back what brings nothing: capacities first, then workers, then
// budgets, each as far down as throughput stays, while there are runs left.
func (t *tuner) shrink(best *try) (*try, error) {
	floor := best.rate() * (1 - slack)
	for _, kind := range []axisKind{capacityAxis, workersAxis, bytesAxis} {
		for axis, a := range t.space.Axes {
			if a.kind() != kind {
				continue
			}
			for to := range best.at[axis] { // the least that does
				if t.out.Runs >= t.most {
					return best, nil
				}
				at := slices.Clone(best.at)
				at[axis] = to
				n, err := t.eval(at, "is less enough: "+t.describe(move{[]int{axis}, []int{to}, ""}))
				if err != nil {
					return nil, err
				}
				if n.rate() >= floor {
					best = t.keep(n)
					break
				}
			}
		}
	}
	return best, nil
}

// Buy is what more of something would bring.
type Buy struct {
	What       string  `json:"what"` // "one more core", "1 GiB more of host memory"
	Throughput float64 `json:"items_per_second"`
	Gain       float64 `json:"gain"` // 0.07: 7% more than the choice
	Retuned    bool    `json:"retuned"`
	Point      Point   `json:"point"` // the setting that makes use of it
	Text       string  `json:"text"`
}

// buyRuns is how many runs the answer to one "what would more bring" may take.
const buyRuns = 60

// buys asks the simulator what one more core and one more GiB of each space that
// has a limit would bring, with the settings searched anew around the choice.
func (t *tuner) buys(best *try) error {
	sim, ok := t.run.(*Simulated)
	if !ok {
		return nil
	}
	ask := func(what string, run Runner, more func(*Space)) error {
		space := t.space
		if more != nil {
			more(&space)
		}
		b := &tuner{sweeping: &sweeping{within: t.within, repeat: 1, most: buyRuns, file: &results{known: make(map[runKey]*Outcome)}},
			ctx: t.ctx, space: space, run: run, seen: make(map[string]*try), out: &Tuning{}}
		for i := range b.within {
			if b.within[i] > 0 {
				b.within[i] += alloc.GiB
			}
		}
		from, err := b.eval(best.at, "")
		if err != nil {
			return err
		}
		n, err := b.climb(from)
		if err != nil {
			return err
		}
		g := 0.0
		if r := best.rate(); r > 0 {
			g = max(n.rate()/r-1, 0)
		}
		other := difference(best.p, n.p)
		buy := Buy{What: what, Throughput: n.rate(), Gain: g, Retuned: len(other) > 0 && g > gain, Point: n.p}
		buy.Text = fmt.Sprintf("%s would bring nothing", what)
		if g > gain {
			buy.Text = fmt.Sprintf("%s would bring %.1f%% more", what, 100*g)
			if buy.Retuned {
				buy.Text += " (with other settings: " + strings.Join(other, " ") + ")"
			}
		}
		t.out.Buys = append(t.out.Buys, buy)
		return nil
	}
	if sim.machine().Cores > 0 {
		run, err := sim.Vary(func(m *Machine) { m.Cores++ })
		if err != nil {
			return err
		}
		if err := ask("one more core", run, nil); err != nil {
			return err
		}
	}
	for s := alloc.Host; s.Valid(); s++ {
		limit := int64(best.p.Settings.Budget[s.String()])
		memory := sim.machine().Memory[s]
		if limit == 0 && memory == 0 && t.within[s] == 0 {
			continue
		}
		run, err := sim.Vary(func(m *Machine) {
			if m.Memory[s] > 0 {
				m.Memory[s] += alloc.GiB
			}
		})
		if err != nil {
			return err
		}
		more := func(space *Space) {
			if limit > 0 {
				space.raise(s, alloc.GiB)
			}
		}
		if err := ask(fmt.Sprintf("1 GiB more of %v memory", s), run, more); err != nil {
			return err
		}
	}
	return nil
}

// raise adds to every budget of a space that is there.
func (s *Space) raise(space alloc.Space, by int64) {
	name := space.String()
	base := s.Base.Merge(s.Base)
	if n := base.Budget[name]; n > 0 {
		base.Budget[name] = n + pipeline.Size(by)
	}
	s.Base = base
	s.Axes = slices.Clone(s.Axes)
	for i, a := range s.Axes {
		if a.Name != budgetAxis+"."+name {
			continue
		}
		values := make([]string, len(a.Values))
		for k, v := range a.Values {
			if values[k] = v; v != "0" {
				values[k] = (pipeline.Size(a.number(v)) + pipeline.Size(by)).String()
			}
		}
		s.Axes[i].Values = values
	}
}

// difference is what b sets otherwise than a, but for budgets, of which the
// question says it.
func difference(a, b Point) (list []string) {
	had := strings.Fields(a.Key())
	for _, s := range strings.Fields(b.Key()) {
		if !slices.Contains(had, s) && !strings.HasPrefix(s, budgetAxis+".") {
			list = append(list, s)
		}
	}
	return list
}
