package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/trace"
)

// deviceRow is a device in the table.
type deviceRow struct {
	Name, Memory, Kept, Peak, Budget, Link, Sent string
	Calls                                        int
	Items, Busy, Work                            string
}

// itemsNamed is how many items a row names.
const itemsNamed = 6

func devicesOf(t *trace.Trace, peaks map[alloc.Space]peak) (rows []deviceRow, links []fact) {
	for _, s := range t.Devices() {
		d := t.Meta.Devices[s.Device]
		row := deviceRow{Name: d.Name, Memory: sizeOrDash(d.Memory), Kept: sizeOrDash(s.Kept), Peak: sizeOrDash(peaks[d.Space].Bytes),
			Budget: sizeOrDash(s.Budget), Link: d.Link, Sent: sizeOrDash(d.Up), Calls: s.Calls, Items: itemsOn(t, &s), Busy: noValue}
		if s.Budget > 0 {
			row.Peak += " (" + share(float64(peaks[d.Space].Bytes)/float64(s.Budget)) + ")"
		}
		if t.Wall > 0 {
			row.Busy = share(s.Utilisation)
		}
		var work []string
		for _, st := range s.Stages {
			if st.Node >= 0 && st.Node < len(t.Graph.Nodes) {
				work = append(work, t.Graph.Nodes[st.Node].Name+" "+spanText(st.Work))
			}
		}
		row.Work = strings.Join(work, ", ")
		rows = append(rows, row)
	}
	for _, l := range t.Meta.Links {
		speed := "speed not known"
		if l.BytesPerSecond > 0 {
			speed = sizeText(int64(l.BytesPerSecond)) + " a second"
		}
		var on []string
		for _, d := range t.Meta.Devices {
			if d.Link == l.Name {
				on = append(on, d.Name)
			}
		}
		if len(on) > 1 {
			speed += ", shared by " + listed(on)
		}
		links = append(links, fact{l.Name, speed})
	}
	return rows, links
}

// itemsOn names the items that were on a device, in order of their first call there.
func itemsOn(t *trace.Trace, s *trace.DeviceSummary) string {
	var order []int
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Device == s.Device && c.Item >= 0 && c.Item < len(t.Items) && !slices.Contains(order, c.Item) {
			if order = append(order, c.Item); len(order) > itemsNamed {
				break
			}
		}
	}
	var names []string
	for _, i := range order[:min(len(order), itemsNamed)] {
		names = append(names, itemName(t.Items[i]))
	}
	text := strings.Join(names, ", ")
	if s.Items > len(names) {
		text += ", …"
	}
	if s.Items == 0 {
		return noValue
	}
	return fmt.Sprintf("%d: %s", s.Items, text)
}

// cards draws how many calls each device had at work over time; nothing where there
// are no devices.
func (p *pageView) cards(t *trace.Trace) error {
	if len(t.Meta.Devices) == 0 {
		return nil
	}
	var changes []change
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Device < 0 || c.Device >= len(t.Meta.Devices) || c.End <= c.Begin {
			continue
		}
		begin := min(c.Begin+max(c.Waited, 0), c.End)
		changes = append(changes, change{begin, c.Device, 1}, change{c.End, c.Device, -1})
	}
	if len(changes) == 0 {
		return nil
	}
	data := sumUp(changes, len(t.Meta.Devices), t.Wall)
	c := &chart{ID: "cards", Label: "Calls at work over time, by device", Unit: unitCount, Data: data, Mark: math.NaN(), Height: 190}
	for _, k := range data.used() {
		c.Names, c.Inks = append(c.Names, t.Meta.Devices[k].Name), append(c.Inks, seriesInk(k))
	}
	v, err := p.add(c)
	if err != nil {
		return err
	}
	p.Cards = &v
	return nil
}
