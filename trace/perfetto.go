package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// The processes of the exported file: groups of tracks.
const (
	pidStages = 1 + iota
	pidItems
	pidMemory
	pidQueues
	pidProcess
)

// workersPerNode is how far the numbers of two nodes' tracks are apart.
const workersPerNode = 1 << 20

// chromeEvent is one of Chrome's trace event format. Times are microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Cat   string         `json:"cat,omitempty"`
	TS    float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// WritePerfetto writes the trace as JSON that ui.perfetto.dev and
// chrome://tracing open: a track for each worker of each stage with its calls,
// and with the time in which its output found no room; arrows from call to call
// of an item; the items, from when they were admitted to when they left; counters
// of the bytes of each space by stage and by state, of queue lengths, of resident
// memory and of the processors in use.
func (t *Trace) WritePerfetto(w io.Writer) error {
	out := bufio.NewWriter(w)
	p := &perfetto{t: t, w: out}
	p.raw(`{"displayTimeUnit":"ms","otherData":`)
	p.value(map[string]string{"program": t.Meta.Program, "graph": t.Graph.Name, "started": t.Meta.Started})
	p.raw(`,"traceEvents":[`)
	for _, part := range []func(){p.tracks, p.calls, p.items, p.memory, p.queues, p.samples, p.notes} {
		if p.err == nil { // to work out what cannot be written takes time
			part()
		}
	}
	p.raw("\n]}\n")
	if p.err == nil {
		p.err = out.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("write a trace for Perfetto: %w", p.err)
	}
	return nil
}

type perfetto struct {
	t     *Trace
	w     *bufio.Writer
	comma bool
	err   error
}

func (p *perfetto) raw(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

func (p *perfetto) value(v any) {
	if p.err != nil {
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		p.err = err
		return
	}
	_, p.err = p.w.Write(text)
}

func (p *perfetto) add(e chromeEvent) {
	if p.comma {
		p.raw(",")
	}
	p.comma = true
	p.raw("\n")
	p.value(e)
}

// meta names a process or a thread, or gives its place.
func (p *perfetto) meta(what string, pid, tid int, key string, value any) {
	p.add(chromeEvent{Name: what, Phase: "M", PID: pid, TID: tid, Args: map[string]any{key: value}})
}

func track(node, worker int) int { return (node+1)*workersPerNode + worker }

// tracks names everything.
func (p *perfetto) tracks() {
	for pid, name := range map[int]string{pidStages: "stages", pidItems: "items", pidMemory: "memory", pidQueues: "queues", pidProcess: "process"} {
		p.meta("process_name", pid, 0, "name", name)
		p.meta("process_sort_index", pid, 0, "sort_index", pid)
	}
	workers := make([]int, len(p.t.Graph.Nodes))
	for i := range p.t.Calls {
		if c := &p.t.Calls[i]; c.Node >= 0 && c.Node < len(workers) {
			workers[c.Node] = max(workers[c.Node], c.Worker+1)
		}
	}
	for node, n := range p.t.Graph.Nodes {
		for w := range workers[node] {
			p.meta("thread_name", pidStages, track(node, w), "name", fmt.Sprintf("%s %d", n.Name, w))
			p.meta("thread_sort_index", pidStages, track(node, w), "sort_index", track(node, w))
		}
	}
}

func (t *Trace) nodeName(i int) string {
	if i < 0 || i >= len(t.Graph.Nodes) {
		return "unknown"
	}
	return t.Graph.Nodes[i].Name
}

// itemName is how an item is called: its key, and its repetition if it is one.
func (t *Trace) itemName(i int) string {
	if i < 0 || i >= len(t.Items) {
		return "unknown"
	}
	it := &t.Items[i]
	if it.Attempt > 0 {
		return fmt.Sprintf("%v, again %d", it.Key, it.Attempt)
	}
	return it.Key.String()
}

func (p *perfetto) slice(name, cat string, from, until time.Duration, tid int, args map[string]any) {
	dur := micros(until - from)
	p.add(chromeEvent{Name: name, Phase: "X", Cat: cat, TS: micros(from), Dur: &dur, PID: pidStages, TID: tid, Args: args})
}

func (p *perfetto) calls() {
	byItem := make(map[int][]int)
	for i := range p.t.Calls {
		c := &p.t.Calls[i]
		args := map[string]any{"stage": p.t.nodeName(c.Node), "queued_ms": micros(c.Begin-c.Queued) / 1000}
		if c.Err != "" {
			args["error"] = c.Err
		}
		if c.Attempt > 0 {
			args["repeated"] = c.Attempt
		}
		if c.Waited > 0 {
			args["waited_ms"] = micros(c.Waited) / 1000
		}
		if c.Device >= 0 && c.Device < len(p.t.Meta.Devices) {
			args["device"] = p.t.Meta.Devices[c.Device].Name
		}
		var read, made int64
		for _, r := range c.Reads {
			read += p.t.Buffers[r.Buffer].Bytes
		}
		for _, b := range c.Makes {
			made += p.t.Buffers[b].Bytes
		}
		args["read_bytes"], args["made_bytes"] = read, made
		tid := track(c.Node, c.Worker)
		p.slice(p.t.itemName(c.Item), "call", c.Begin, c.End, tid, args)
		if c.Out > c.End {
			p.slice("waits for room", "wait", c.End, c.Out, tid, map[string]any{"item": p.t.itemName(c.Item)})
		}
		if c.Item >= 0 {
			byItem[c.Item] = append(byItem[c.Item], i)
		}
	}
	for _, item := range sortedKeys(byItem) {
		p.flow(item, byItem[item])
	}
}

// flow draws the arrows of an item, from call to call in the order of their begin.
func (p *perfetto) flow(item int, calls []int) {
	if len(calls) < 2 {
		return
	}
	slices.SortStableFunc(calls, func(a, b int) int { return cmp.Compare(p.t.Calls[a].Begin, p.t.Calls[b].Begin) })
	for i, k := range calls {
		c := &p.t.Calls[k]
		e := chromeEvent{Name: "item", Phase: "t", Cat: "flow", TS: micros(c.Begin), PID: pidStages,
			TID: track(c.Node, c.Worker), ID: fmt.Sprint(item), Bind: "e"}
		switch i {
		case 0:
			e.Phase, e.Bind = "s", ""
		case len(calls) - 1:
			e.Phase = "f"
		}
		p.add(e)
	}
}

func (p *perfetto) items() {
	for i := range p.t.Items {
		it := &p.t.Items[i]
		from := it.Admitted
		if from == Never {
			continue
		}
		until := it.Left
		if until == Never {
			until = max(p.t.Wall, from)
		}
		args := map[string]any{"waited_ms": micros(from-it.Arrived) / 1000}
		if it.Err != "" {
			args["error"] = it.Err
		}
		e := chromeEvent{Name: p.t.itemName(i), Phase: "b", Cat: "item", TS: micros(from), PID: pidItems, ID: fmt.Sprint(i), Args: args}
		p.add(e)
		e.Phase, e.TS, e.Args = "e", micros(until), nil
		p.add(e)
	}
}

func (p *perfetto) counter(pid int, name string, at time.Duration, unit string, value any) {
	p.add(chromeEvent{Name: name, Phase: "C", TS: micros(at), PID: pid, Args: map[string]any{unit: value}})
}

func (p *perfetto) memory() {
	for _, space := range p.t.Spaces() {
		limit := p.t.Meta.Budget[space]
		if limit > 0 {
			p.counter(pidMemory, fmt.Sprintf("%v budget", space), 0, "bytes", limit)
			p.counter(pidMemory, fmt.Sprintf("%v budget", space), p.t.Wall, "bytes", limit)
		}
		last := make(map[string]int64)
		for _, point := range p.t.Levels(space) {
			if p.err != nil {
				return
			}
			now := map[string]int64{space.String(): point.Bytes}
			for _, s := range point.Shares {
				now[fmt.Sprintf("%v %s", space, s.Stage)] += s.Bytes
				now[fmt.Sprintf("%v (%v)", space, s.State)] += s.Bytes
			}
			for name := range last {
				if _, there := now[name]; !there {
					now[name] = 0
				}
			}
			for _, name := range sortedKeys(now) {
				if n := now[name]; n != last[name] {
					p.counter(pidMemory, name, point.At, "bytes", n)
				}
			}
			last = now
		}
	}
}

func (p *perfetto) queues() {
	for node, n := range p.t.Graph.Nodes {
		for _, l := range p.t.QueueLengths(node) {
			what := "queue of "
			if n.Kind == pipeline.KindJoin {
				what = "waiting in "
			}
			p.counter(pidQueues, what+n.Name, l.At, "values", l.N)
		}
	}
}

func (p *perfetto) samples() {
	for i, s := range p.t.Samples {
		if s.RSS > 0 {
			p.counter(pidProcess, "resident memory", s.At, "bytes", s.RSS)
		}
		if i > 0 {
			if last := p.t.Samples[i-1]; s.At > last.At && s.CPU >= last.CPU {
				p.counter(pidProcess, "processors in use", last.At, "cores", float64(s.CPU-last.CPU)/float64(s.At-last.At))
			}
		}
	}
}

func (p *perfetto) notes() {
	for _, n := range p.t.Notes {
		args := map[string]any{"stage": p.t.nodeName(n.Node), "text": n.Text, "n": n.N}
		if n.Item != None {
			args["item"] = p.t.itemName(n.Item)
		}
		p.add(chromeEvent{Name: n.Kind.String(), Phase: "i", Cat: "note", TS: micros(n.At), PID: pidStages, TID: 0, Scope: "p", Args: args})
	}
	for _, space := range p.t.Spaces() {
		if at, bytes, _ := p.t.Peak(space); bytes > 0 {
			p.add(chromeEvent{Name: "peak of " + space.String(), Phase: "i", Cat: "peak", TS: micros(at), PID: pidMemory, TID: 0, Scope: "g",
				Args: map[string]any{"bytes": bytes, "tracked": alloc.BytesIn(space, bytes).String()}})
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
