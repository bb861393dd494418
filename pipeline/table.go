package pipeline

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// WriteTable writes the report for people, at most 100 columns wide: time by
// stage, then peaks of memory by stage and space.
func (r *Report) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	items := "items"
	if r.Items == 1 {
		items = "item"
	}
	fmt.Fprintf(&b, "%s: %s %s", clip(r.Graph, 28), humanize.Comma(r.Items), items)
	if r.Failed > 0 {
		fmt.Fprintf(&b, ", %s failed", humanize.Comma(r.Failed))
	}
	if r.Restarted > 0 {
		fmt.Fprintf(&b, ", %s made again", humanize.Comma(r.Restarted))
	}
	if r.Stopped > 0 {
		fmt.Fprintf(&b, ", %s stopped", humanize.Comma(r.Stopped))
	}
	fmt.Fprintf(&b, " in %s, at most %s in flight\n", span(r.Wall), humanize.Comma(r.PeakInFlight))
	r.writeTimes(&b)
	r.writeMemory(&b)
	if n := len(r.Failures); n > 0 {
		const shown = 5
		fmt.Fprintln(&b)
		for _, f := range r.Failures[:min(n, shown)] {
			fmt.Fprintf(&b, "failed  %s\n", clip(f.Error, 91))
		}
		if more := r.Failed - int64(min(n, shown)); more > 0 {
			fmt.Fprintf(&b, "failed  and %s more\n", humanize.Comma(more))
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(&b)
		for _, n := range r.Notes {
			writeNote(&b, n, 94)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeNote writes s in lines of at most width letters, between words.
func writeNote(b *bytes.Buffer, s string, width int) {
	head, line := "note  ", ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintf(b, "%s%s\n", head, line)
			head, line = "      ", ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintf(b, "%s%s\n", head, line)
}

func (r *Report) writeTimes(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%-22s%8s%6s%7s%7s%7s%11s%10s%10s%9s\n",
		"stage", "workers", "cap", "items", "failed", "retry", "busy", "wait in", "wait out", "q/peak")
	for i := range r.Stages {
		s := &r.Stages[i]
		workers, capacity := "-", "-"
		if s.Workers > 0 {
			workers = strconv.Itoa(s.Workers)
			capacity = strconv.Itoa(s.Capacity)
			if s.Capacity == Unbounded {
				capacity = "inf"
			}
		}
		fmt.Fprintf(b, "%-22s%8s%6s%7s%7s%7s%11s%10s%10s%9s\n", clip(s.Name, 21), workers, capacity,
			count(s.Items), count(s.Failed), count(s.Retries), span(s.Busy), span(s.WaitIn), span(s.WaitOut),
			strconv.Itoa(s.Queue)+"/"+strconv.Itoa(s.QueuePeak))
	}
}

// span is a duration with three digits that matter.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Microsecond:
		return d.String()
	case d < time.Millisecond:
		return d.Round(10 * time.Nanosecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func size(n int64) string {
	if n <= 0 {
		return "-"
	}
	return humanize.IBytes(uint64(n))
}

// count is short for numbers that are too long for their column.
func count(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1e6:
		return strconv.FormatInt(n, 10)
	}
	return humanize.SIWithDigits(float64(n), 1, "")
}

// clip keeps a text within n columns.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
