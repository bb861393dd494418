package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/trace"
)

//go:embed assets
var assets embed.FS

// Write draws the recorded run as one HTML page. The page needs no network and
// may not use any: its policy forbids it. Errors are those of w, or name the part
// that could not be drawn.
func Write(w io.Writer, t *trace.Trace) error {
	p, err := pageOf(t)
	if err != nil {
		return fmt.Errorf("the report of %s: %w", titleOf(t), err)
	}
	if err := render(w, "page.tmpl", p.Title, p, p.data); err != nil {
		return fmt.Errorf("the report of %s: %w", titleOf(t), err)
	}
	return nil
}

// pageView is what page.tmpl draws.
type pageView struct {
	Title    string
	Summary  []string
	Trouble  []string // what went wrong, first of all
	Facts    []fact
	Graph    []template.HTML
	Memory   []memoryView
	Timeline timelineView
	Busy     chartView
	Queues   chartView
	Stages   table
	Devices  []deviceRow
	Cards    *chartView // what each device had at work; nil without any
	Links    []fact
	Notes    []noteRow
	More     int // notes that are not shown
	Settings []string

	data pageData
}

// pageData is what the script reads.
type pageData struct {
	Charts   map[string]chartData `json:"charts"`
	Timeline *timelineData        `json:"timeline,omitempty"`
}

// fact is a name with its value.
type fact struct{ Name, Value string }

// memoryView is one space.
type memoryView struct {
	Name     string
	Peak     string // in words
	Sums     string // against the budget
	Left     string // what the charts leave out
	ByStage  chartView
	ByState  chartView
	Portions []portionRow
}

type portionRow struct {
	Where, State, Bytes, Share string
	Items                      int
}

func pageOf(t *trace.Trace) (*pageView, error) {
	nodes, queues, busy := factsOf(t)
	p := &pageView{Title: titleOf(t), Stages: tableOf(nodes), Settings: t.Meta.Settings.List(), data: pageData{Charts: make(map[string]chartData)}}
	peaks := make(map[alloc.Space]peak)
	for _, space := range t.Spaces() {
		m := memoryOf(t, space, nodes)
		if m.Peak.Bytes == 0 {
			continue
		}
		peaks[space] = m.Peak
		v, err := p.memory(t, m)
		if err != nil {
			return nil, err
		}
		p.Memory = append(p.Memory, v)
	}
	p.head(t, nodes, peaks)
	p.Graph = drawGraph(nodes)
	var td timelineData
	p.Timeline, td = timelineOf(t, nodes)
	p.data.Timeline = &td
	var err error
	if p.Busy, err = p.stack(&chart{ID: "busy", Label: "Busy workers over time, by stage", Unit: unitCount, Data: busy,
		Limits: coresOf(t), Mark: math.NaN(), Height: 190}, nodes); err != nil {
		return nil, err
	}
	if p.Queues, err = p.stack(&chart{ID: "queues", Label: "Values that wait over time, by where", Unit: unitCount, Data: queues,
		Mark: math.NaN(), Height: 190}, nodes); err != nil {
		return nil, err
	}
	p.Devices, p.Links = devicesOf(t, peaks)
	if err := p.cards(t); err != nil {
		return nil, err
	}
	p.Notes, p.More = notesOf(t)
	return p, nil
}

func coresOf(t *trace.Trace) []limit {
	if t.Meta.Cores <= 0 {
		return nil
	}
	return []limit{{float64(t.Meta.Cores), count(t.Meta.Cores, "core", "cores")}}
}

// stack draws a chart whose rows are the nodes.
func (p *pageView) stack(c *chart, nodes []nodeFacts) (chartView, error) {
	for _, k := range c.Data.used() {
		c.Names = append(c.Names, nodes[k].Name)
		c.Inks = append(c.Inks, nodes[k].Ink)
	}
	return p.add(c)
}

func (p *pageView) add(c *chart) (chartView, error) {
	v, d, err := c.view()
	if err != nil {
		return v, err
	}
	p.data.Charts[c.ID] = d
	return v, nil
}

// memory draws one space.
func (p *pageView) memory(t *trace.Trace, m *memory) (v memoryView, err error) {
	pk := m.Peak
	v = memoryView{Name: spaceText(m.Space), Peak: pk.String(), Sums: sizeText(pk.Bytes) + " at most", Left: leftOut(m)}
	var limits []limit
	if b := t.Meta.Budget[m.Space]; b > 0 {
		v.Sums = fmt.Sprintf("%s at most, of a budget of %s (%s)", sizeText(pk.Bytes), sizeText(b), share(float64(pk.Bytes)/float64(b)))
		name := "budget " + sizeText(b)
		if b > limitReach*pk.Bytes {
			name += ", above what is drawn"
		}
		limits = append(limits, limit{float64(b), name})
	}
	c := &chart{ID: "stage-" + m.Space.String(), Label: v.Name + " over time, by stage", Unit: unitBytes,
		Data: m.ByStage, Limits: limits, Mark: pk.At.Seconds()}
	for _, k := range m.ByStage.used() {
		c.Names, c.Inks = append(c.Names, m.Owners[k]), append(c.Inks, m.Inks[k])
	}
	if v.ByStage, err = p.add(c); err != nil {
		return v, err
	}
	c = &chart{ID: "state-" + m.Space.String(), Label: v.Name + " over time, by state", Unit: unitBytes,
		Data: m.ByState, Limits: limits, Mark: pk.At.Seconds()}
	for _, k := range m.ByState.used() {
		c.Names, c.Inks = append(c.Names, stateNames[k]), append(c.Inks, stateInks[k])
	}
	if v.ByState, err = p.add(c); err != nil {
		return v, err
	}
	for _, s := range pk.Shares {
		v.Portions = append(v.Portions, portionRow{s.Stage, stateNames[s.State], sizeText(s.Bytes), share(float64(s.Bytes) / float64(max(1, pk.Bytes))), s.Items})
	}
	return v, nil
}

// leftOut says what the charts of a space do not hold.
func leftOut(m *memory) string {
	var parts []string
	if m.Apart > 0 {
		parts = append(parts, sizeText(m.Apart)+" that belongs to no item, such as keys and circuits")
	}
	if m.Mapped > 0 {
		parts = append(parts, sizeText(m.Mapped)+" of mapped files, whose pages the system may drop")
	}
	if parts == nil {
		return ""
	}
	return "Not drawn, and drawn from no budget: " + listed(parts) + "."
}

// frame is what every page has around its content.
type frame struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS
	Page   any
}

// render writes a page by its template. The policy lets the page's own style
// and script run, known by their hashes, and nothing be fetched.
func render(w io.Writer, name, title string, page, data any) error {
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return fmt.Errorf("read the page's style: %w", err)
	}
	script, err := assets.ReadFile("assets/script.js")
	if err != nil {
		return fmt.Errorf("read the page's script: %w", err)
	}
	// html/template would escape what it does not know to be safe; both files are
	// this package's own.
	tmpl, err := template.New(name).ParseFS(assets, "assets/frame.tmpl", "assets/"+name)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	numbers, err := json.Marshal(data) // escapes <, > and &
	if err != nil {
		return fmt.Errorf("write the page's numbers: %w", err)
	}
	f := frame{Title: title, Page: page,
		Style: template.CSS(style), Script: template.JS(script), Data: template.JS(numbers), //nolint:gosec // see above
		Policy: "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
			"; img-src data:; base-uri 'none'; form-action 'none'"}
	var b bytes.Buffer
	if err := tmpl.ExecuteTemplate(&b, "frame", f); err != nil {
		return fmt.Errorf("fill in %s: %w", name, err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func titleOf(t *trace.Trace) string {
	name := t.Graph.Name
	if name == "" {
		name = "a run"
	}
	return strings.TrimSpace(name)
}
