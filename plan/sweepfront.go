package plan

import (
	"cmp"
	"slices"

	"github.com/snarkline/snarkline/alloc"
)

// fits reports whether row i ended well within the memory that is allowed.
func (r *SweepResult) fits(i int) bool {
	o := r.Rows[i].Outcome()
	return o.OK() && o.Peak.Fits(r.Within)
}

// ranked are the rows that ended well and fit, the fastest first, the smaller
// first among equals.
func (r *SweepResult) ranked() []int {
	var list []int
	for i := range r.Rows {
		if r.fits(i) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := r.Rows[a].Outcome(), r.Rows[b].Outcome()
		return cmp.Or(cmp.Compare(y.Throughput, x.Throughput), cmp.Compare(total(x.Peak), total(y.Peak)))
	})
	return list
}

func total(a alloc.Amount) (n int64) {
	for _, v := range a {
		n += v
	}
	return n
}

// Best is the row of the highest throughput among those within the memory that
// is allowed; nil if there is none. Measured rows count before simulated ones.
func (r *SweepResult) Best() *Row {
	list := r.ranked()
	for _, i := range list {
		if r.Rows[i].Measured != nil {
			return &r.Rows[i]
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &r.Rows[list[0]]
}

// Pareto are the rows that no other beats in throughput without taking more
// memory in the space: the front, by memory ascending. Of rows that are equal
// in both, the first stands for all.
func (r *SweepResult) Pareto(space alloc.Space) []int {
	var front []int
	list := r.ranked()
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := r.Rows[a].Outcome(), r.Rows[b].Outcome()
		return cmp.Or(cmp.Compare(x.Peak[space], y.Peak[space]), cmp.Compare(y.Throughput, x.Throughput), cmp.Compare(a, b))
	})
	best := 0.0
	for _, i := range list {
		if t := r.Rows[i].Outcome().Throughput; len(front) == 0 || t > best {
			front, best = append(front, i), t
		}
	}
	return front
}

// Metric is one number of an outcome, for heat maps and charts. ok is false
// where there is none, as after a failure.
type Metric struct {
	Name string
	Unit string // "items/s", "bytes", "s"
	// Larger is better; where it is false, smaller is.
	Larger bool
	Of     func(o *Outcome) (v float64, ok bool)
}

// Metrics are the numbers that rows can be compared by: throughput, latency,
// and the peak of each space in which any row took memory.
func (r *SweepResult) Metrics() []Metric {
	list := []Metric{
		{"throughput", "items/s", true, func(o *Outcome) (float64, bool) { return o.Throughput, true }},
	}
	if slices.ContainsFunc(r.Rows, func(row Row) bool { o := row.Outcome(); return o.OK() && o.Latency > 0 }) {
		list = append(list, Metric{"latency", "s", false, func(o *Outcome) (float64, bool) { return o.Latency.Seconds(), o.Latency > 0 }})
	}
	for s := alloc.Host; s.Valid(); s++ {
		if slices.ContainsFunc(r.Rows, func(row Row) bool { o := row.Outcome(); return o.OK() && o.Peak[s] > 0 }) {
			list = append(list, Metric{"peak " + s.String(), "bytes", false, func(o *Outcome) (float64, bool) { return float64(o.Peak[s]), true }})
		}
	}
	if slices.ContainsFunc(r.Rows, func(row Row) bool { o := row.Outcome(); return o.OK() && o.Resident > 0 }) {
		list = append(list, Metric{"resident", "bytes", false, func(o *Outcome) (float64, bool) { return float64(o.Resident), o.Resident > 0 }})
	}
	return list
}

// Cell is a field of a heat map: the row that is the best there, over all values
// of the other axes.
type Cell struct {
	X, Y  int     // which values of the two axes
	Row   int     // index in Rows; −1: every point here failed or is missing
	Value float64 // of the metric; 0 without a row
	Runs  int     // points that ended well
	Fail  int     // points that failed
	Why   string  // the text of the first failure, where there is no row
}

// Grid is the heat map of a metric over two axes, given by their indices in the
// space: a cell for each pair of values, by y and then x. x and y may be the same
// axis, for one row of cells.
func (r *SweepResult) Grid(x, y int, m Metric) []Cell {
	nx, ny := len(r.Space.Axes[x].Values), len(r.Space.Axes[y].Values)
	if x == y {
		ny = 1
	}
	cells := make([]Cell, nx*ny)
	for i := range cells {
		cells[i] = Cell{X: i % nx, Y: i / nx, Row: -1}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		o := row.Outcome()
		if o == nil {
			continue
		}
		at := slices.Index(r.Space.Axes[x].Values, row.Values[x])
		if x != y {
			at += nx * slices.Index(r.Space.Axes[y].Values, row.Values[y])
		}
		c := &cells[at]
		if !o.OK() {
			if c.Fail++; c.Why == "" {
				c.Why = o.Failure.String()
			}
			continue
		}
		v, ok := m.Of(o)
		if !ok {
			continue
		}
		c.Runs++
		if c.Row < 0 || m.Larger && v > c.Value || !m.Larger && v < c.Value {
			c.Row, c.Value = i, v
		}
	}
	for i := range cells {
		if cells[i].Row >= 0 {
			cells[i].Why = ""
		}
	}
	return cells
}
