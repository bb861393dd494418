package tui

import (
	"fmt"
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/pipeline"
)

func (m Model) hue(h live.Hue) color.Color {
	if m.light {
		return lipgloss.Color(h.Light)
	}
	return lipgloss.Color(h.Dark)
}

func (m Model) paint(h live.Hue, text string) string {
	return lipgloss.NewStyle().Foreground(m.hue(h)).Render(text)
}

var (
	badHue  = live.Hue{Light: "#b3261e", Dark: "#ff8a80"}
	dimHue  = live.Hue{Light: "#767b85", Dark: "#8a8f99"}
	goodHue = live.Hue{Light: "#1b7f4d", Dark: "#4cc38a"}
)

func (m Model) dim(text string) string { return m.paint(dimHue, text) }
func (m Model) bold(text string) string {
	return lipgloss.NewStyle().Bold(true).Render(text)
}

// text is the whole view: what does not fit is left out from the bottom up, the
// latest events first.
func (m Model) text() string {
	w, room := max(m.width, 20), max(m.height-1, 4)
	head := []string{m.headLine(w)}
	if m.snap.Total > 0 {
		head = append(head, m.totalBar(w))
	}
	foot := []string{}
	if !m.ended {
		foot = append(foot, m.footLine(w))
	}
	memory := append(m.deviceLines(w), m.memoryLines(w)...)
	lines := append([]string{}, head...)
	used := func() int { return len(lines) + len(memory) + len(foot) }
	rows := m.stageRows(w)
	for _, row := range rows {
		if used() >= room && len(rows) > 1 {
			break // fewer stages rather than no memory
		}
		lines = append(lines, row)
	}
	airy := used()+5 <= room
	if airy {
		lines = append(lines[:len(head)], append([]string{""}, lines[len(head):]...)...)
		lines = append(lines, "")
	}
	lines = append(lines, memory...)
	memory = nil
	if airy && !m.ended {
		lines = append(lines, "")
	}
	lines = lines[:min(len(lines), room-len(foot))]
	if !m.ended {
		for _, e := range m.snap.Events {
			if used() >= room {
				break
			}
			lines = append(lines, m.eventLine(e, w))
		}
	} else if m.snap.Error != "" && used() < room {
		lines = append(lines, m.paint(badHue, cut(m.snap.Error, w)))
	}
	return strings.Join(append(lines, foot...), "\n")
}

func (m Model) headLine(w int) string {
	s := m.snap
	name := s.Graph
	if name == "" {
		name = "snarkline"
	}
	phase, hue := s.Phase, live.Held
	switch {
	case s.Phase == "ended" && s.Error != "":
		phase, hue = "ended early", badHue
	case s.Phase == "ended":
		hue = goodHue
	case m.stopping:
		phase, hue = "stopping", live.Queued
	}
	done := fmt.Sprintf("%d done", s.Done)
	if s.Total > 0 {
		done = fmt.Sprintf("%d of %d done", s.Done, s.Total)
	}
	parts := []string{done}
	if s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed))
	}
	parts = append(parts, rate(s.Rate), clock(s.Wall))
	switch {
	case s.Phase == "ended":
	case s.ETA > 0:
		parts = append(parts, clock(s.ETA)+" left")
	case s.Total > 0 && s.ETA < 0:
		parts = append(parts, "? left")
	}
	if s.Phase != "ended" {
		parts = append(parts, fmt.Sprintf("%d in flight", s.InFlight))
	}
	rest := cut(strings.Join(parts, " · "), max(w-len(name)-len(phase)-4, 8))
	return m.bold(name) + "  " + m.paint(hue, phase) + "  " + rest
}

// totalBar is how much of the work is done, and has failed.
func (m Model) totalBar(w int) string {
	s := m.snap
	done := float64(s.Done) / float64(s.Total)
	full, empty := bar(done, w)
	if s.Failed == 0 {
		return m.paint(live.Held, full) + m.dim(empty)
	}
	bad, rest := bar(float64(s.Failed)/float64(s.Total), lipgloss.Width(empty))
	return m.paint(live.Held, full) + m.paint(badHue, bad) + m.dim(rest)
}

// memoryLines are two for each space that is used: against the budget with how
// it went, and what the bytes are doing.
func (m Model) memoryLines(w int) (lines []string) {
	for k, l := range m.snap.Spaces {
		if k > 0 && l.Live == 0 && l.Limit == 0 {
			continue
		}
		text := size(l.Now())
		top := l.Limit
		if top > 0 {
			text += " of " + size(top)
		}
		values := make([]int64, 0, len(m.points))
		most := l.Now()
		for _, p := range m.points {
			if k < len(p.Spaces) {
				v := max(p.Spaces[k].Live-l.Base, 0)
				values, most = append(values, v), max(most, v)
			}
		}
		if top == 0 {
			top = most
		}
		name := left(l.Space, 8)
		text = left(text, 22)
		width := w - 8 - 22 - 2
		barWidth := max(min(width/3, 24), 4)
		share := 0.0
		if top > 0 {
			share = float64(l.Now()) / float64(top)
		}
		full, empty := bar(share, barWidth)
		hue := live.Held
		if l.Limit > 0 && share > 0.95 {
			hue = badHue
		}
		lines = append(lines, m.bold(name)+m.paint(hue, full)+m.dim(empty)+" "+text+" "+
			m.paint(live.Held, spark(values, top, max(width-barWidth, 0))))
		parts := []string{"peak " + size(l.Peak-l.Base)}
		if l.Limit > 0 {
			parts = append(parts, "reserved "+size(l.Reserved))
		}
		parts = append(parts, "held "+size(l.Held), "queued "+size(l.Queued), "pending "+size(l.Pending))
		if l.Base > 0 {
			parts = append(parts, "beside "+size(l.Base)+" of before")
		}
		lines = append(lines, strings.Repeat(" ", 8)+m.dim(cut(strings.Join(parts, " · "), w-8)))
	}
	return lines
}

// eventLine is one of the latest events.
func (m Model) eventLine(e live.Event, w int) string {
	text, bad := e.Kind, e.Error != ""
	switch e.Kind {
	case pipeline.Admitted.String():
		text = "enters"
		if e.Wait > 0 {
			text = "enters after " + span(e.Wait)
		}
	case pipeline.End.String():
		text = e.Stage + " " + span(e.Wait)
	case pipeline.Left.String():
		text = "is done"
		if bad {
			text = "leaves"
		}
	case pipeline.Failed.String():
		text = "fails in " + e.Stage
	case pipeline.Retried.String():
		text = e.Stage + " is tried again"
	case pipeline.Restarted.String():
		text = "is made again"
	}
	at := right(span(e.At), 8)
	rest, name := max(w-10, 4), clean(e.Name)
	nameWidth := min(lipgloss.Width(name), rest*2/3)
	line := cut(name, nameWidth) + " "
	if bad {
		line += m.paint(badHue, cut(text+": "+e.Error, max(rest-nameWidth-1, 1)))
	} else {
		line += cut(text, max(rest-nameWidth-1, 1))
	}
	return m.dim(at) + "  " + line
}

func (m Model) footLine(w int) string {
	if m.stop == nil {
		return m.dim(cut("Ctrl-C stops the run", w))
	}
	if m.stopping {
		return m.dim(cut("giving memory back; q once more quits at once", w))
	}
	m.help.SetWidth(w)
	return m.help.View(m.keys)
}
