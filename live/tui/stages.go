package tui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/pipeline"
)

// column is one of the table of stages.
type column struct {
	title string
	width int
	rank  int // the highest go first when there is no room
	left  bool
	cell  func(m Model, s *live.Stage, w int) string // of exactly w cells
}

func columns() []column {
	return []column{
		{"stage", 11, 0, true, func(m Model, s *live.Stage, w int) string { return m.stageName(s, w) }},
		{"in use", 15, 0, true, useCell},
		{"at work", 7, 3, false, func(_ Model, s *live.Stage, w int) string {
			if s.Workers == 0 {
				return right("·", w)
			}
			return right(fmt.Sprintf("%d/%d", s.Running, s.Workers), w)
		}},
		{"queue", 13, 1, true, queueCell},
		{"done", 7, 2, false, func(m Model, s *live.Stage, w int) string {
			text := right(fmt.Sprint(s.Items), w)
			if s.Failed > 0 {
				return m.paint(badHue, right(fmt.Sprintf("%d −%d", s.Items, s.Failed), w))
			}
			return text
		}},
		{"rate", 8, 6, false, func(_ Model, s *live.Stage, w int) string { return right(rate(s.Rate), w) }},
		{"mean", 7, 4, false, func(_ Model, s *live.Stage, w int) string { return right(span(s.Mean), w) }},
		{"holds", 8, 1, false, func(_ Model, s *live.Stage, w int) string {
			return right(sizeOr(total(s.Held.Now)+total(s.Queued.Now)+total(s.Pending.Now)), w)
		}},
		{"peak made", 9, 7, false, func(_ Model, s *live.Stage, w int) string { return right(sizeOr(total(s.Made.Peak)), w) }},
	}
}

func total(a alloc.Amount) (n int64) {
	for _, v := range a {
		n += v
	}
	return n
}

func (m Model) stageName(s *live.Stage, w int) string {
	if s.Hue < 0 {
		return m.dim("  " + left(s.Name, w-2))
	}
	return m.paint(live.Palette[s.Hue], "▌ ") + left(s.Name, w-2)
}

func useCell(m Model, s *live.Stage, w int) string {
	if s.Workers == 0 {
		return strings.Repeat(" ", w)
	}
	hue := live.Held
	if s.Hue >= 0 {
		hue = live.Palette[s.Hue]
	}
	full, empty := bar(s.Use, w-5)
	return m.paint(hue, full) + m.dim(empty) + right(fmt.Sprintf("%.0f%%", s.Use*100), 5)
}

func queueCell(m Model, s *live.Stage, w int) string {
	switch {
	case s.Kind == pipeline.KindJoin:
		return right(fmt.Sprintf("%d pending", s.Queue), w)
	case s.Capacity == 0:
		return right("·", w)
	case s.Capacity < 0:
		return right(fmt.Sprintf("%d/∞", s.Queue), w)
	}
	text := fmt.Sprintf("%d/%d", s.Queue, s.Capacity)
	full, empty := bar(float64(s.Queue)/float64(s.Capacity), max(w-len(text)-1, 1))
	return m.paint(live.Queued, full) + m.dim(empty) + " " + text
}

// stageRows is the table of stages with its head, in at most w cells.
func (m Model) stageRows(w int) []string {
	if len(m.snap.Stages) == 0 {
		return []string{m.dim(cut("preparing", w))}
	}
	cols := fit(columns(), w, m.snap.Stages)
	line := func(cell func(c column) string) string {
		cells := make([]string, len(cols))
		for i, c := range cols {
			cells[i] = cell(c)
		}
		return strings.Join(cells, " ")
	}
	rows := []string{m.dim(line(func(c column) string {
		if c.left {
			return left(c.title, c.width)
		}
		return right(c.title, c.width)
	}))}
	for i := range m.snap.Stages {
		s := &m.snap.Stages[i]
		if s.Kind == pipeline.KindSource || s.Kind == pipeline.KindSink && s.Failed == 0 {
			continue // the heading counts them
		}
		rows = append(rows, line(func(c column) string { return c.cell(m, s, c.width) }))
	}
	return rows
}

// fit leaves out the columns that matter least until the rest fit, and gives
// what is left over to names and bars.
func fit(cols []column, w int, stages []live.Stage) []column {
	sum := func() (n int) {
		for _, c := range cols {
			n += c.width + 1
		}
		return n - 1
	}
	for sum() > w && len(cols) > 1 {
		worst := 0
		for i, c := range cols {
			if c.rank >= cols[worst].rank {
				worst = i
			}
		}
		cols = append(cols[:worst], cols[worst+1:]...)
	}
	longest := 0
	for _, s := range stages {
		longest = max(longest, lipgloss.Width(s.Name)+2)
	}
	for spare := w - sum(); spare > 0; spare-- {
		switch {
		case cols[0].width < longest:
			cols[0].width++
		case len(cols) > 1 && cols[1].title == "in use" && cols[1].width < 35:
			cols[1].width++
		default:
			return cols
		}
	}
	return cols
}
