package report

import (
	"fmt"
	"html/template"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A drawing is made in three sizes; the style sheet shows the one whose letters
// have the right size in the window.
type size struct {
	class string
	w     float64
}

var sizes = [...]size{{"wide", 1080}, {"middle", 640}, {"narrow", 336}}

// fontSize is that of axes' labels, in pixels.
const fontSize = 12

// unit is what an axis counts.
type unit string

const (
	unitBytes unit = "bytes"
	unitCount unit = "count"
	unitTime  unit = "time"
	unitRate  unit = "rate"
)

// chart is a stack of areas over time.
type chart struct {
	ID     string
	Label  string // for those who cannot see it
	Unit   unit
	Names  []string
	Inks   []ink
	Data   *steps
	Limits []limit
	Mark   float64 // a moment to mark; NaN: none
	Height float64
}

// limit is a horizontal line with its name.
type limit struct {
	At   float64
	Name string
}

// limitReach is up to how many times the highest value a limit is drawn.
const limitReach = 4

// chartView is a chart as the page's template and script take it.
type chartView struct {
	ID      string
	SVG     []template.HTML
	Legend  []legendEntry
	Limits  []string
	Marked  bool
	HasData bool
}

type legendEntry struct {
	Ink  ink
	Name string
}

// chartData is what the script needs to tell values under the pointer.
type chartData struct {
	Unit  unit        `json:"unit"`
	End   float64     `json:"end"`
	X     []float64   `json:"x"`
	Names []string    `json:"names"`
	Inks  []ink       `json:"inks"`
	Rows  [][]float64 `json:"rows"`
}

// view draws the chart in all sizes.
func (c *chart) view() (chartView, chartData, error) {
	v := chartView{ID: c.ID, Marked: !math.IsNaN(c.Mark), HasData: len(c.Data.Rows) > 0}
	for i := len(c.Names) - 1; i >= 0; i-- { // as they lie on each other
		v.Legend = append(v.Legend, legendEntry{c.Inks[i], c.Names[i]})
	}
	for _, l := range c.Limits {
		v.Limits = append(v.Limits, l.Name)
	}
	data := c.Data.thin(int(sizes[0].w) / 2)
	d := chartData{Unit: c.Unit, End: c.Data.End, Names: c.Names, Inks: c.Inks}
	for _, x := range data.X {
		d.X = append(d.X, roundTo(x, c.Data.End/1e5))
	}
	for _, r := range data.Rows {
		row := make([]float64, len(r))
		for i, y := range r {
			row[i] = roundTo(y, 0.001)
		}
		d.Rows = append(d.Rows, row)
	}
	for _, s := range sizes {
		svg, err := c.draw(s)
		if err != nil {
			return v, d, fmt.Errorf("draw chart %s: %w", c.ID, err)
		}
		v.SVG = append(v.SVG, svg)
	}
	return v, d, nil
}

// roundTo is v with no more digits than a step needs.
func roundTo(v, step float64) float64 {
	if step <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	p := math.Pow(10, math.Ceil(-math.Log10(step)))
	return math.Round(v*p) / p
}

func (c *chart) draw(s size) (template.HTML, error) {
	data := c.Data.thin(int(s.w) / 2)
	top := data.peak()
	for _, l := range c.Limits {
		if l.At <= limitReach*data.peak() {
			top = max(top, l.At)
		}
	}
	if top <= 0 {
		top = 1
	}
	p := newPlot(s)
	p.X.Min, p.X.Max = 0, max(data.End, 1e-9)
	p.Y.Min, p.Y.Max = 0, top*1.04
	p.X.Tick.Marker = timeTicker(int(s.w / 95))
	if c.Unit == unitBytes {
		p.Y.Tick.Marker = byteTicker(4)
	} else {
		p.Y.Tick.Marker = wholeTicker(4)
	}
	p.Add(grid{})
	base := make([]float64, len(data.X))
	for k, r := range data.Rows {
		next := make([]float64, len(r))
		for i := range r {
			next[i] = base[i] + max(0, r[i])
		}
		p.Add(area{data.X, data.End, base, next, c.Inks[k]})
		base = next
	}
	for _, l := range c.Limits {
		if l.At <= p.Y.Max {
			p.Add(rule{y: l.At, ink: inkLimit, dashes: []vg.Length{6, 4}})
		}
	}
	if !math.IsNaN(c.Mark) {
		p.Add(rule{x: c.Mark, upright: true, ink: inkMark, dashes: []vg.Length{2, 3}})
	}
	h := c.Height
	if h == 0 {
		h = 230
	}
	return drawPlot(p, s, h, c.Label, ""), nil
}

// newPlot is an empty plot in the look of the page.
func newPlot(s size) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Padding = 0
		a.LineStyle = draw.LineStyle{}
		a.Tick.LineStyle = draw.LineStyle{Color: inkGrid, Width: 1}
		a.Tick.Length = 4
		a.Tick.Label = textStyle(inkFaint, a.Tick.Label)
		a.Label.TextStyle = textStyle(inkFaint, a.Label.TextStyle)
		a.Label.Padding = 3
	}
	p.Y.Tick.Length = 5
	p.Y.Tick.Width = 0
	return p
}

func textStyle(col color.Color, s text.Style) text.Style {
	s.Color = col
	s.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: fontSize}
	return s
}

// drawPlot draws p and tells the script where its data lies.
func drawPlot(p *plot.Plot, s size, h float64, label, attributes string) template.HTML {
	c := newCanvas(s.w, h)
	// Labels at the ends of the axes reach half their width over it.
	dc := draw.Crop(draw.New(c), 1, -22, 0, -8)
	p.Draw(dc)
	data := p.DataCanvas(dc)
	return c.svg("plot "+s.class, label, fmt.Sprintf(` data-x0="%s" data-x1="%s" data-y0="%s" data-y1="%s"%s`,
		num(float64(data.Min.X)), num(float64(data.Max.X)), num(h-float64(data.Max.Y)), num(h-float64(data.Min.Y)), attributes))
}

// grid draws horizontal lines at the ticks of the vertical axis.
type grid struct{ both bool }

func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	xs, ys := p.Transforms(&c)
	style := draw.LineStyle{Color: inkGrid, Width: 1}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if y := ys(t.Value); y <= c.Max.Y+0.1 {
			c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
		}
	}
	if !g.both {
		return
	}
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if x := xs(t.Value); x <= c.Max.X+0.1 {
			c.StrokeLine2(style, x, c.Min.Y, x, c.Max.Y)
		}
	}
}

// area fills what lies between two lines of steps.
type area struct {
	x      []float64
	end    float64
	lo, hi []float64
	ink    ink
}

// Plot draws a polygon of gonum's for each stretch in which there is anything.
func (a area) Plot(c draw.Canvas, p *plot.Plot) {
	for from := 0; from < len(a.x); {
		if a.hi[from] <= a.lo[from] {
			from++
			continue
		}
		to, end := from, a.end
		for to < len(a.x) && a.hi[to] > a.lo[to] {
			to++
		}
		if to < len(a.x) {
			end = a.x[to]
		}
		outline := outlineOf(a.x[from:to], end, a.hi[from:to])
		down := outlineOf(a.x[from:to], end, a.lo[from:to])
		for i := len(down) - 1; i >= 0; i-- {
			outline = append(outline, down[i])
		}
		from = to
		poly, err := plotter.NewPolygon(outline)
		if err != nil { // a value that is no number; there is nothing to draw of it
			continue
		}
		poly.Color, poly.LineStyle = a.ink, draw.LineStyle{}
		poly.Plot(c, p)
	}
}

// outlineOf is the corners of a line of steps.
func outlineOf(x []float64, end float64, y []float64) (xys plotter.XYs) {
	for i := range x {
		switch {
		case i == 0:
			xys = append(xys, plotter.XY{X: x[i], Y: y[i]})
		case y[i] != y[i-1]:
			xys = append(xys, plotter.XY{X: x[i], Y: y[i-1]}, plotter.XY{X: x[i], Y: y[i]})
		}
	}
	return append(xys, plotter.XY{X: end, Y: y[len(y)-1]})
}

// rule is a line across the plot.
type rule struct {
	x, y    float64
	upright bool
	ink     ink
	dashes  []vg.Length
}

func (r rule) Plot(c draw.Canvas, p *plot.Plot) {
	xs, ys := p.Transforms(&c)
	style := draw.LineStyle{Color: r.ink, Width: 1.5, Dashes: r.dashes}
	if r.upright {
		c.StrokeLine2(style, xs(r.x), c.Min.Y, xs(r.x), c.Max.Y)
		return
	}
	c.StrokeLine2(style, c.Min.X, ys(r.y), c.Max.X, ys(r.y))
}
