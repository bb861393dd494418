package report

import (
	"fmt"
	"html"
	"html/template"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/snarkline/snarkline/plan"
)

// nbHeat is how many shades a heat map has.
const nbHeat = 9

// heat is a metric over two axes of a sweep.
type heat struct {
	X, Y  plan.Axis
	Cells []plan.Cell // by y, then x
	Unit  unit
	Label string
}

// Dims, Z, X and Y make it gonum's grid.
type heatGrid struct{ *heat }

func (g heatGrid) Dims() (c, r int) { return len(g.heat.X.Values), len(g.heat.Y.Values) }
func (g heatGrid) X(c int) float64  { return float64(c) }
func (g heatGrid) Y(r int) float64  { return float64(r) }
func (g heatGrid) Z(c, r int) float64 {
	cell := g.Cells[r*len(g.heat.X.Values)+c]
	if cell.Row < 0 {
		return math.NaN()
	}
	return cell.Value
}

type heatPalette struct{}

func (heatPalette) Colors() (out []color.Color) {
	for i := range nbHeat {
		out = append(out, ink(fmt.Sprintf("h%d", i)))
	}
	return out
}

// leastSpan is the least part of the largest value that the colours stand for:
// differences of a percent are noise, and are not to look like night and day.
const leastSpan = 0.1

// span is the range of the colours: of the values, and leastSpan at least; ok is
// false if there are none.
func (h *heat) span() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, c := range h.Cells {
		if c.Row >= 0 {
			lo, hi, ok = min(lo, c.Value), max(hi, c.Value), true
		}
	}
	if ok && hi > 0 {
		lo = min(lo, hi*(1-leastSpan))
	}
	return lo, hi, ok
}

// draw draws the map in its own width.
func (h *heat) draw() template.HTML {
	const cellW, cellH = 62.0, 30.0
	lo, hi, ok := h.span()
	if !ok {
		return ""
	}
	nx, ny := len(h.X.Values), len(h.Y.Values)
	longest := 0
	for _, v := range h.Y.Values {
		longest = max(longest, len(v))
	}
	w := float64(nx)*cellW + 50 + 7.5*float64(longest)
	s := size{"heat", w}
	p := newPlot(s)
	m := plotter.NewHeatMap(heatGrid{h}, heatPalette{})
	m.NaN = inkGrid
	m.Min, m.Max = lo, hi
	if hi <= lo {
		m.Min, m.Max = lo-1, lo+1
	}
	p.Add(m, cellTexts{h, m.Min, m.Max})
	p.NominalX(h.X.Values...)
	p.NominalY(h.Y.Values...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(nx)-0.5, -0.5, float64(ny)-0.5
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Width, a.Tick.Length, a.Width = 0, 3, 0
		a.Padding = 0
	}
	// A name that is longer than its axis would be cut by the edge.
	p.X.Label.Text = clip(h.X.Name, int(w/6.5))
	p.Y.Label.Text = clip(h.Y.Name, int((float64(ny)*cellH+30)/6.5))
	c := newCanvas(w, float64(ny)*cellH+52)
	p.Draw(draw.Crop(draw.New(c), 1, -2, 0, -2))
	return c.svg("heatmap", h.Label, fmt.Sprintf(` width="%s" height="%s"`, num(w), num(float64(ny)*cellH+52)))
}

// cellTexts writes the values into the cells, and lets the script find them.
type cellTexts struct {
	*heat
	lo, hi float64
}

func (t cellTexts) Plot(c draw.Canvas, p *plot.Plot) {
	to := under(c)
	if to == nil {
		return
	}
	xs, ys := p.Transforms(&c)
	for _, cell := range t.Cells {
		x, y := to.at(vg.Point{X: xs(float64(cell.X)), Y: ys(float64(cell.Y))})
		x0, y0 := to.at(vg.Point{X: xs(float64(cell.X) - 0.5), Y: ys(float64(cell.Y) + 0.5)})
		text, class, tip := "✕", "f-faint", ""
		if cell.Row >= 0 {
			shade := int((cell.Value - t.lo) / (t.hi - t.lo) * nbHeat)
			text, class = valueText(t.Unit, cell.Value), fmt.Sprintf("t-h%d", max(0, min(nbHeat-1, shade)))
		} else {
			tip = fmt.Sprintf(` data-tip="%s"`, html.EscapeString(fmt.Sprintf("%s=%s, %s=%s\nno run came to its end\n%s",
				t.X.Name, t.X.Values[cell.X], t.Y.Name, t.Y.Values[cell.Y], cell.Why)))
		}
		row := ""
		if cell.Row >= 0 {
			row = fmt.Sprintf(` data-row="%d"`, cell.Row)
		}
		fmt.Fprintf(&to.b, `<text class="cell %s" x="%s" y="%s" font-size="12">%s</text><rect class="hit" x="%s" y="%s" width="%s" height="%s"%s%s/>`,
			class, num(x), num(y+4), html.EscapeString(text), num(x0), num(y0), num(2*(x-x0)), num(2*(y-y0)), row, tip)
	}
}

// valueText is a value of a metric for people.
func valueText(u unit, v float64) string {
	switch u {
	case unitBytes:
		return sizeText(int64(v))
	case unitTime:
		return secondsText(v)
	}
	return digits(v)
}
