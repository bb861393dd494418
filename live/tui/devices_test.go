package tui

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/snarkline/snarkline/live"
)

// TestDeviceLines: a line for each card, that fits.
func TestDeviceLines(t *testing.T) {
	m := NewModel(live.New(live.Options{}), nil)
	m.snap.Devices = []live.DeviceLevel{
		{Name: "cuda:0", Live: 3 << 30, Limit: 4 << 30, Count: 9, Done: 2, Items: []string{"a", "b", "c", "d", "e", "f", "g", "h"}},
		{Name: "cuda:1", Live: 5 << 20},
	}
	for _, w := range []int{40, 80, 200} {
		lines := m.deviceLines(w)
		if len(lines) != 2 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, l := range lines {
			if n := lipgloss.Width(l); n > w {
				t.Errorf("%d cells of %d: %q", n, w, l)
			}
		}
		if w == 200 && (!strings.Contains(lines[0], "9 on it, 2 done: a, b, c, d, e, f, g, h, …") || !strings.Contains(lines[0], "3.0 GiB of 4.0 GiB") || !strings.Contains(lines[1], "0 on it, 0 done")) {
			t.Errorf("%q", lines)
		}
	}
}
