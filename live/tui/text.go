package tui

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"
)

// size is bytes for a reader.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// sizeOr is size, or a dot for nothing.
func sizeOr(n int64) string {
	if n <= 0 {
		return "·"
	}
	return size(n)
}

// span is a duration in few letters.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "·"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return clock(d)
}

// clock is whole seconds, minutes and hours.
func clock(d time.Duration) string {
	s := int64(max(d.Round(time.Second), 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d min", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d h", s/3600, s/60%60)
}

// rate is items in the unit in which they are more than one, if there is any.
func rate(r float64) string {
	switch {
	case r <= 0:
		return "·"
	case r >= 100:
		return fmt.Sprintf("%.0f/s", r)
	case r >= 1:
		return fmt.Sprintf("%.1f/s", r)
	case r*60 >= 1:
		return fmt.Sprintf("%.1f/min", r*60)
	}
	return fmt.Sprintf("%.1f/h", r*3600)
}

// clean is text without what cannot be shown, such as line ends and the escapes
// that a file's name could have.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// cut is clean text, at most w cells of the terminal wide.
func cut(text string, w int) string {
	text = clean(text)
	if lipgloss.Width(text) <= w {
		return text
	}
	end := 0
	for i := range text {
		if lipgloss.Width(text[:i]) > w-1 {
			break
		}
		end = i
	}
	return text[:end] + "…"
}

// left and right are text in w cells.
func left(text string, w int) string {
	text = cut(text, w)
	return text + strings.Repeat(" ", max(w-lipgloss.Width(text), 0))
}

func right(text string, w int) string {
	text = cut(text, w)
	return strings.Repeat(" ", max(w-lipgloss.Width(text), 0)) + text
}

// bar is a share of w cells in eighths: full and empty are to be coloured.
func bar(share float64, w int) (full, empty string) {
	eighths := int(min(max(share, 0), 1)*float64(w)*8 + 0.5)
	if share > 0 && eighths == 0 {
		eighths = 1
	}
	full = strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return full, strings.Repeat("░", w-lipgloss.Width(full))
}

// maxSpark is the most points that a sparkline is made of.
const maxSpark = 240

// spark is values as little bars, the last w of them, of which max is the
// height.
func spark(values []int64, top int64, w int) string {
	if len(values) > w {
		values = values[len(values)-w:]
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		i := 0
		if top > 0 {
			i = int(min(max(float64(v)/float64(top), 0), 1)*float64(len(levels)-1) + 0.5)
		}
		b.WriteRune(levels[i])
	}
	return strings.Repeat(" ", w-len(values)) + b.String()
}
