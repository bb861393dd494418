package report

import (
	"fmt"
	"html"
	"html/template"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// canvas is a vg.Canvas that writes SVG to stand within a page. It differs from
// gonum's own in that a colour is a class, so that one drawing serves light and
// dark; that coordinates have one digit behind the point and follow each other
// as differences, which makes the file a third as large; and that text is not
// upside down.
type canvas struct {
	w, h  float64
	b     strings.Builder
	stack []inkState
}

type inkState struct {
	color  color.Color
	width  vg.Length
	dashes []vg.Length
	turn   float64  // radians
	shift  vg.Point // before the turn
}

func newCanvas(w, h float64) *canvas {
	c := &canvas{w: w, h: h, stack: []inkState{{}}}
	vg.Initialize(c)
	return c
}

// under is the canvas that a plotter draws on; nil if it is another's.
func under(c vg.Canvas) *canvas {
	for {
		switch t := c.(type) {
		case *canvas:
			return t
		case draw.Canvas:
			c = t.Canvas
		case *draw.Canvas:
			c = t.Canvas
		default:
			return nil
		}
	}
}

func (c *canvas) top() *inkState { return &c.stack[len(c.stack)-1] }

// Size is the canvas's, in the units of the viewBox.
func (c *canvas) Size() (x, y vg.Length) { return vg.Length(c.w), vg.Length(c.h) }

func (c *canvas) SetLineWidth(w vg.Length)               { c.top().width = w }
func (c *canvas) SetLineDash(d []vg.Length, _ vg.Length) { c.top().dashes = d }
func (c *canvas) SetColor(col color.Color)               { c.top().color = col }
func (c *canvas) Rotate(rad float64)                     { c.top().turn += rad }

// Translate moves the origin. gonum/plot calls it before Rotate, for the labels
// of vertical axes.
func (c *canvas) Translate(p vg.Point) {
	s := c.top()
	sin, cos := math.Sincos(s.turn)
	s.shift.X += p.X*vg.Length(cos) - p.Y*vg.Length(sin)
	s.shift.Y += p.X*vg.Length(sin) + p.Y*vg.Length(cos)
}

// Scale does nothing: no plotter in use here scales.
func (c *canvas) Scale(_, _ float64) {}

func (c *canvas) Push() { c.stack = append(c.stack, *c.top()) }

func (c *canvas) Pop() {
	if len(c.stack) > 1 {
		c.stack = c.stack[:len(c.stack)-1]
	}
}

// at is a point in SVG's coordinates, y downwards.
func (c *canvas) at(p vg.Point) (x, y float64) {
	s := c.top()
	sin, cos := math.Sincos(s.turn)
	px, py := float64(p.X), float64(p.Y)
	return px*cos - py*sin + float64(s.shift.X), c.h - (px*sin + py*cos + float64(s.shift.Y))
}

func (c *canvas) Stroke(p vg.Path) {
	s := c.top()
	if s.width <= 0 {
		return
	}
	dash := ""
	if len(s.dashes) > 0 {
		parts := make([]string, len(s.dashes))
		for i, d := range s.dashes {
			parts[i] = num(float64(d))
		}
		dash = ` stroke-dasharray="` + strings.Join(parts, " ") + `"`
	}
	fmt.Fprintf(&c.b, `<path class="s-%s" stroke-width="%s"%s d="%s"/>`, inkName(s.color), num(float64(s.width)), dash, c.path(p))
}

func (c *canvas) Fill(p vg.Path) {
	fmt.Fprintf(&c.b, `<path class="f-%s" d="%s"/>`, inkName(c.top().color), c.path(p))
}

// path is the data of a path; what is drawn here has corners and whole circles.
func (c *canvas) path(p vg.Path) string {
	var d pathData
	for _, comp := range p {
		x, y := c.at(comp.Pos)
		switch comp.Type {
		case vg.MoveComp:
			d.move(x, y)
		case vg.LineComp:
			d.line(x, y)
		case vg.ArcComp:
			r := float64(comp.Radius)
			d.circle(x, y, r)
		case vg.CloseComp:
			d.close()
		}
	}
	return d.String()
}

func (c *canvas) FillString(f font.Face, p vg.Point, text string) {
	if f.Font.Size <= 0 {
		return
	}
	x, y := c.at(p)
	turn := ""
	if t := c.top().turn; t != 0 {
		turn = fmt.Sprintf(` transform="rotate(%s %s %s)"`, num(-t*180/math.Pi), num(x), num(y))
	}
	fmt.Fprintf(&c.b, `<text class="f-%s" x="%s" y="%s" font-size="%s"%s>%s</text>`,
		inkName(c.top().color), num(x), num(y), num(float64(f.Font.Size)), turn, html.EscapeString(text))
}

// DrawImage does nothing: pages hold no pixels.
func (c *canvas) DrawImage(vg.Rectangle, image.Image) {}

// svg is the drawing. Attributes are added to its root as they are.
func (c *canvas) svg(class, label, attributes string) template.HTML {
	return template.HTML(fmt.Sprintf( //nolint:gosec // texts went through html.EscapeString
		`<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s"%s>%s</svg>`,
		class, num(c.w), num(c.h), html.EscapeString(label), attributes, c.b.String()))
}

// num is a coordinate with at most one digit behind the point.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	v = math.Round(v*10) / 10
	if v == 0 {
		return "0" // not -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// pathData writes the data of a path in tenths, each point as the difference to
// the one before.
type pathData struct {
	strings.Builder
	x, y   int // where the pen is
	x0, y0 int // where the part began
}

func tenths(v float64) int {
	if math.IsNaN(v) {
		return 0
	}
	return int(math.Round(max(-1e8, min(1e8, v)) * 10))
}

func (d *pathData) move(x, y float64) {
	d.x, d.y = tenths(x), tenths(y)
	d.x0, d.y0 = d.x, d.y
	d.WriteString("M" + tenthsText(d.x) + " " + tenthsText(d.y))
}

func (d *pathData) line(x, y float64) {
	nx, ny := tenths(x), tenths(y)
	switch dx, dy := nx-d.x, ny-d.y; {
	case dx == 0 && dy == 0:
	case dy == 0:
		d.WriteString("h" + tenthsText(dx))
	case dx == 0:
		d.WriteString("v" + tenthsText(dy))
	default:
		d.WriteString("l" + tenthsText(dx) + " " + tenthsText(dy))
	}
	d.x, d.y = nx, ny
}

func (d *pathData) close() {
	d.WriteString("z")
	d.x, d.y = d.x0, d.y0
}

func (d *pathData) circle(x, y, r float64) {
	d.move(x-r, y)
	rr, w := tenthsText(tenths(r)), tenthsText(2*tenths(r))
	fmt.Fprintf(d, "a%s %s 0 1 0 %s 0a%s %s 0 1 0 -%s 0", rr, rr, w, rr, rr, w)
}

func tenthsText(v int) string {
	if v%10 == 0 {
		return strconv.Itoa(v / 10)
	}
	return strconv.FormatFloat(float64(v)/10, 'f', 1, 64)
}
