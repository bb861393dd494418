package plan

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/snarkline/snarkline/alloc"
)

// spaces are those in which any row took memory, host always.
func (r *SweepResult) spaces() []alloc.Space {
	list := []alloc.Space{alloc.Host}
	for s := alloc.Host + 1; s.Valid(); s++ {
		if slices.ContainsFunc(r.Rows, func(row Row) bool { o := row.Outcome(); return o != nil && o.Peak[s] > 0 }) {
			list = append(list, s)
		}
	}
	return list
}

// outcomes is how many outcomes the row has.
func (r *Row) outcomes() (n int) {
	for _, o := range []*Outcome{r.Simulated, r.Measured} {
		if o != nil {
			n++
		}
	}
	return n
}

// verified reports whether rows have both outcomes.
func (r *SweepResult) verified() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Measured != nil && row.Simulated != nil })
}

// WriteTable writes the rows for people: the fastest first, those on the Pareto
// front (throughput against host memory) marked, failures last. Where simulated rows
// were verified, those come before all others: they are what was asked for. most
// limits the rows; 0 is all.
func (r *SweepResult) WriteTable(w io.Writer, most int) error {
	front := r.Pareto(alloc.Host)
	order := r.ranked()
	for i := range r.Rows { // what is too large, then what failed
		if o := r.Rows[i].Outcome(); o.OK() && !r.fits(i) {
			order = append(order, i)
		}
	}
	for i := range r.Rows {
		if o := r.Rows[i].Outcome(); o != nil && !o.OK() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { // a verified row, then the others
		return cmp.Compare(r.Rows[b].outcomes(), r.Rows[a].outcomes())
	})
	left := 0
	if most > 0 && len(order) > most {
		order, left = order[:most], len(order)-most
	}
	both, spaces := r.verified(), r.spaces()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The last cell is no column, and so stands on the left. tabwriter fails in Flush.
	line := func(cells []string, last string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")+"\t  "+last) }
	head := []string{""}
	for _, a := range r.Space.Axes {
		head = append(head, a.Name)
	}
	head = append(head, "items/s")
	if both {
		head = append(head, "predicted", "error")
	}
	for _, s := range spaces {
		head = append(head, "peak "+s.String())
		if both {
			head = append(head, "predicted")
		}
	}
	line(head, "")
	for _, i := range order {
		row := &r.Rows[i]
		o := row.Outcome()
		mark := ""
		if slices.Contains(front, i) {
			mark = "*"
		}
		cells := append([]string{mark}, row.Values...)
		rate := func(o *Outcome) string {
			if !o.OK() {
				return "-"
			}
			return formatRate(o.Throughput)
		}
		cells = append(cells, rate(o))
		pair := row.Measured != nil && row.Simulated != nil
		if both {
			predicted, off := "", ""
			if pair {
				predicted = rate(row.Simulated)
				if row.Measured.OK() && row.Simulated.OK() && row.Measured.Throughput > 0 {
					off = fmt.Sprintf("%+.1f%%", 100*(row.Simulated.Throughput/row.Measured.Throughput-1))
				}
			}
			cells = append(cells, predicted, off)
		}
		for _, s := range spaces {
			cells = append(cells, humanize.IBytes(uint64(o.Peak[s])))
			if both {
				predicted := ""
				if pair {
					predicted = humanize.IBytes(uint64(row.Simulated.Peak[s]))
				}
				cells = append(cells, predicted)
			}
		}
		line(cells, r.what(i))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	foot := fmt.Sprintf("%s, %s made, %d known; * is on the front of throughput against host memory\n",
		english.Plural(len(r.Rows), "setting", ""), english.Plural(r.Ran, "run", ""), r.Known)
	if left > 0 {
		foot = fmt.Sprintf("… and %s\n", english.Plural(left, "more row", "")) + foot
	}
	_, err := io.WriteString(w, foot)
	return err
}

// what is a word on how row i was come by, or how it failed.
func (r *SweepResult) what(i int) string {
	row := &r.Rows[i]
	o := row.Outcome()
	switch {
	case o.Failure != nil:
		return o.Failure.String()
	case !r.fits(i):
		return "over the limit"
	case row.Measured == nil:
		return "simulated"
	case o.Repeats > 1:
		return fmt.Sprintf("measured, median of %d", o.Repeats)
	}
	return "measured"
}

func formatRate(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// WriteCSV writes a line for each row, in the order of the space: the values of
// the axes, then for the simulated and the measured outcome items, seconds, items
// a second, latency in seconds, peak bytes by space, resident bytes, failure.
// Fields of an outcome that is missing are empty.
func (r *SweepResult) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	spaces := r.spaces()
	var head []string
	for _, a := range r.Space.Axes {
		head = append(head, a.Name)
	}
	head = append(head, "front")
	for _, kind := range []string{"simulated", "measured"} {
		for _, col := range []string{"items", "seconds", "items_per_second", "latency_seconds"} {
			head = append(head, kind+"_"+col)
		}
		for _, s := range spaces {
			head = append(head, kind+"_peak_"+s.String()+"_bytes")
		}
		head = append(head, kind+"_resident_bytes", kind+"_failure")
	}
	if err := c.Write(head); err != nil {
		return err
	}
	front := r.Pareto(alloc.Host)
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }
	for i := range r.Rows {
		row := &r.Rows[i]
		rec := append(slices.Clone(row.Values), strconv.FormatBool(slices.Contains(front, i)))
		for _, o := range []*Outcome{row.Simulated, row.Measured} {
			if o == nil {
				rec = append(rec, make([]string, 6+len(spaces))...)
				continue
			}
			rec = append(rec, strconv.Itoa(o.Items), seconds(o.Wall), strconv.FormatFloat(o.Throughput, 'g', -1, 64), seconds(o.Latency))
			for _, s := range spaces {
				rec = append(rec, strconv.FormatInt(o.Peak[s], 10))
			}
			why := ""
			if o.Failure != nil {
				why = o.Failure.String()
			}
			rec = append(rec, strconv.FormatInt(o.Resident, 10), why)
		}
		if err := c.Write(rec); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
