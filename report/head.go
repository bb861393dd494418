package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/trace"
)

// tally is what became of the items.
type tally struct {
	Made, Failed, Open int
	Latency, P95, Door time.Duration
	Waited             int
}

func tallyOf(t *trace.Trace) (n tally) {
	var spans []time.Duration
	var door time.Duration
	admitted := 0
	for i := range t.Items {
		switch it := &t.Items[i]; {
		case it.Admitted < 0, it.Left < 0:
			n.Open++
		case it.Err != "":
			n.Failed++
		default:
			n.Made++
			spans = append(spans, it.Left-it.Admitted)
		}
		if it := &t.Items[i]; it.Admitted >= 0 {
			admitted++
			door += max(0, it.Admitted-it.Arrived)
			if it.Admitted-it.Arrived > time.Millisecond {
				n.Waited++
			}
		}
	}
	n.Latency, _, n.P95 = spread3(spans)
	if admitted > 0 {
		n.Door = door / time.Duration(admitted)
	}
	return n
}

// head says in words what happened.
func (p *pageView) head(t *trace.Trace, nodes []nodeFacts, peaks map[alloc.Space]peak) {
	n := tallyOf(t)
	made := fmt.Sprintf("%s went through in %s: %s", count(n.Made, "item", "items"), spanText(t.Wall), rate(n.Made, t.Wall))
	if n.Made > 0 {
		made += fmt.Sprintf(", each in %s on average", spanText(n.Latency))
	}
	p.Summary = append(p.Summary, made+".")
	for _, s := range slices.Sorted(maps.Keys(peaks)) {
		against := ""
		if b := t.Meta.Budget[s]; b > 0 {
			against = " of a budget of " + sizeText(b)
		}
		p.Summary = append(p.Summary, fmt.Sprintf("At its peak, %s into the run, %s held %s%s.", spanText(peaks[s].At), spaceText(s), sizeText(peaks[s].Bytes), against))
	}
	if busiest := busiestOf(nodes); busiest != nil {
		p.Summary = append(p.Summary, fmt.Sprintf("The busiest stage was %s: %s of the time of its %s.",
			busiest.Name, share(busiest.Utilisation), count(busiest.Workers, "worker", "workers")))
	}
	if n.Waited > 0 {
		p.Summary = append(p.Summary, fmt.Sprintf("%s waited to be admitted, %s on average over all.", count(n.Waited, "item", "items"), spanText(n.Door)))
	}
	p.trouble(t, n)
	p.facts(t, n)
}

func busiestOf(nodes []nodeFacts) (best *nodeFacts) {
	for i := range nodes {
		if n := &nodes[i]; n.HasBox() && n.Calls() > 0 && (best == nil || n.Utilisation > best.Utilisation) {
			best = n
		}
	}
	return best
}

func (p *pageView) trouble(t *trace.Trace, n tally) {
	if t.Err != "" {
		p.Trouble = append(p.Trouble, "The run ended with an error: "+t.Err)
	}
	if t.Cut {
		p.Trouble = append(p.Trouble, "The recording ends before the run did, at "+spanText(t.Wall)+": what is shown is what was written by then.")
	}
	if n.Failed > 0 {
		p.Trouble = append(p.Trouble, count(n.Failed, "item", "items")+" failed; see Failures and notes.")
	}
	if n.Open > 0 {
		p.Trouble = append(p.Trouble, count(n.Open, "item", "items")+" had not left the graph when the recording ended.")
	}
	for _, note := range t.Notes {
		if note.Kind == trace.Lost {
			p.Trouble = append(p.Trouble, count(note.N, "event", "events")+" could not be recorded.")
		}
	}
}

func (p *pageView) facts(t *trace.Trace, n tally) {
	add := func(name, value string) {
		if value != "" {
			p.Facts = append(p.Facts, fact{name, value})
		}
	}
	add("Program", t.Meta.Program)
	started := t.Meta.Started
	if at, err := time.Parse(time.RFC3339, started); err == nil {
		started = at.Format("2 January 2006, 15:04:05 MST")
	}
	add("Started", started)
	add("Wall time", spanText(t.Wall))
	add("Throughput", rate(n.Made, t.Wall))
	machine := ""
	if t.Meta.Cores > 0 {
		machine = count(t.Meta.Cores, "core", "cores")
	}
	if t.Meta.Memory > 0 {
		machine = strings.TrimPrefix(machine+", "+sizeText(t.Meta.Memory), ", ")
	}
	add("Machine", machine)
	items := count(n.Made, "done", "done")
	if n.Failed > 0 {
		items += ", " + count(n.Failed, "failed", "failed")
	}
	if n.Open > 0 {
		items += ", " + count(n.Open, "unfinished", "unfinished")
	}
	add("Items", items)
	if n.Made > 0 {
		add("Latency", fmt.Sprintf("mean %s, p95 %s", spanText(n.Latency), spanText(n.P95)))
	}
	if !t.Meta.Budget.IsZero() {
		add("Budget", t.Meta.Budget.String())
	}
	if cpu, rss := usage(t.Samples); cpu > 0 && t.Wall > 0 {
		add("Processor", fmt.Sprintf("%s cores on average", digits(cpu.Seconds()/t.Wall.Seconds())))
		if rss > 0 {
			add("Resident", sizeText(rss)+" at most, when looked at")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Meta.Labels)) {
		if !slices.ContainsFunc(p.Facts, func(f fact) bool { return strings.EqualFold(f.Name, k) }) {
			add(k, t.Meta.Labels[k])
		}
	}
}

func usage(samples []trace.Sample) (cpu time.Duration, rss int64) {
	for _, s := range samples {
		cpu, rss = max(cpu, s.CPU), max(rss, s.RSS)
	}
	return cpu, rss
}

// noteRow is something that happened once.
type noteRow struct {
	At, Kind, Node, Item, Text string
}

// maxNotes is how many notes the page shows.
const maxNotes = 200

func notesOf(t *trace.Trace) (rows []noteRow, more int) {
	notes := slices.Clone(t.Notes)
	slices.SortStableFunc(notes, func(a, b trace.Note) int { // failures first, then by time
		return cmp.Or(cmp.Compare(gravity(a.Kind), gravity(b.Kind)), cmp.Compare(a.At, b.At))
	})
	for _, n := range notes {
		if len(rows) == maxNotes {
			return rows, len(notes) - maxNotes
		}
		r := noteRow{At: spanText(n.At), Kind: n.Kind.String(), Text: n.Text}
		if n.Node >= 0 && n.Node < len(t.Graph.Nodes) {
			r.Node = t.Graph.Nodes[n.Node].Name
		}
		if n.Item >= 0 && n.Item < len(t.Items) {
			r.Item = itemName(t.Items[n.Item])
		}
		switch n.Kind {
		case trace.Workers:
			r.Text = count(n.N, "worker", "workers") + " from now on"
		case trace.Capacity:
			r.Text = fmt.Sprintf("room for %d from now on", n.N)
			if n.N < 0 {
				r.Text = "unbounded from now on"
			}
		case trace.Lost:
			r.Text = count(n.N, "event", "events") + " not recorded"
		}
		rows = append(rows, r)
	}
	return rows, 0
}

func gravity(k trace.NoteKind) int {
	switch k {
	case trace.Failed, trace.Lost:
		return 0
	case trace.Restarted, trace.Retried, trace.Discarded:
		return 1
	}
	return 2
}
