package report

import (
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/plan"
)

// table lists the rows, the best first.
func (p *sweepView) table(s *plan.SweepResult, best *plan.Row) {
	metrics := s.Metrics()
	for _, a := range s.Space.Axes {
		p.Heads = append(p.Heads, a.Name)
	}
	p.Heads = append(p.Heads, "by")
	for _, m := range metrics {
		p.Heads = append(p.Heads, m.Name)
	}
	on := make(map[int]bool)
	for sp := alloc.Host; sp.Valid(); sp++ {
		for _, i := range s.Pareto(sp) {
			if s.Rows[i].Outcome().Peak[sp] > 0 {
				on[i] = true
			}
		}
	}
	order := make([]int, len(s.Rows))
	for i := range order {
		order[i] = i
	}
	key := func(i int) float64 { // the front and what was measured cannot be cut off
		o := s.Rows[i].Outcome()
		if !o.OK() {
			return -1
		}
		return o.Throughput
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := key(a), key(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, i := range order {
		r := &s.Rows[i]
		if len(p.Rows) >= maxRows && !on[i] && r.Measured == nil {
			p.More++
			continue
		}
		p.Rows = append(p.Rows, sweepRow{Front: on[i], Best: r == best, Cells: rowCells(r, metrics)})
	}
}

func rowCells(r *plan.Row, metrics []plan.Metric) (cells []cell) {
	for _, v := range r.Values {
		cells = append(cells, settingCell(v))
	}
	o := r.Outcome()
	by := noValue
	switch {
	case r.Measured != nil && r.Simulated != nil:
		by = "both"
	case r.Measured != nil:
		by = "measured"
	case r.Simulated != nil:
		by = "predicted"
	}
	cells = append(cells, cell{Text: by})
	for _, m := range metrics {
		if !o.OK() {
			cells = append(cells, numCell(-1, noValue))
			continue
		}
		v, ok := m.Of(o)
		if !ok {
			cells = append(cells, numCell(-1, noValue))
			continue
		}
		text := valueText(unitOf(m), v)
		if r.Simulated.OK() && r.Measured != nil {
			if x, ok := m.Of(r.Simulated); ok {
				text += " (" + valueText(unitOf(m), x) + ")"
			}
		}
		cells = append(cells, numCell(v, text))
	}
	if o != nil && o.Failure != nil {
		cells[len(r.Values)].Text = string(o.Failure.Kind)
	}
	return cells
}
