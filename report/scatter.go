package report

import (
	"fmt"
	"html/template"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// scatter is points over two axes, each with its words for the pointer.
type scatter struct {
	Label        string
	XUnit, YUnit unit
	XName, YName string
	XMin, YMin   float64 // where the axes begin at the latest
	Dots         []dot
	Line         []dot // joined in steps: what can be had up to a limit
	Straight     bool  // joined straight
	XLimit       float64
	Height       float64
}

// dot is one point. Row is what the script knows it by.
type dot struct {
	X, Y float64
	R    float64
	Ink  ink
	Ring bool
	Row  int
}

// views draws the scatter in all sizes.
func (s *scatter) views() (out []template.HTML) {
	for _, size := range sizes {
		out = append(out, s.draw(size))
	}
	return out
}

// small draws it in the one size in which several stand side by side.
func (s *scatter) small() template.HTML { return s.draw(size{"small", sizes[len(sizes)-1].w}) }

func (s *scatter) draw(sz size) template.HTML {
	p := newPlot(sz)
	loX, hiX, loY, hiY := s.XMin, s.XMin, s.YMin, s.YMin
	for i, d := range append(slices.Clone(s.Dots), s.Line...) {
		if i == 0 && s.XMin < 0 {
			loX, hiX = d.X, d.X
		}
		if i == 0 && s.YMin < 0 {
			loY, hiY = d.Y, d.Y
		}
		loX, hiX, loY, hiY = min(loX, d.X), max(hiX, d.X), min(loY, d.Y), max(hiY, d.Y)
	}
	if s.XLimit > 0 && s.XLimit < 2*hiX {
		hiX = max(hiX, s.XLimit)
	}
	p.X.Min, p.X.Max = pad(loX, hiX, s.XMin)
	p.Y.Min, p.Y.Max = pad(loY, hiY, s.YMin)
	p.X.Tick.Marker = tickerOf(s.XUnit, int(sz.w/85))
	p.Y.Tick.Marker = tickerOf(s.YUnit, 5)
	p.X.Label.Text = s.XName
	p.Add(grid{both: true})
	if s.XLimit > 0 && s.XLimit <= p.X.Max {
		p.Add(rule{x: s.XLimit, upright: true, ink: inkLimit, dashes: []vg.Length{6, 4}})
	}
	p.Add(joined{s.Line, s.Straight}, dots(s.Dots))
	h := s.Height
	if h == 0 {
		h = 360
	}
	return drawPlot(p, sz, h, s.Label, "")
}

// pad is a range with some air, not below least where that is given.
func pad(lo, hi, least float64) (float64, float64) {
	air := (hi - lo) * 0.05
	if air <= 0 {
		air = max(hi*0.05, 1e-9)
	}
	if least >= 0 && lo <= least {
		return least, hi + air
	}
	return lo - air, hi + air
}

func tickerOf(u unit, n int) ticker {
	switch u {
	case unitBytes:
		return byteTicker(n)
	case unitTime:
		return timeTicker(n)
	case unitCount:
		return wholeTicker(n)
	}
	return ticker{n, whatever(decimalStep), plainText}
}

// dots draws circles that the script finds again.
type dots []dot

func (ds dots) Plot(c draw.Canvas, p *plot.Plot) {
	to := under(c)
	if to == nil {
		return
	}
	xs, ys := p.Transforms(&c)
	for _, d := range ds {
		x, y := to.at(vg.Point{X: xs(d.X), Y: ys(d.Y)})
		class := "pt f-" + string(d.Ink)
		if d.Ring {
			class = "pt ring s-" + string(d.Ink)
		}
		fmt.Fprintf(&to.b, `<circle class="%s" cx="%s" cy="%s" r="%s" data-row="%d"/>`, class, num(x), num(y), num(d.R), d.Row)
	}
}

// joined draws a line through points, in steps or straight.
type joined struct {
	points   []dot
	straight bool
}

func (j joined) Plot(c draw.Canvas, p *plot.Plot) {
	xs, ys := p.Transforms(&c)
	var line []vg.Point
	for i, d := range j.points {
		at := vg.Point{X: xs(d.X), Y: ys(d.Y)}
		if i > 0 && !j.straight {
			line = append(line, vg.Point{X: at.X, Y: line[len(line)-1].Y})
		}
		line = append(line, at)
	}
	if len(line) < 2 {
		return
	}
	c.StrokeLines(draw.LineStyle{Color: inkFaint, Width: 1.5}, line)
}
