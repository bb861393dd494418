package trace

import (
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// StageSummary is what a run came to at one node.
type StageSummary struct {
	Node     int
	Stage    string
	Kind     string // as in the topology
	Workers  int    // at the beginning
	Capacity int
	Items    int // calls that ended well; at a source, items that arrived there and were admitted; at a join, tuples
	Failed   int // calls that ended with an error
	Retries  int // of calls

	Busy    time.Duration // of all calls, without Waited
	Waited  time.Duration // of all calls: for their turn at something, see pipeline.Waited
	WaitIn  time.Duration // of all workers: without anything to do, and Waited
	WaitOut time.Duration // of all workers: with an output that found no room
	Queue   time.Duration // of all values: in the queue, or in the join

	Mean, P50, P95, Max time.Duration // of a call, without what it waited
	Utilisation         float64       // Busy by the time that there were workers, 0 to 1

	Made    alloc.Amount // allocated by its calls, in bytes
	Held    alloc.Amount // peaks by state, as Levels counts
	Queued  alloc.Amount
	Pending alloc.Amount
	Length  int // the most that waited at one moment
}

// Stages summarises the nodes of the graph, in their order.
func (t *Trace) Stages() []StageSummary {
	out := make([]StageSummary, len(t.Graph.Nodes))
	busy := make([][]time.Duration, len(out))
	for i, n := range t.Graph.Nodes {
		out[i] = StageSummary{Node: i, Stage: n.Name, Kind: n.Kind, Workers: n.Workers, Capacity: n.Capacity}
		for _, l := range t.QueueLengths(i) {
			out[i].Length = max(out[i].Length, l.N)
		}
	}
	at := func(node int) *StageSummary {
		if node < 0 || node >= len(out) {
			return new(StageSummary)
		}
		return &out[node]
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		s := at(c.Node)
		switch c.Err {
		case "":
			s.Items++
		case Unended:
		default:
			s.Failed++
		}
		s.Retries += c.Attempt
		took := c.End - c.Begin - c.Waited
		s.Busy += took
		s.Waited += c.Waited
		s.WaitOut += max(c.Out-c.End, 0)
		s.Queue += max(c.Begin-c.Queued, 0)
		if c.Node >= 0 && c.Node < len(busy) {
			busy[c.Node] = append(busy[c.Node], took)
		}
	}
	t.countVisits(at)
	for i := range out {
		out[i].time(busy[i], t.workerTime(i))
	}
	t.countMemory(at)
	return out
}

func (t *Trace) countVisits(at func(int) *StageSummary) {
	slots := make(map[place]map[int]bool) // of joins, that an item has come to
	for i := range t.Visits {
		v := &t.Visits[i]
		s := at(v.Node)
		s.Queue += max(v.Until-v.From, 0)
		if s.Kind != pipeline.KindJoin {
			continue
		}
		p := place{v.Item, v.Node}
		if slots[p] == nil {
			slots[p] = make(map[int]bool)
		}
		slots[p][v.Slot] = true
	}
	thrown := t.discarded()
	for p, have := range slots {
		if len(have) == len(t.Graph.Nodes[p.node].Preds) && !thrown[p] {
			at(p.node).Items++
		}
	}
	for i := range t.Items {
		it := &t.Items[i]
		if s := at(it.Source); it.Admitted != Never && it.Attempt == 0 && s.Kind == pipeline.KindSource {
			s.Items++
		}
	}
}

// discarded are the places where something of an item was thrown away.
func (t *Trace) discarded() map[place]bool {
	out := make(map[place]bool)
	for i := range t.Notes {
		if n := &t.Notes[i]; n.Kind == Discarded {
			out[place{n.Item, n.Node}] = true
		}
	}
	return out
}

// time fills in what follows from the durations of the calls.
func (s *StageSummary) time(calls []time.Duration, workers time.Duration) {
	if workers > 0 {
		s.Utilisation = float64(s.Busy) / float64(workers)
		s.WaitIn = max(workers-s.Busy-s.WaitOut, 0)
	}
	if len(calls) == 0 {
		return
	}
	slices.Sort(calls)
	s.Mean = s.Busy / time.Duration(len(calls))
	s.P50, s.P95, s.Max = quantile(calls, 50), quantile(calls, 95), calls[len(calls)-1]
}

// quantile is the smallest value that p percent of sorted ones do not exceed.
func quantile(sorted []time.Duration, p int) time.Duration {
	return sorted[max((len(sorted)*p+99)/100-1, 0)]
}

// workerTime is how long the workers of a node were there, together.
func (t *Trace) workerTime(node int) (sum time.Duration) {
	n := t.Graph.Nodes[node]
	if n.Kind != pipeline.KindStage && n.Kind != pipeline.KindSink {
		return 0
	}
	workers, since := n.Workers, time.Duration(0)
	for _, note := range t.Notes {
		if note.Kind == Workers && note.Node == node && note.At < t.Wall {
			sum += time.Duration(workers) * (note.At - since)
			workers, since = note.N, note.At
		}
	}
	return sum + time.Duration(workers)*(t.Wall-since)
}

func (t *Trace) countMemory(at func(int) *StageSummary) {
	for i := range t.Buffers {
		b := &t.Buffers[i]
		if b.Call >= 0 && b.Call < len(t.Calls) && b.Space.Valid() && b.Kind != alloc.MappedFile {
			at(t.Calls[b.Call].Node).Made[b.Space] += b.Bytes
		}
	}
	for _, space := range t.Spaces() {
		t.sweep(space, func(_ time.Duration, _ int64, l *level) {
			for k, p := range l.parts {
				if k.node == None {
					continue
				}
				s := at(k.node)
				switch k.state {
				case Held:
					s.Held[space] = max(s.Held[space], p.bytes)
				case Queued:
					s.Queued[space] = max(s.Queued[space], p.bytes)
				case Pending:
					s.Pending[space] = max(s.Pending[space], p.bytes)
				}
			}
		})
	}
}
