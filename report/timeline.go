package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

const (
	laneScale = 1_000_000 // the width of the lanes' viewBox: the wall time
	maxCells  = 24_000    // in all lanes; shorter calls that follow each other become one
	nbItems   = 8         // colours of items
)

// lane is one worker of a node.
type lane struct {
	Node   int     `json:"n"`
	Worker int     `json:"w"`
	Y      float64 `json:"y"`
	// Cells are five numbers each: the item (or minus the number of items that
	// are drawn as one), begin, how long it worked, how long it waited with its
	// output, and 1 if it failed. Times are in parts of laneScale of the wall time;
	// of a merged cell the fourth is how much of it was work.
	Cells []int `json:"c"`
}

// timelineData is what the script needs to tell the item under the pointer.
type timelineData struct {
	Wall   float64  `json:"wall"` // seconds
	Scale  int      `json:"scale"`
	Height float64  `json:"h"`
	Nodes  []string `json:"nodes"`
	Items  []string `json:"items"`
	Lanes  []lane   `json:"lanes"`
}

// timelineView is what the template draws.
type timelineView struct {
	Lanes   template.HTML
	Names   template.HTML
	Axis    template.HTML
	Height  float64
	NbLanes int
	Merged  bool
	Failed  bool
}

// timelineOf lays the calls of a run out in lanes.
func timelineOf(t *trace.Trace, nodes []nodeFacts) (timelineView, timelineData) {
	d := timelineData{Wall: t.Wall.Seconds(), Scale: laneScale, Nodes: []string{}, Items: []string{}, Lanes: []lane{}}
	for i := range nodes {
		d.Nodes = append(d.Nodes, nodes[i].Name)
	}
	calls := make(map[[2]int][]*trace.Call)
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Node < 0 || c.Node >= len(nodes) || c.Begin < 0 || c.End < c.Begin {
			continue
		}
		if nodes[c.Node].Kind != pipeline.KindStage && nodes[c.Node].Kind != pipeline.KindSink {
			continue
		}
		k := [2]int{c.Node, max(0, c.Worker)}
		calls[k] = append(calls[k], c)
	}
	keys := make([][2]int, 0, len(calls))
	for k := range calls {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	shortest := 0
	if len(t.Calls) > maxCells {
		shortest = len(keys) * laneScale / maxCells
	}
	for _, it := range t.Items {
		d.Items = append(d.Items, itemName(it))
	}
	v := timelineView{NbLanes: len(keys), Merged: shortest > 0}
	high := 14.0
	if len(keys) > 40 {
		high = 8
	}
	y, last := 2.0, -1
	var names strings.Builder
	draw := newLaneDrawing(high)
	for _, k := range keys {
		if k[0] != last {
			y += 4
			fmt.Fprintf(&names, `<text x="0" y="%s"><title>%s</title>%s</text>`, num(y+high-3),
				template.HTMLEscapeString(nodes[k[0]].Name), template.HTMLEscapeString(clip(nodes[k[0]].Name, 15)))
			last = k[0]
		}
		l := lane{Node: k[0], Worker: k[1], Y: y + high/2, Cells: cellsOf(calls[k], t.Wall, shortest)}
		v.Failed = draw.lane(&l) || v.Failed
		d.Lanes = append(d.Lanes, l)
		y += high + 2
	}
	d.Height = y + 2
	v.Height = d.Height
	v.Lanes, v.Names, v.Axis = draw.paths(), template.HTML(names.String()), axisOf(t.Wall) //nolint:gosec // escaped above
	return v, d
}

func itemName(it trace.Item) string {
	name := it.Key.String()
	if it.Attempt > 0 {
		name += fmt.Sprintf(", attempt %d", it.Attempt+1)
	}
	return name
}

// cellsOf are the cells of one lane; calls that are shorter than shortest and
// follow each other closely are one.
func cellsOf(calls []*trace.Call, wall time.Duration, shortest int) []int {
	slices.SortFunc(calls, func(a, b *trace.Call) int { return cmp.Compare(a.Begin, b.Begin) })
	at := func(d time.Duration) int {
		if wall <= 0 {
			return 0
		}
		return int(max(0, min(laneScale, d.Seconds()/wall.Seconds()*laneScale+0.5)))
	}
	cells := []int{}
	merged, end := 0, 0 // how many the last cell holds; where it ends
	for _, c := range calls {
		b, e, o := at(c.Begin), at(c.End), at(max(c.End, c.Out))
		bad := 0
		if c.Err != "" && c.Err != trace.Unended {
			bad = 1
		}
		if n := len(cells); merged > 0 && o-b < shortest && b-end < shortest/2 && o-cells[n-4] < 2*shortest {
			if merged == 1 {
				cells[n-2] = cells[n-3] // of one: its work
			}
			merged++
			cells[n-5], cells[n-3], cells[n-2], cells[n-1] = -merged, o-cells[n-4], cells[n-2]+e-b, max(cells[n-1], bad)
			end = o
			continue
		}
		cells = append(cells, c.Item, b, e-b, o-e, bad)
		merged, end = 0, o
		if o-b < shortest {
			merged = 1
		}
	}
	return cells
}

// laneDrawing gathers the cells of all lanes in a path for each look.
type laneDrawing struct {
	high  float64
	looks map[string]*pathInts
}

// pathInts is a path of horizontal strokes.
type pathInts struct{ strings.Builder }

func (p *pathInts) stroke(x int, y float64, w int) {
	fmt.Fprintf(p, "M%d %sh%d", x, num(y), w)
}

func newLaneDrawing(high float64) *laneDrawing {
	return &laneDrawing{high, make(map[string]*pathInts)}
}

func (d *laneDrawing) look(name string) *pathInts {
	if d.looks[name] == nil {
		d.looks[name] = &pathInts{}
	}
	return d.looks[name]
}

// lane draws a lane and says whether anything failed in it.
func (d *laneDrawing) lane(l *lane) (failed bool) {
	for i := 0; i+4 < len(l.Cells); i += 5 {
		item, begin, work, wait, bad := l.Cells[i], l.Cells[i+1], l.Cells[i+2], l.Cells[i+3], l.Cells[i+4]
		if item < -1 { // merged
			d.look("many").stroke(begin, l.Y, max(work, 1))
			wait = 0
		} else {
			d.look(fmt.Sprintf("i%d", max(item, 0)%nbItems)).stroke(begin, l.Y, max(work, 1))
		}
		if wait > 0 {
			d.look("wait").stroke(begin+work, l.Y, wait)
		}
		if bad != 0 {
			failed = true
			d.look("bad").stroke(begin, l.Y, max(work, 1))
			d.look("limit").stroke(begin, l.Y, max(work, 1))
		}
	}
	return failed
}

// onTop is the order of looks that must not be covered.
var onTop = map[string]int{"bad": 1, "limit": 2}

func (d *laneDrawing) paths() template.HTML {
	var b strings.Builder
	names := make([]string, 0, len(d.looks))
	for n := range d.looks {
		names = append(names, n)
	}
	slices.Sort(names)
	slices.SortStableFunc(names, func(a, b string) int { // what failed lies on top
		return cmp.Compare(onTop[a], onTop[b])
	})
	for _, n := range names {
		high := d.high
		if n == "wait" || n == "limit" {
			high = 4
		}
		fmt.Fprintf(&b, `<path class="s-%s" stroke-width="%s" d="%s"/>`, n, num(high), d.looks[n].String())
	}
	return template.HTML(b.String()) //nolint:gosec // numbers only
}

// axisOf is the time under the lanes, before the script zooms.
func axisOf(wall time.Duration) template.HTML {
	var b strings.Builder
	w := wall.Seconds()
	if w <= 0 {
		return ""
	}
	for _, t := range timeTicker(4).Ticks(0, w) {
		anchor := ""
		switch {
		case t.Value == 0:
			anchor = ` text-anchor="start"`
		case t.Value > 0.94*w:
			anchor = ` text-anchor="end"`
		}
		fmt.Fprintf(&b, `<text x="%s%%" y="14"%s>%s</text>`, num(100*t.Value/w), anchor, t.Label)
	}
	return template.HTML(b.String()) //nolint:gosec // numbers and units only
}
