package report

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/plan"
)

// What a page of a sweep shows of a large one.
const (
	maxDots    = 3000
	maxRows    = 500
	maxHeats   = 16
	maxCellsOf = 24 // values of an axis that a heat map has room for
)

// Sweep draws what a sweep found as one HTML page: throughput against peak
// memory with the Pareto front, heat maps for pairs of axes, predicted against
// measured points, and a table. Errors are those of w, or name the part that
// could not be drawn.
func Sweep(w io.Writer, s *plan.SweepResult) error {
	p := sweepOf(s)
	if err := render(w, "sweep.tmpl", "Sweep", p, p.data); err != nil {
		return fmt.Errorf("draw the sweep: %w", err)
	}
	return nil
}

// sweepView is what sweep.tmpl draws.
type sweepView struct {
	Summary  []string
	Best     string // the setting, as flags take it
	Facts    []fact
	Fronts   []frontView
	Heats    []heatView
	Compared []compareView
	Heads    []string
	Rows     []sweepRow
	More     int
	Failures []fact

	data sweepData
}

type sweepData struct {
	Rows map[int]string `json:"rows"` // what the pointer tells of each
}

type frontView struct {
	Name      string
	SVG       []template.HTML
	Limit     string
	Dots      string // what was left out
	Sim, Real bool
}

type heatView struct {
	Name, Low, High string
	Better          string
	Broad           bool // needs more than a column
	SVG             template.HTML
}

type compareView struct {
	Name, Errors string
	SVG          template.HTML
}

type sweepRow struct {
	Front, Best bool
	Cells       []cell
}

func sweepOf(s *plan.SweepResult) *sweepView {
	p := &sweepView{data: sweepData{Rows: make(map[int]string)}}
	best := s.Best()
	p.head(s, best)
	for _, m := range s.Metrics() {
		if space, ok := strings.CutPrefix(m.Name, "peak "); ok {
			if sp, err := alloc.ParseSpace(space); err == nil {
				p.front(s, sp)
			}
		}
	}
	p.heats(s)
	p.compare(s)
	p.table(s, best)
	return p
}

func (p *sweepView) head(s *plan.SweepResult, best *plan.Row) {
	simulated, measured, failed := 0, 0, 0
	reasons := make(map[string]int)
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Simulated != nil {
			simulated++
		}
		if r.Measured != nil {
			measured++
		}
		if o := r.Outcome(); o != nil && o.Failure != nil {
			failed++
			reasons[o.Failure.String()]++
		}
	}
	did := []string{}
	if simulated > 0 {
		did = append(did, humanCount(simulated)+" simulated")
	}
	if measured > 0 {
		did = append(did, humanCount(measured)+" run for real")
	}
	p.Summary = append(p.Summary, strings.TrimSuffix(count(len(s.Rows), "setting", "settings")+": "+listed(did), ": ")+".")
	if failed > 0 {
		p.Summary = append(p.Summary, count(failed, "setting", "settings")+" came to no end; the reasons are below.")
	}
	if best != nil {
		o := best.Outcome()
		within := ""
		if !s.Within.IsZero() {
			within = " within " + s.Within.String()
		}
		how := "predicted"
		if best.Measured != nil {
			how = "measured"
		}
		p.Summary = append(p.Summary, fmt.Sprintf("The best%s: %s items a second with a peak of %s (%s).", within, digits(o.Throughput), o.Peak, how))
		p.Best = pointText(s, best)
	} else if len(s.Rows) > 0 {
		p.Summary = append(p.Summary, "No setting came to its end within the memory that is allowed.")
	}
	for _, a := range s.Space.Axes {
		p.Facts = append(p.Facts, fact{a.Name, strings.Join(a.Values, ", ")})
	}
	for _, k := range slices.Sorted(maps.Keys(s.Meaning)) {
		p.Facts = append(p.Facts, fact{k, s.Meaning[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(reasons)) {
		if len(p.Failures) == 20 {
			break
		}
		p.Failures = append(p.Failures, fact{count(reasons[k], "setting", "settings"), k})
	}
}

// pointText is a setting by its axes: "ntt.workers=2 ntt.capacity=4".
func pointText(s *plan.SweepResult, r *plan.Row) string {
	var parts []string
	for k, v := range r.Values {
		if k < len(s.Space.Axes) {
			parts = append(parts, s.Space.Axes[k].Name+"="+v)
		}
	}
	if parts == nil {
		return "the only setting"
	}
	return strings.Join(parts, " ")
}

// tell notes what the pointer tells of a row.
func (p *sweepView) tell(s *plan.SweepResult, i int) {
	if _, ok := p.data.Rows[i]; ok {
		return
	}
	r := &s.Rows[i]
	lines := []string{pointText(s, r)}
	one := func(how string, o *plan.Outcome) {
		switch {
		case o == nil:
		case o.Failure != nil:
			lines = append(lines, how+": "+o.Failure.String())
		default:
			lines = append(lines, fmt.Sprintf("%s: %s items a second, peak %s", how, digits(o.Throughput), o.Peak))
		}
	}
	one("predicted", r.Simulated)
	one("measured", r.Measured)
	p.data.Rows[i] = strings.Join(lines, "\n")
}

// front draws throughput against the peak in a space.
func (p *sweepView) front(s *plan.SweepResult, space alloc.Space) {
	line := s.Pareto(space)
	on := make(map[int]bool)
	sc := scatter{Label: "Throughput against the peak of " + spaceText(space), XUnit: unitBytes, YUnit: unitRate, YMin: 0, XMin: -1,
		XName: "peak of " + spaceText(space), XLimit: float64(s.Within[space])}
	for _, i := range line {
		o := s.Rows[i].Outcome()
		sc.Line = append(sc.Line, dot{X: float64(o.Peak[space]), Y: o.Throughput})
		on[i] = true
	}
	v := frontView{Name: spaceText(space)}
	var plain, real, front []dot
	for i := range s.Rows {
		r := &s.Rows[i]
		o := r.Outcome()
		if !o.OK() {
			continue
		}
		d := dot{X: float64(o.Peak[space]), Y: o.Throughput, R: 3.5, Ink: "sim", Row: i}
		v.Sim = v.Sim || r.Measured == nil
		switch {
		case r.Measured != nil:
			d.Ink, d.R = "real", 5
			real = append(real, d)
		case on[i]:
			front = append(front, d)
		default:
			plain = append(plain, d)
		}
		if on[i] {
			front = append(front, dot{X: d.X, Y: d.Y, R: 8, Ink: inkMark, Ring: true, Row: i})
		}
	}
	v.Real = len(real) > 0
	if len(plain) > maxDots {
		step := (len(plain) + maxDots - 1) / maxDots
		kept := plain[:0:0]
		for i := 0; i < len(plain); i += step {
			kept = append(kept, plain[i])
		}
		v.Dots = fmt.Sprintf("%s of %s points off the front are drawn.", humanCount(len(kept)), humanCount(len(plain)))
		plain = kept
	}
	sc.Dots = slices.Concat(plain, real, front)
	for _, d := range sc.Dots {
		p.tell(s, d.Row)
	}
	if len(sc.Dots) == 0 {
		return
	}
	if s.Within[space] > 0 {
		v.Limit = "allowed: " + sizeText(s.Within[space])
	}
	v.SVG = sc.views()
	p.Fronts = append(p.Fronts, v)
}

// heats draws maps for pairs of axes that move: of the throughput, and of what the
// fastest setting takes. The least memory of all settings says nothing there: it
// is that of the slowest.
func (p *sweepView) heats(s *plan.SweepResult) {
	var moving []int
	for k, a := range s.Space.Axes {
		if n := len(a.Values); n > 1 && n <= maxCellsOf {
			moving = append(moving, k)
		}
	}
	metrics := s.Metrics()
	for _, m := range metrics {
		peak := strings.HasPrefix(m.Name, "peak ")
		if m.Name != "throughput" && !peak {
			continue
		}
		for i, x := range moving {
			for _, y := range moving[i+1:] {
				h := heat{X: s.Space.Axes[x], Y: s.Space.Axes[y], Cells: s.Grid(x, y, metrics[0]), Unit: unitOf(m)}
				h.Label = fmt.Sprintf("%s by %s and %s", m.Name, h.X.Name, h.Y.Name)
				if peak {
					h.Label = fmt.Sprintf("%s of the fastest, by %s and %s", m.Name, h.X.Name, h.Y.Name)
					for k := range h.Cells {
						if c := &h.Cells[k]; c.Row >= 0 {
							c.Value, _ = m.Of(s.Rows[c.Row].Outcome())
						}
					}
				}
				lo, hi, ok := h.span()
				if !ok || lo == hi || len(p.Heats) == maxHeats {
					continue
				}
				v := heatView{Name: h.Label, Low: valueText(h.Unit, lo), High: valueText(h.Unit, hi), SVG: h.draw(), Better: "more is better", Broad: len(h.X.Values) > 4}
				if !m.Larger {
					v.Better = "less is better"
				}
				for _, c := range h.Cells {
					if c.Row >= 0 {
						p.tell(s, c.Row)
					}
				}
				p.Heats = append(p.Heats, v)
			}
		}
	}
}

func unitOf(m plan.Metric) unit {
	switch m.Unit {
	case "bytes":
		return unitBytes
	case "s":
		return unitTime
	}
	return unitRate
}

// compare draws what was predicted against what was measured.
func (p *sweepView) compare(s *plan.SweepResult) {
	for _, m := range s.Metrics() {
		sc := scatter{XUnit: unitOf(m), YUnit: unitOf(m), XMin: 0, YMin: 0, Straight: true,
			XName: "predicted " + m.Name, Label: "measured " + m.Name + " against predicted", Height: 280}
		var errs []float64
		top := 0.0
		for i := range s.Rows {
			r := &s.Rows[i]
			if !r.Simulated.OK() || !r.Measured.OK() {
				continue
			}
			x, ok1 := m.Of(r.Simulated)
			y, ok2 := m.Of(r.Measured)
			if !ok1 || !ok2 || y == 0 {
				continue
			}
			sc.Dots = append(sc.Dots, dot{X: x, Y: y, R: 5, Ink: "real", Row: i})
			errs = append(errs, math.Abs(x-y)/y)
			top = max(top, x, y)
			p.tell(s, i)
		}
		if len(errs) == 0 {
			continue
		}
		sc.Line = []dot{{}, {X: top, Y: top}}
		slices.Sort(errs)
		p.Compared = append(p.Compared, compareView{Name: m.Name, SVG: sc.small(),
			Errors: fmt.Sprintf("%s: the prediction is off by %s in the median and %s at worst.", count(len(errs), "setting", "settings"),
				fineShare(errs[len(errs)/2]), fineShare(errs[len(errs)-1]))})
	}
}

// fineShare is a small fraction in percent.
func fineShare(v float64) string {
	if v < 0.0995 {
		return digits(math.Round(v*1000)/10) + "%"
	}
	return share(v)
}
