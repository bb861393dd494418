package report

import (
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/snarkline/snarkline/alloc"
)

// cell is a field of a table, with what it sorts by.
type cell struct {
	Sort string
	Text string
}

func numCell(v float64, text string) cell {
	return cell{strconv.FormatFloat(v, 'g', 9, 64), text}
}

func countCell(n int) cell {
	if n == 0 {
		return numCell(0, noValue)
	}
	return numCell(float64(n), humanize.Comma(int64(n)))
}

func spanCell(d time.Duration) cell { return numCell(d.Seconds(), spanOrDash(d)) }

func sizeCell(n int64) cell { return numCell(float64(n), sizeOrDash(n)) }

// column is one of the table of stages.
type column struct {
	Head string
	Of   func(*nodeFacts) cell
}

// columns are all that the table of stages can have.
func columns() []column {
	return []column{
		{"Workers", func(n *nodeFacts) cell { return countCell(n.Workers) }},
		{"Room", func(n *nodeFacts) cell {
			if n.Capacity < 0 {
				return numCell(1e18, n.CapacityText())
			}
			return numCell(float64(n.Capacity), n.CapacityText())
		}},
		{"Items", func(n *nodeFacts) cell { return countCell(n.Items) }},
		{"Failed", func(n *nodeFacts) cell { return countCell(n.Failed) }},
		{"Retries", func(n *nodeFacts) cell { return countCell(n.Retries) }},
		{"Busy", func(n *nodeFacts) cell { return spanCell(n.Busy) }},
		{"Use", func(n *nodeFacts) cell {
			if n.Workers == 0 {
				return numCell(-1, noValue)
			}
			return numCell(n.Utilisation, share(n.Utilisation))
		}},
		{"Mean", func(n *nodeFacts) cell { return spanCell(n.Mean) }},
		{"p50", func(n *nodeFacts) cell { return spanCell(n.P50) }},
		{"p95", func(n *nodeFacts) cell { return spanCell(n.P95) }},
		{"Waits before", func(n *nodeFacts) cell { return spanCell(n.Queue) }},
		{"after", func(n *nodeFacts) cell { return spanCell(n.WaitOut) }},
		{"Queue avg", func(n *nodeFacts) cell {
			if n.Workers == 0 && !n.IsJoin() {
				return numCell(-1, noValue)
			}
			return numCell(n.QueueMean, mean(n.QueueMean))
		}},
		{"max", func(n *nodeFacts) cell { return countCell(n.Length) }},
		{"Made", func(n *nodeFacts) cell { return sizeCell(sum(n.Made)) }},
		{"Held ≤", func(n *nodeFacts) cell { return sizeCell(n.HeldMost) }},
	}
}

// table is the table of stages, without the columns that say nothing.
type table struct {
	Heads []string
	Rows  []tableRow
}

type tableRow struct {
	Ink   ink
	Name  string
	Cells []cell
}

func tableOf(nodes []nodeFacts) (t table) {
	for i := range nodes {
		t.Rows = append(t.Rows, tableRow{Ink: nodes[i].Ink, Name: nodes[i].Name})
	}
	for _, c := range columns() {
		cells, says := make([]cell, len(nodes)), false
		for i := range nodes {
			cells[i] = c.Of(&nodes[i])
			says = says || cells[i].Text != noValue
		}
		if !says {
			continue
		}
		t.Heads = append(t.Heads, c.Head)
		for i := range nodes {
			t.Rows[i].Cells = append(t.Rows[i].Cells, cells[i])
		}
	}
	return t
}

// sum is the bytes of all spaces together.
func sum(a alloc.Amount) (n int64) {
	for _, v := range a {
		n += v
	}
	return n
}

// settingCell is a value of an axis, which sorts by its number if it is one.
func settingCell(v string) cell {
	if v == "unbounded" {
		return numCell(1e18, "∞")
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return numCell(n, v)
	}
	if n, err := alloc.ParseBytes(v); err == nil {
		return numCell(float64(n), v)
	}
	return cell{Text: v}
}

func humanCount(n int) string { return humanize.Comma(int64(n)) }

func secondsText(s float64) string { return spanText(time.Duration(s * float64(time.Second))) }
