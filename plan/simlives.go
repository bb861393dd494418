package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// readersOf finds who reads a buffer.
func (p *program) readersOf(id int, readers []Reader) error {
	b := &p.bufs[id]
	add := func(to int, until float64) {
		if !slices.Contains(b.readers, to) {
			b.readers = append(b.readers, to)
			p.nodes[to].reads = append(p.nodes[to].reads, read{id, until, len(readers) > 0 && !named(readers, p.t.Nodes[to].Name)})
		}
	}
	for _, r := range readers {
		to := p.t.Index(r.Node)
		switch {
		case to < 0:
			return fmt.Errorf("reader %q is not in the graph", r.Node)
		case !p.rt.Nodes[to].Kind.HasQueue():
			return fmt.Errorf("reader %s is a %s, which reads nothing", r.Node, p.t.Nodes[to].Kind)
		case !p.behind(b.maker, to):
			return fmt.Errorf("reader %s is not behind the node that makes it", r.Node)
		case slices.Contains(b.readers, to):
			return fmt.Errorf("reader %s is named twice", r.Node)
		}
		add(to, or1(r.Until))
	}
	if len(readers) == 0 || p.all {
		p.rt.Behind(b.maker, func(to int) { add(to, 1) })
	}
	return nil
}

func named(readers []Reader, node string) bool {
	return slices.ContainsFunc(readers, func(r Reader) bool { return r.Node == node })
}

func (p *program) behind(from, to int) bool {
	for _, l := range p.rt.Outs[from] {
		if l.To == to || p.behind(l.To, to) {
			return true
		}
	}
	return false
}

// endReads marks where nodes stop reading, which are known once all nodes are.
func (p *program) endReads(c *Costs) {
	for i := range p.nodes {
		n := &p.nodes[i]
		var length []float64
		var total float64
		for _, st := range n.steps {
			l := st.seconds
			if st.link >= 0 && p.links[st.link].BytesPerSecond > 0 {
				l = max(l, st.bytes/p.links[st.link].BytesPerSecond)
			}
			length = append(length, l)
			total += l
		}
		for k, r := range n.reads {
			if r.until < 1 && total > 0 {
				n.mark(length, total, r.until, mark{do: endRead, arg: k})
			} else {
				n.reads[k].until = 1
			}
		}
	}
}

// hold finds which joins hold a buffer until they have their tuples, as admission
// counts them.
func (p *program) hold() {
	for _, pl := range p.plans {
		at := make(map[int]int)
		for i, nd := range slices.Concat(pl.Work, pl.Joins) {
			at[nd] = i
			p.nodes[nd].bit = pl.Bit(i)
		}
		for id := range p.bufs {
			b := &p.bufs[id]
			i, ok := at[b.maker]
			if !ok {
				continue
			}
			var ends uint64
			for _, r := range b.readers {
				ends |= p.nodes[r].bit
			}
			holders := pl.Holders(i, ends)
			for _, j := range pl.Joins {
				if holders&p.nodes[j].bit != 0 {
					b.holders = append(b.holders, j)
					p.nodes[j].holds = append(p.nodes[j].holds, id)
				}
			}
		}
	}
}

// carry finds which buffers a value brings to each slot of a join: those that it
// holds or that somebody behind it reads, from the first slot that they can have
// come by.
func (p *program) carry() {
	for j := range p.nodes {
		if p.rt.Nodes[j].Kind != rules.Join {
			continue
		}
		n := &p.nodes[j]
		n.carries = make([][]int, len(p.t.Nodes[j].Preds))
		for id, b := range p.bufs {
			if !slices.Contains(b.holders, j) && !slices.ContainsFunc(b.readers, func(r int) bool { return p.behind(j, r) }) {
				continue
			}
			for slot, pr := range p.t.Nodes[j].Preds {
				if pr == b.maker || p.behind(b.maker, pr) {
					n.carries[slot] = append(n.carries[slot], id)
					break
				}
			}
		}
	}
}

// admission makes the plans of the components and the shapes of the classes.
func (p *program) admission(c *Costs) {
	for _, pl := range p.plans {
		needs := make([]rules.Need, len(pl.Work))
		for i, nd := range pl.Work {
			cost := c.Nodes[p.t.Nodes[nd].Name]
			needs[i] = p.needOf(nd, &cost)
		}
		var shapes []*rules.Shape
		for _, cl := range p.classes {
			scaled := make([]rules.Need, len(needs))
			for i, n := range needs {
				scaled[i] = scaleNeed(n, cl.bytes)
			}
			shapes = append(shapes, pl.Evaluate(scaled))
		}
		p.needs, p.shapes = append(p.needs, needs), append(p.shapes, shapes)
	}
}

// needOf is what a node states, or what follows from what it costs.
func (p *program) needOf(nd int, c *Node) (n rules.Need) {
	if !c.Need.Scratch.IsZero() || len(c.Need.Makes) > 0 || len(c.Need.Ends) > 0 {
		n = rules.Need{Scratch: c.Need.Scratch, Ends: c.Need.Ends}
		for _, m := range c.Need.Makes {
			n.Makes = append(n.Makes, rules.Part(m))
		}
		return n
	}
	for _, s := range p.nodes[nd].scratch {
		n.Scratch[s.at] += s.bytes
	}
	part := func(id int) string { return p.t.Nodes[p.bufs[id].maker].Name + "." + fmt.Sprint(id) }
	for _, id := range p.nodes[nd].made {
		n.Makes = append(n.Makes, rules.Part{Name: part(id), Bytes: alloc.BytesIn(p.bufs[id].at, p.bufs[id].bytes)})
	}
	for _, r := range p.nodes[nd].reads {
		if !r.extra {
			n.Ends = append(n.Ends, part(r.buf))
		}
	}
	return n
}

func scaleNeed(n rules.Need, f float64) rules.Need {
	if f == 1 {
		return n
	}
	amount := func(a alloc.Amount) alloc.Amount {
		for i := range a {
			a[i] = scaled(a[i], f)
		}
		return a
	}
	out := rules.Need{Scratch: amount(n.Scratch), Ends: n.Ends}
	for _, m := range n.Makes {
		out.Makes = append(out.Makes, rules.Part{Name: m.Name, Bytes: amount(m.Bytes)})
	}
	return out
}

func scaled(n int64, f float64) int64 {
	if f == 1 {
		return n
	}
	return int64(math.Round(float64(n) * f))
}
