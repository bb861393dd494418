package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/trace"
)

// slot is scratch that is alike in all calls of a node: the second of a purpose,
// say.
type slot struct {
	name    string
	purpose string
	space   alloc.Space
	in      map[int]int // the buffer, by call
}

// made is a buffer that a node hands on, alike in all its calls.
type made struct {
	name  string
	space alloc.Space
	in    map[int]int
}

// reading is a call that has read a buffer, and until when, in seconds.
type reading struct {
	call  int
	until float64
}

// lives finds what the calls of each node have made and had as scratch.
func (f *fit) lives() {
	t := f.t
	handed := make(map[int]bool)
	for _, c := range t.Calls {
		for _, b := range c.Makes {
			handed[b] = true
		}
	}
	byCall := make(map[int][]int)
	for i, b := range t.Buffers {
		if b.Call >= 0 && b.Call < len(t.Calls) && b.Kind != alloc.MappedFile && b.Bytes > 0 && b.Space.Valid() {
			byCall[b.Call] = append(byCall[b.Call], i)
		}
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		n.slots = make(map[string]*slot)
		makes := make(map[string]*made)
		for _, k := range n.calls {
			if t.Calls[k].Err != "" {
				continue // its output is no scratch, though nobody has got it
			}
			count := make(map[string]int)
			for _, b := range byCall[k] {
				buf := &t.Buffers[b]
				name := buf.Purpose
				if buf.Space != alloc.Host {
					name += " " + buf.Space.String()
				}
				kind := "scratch "
				if handed[b] {
					kind = ""
				}
				count[kind+name]++
				if c := count[kind+name]; c > 1 {
					name += " " + strconv.Itoa(c)
				}
				if handed[b] {
					if makes[name] == nil {
						makes[name] = &made{name, buf.Space, make(map[int]int)}
						n.makes = append(n.makes, makes[name])
					}
					makes[name].in[k] = b
					continue
				}
				if n.slots[name] == nil {
					n.slots[name] = &slot{name, buf.Purpose, buf.Space, make(map[int]int)}
					n.order = append(n.order, n.slots[name])
				}
				n.slots[name].in[k] = b
			}
		}
	}
}

// span is when a buffer was live, in seconds.
func (f *fit) span(b int) piece {
	buf := &f.t.Buffers[b]
	to := f.t.Wall.Seconds()
	if buf.Died > 0 {
		to = buf.Died.Seconds()
	}
	return piece{buf.Born.Seconds(), to}
}

// sum is a mean in the making.
type sum struct{ v, n float64 }

func (s *sum) add(v float64) { s.v += v; s.n++ }

func (s *sum) mean() float64 {
	if s.n == 0 {
		return 0
	}
	return s.v / s.n
}

// node is what the calls of a node cost.
func (f *fit) node(n *fitNode) (out Node) {
	counted := 0
	for _, k := range n.calls {
		if f.calls[k].good {
			counted++
		}
	}
	if counted == 0 {
		return out
	}
	out.Steps = f.steps(n)
	f.makes(n, &out, counted)
	f.scratch(n, &out, counted)
	return out
}

// makes are the buffers that a node hands on.
func (f *fit) makes(n *fitNode, out *Node, counted int) {
	readers := f.readings(n)
	for _, m := range n.makes {
		var from sum
		var bytes float64
		until, order := make(map[int]*sum), []int{}
		for k, b := range m.in {
			if !f.calls[k].good {
				continue
			}
			bytes += float64(f.t.Buffers[b].Bytes) / or1(f.sizeOf(k).Bytes)
			from.add(f.place(n, k, f.t.Buffers[b].Born.Seconds(), true))
			for _, r := range readers[b] {
				c := &f.t.Calls[r.call]
				if until[c.Node] == nil {
					until[c.Node] = new(sum)
					order = append(order, c.Node)
				}
				if !f.calls[r.call].good {
					continue
				}
				if r.until >= c.End.Seconds() {
					until[c.Node].add(1)
					continue
				}
				until[c.Node].add(max(f.place(&f.nodes[c.Node], r.call, r.until, false), moment))
			}
		}
		if from.n == 0 {
			continue
		}
		b := Buffer{Name: m.name, Space: m.space, Bytes: int64(bytes/float64(counted) + 0.5), From: min(from.mean(), 1)}
		slices.Sort(order)
		for _, r := range order {
			b.Readers = append(b.Readers, Reader{f.nodes[r].name, min(or1(until[r].mean()), 1)})
		}
		slices.SortFunc(b.Readers, func(x, y Reader) int { return cmp.Compare(x.Node, y.Node) })
		out.Makes = append(out.Makes, b)
	}
}

// readings are who has read the buffers that a node hands on.
func (f *fit) readings(n *fitNode) map[int][]reading {
	mine := make(map[int][]reading)
	for _, m := range n.makes {
		for _, b := range m.in {
			mine[b] = nil
		}
	}
	for i := range f.t.Calls {
		c := &f.t.Calls[i]
		for _, r := range c.Reads {
			if _, ok := mine[r.Buffer]; ok {
				mine[r.Buffer] = append(mine[r.Buffer], reading{i, r.Until.Seconds()})
			}
		}
	}
	return mine
}

// scratch is what a node has during its calls. What comes and goes at nearly the
// same time is put together.
func (f *fit) scratch(n *fitNode, out *Node, counted int) {
	var all []Buffer
	for _, s := range n.order {
		var from, until sum
		var bytes float64
		for k, b := range s.in {
			if !f.calls[k].good {
				continue
			}
			sp := f.span(b)
			bytes += float64(f.t.Buffers[b].Bytes) / or1(f.sizeOf(k).Bytes)
			from.add(f.place(n, k, sp.from, true))
			until.add(f.place(n, k, sp.to, false))
		}
		if from.n == 0 {
			continue
		}
		b := Buffer{Name: s.name, Space: s.space, Bytes: int64(bytes/float64(counted) + 0.5), From: from.mean(), Until: until.mean()}
		b.From = min(b.From, 1)
		b.Until = min(max(b.Until, b.From, moment), 1)
		all = append(all, b)
	}
	out.Scratch = merged(all)
}

// near is the part of a call that two moments may differ by and be the same.
const near = 0.004

func merged(all []Buffer) (out []Buffer) {
	slices.SortStableFunc(all, func(a, b Buffer) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, b := range all {
		i := slices.IndexFunc(out, func(o Buffer) bool {
			return o.Space == b.Space && abs(o.From-b.From) < near && abs(o.Until-b.Until) < near
		})
		if i < 0 && len(out) >= mostScratch { // the smallest of many: with what it is nearest to
			best := 2.0
			for k, o := range out {
				if d := abs(o.From-b.From) + abs(o.Until-b.Until); o.Space == b.Space && d < best {
					i, best = k, d
				}
			}
		}
		if i < 0 {
			out = append(out, b)
			continue
		}
		out[i].Bytes += b.Bytes
	}
	slices.SortStableFunc(out, func(a, b Buffer) int { return cmp.Compare(a.From, b.From) })
	return out
}

const mostScratch = 48

func abs(x float64) float64 { return max(x, -x) }

// deviceOf is the device that a node's calls ran on: that of most; −1 if none.
func (f *fit) deviceOf(n *fitNode) int {
	count := make(map[int]int)
	best := trace.None
	for _, k := range n.calls {
		d := f.deviceAt(k)
		if d < 0 {
			continue
		}
		if count[d]++; best < 0 || count[d] > count[best] {
			best = d
		}
	}
	return best
}
