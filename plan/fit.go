package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// FromTrace takes the costs of a graph's nodes from a recording of a run: the
// mean time of a call, the cores that were in use, what a call made and who read
// it, its scratch, and what the stages stated of their needs. A recording of
// which no item came to its end is an error.
func FromTrace(t *trace.Trace) (*Costs, error) {
	f := &fit{t: t, calls: make([][]int, len(t.Graph.Nodes))}
	for i, c := range t.Calls {
		if c.Err == "" && c.Node >= 0 && c.Node < len(f.calls) {
			f.calls[c.Node] = append(f.calls[c.Node], i)
		}
	}
	f.machine()
	f.readers()
	cores := f.cores()
	f.costs.Nodes = make(map[string]Node)
	for i, n := range t.Graph.Nodes {
		if n.Kind == pipeline.KindSource || n.Kind == pipeline.KindJoin {
			continue
		}
		if len(f.calls[i]) == 0 && n.Kind == pipeline.KindStage {
			return nil, fmt.Errorf("costs from a recording: no call of stage %s came to its end", n.Name)
		}
		f.costs.Nodes[n.Name] = f.node(i, cores)
	}
	f.needs()
	return &f.costs, nil
}

type fit struct {
	t       *trace.Trace
	costs   Costs
	calls   [][]int           // that ended well, by node
	readBy  map[int][]fitRead // by buffer
	scratch map[int][]int     // by call: buffers that it did not hand on
}

type fitRead struct {
	node  int
	until float64 // fraction of the reader's call
}

// machine is what the recording says of where it ran.
func (f *fit) machine() {
	m, meta := &f.costs.Machine, f.t.Meta
	m.Cores = float64(meta.Cores)
	m.Memory[alloc.Host] = meta.Memory
	for _, l := range meta.Links {
		m.Links = append(m.Links, Link{l.Name, l.BytesPerSecond})
	}
	for _, d := range meta.Devices {
		m.Devices = append(m.Devices, Device{Name: d.Name, Space: d.Space, Link: d.Link})
		m.Memory[d.Space] = d.Memory
	}
	for _, b := range f.t.Buffers {
		if b.Born == 0 && b.Call < 0 && b.Space.Valid() && b.Kind != alloc.MappedFile {
			m.Base[b.Space] += b.Bytes
		}
	}
}

// readers notes who read each buffer, and what of each call was scratch.
func (f *fit) readers() {
	f.readBy, f.scratch = make(map[int][]fitRead), make(map[int][]int)
	made := make(map[int]bool)
	for _, c := range f.t.Calls {
		span := c.End - c.Begin
		for _, r := range c.Reads {
			until := 1.0
			if span > 0 && r.Until < c.End {
				until = min(max((r.Until-c.Begin).Seconds()/span.Seconds(), 1e-6), 1)
			}
			f.readBy[r.Buffer] = append(f.readBy[r.Buffer], fitRead{c.Node, until})
		}
		for _, b := range c.Makes {
			made[b] = true
		}
	}
	for i, b := range f.t.Buffers {
		if b.Call >= 0 && !made[i] && b.Kind != alloc.MappedFile {
			f.scratch[b.Call] = append(f.scratch[b.Call], i)
		}
	}
}

// cores is how many cores a call kept busy, taken as the same for all: the time
// of all processors by the time of all calls. Without samples it is 1.
func (f *fit) cores() float64 {
	var busy time.Duration
	for _, list := range f.calls {
		for _, i := range list {
			busy += f.t.Calls[i].End - f.t.Calls[i].Begin
		}
	}
	if len(f.t.Samples) < 2 || busy <= 0 {
		return 1
	}
	cpu := f.t.Samples[len(f.t.Samples)-1].CPU - f.t.Samples[0].CPU
	if cpu <= 0 {
		return 1
	}
	return min(cpu.Seconds()/busy.Seconds(), max(float64(f.t.Meta.Cores), 1))
}

// fitSum adds up what is seen of one buffer over the calls of a node.
type fitSum struct {
	Buffer
	n       int
	readers map[int]*fitRead
	seen    map[int]int
}

func (f *fit) node(node int, cores float64) Node {
	var seconds float64
	var order, scratchOrder []string
	makes, scratch := make(map[string]*fitSum), make(map[string]*fitSum)
	at := func(m map[string]*fitSum, order *[]string, b trace.Buffer, count map[string]int) *fitSum {
		name := b.Purpose + " " + b.Space.String()
		count[name]++
		if n := count[name]; n > 1 {
			name += " " + strconv.Itoa(n)
		}
		s := m[name]
		if s == nil {
			s = &fitSum{Buffer: Buffer{Name: name, Space: b.Space}, readers: make(map[int]*fitRead), seen: make(map[int]int)}
			m[name], *order = s, append(*order, name)
		}
		s.n++
		s.Bytes += b.Bytes
		return s
	}
	for _, i := range f.calls[node] {
		c := &f.t.Calls[i]
		span := (c.End - c.Begin).Seconds()
		seconds += span
		part := func(d time.Duration) float64 {
			if span <= 0 {
				return 0
			}
			return min(max((d-c.Begin).Seconds()/span, 0), 1)
		}
		count := make(map[string]int)
		for _, k := range c.Makes {
			b := f.t.Buffers[k]
			if b.Call != i {
				continue // passed on: who made it says it
			}
			s := at(makes, &order, b, count)
			s.From += part(b.Born)
			for _, r := range f.readBy[k] {
				if s.readers[r.node] == nil {
					s.readers[r.node] = &fitRead{node: r.node}
				}
				s.readers[r.node].until += r.until
				s.seen[r.node]++
			}
		}
		for _, k := range f.scratch[i] {
			b := f.t.Buffers[k]
			s := at(scratch, &scratchOrder, b, count)
			s.From += part(b.Born)
			if b.Died == 0 {
				s.Until++
			} else {
				s.Until += part(b.Died)
			}
		}
	}
	n := len(f.calls[node])
	if n == 0 {
		return Node{}
	}
	out := Node{Steps: []Step{{Seconds: seconds / float64(n), Cores: cores}}}
	for _, name := range order {
		s := makes[name]
		b := Buffer{Name: s.Name, Space: s.Space, Bytes: s.Bytes / int64(s.n), From: s.From / float64(s.n)}
		for _, r := range s.readers {
			b.Readers = append(b.Readers, Reader{f.t.Graph.Nodes[r.node].Name, r.until / float64(s.seen[r.node])})
		}
		slices.SortFunc(b.Readers, func(x, y Reader) int { return cmp.Compare(x.Node, y.Node) })
		out.Makes = append(out.Makes, b)
	}
	for _, name := range scratchOrder {
		s := scratch[name]
		out.Scratch = append(out.Scratch, Buffer{Name: s.Name, Space: s.Space, Bytes: s.Bytes / int64(s.n),
			From: s.From / float64(s.n), Until: max(s.Until/float64(s.n), 1e-6)})
	}
	return out
}

// needs are what the stages stated of the first item that stated any.
func (f *fit) needs() {
	for _, it := range f.t.Items {
		if len(it.Needs) == 0 {
			continue
		}
		for _, n := range it.Needs {
			if node, ok := f.costs.Nodes[n.Stage]; ok {
				node.Need = n.Need
				f.costs.Nodes[n.Stage] = node
			}
		}
		return
	}
}
