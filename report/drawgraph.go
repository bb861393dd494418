package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// The measures of the drawing of a graph, in pixels.
const (
	boxLine   = 15 // from one line of text to the next
	boxHeight = 84
	boxLeast  = 112
	pillWidth = 58
	graphEdge = 8 // around the drawing
)

// graphStyle is how a graph lies in a window of some width.
type graphStyle struct {
	class  string
	w      float64
	down   bool    // from top to bottom; else from left to right
	gap    float64 // between layers, where the queues' figures stand
	across float64 // between boxes of one layer
}

var graphStyles = [...]graphStyle{
	{"wide", 1080, false, 48, 24},
	{"middle", 640, true, 46, 40},
	{"narrow", 336, true, 46, 10},
}

// drawGraph draws the nodes as boxes with what they did, and the links with the
// queues they end in, in all sizes.
func drawGraph(nodes []nodeFacts) []template.HTML {
	preds := make([][]int, len(nodes))
	for i := range nodes {
		preds[i] = nodes[i].Preds
	}
	l := layoutOf(preds)
	var out []template.HTML
	for _, st := range graphStyles {
		g := graphDrawing{nodes: nodes, layout: l, style: st}
		out = append(out, g.draw())
	}
	return out
}

// graphDrawing draws in two directions: along the way of the values, and across.
type graphDrawing struct {
	nodes  []nodeFacts
	layout *layout
	style  graphStyle
	b      strings.Builder

	start, thick []float64 // of each layer, along
	shift, pitch float64   // of the places within a layer, across
	boxW         float64
	boxes        []box
}

// box is where a node is drawn.
type box struct{ x, y, w, h float64 }

func (g *graphDrawing) draw() template.HTML {
	w, h := g.place()
	for _, r := range g.layout.Paths {
		g.link(r)
	}
	names := make([]string, len(g.nodes))
	for i := range g.nodes {
		names[i] = g.nodes[i].Name
		g.node(i)
	}
	width := ""
	if w > g.style.w { // its frame scrolls rather than that its letters shrink
		width = fmt.Sprintf(` width="%s" height="%s"`, num(w), num(h))
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // texts went through html.EscapeString
		`<svg class="graph %s" viewBox="0 0 %s %s"%s role="img" aria-label="%s">%s</svg>`, g.style.class, num(w), num(h),
		width, html.EscapeString("The graph: "+strings.Join(names, ", ")), g.b.String()))
}

// place gives each node its box; it returns how large the drawing is.
func (g *graphDrawing) place() (w, h float64) {
	st, layers := g.style, g.layout.Layers
	g.start, g.thick = make([]float64, len(layers)), make([]float64, len(layers))
	g.measure()
	at := float64(graphEdge)
	for k := range layers {
		g.start[k] = at
		at += g.thick[k] + st.gap
	}
	along := at - st.gap + graphEdge
	boxAcross := float64(boxHeight)
	if st.down {
		boxAcross = g.boxW
	}
	g.pitch = boxAcross + st.across
	across := g.layout.width()*g.pitch - st.across + 2*graphEdge
	g.shift = graphEdge + boxAcross/2
	if room := st.w - across; st.down && room > 0 {
		g.shift, across = g.shift+room/2, st.w
	}
	if room := st.w - along; !st.down && room > 0 {
		for k := range g.start {
			g.start[k] += room / 2
		}
		along = st.w
	}
	g.boxes = make([]box, len(g.nodes))
	for i, p := range g.layout.At {
		b := box{w: g.boxW, h: boxHeight}
		if n := &g.nodes[i]; !n.HasBox() {
			b.w, b.h = pillWidth, 28
			if st.down {
				b.w = min(g.boxW, 120)
			}
			if n.IsJoin() {
				b.h = 28 + 2*boxLine
			}
		}
		mid := g.start[p.Layer] + g.thick[p.Layer]/2
		b.x, b.y = mid, g.shift+p.Pos*g.pitch
		if st.down {
			b.x, b.y = b.y, b.x
		}
		b.x, b.y = b.x-b.w/2, b.y-b.h/2
		g.boxes[i] = b
	}
	if st.down {
		return across, along
	}
	return along, across
}

// measure finds the width of boxes and how thick layers are.
func (g *graphDrawing) measure() {
	st, stages, pills := g.style, 0, 0
	boxed := make([]bool, len(g.thick))
	for k, layer := range g.layout.Layers {
		for _, s := range layer {
			if s.Node < 0 {
				continue
			}
			boxed[k] = boxed[k] || g.nodes[s.Node].HasBox()
			if st.down && g.nodes[s.Node].IsJoin() {
				g.thick[k] = max(g.thick[k], 28+2*boxLine)
			}
		}
		if boxed[k] {
			stages++
		} else {
			pills++
		}
	}
	if st.down {
		n := g.layout.width()
		g.boxW = max(92, min(180, (st.w-2*graphEdge-(n-1)*st.across)/n))
	} else {
		rest := st.w - 2*graphEdge - float64(stages+pills-1)*st.gap - float64(pills)*pillWidth
		g.boxW = max(boxLeast, min(160, rest/float64(max(1, stages))))
	}
	for k := range g.thick {
		switch {
		case st.down && boxed[k]:
			g.thick[k] = boxHeight
		case st.down:
			g.thick[k] = max(g.thick[k], 28)
		case boxed[k]:
			g.thick[k] = g.boxW
		default:
			g.thick[k] = pillWidth
		}
	}
}

// point is what lies along and across, in the drawing's coordinates.
func (g *graphDrawing) point(along, across float64) (x, y float64) {
	if g.style.down {
		return across, along
	}
	return along, across
}

// link draws a link, with the queue that it ends in.
func (g *graphDrawing) link(r route) {
	st, from, to := g.style, g.boxes[r.From], g.boxes[r.To]
	a, ac := from.x+from.w, from.y+from.h/2
	b, bc := to.x, to.y+to.h/2
	if st.down {
		a, ac = from.y+from.h, from.x+from.w/2
		b, bc = to.y, to.x+to.w/2
	}
	if n := len(g.nodes[r.To].Preds); n > 1 { // a join: its inputs side by side
		bc += (float64(r.Slot) - float64(n-1)/2) * 9
	}
	const arrow = 6
	w := wire{g: g, at: a, across: ac}
	w.d.WriteString("M" + w.here())
	for _, v := range r.Via {
		w.turn(g.trunk(r, w.at, g.start[v.Layer]), g.shift+v.Pos*g.pitch)
		w.ahead(g.start[v.Layer] + g.thick[v.Layer])
	}
	w.turn(g.trunk(r, w.at, b), bc)
	w.ahead(b - arrow)
	x0, y0 := g.point(b, bc)
	x1, y1 := g.point(b-arrow-1, bc-4)
	x2, y2 := g.point(b-arrow-1, bc+4)
	fmt.Fprintf(&g.b, `<path class="link" d="%s"/><path class="f-faint" d="M%s %sL%s %sL%s %sz"/>`, w.d.String(),
		num(x0), num(y0), num(x1), num(y1), num(x2), num(y2))
	n := &g.nodes[r.To]
	if n.Capacity == 0 {
		return
	}
	first, second := mean(n.QueueMean), fmt.Sprintf("%d/%s", n.Length, n.CapacityText())
	lx, ly := g.point(b-arrow-3, bc)
	tip := html.EscapeString(fmt.Sprintf("Queue before %s: %s values on average, %d at most, room for %s", n.Name, mean(n.QueueMean), n.Length, n.CapacityText()))
	if st.down {
		fmt.Fprintf(&g.b, `<g class="queue" data-tip="%s"><text x="%s" y="%s">avg %s</text><text x="%s" y="%s">max %s</text></g>`,
			tip, num(lx+6), num(ly-14), first, num(lx+6), num(ly-2), second)
		return
	}
	fmt.Fprintf(&g.b, `<g class="queue end" data-tip="%s"><text x="%s" y="%s">%s</text><text x="%s" y="%s">%s</text></g>`,
		tip, num(lx), num(ly-5), first, num(lx), num(ly+13), second)
}

// trunk is where between two layers a link turns: near its maker, so that the
// figures of the queues have a straight line beside them; before a join, near
// that.
func (g *graphDrawing) trunk(r route, from, to float64) float64 {
	if g.nodes[r.To].IsJoin() {
		return max(to-14, (from+to)/2)
	}
	return min(from+8, (from+to)/2)
}

// wire draws a link ahead and around corners.
type wire struct {
	g          *graphDrawing
	d          strings.Builder
	at, across float64
}

func (w *wire) here() string {
	x, y := w.g.point(w.at, w.across)
	return num(x) + " " + num(y)
}

func (w *wire) ahead(to float64) {
	w.at = to
	w.d.WriteString("L" + w.here())
}

// turn goes across at a place ahead, with round corners.
func (w *wire) turn(at, across float64) {
	by := across - w.across
	if math.Abs(by) < 0.1 {
		return
	}
	r := min(6, math.Abs(by)/2)
	side := math.Copysign(r, by)
	w.ahead(at - min(r, at-w.at))
	w.at = at
	corner := w.here()
	w.across += side
	w.d.WriteString("Q" + corner + " " + w.here())
	w.across = across - side
	w.d.WriteString("L" + w.here())
	w.across = across
	corner = w.here()
	w.at = at + r
	w.d.WriteString("Q" + corner + " " + w.here())
}

// node draws a node.
func (g *graphDrawing) node(i int) {
	n, b := &g.nodes[i], g.boxes[i]
	fmt.Fprintf(&g.b, `<g class="node" data-tip="%s">`, html.EscapeString(n.Tip()))
	defer g.b.WriteString("</g>")
	if !n.HasBox() {
		fmt.Fprintf(&g.b, `<rect class="pill" x="%s" y="%s" width="%s" height="%s" rx="14"/>`, num(b.x), num(b.y), num(b.w), num(b.h))
		mid := b.x + b.w/2
		g.text(mid, b.y+18, "pilltext", clip(n.Name, int(b.w/6.6)))
		if n.IsJoin() {
			g.text(mid, b.y+18+boxLine, "pillmore", "avg "+mean(n.QueueMean))
			g.text(mid, b.y+18+2*boxLine, "pillmore", fmt.Sprintf("max %d", n.Length))
		}
		return
	}
	fmt.Fprintf(&g.b, `<rect class="box" x="%s" y="%s" width="%s" height="%s" rx="5"/>`, num(b.x), num(b.y), num(b.w), num(b.h))
	fmt.Fprintf(&g.b, `<path class="f-%s" d="M%s %sh-4a5 5 0 0 0 -5 5v%sa5 5 0 0 0 5 5h4z"/>`, n.Ink, num(b.x+9), num(b.y), num(b.h-10))
	x, y := b.x+14, b.y+17
	room := b.w - 20
	g.text(x, y, "name", clip(n.Name, int(room/6.9)))
	y += boxLine
	busy := count(n.Workers, "worker", "workers") + " · " + share(n.Utilisation)
	if float64(utf8.RuneCountInString(busy))*5.7 > room {
		busy = fmt.Sprintf("× %d · %s", n.Workers, share(n.Utilisation))
	}
	g.text(x, y, "", busy)
	y += 5
	fmt.Fprintf(&g.b, `<rect class="gauge" x="%s" y="%s" width="%s" height="4" rx="2"/>`, num(x), num(y), num(room))
	if w := room * max(0, min(1, n.Utilisation)); w > 0 {
		fmt.Fprintf(&g.b, `<rect class="f-%s" x="%s" y="%s" width="%s" height="4" rx="2"/>`, n.Ink, num(x), num(y), num(w))
	}
	y += boxLine + 3
	g.text(x, y, "", spanOrDash(n.Mean)+" each")
	y += boxLine
	if n.HeldMost > 0 {
		g.text(x, y, "", "≤ "+sizeText(n.HeldMost)+" held")
	}
}

func (g *graphDrawing) text(x, y float64, class, s string) {
	fmt.Fprintf(&g.b, `<text class="%s" x="%s" y="%s">%s</text>`, class, num(x), num(y), html.EscapeString(s))
}

// clip keeps a text within n letters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n && n > 0 {
		return string(r[:n-1]) + "…"
	}
	return s
}
