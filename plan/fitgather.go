package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// machine is what the recording says of where it ran.
func (f *fit) machine() {
	m, meta := &f.out.Costs.Machine, f.t.Meta
	m.Cores = float64(meta.Cores)
	f.cores = m.Cores
	m.Memory[alloc.Host] = meta.Memory
	for _, l := range meta.Links {
		m.Links = append(m.Links, Link{l.Name, l.BytesPerSecond})
	}
	for i, d := range meta.Devices {
		if f.isTurn(i) {
			continue
		}
		m.Devices = append(m.Devices, Device{Name: d.Name, Space: d.Space, Link: d.Link})
		if d.Space.Valid() && d.Memory > 0 {
			m.Memory[d.Space] = d.Memory
		}
	}
	f.base()
}

// base is what was there before the run, and the most that no call has made.
func (f *fit) base() {
	type change struct {
		at time.Duration
		n  int64
	}
	var changes [alloc.MaxSpaces][]change
	base := &f.out.Costs.Machine.Base
	for _, b := range f.t.Buffers {
		switch {
		case b.Call >= 0 || !b.Space.Valid() || b.Kind == alloc.MappedFile:
		case b.Born == 0:
			base[b.Space] += b.Bytes
		default:
			changes[b.Space] = append(changes[b.Space], change{b.Born, b.Bytes})
			if b.Died > 0 {
				changes[b.Space] = append(changes[b.Space], change{b.Died, -b.Bytes})
			}
		}
	}
	for s, list := range changes {
		slices.SortStableFunc(list, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
		var live, most int64
		for _, c := range list {
			live += c.n
			most = max(most, live)
		}
		if most > 0 {
			base[s] += most
			f.notef("up to %d bytes of %v memory belong to no call; they count as there all the time", most, alloc.Space(s))
		}
	}
}

// gather finds the calls of each node and which of them count.
func (f *fit) gather() error {
	t := f.t
	f.nodes, f.calls = make([]fitNode, len(t.Graph.Nodes)), make([]fitCall, len(t.Calls))
	good := make([]int, len(f.nodes))
	for i, n := range t.Graph.Nodes {
		f.nodes[i].name = n.Name
	}
	failed, again := 0, 0
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Node < 0 || c.Node >= len(f.nodes) {
			return fmt.Errorf("call %d is of node %d, which the graph has not", i, c.Node)
		}
		f.nodes[c.Node].calls = append(f.nodes[c.Node].calls, i)
		switch {
		case c.Err != "":
			failed++
		case c.Attempt > 0:
			again++
		default:
			f.calls[i].good = true
			good[c.Node]++
		}
	}
	if failed > 0 {
		f.notef("%d calls failed, or had not ended, and do not count", failed)
	}
	if again > 0 {
		f.notef("%d calls were repeated, and do not count", again)
	}
	if len(t.Calls) == 0 {
		return errors.New("it has no calls")
	}
	for i, n := range t.Graph.Nodes {
		if good[i] == 0 && n.Kind == pipeline.KindStage {
			return fmt.Errorf("no call of stage %s came to its end at the first try", n.Name)
		}
		slices.SortStableFunc(f.nodes[i].calls, func(a, b int) int { return cmp.Compare(t.Calls[a].Begin, t.Calls[b].Begin) })
	}
	if n := slices.Min(stageCalls(t, good)); n < 5 {
		f.notef("a stage has %d calls that count: costs differ from call to call, and so few say little of how much", n)
	}
	for _, n := range t.Notes {
		if n.Kind == trace.Workers || n.Kind == trace.Capacity {
			f.notef("workers or capacities were changed while the run lasted; settings are those of its beginning")
			break
		}
	}
	return nil
}

func stageCalls(t *trace.Trace, good []int) (out []int) {
	for i, n := range t.Graph.Nodes {
		if n.Kind == pipeline.KindStage {
			out = append(out, good[i])
		}
	}
	return append(out, len(t.Calls))
}

// needs are what the stages stated of the first item of the first class that
// stated any.
func (f *fit) needs() {
	for i, it := range f.t.Items {
		if len(it.Needs) == 0 || f.class[i] != 0 {
			continue
		}
		for _, n := range it.Needs {
			if node, ok := f.out.Costs.Nodes[n.Stage]; ok {
				node.Need = n.Need
				f.out.Costs.Nodes[n.Stage] = node
			}
		}
		return
	}
	f.notef("no item says what its stages need; needs follow from what was seen")
}

// classes tells items that take much more memory than others apart.
func (f *fit) classes() {
	t := f.t
	f.class = make([]int, len(t.Items))
	f.sizes = []Class{{Time: 1, Bytes: 1}}
	bytes, work, whole := make([]float64, len(t.Items)), make([]float64, len(t.Items)), make([]int, len(t.Items))
	for i := range t.Calls {
		c := &t.Calls[i]
		if it := c.Item; it >= 0 && it < len(whole) && f.calls[i].good {
			whole[it]++
			for _, w := range f.calls[i].work {
				work[it] += w
			}
		}
	}
	for _, b := range t.Buffers {
		if b.Call >= 0 && b.Item >= 0 && b.Kind != alloc.MappedFile {
			bytes[b.Item] += float64(b.Bytes)
		}
	}
	most := slices.Max(append(whole, 0))
	var order []int
	for i, n := range whole {
		if n == most && bytes[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(bytes[a], bytes[b]) })
	var groups [][]int
	for k, i := range order {
		if k == 0 || bytes[i] > bytes[order[k-1]]*classGap {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
	}
	if len(groups) < 2 || len(groups) > mostClasses {
		return
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	mean := func(of []float64, items []int) (m float64) {
		for _, i := range items {
			m += of[i] / float64(len(items))
		}
		return m
	}
	f.sizes = nil
	for k, g := range groups {
		c := Class{Name: fmt.Sprintf("class %d", k+1), Weight: float64(len(g)), Bytes: mean(bytes, g) / mean(bytes, groups[0]), Time: 1}
		if w := mean(work, groups[0]); w > 0 {
			c.Time = mean(work, g) / w
		}
		f.sizes = append(f.sizes, c)
		for _, i := range g {
			f.class[i] = k
		}
	}
	// Items that did not come through count for the class that they are nearest to.
	for i := range t.Items {
		if slices.Contains(order, i) {
			continue
		}
		best := 0
		for k, c := range f.sizes {
			if d, old := bytes[i]-c.Bytes*mean(bytes, groups[0]), bytes[i]-f.sizes[best].Bytes*mean(bytes, groups[0]); d*d < old*old {
				best = k
			}
		}
		f.class[i] = best
	}
	f.out.Costs.Items = f.sizes
	f.notef("items are of %d sizes, which became classes", len(groups))
}

const (
	classGap    = 1.15 // from one size to the next, at least
	mostClasses = 8
)

// sizeOf is the class of a call's item.
func (f *fit) sizeOf(call int) Class {
	if it := f.t.Calls[call].Item; it >= 0 && it < len(f.class) {
		return f.sizes[f.class[it]]
	}
	return f.sizes[0]
}

// warmUp leaves first calls out that have paid for all others.
func (f *fit) warmUp() {
	for i := range f.nodes {
		n := &f.nodes[i]
		var rest []float64
		first := -1
		for _, k := range n.calls {
			switch {
			case !f.calls[k].good:
			case first < 0:
				first = k
			default:
				rest = append(rest, f.total(k))
			}
		}
		if len(rest) < 4 {
			continue
		}
		if m := medianOf(rest); f.total(first) > warmUpMost*m && m > 0 {
			f.calls[first].good = false
			f.notef("%s: the first call took %.2f times as long as is usual, and does not count", n.name, f.total(first)/m)
		}
	}
}

const warmUpMost = 1.5

// total is the work of a call, as if its item were of the first class.
func (f *fit) total(call int) (s float64) {
	for _, w := range f.calls[call].work {
		s += w
	}
	return s / or1(f.sizeOf(call).Time)
}

// medianOf is the median of v, which is not empty.
func medianOf(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1)+0.5)]
}
