package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/plan"
)

// writePlan prints the rows side by side, how busy each stage was in each, and
// for a single what-if all that is known of its stages.
func writePlan(w io.Writer, p *planFile, r *planResult) error {
	if err := writeRows(w, r); err != nil {
		return err
	}
	if err := writeBusy(w, p, r); err != nil {
		return err
	}
	last := r.Rows[len(r.Rows)-1]
	return writeStages(w, last)
}

// round is a duration to about three digits.
func round(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.String()
}

func rateText(items float64) string { return fmt.Sprintf("%.4g", items) }

func table(w io.Writer) (t *tabwriter.Writer, line func(cells ...string)) {
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	return t, func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // fails in Flush
}

func writeRows(w io.Writer, r *planResult) error {
	t, line := table(w)
	spaces := r.shownSpaces()
	head := []string{"", "items", "items/s", "wall", "latency"}
	for _, s := range spaces {
		head = append(head, "peak "+s.String())
	}
	line(append(head, "limited by")...)
	for i, row := range r.Rows {
		o := row.Outcome
		cells := []string{fmt.Sprintf("[%d] %s", i, row.Name), fmt.Sprint(o.Items), rateText(o.Throughput), round(o.Wall), round(o.Latency)}
		for _, s := range spaces {
			cells = append(cells, humanize.IBytes(uint64(o.Peak[s])))
		}
		why := "nothing: workers wait for each other"
		if len(row.Limits) > 0 {
			why = row.Limits[0].Text
		}
		if o.Failure != nil {
			why = strings.ToUpper(strings.ReplaceAll(string(o.Failure.Kind), "-", " ")) + ": " + o.Failure.Text
			if o.Failure.At > 0 {
				why += fmt.Sprintf(" (at %s)", round(o.Failure.At))
			}
		}
		line(append(cells, why)...)
	}
	return t.Flush()
}

// writeBusy shows where each stage of each row is busy.
func writeBusy(w io.Writer, p *planFile, r *planResult) error {
	t, line := table(w)
	head := []string{"\nbusy, of workers"}
	for i := range r.Rows {
		head = append(head, fmt.Sprintf("[%d]", i))
	}
	line(head...)
	for _, name := range p.stages() {
		cells := []string{name}
		for _, row := range r.Rows {
			cell := "-"
			if s := row.Outcome.Stage(name); s != nil {
				cell = fmt.Sprintf("%.0f%% of %d", 100*s.Busy, s.Workers)
			}
			cells = append(cells, cell)
		}
		line(cells...)
	}
	for _, u := range p.uses(r) {
		cells := []string{u}
		for _, row := range r.Rows {
			cell := "-"
			for _, x := range row.Outcome.Use {
				if x.Name == u {
					cell = fmt.Sprintf("%.0f%%", 100*x.Busy)
				}
			}
			cells = append(cells, cell)
		}
		line(cells...)
	}
	return t.Flush()
}

// uses are the names of the cores, links and devices that any row used.
func (p *planFile) uses(r *planResult) (names []string) {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		for _, u := range row.Outcome.Use {
			if !seen[u.Name] {
				seen[u.Name] = true
				names = append(names, u.Name)
			}
		}
	}
	return names
}

// writeStages shows where items and workers wait in one prediction.
func writeStages(w io.Writer, row *planRow) error {
	pred := row.Prediction
	if pred == nil {
		return nil
	}
	t, line := table(w)
	line("\n"+row.Name, "workers", "capacity", "items", "busy", "waits for input", "waits for room", "queue, mean", "most", "made, peak")
	for _, s := range pred.Stages {
		capacity := fmt.Sprint(s.Capacity)
		switch s.Capacity {
		case -1:
			capacity = "unbounded"
		case 0:
			capacity = ""
		}
		workers := fmt.Sprint(s.Workers)
		if s.Workers == 0 {
			workers = ""
		}
		line(s.Name, workers, capacity, fmt.Sprint(s.Items), round(s.Busy), round(s.WaitIn), round(s.WaitOut),
			fmt.Sprintf("%.2f", s.Queue), fmt.Sprint(s.QueuePeak), s.Made.String())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, peak := range pred.Peaks {
		if _, err := fmt.Fprintf(w, "%v peaks at %s with %s: %s\n", peak.Space, round(peak.At), humanize.IBytes(uint64(peak.Bytes)), sharesText(peak.Shares)); err != nil {
			return err
		}
	}
	return nil
}

// sharesText is the largest shares of a peak in words.
func sharesText(shares []plan.Share) string {
	var parts []string
	for i, s := range shares {
		if i == 4 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s at %s in %s", humanize.IBytes(uint64(s.Bytes)), s.State, s.Stage, itemsText(s.Items)))
	}
	return strings.Join(parts, ", ")
}
