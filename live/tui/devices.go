package tui

import (
	"fmt"
	"strings"

	"github.com/snarkline/snarkline/live"
)

// deviceLines are one for each card: the memory of its items against its budget, how
// many there are, and which.
func (m Model) deviceLines(w int) (lines []string) {
	for _, d := range m.snap.Devices {
		width := max(min(w/6, 16), 4)
		share, text := 0.0, size(d.Live)
		if d.Limit > 0 {
			share = float64(d.Live) / float64(d.Limit)
			text += " of " + size(d.Limit)
		}
		full, empty := bar(min(share, 1), width)
		hue := live.Held
		if share > 0.95 {
			hue = badHue
		}
		var names []string
		for _, n := range d.Items {
			names = append(names, clean(n))
		}
		if d.Count > len(names) {
			names = append(names, "…")
		}
		rest := fmt.Sprintf("%d on it, %d done", d.Count, d.Done)
		if len(names) > 0 {
			rest += ": " + strings.Join(names, ", ")
		}
		lines = append(lines, m.bold(left(d.Name, 8))+m.paint(hue, full)+m.dim(empty)+" "+left(text, 22)+" "+m.dim(cut(rest, max(w-8-width-24, 1))))
	}
	return lines
}
