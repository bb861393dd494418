package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// nodeFacts is what there is to say of a node.
type nodeFacts struct {
	trace.StageSummary
	Name  string
	Preds []int
	Ink   ink

	QueueMean float64 // length of the queue, at a join of keys that are not complete
	HeldMost  int64   // the most at a time, of the space with most
}

// HasBox reports whether the node is drawn with its figures.
func (n *nodeFacts) HasBox() bool { return n.Kind == pipeline.KindStage }

// IsJoin reports whether values wait here for partners.
func (n *nodeFacts) IsJoin() bool { return n.Kind == pipeline.KindJoin }

// Calls is how often it ran.
func (n *nodeFacts) Calls() int { return n.Items + n.Failed }

// CapacityText is the room in the queue.
func (n *nodeFacts) CapacityText() string {
	switch n.Capacity {
	case 0:
		return noValue
	case pipeline.Unbounded:
		return "∞"
	}
	return fmt.Sprint(n.Capacity)
}

// Tip is what the drawing of the graph tells of the node under the pointer.
func (n *nodeFacts) Tip() string {
	lines := []string{n.Name + " (" + n.Kind + ")"}
	if n.HasBox() {
		lines = append(lines,
			fmt.Sprintf("%s, %s of their time busy", count(n.Workers, "worker", "workers"), share(n.Utilisation)),
			fmt.Sprintf("%s, mean %s, p50 %s, p95 %s", count(n.Calls(), "call", "calls"), spanText(n.Mean), spanText(n.P50), spanText(n.P95)),
			fmt.Sprintf("made %s in all, held up to %s at a time", n.Made, n.Held))
		if n.WaitOut > 0 {
			lines = append(lines, "waited "+spanText(n.WaitOut)+" for room behind it")
		}
	}
	if n.IsJoin() {
		lines = append(lines, fmt.Sprintf("%s incomplete keys on average, %d at most", mean(n.QueueMean), n.Length))
	}
	return strings.Join(lines, "\n")
}

// factsOf reads the nodes' facts off a trace, with how many values waited for
// each of them, and how many workers were busy, over time.
func factsOf(t *trace.Trace) (nodes []nodeFacts, queues, busy *steps) {
	nodes = make([]nodeFacts, len(t.Graph.Nodes))
	colour := 0
	var waits, works []change
	for i, s := range t.Stages() {
		n := &nodes[i]
		*n = nodeFacts{StageSummary: s, Name: t.Graph.Nodes[i].Name, Preds: t.Graph.Nodes[i].Preds, Ink: inkOther}
		if n.HasBox() {
			n.Ink = seriesInk(colour)
			colour++
		}
		for _, h := range n.Held {
			n.HeldMost = max(n.HeldMost, h)
		}
		length := 0
		var area float64
		since := time.Duration(0)
		for _, l := range t.QueueLengths(i) {
			area += float64(length) * (min(l.At, t.Wall) - since).Seconds()
			waits = append(waits, change{l.At, i, float64(l.N - length)})
			length, since = l.N, min(l.At, t.Wall)
		}
		area += float64(length) * (t.Wall - since).Seconds()
		if t.Wall > 0 {
			n.QueueMean = area / t.Wall.Seconds()
		}
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Node >= 0 && c.Node < len(nodes) && c.End > c.Begin && nodes[c.Node].HasBox() {
			works = append(works, change{c.Begin, c.Node, 1}, change{c.End, c.Node, -1})
		}
	}
	return nodes, sumUp(waits, len(nodes), t.Wall), sumUp(works, len(nodes), t.Wall)
}

// spread3 are the mean, the median and the 95th percentile.
func spread3(d []time.Duration) (avg, p50, p95 time.Duration) {
	if len(d) == 0 {
		return 0, 0, 0
	}
	slices.Sort(d)
	var sum time.Duration
	for _, v := range d {
		sum += v
	}
	at := func(q float64) time.Duration { return d[min(len(d)-1, int(q*float64(len(d))))] }
	return sum / time.Duration(len(d)), at(0.5), at(0.95)
}
