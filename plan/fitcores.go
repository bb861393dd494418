package plan

import (
	"cmp"
	"slices"

	"github.com/snarkline/snarkline/alloc"
)

// pieces cuts the calls of each node into steps: what is done in turns, and what
// is between. Of a gap before a section that another had, only the first part was
// work.
func (f *fit) pieces() {
	id := 0
	for i := range f.nodes {
		n := &f.nodes[i]
		m := len(n.sections)
		n.steps = make([]fitStep, 2*m+1)
		spans := make([]map[int]piece, m)
		for s, slots := range n.sections {
			spans[s] = f.sectionSpans(slots)
		}
		for s := range n.steps {
			n.steps[s] = fitStep{section: s%2 == 1, id: id, cores: 1}
			id++
		}
		for _, k := range n.calls {
			f.calls[k].parts = f.cut(k, spans)
		}
	}
	f.gaps()
}

// cut is the pieces of a call: gaps and sections in turns. A section that it does
// not have is empty, and so is the gap before.
func (f *fit) cut(call int, spans []map[int]piece) (parts []piece) {
	c := &f.t.Calls[call]
	at, end := c.Begin.Seconds(), c.End.Seconds()
	if len(spans) == 0 && f.deviceAt(call) < 0 {
		at = min(at+max(c.Waited, 0).Seconds(), end) // what a call waits for comes first, mostly
	}
	for _, in := range spans {
		p, ok := in[call]
		if !ok || p.from < at {
			p = piece{at, at}
		}
		parts = append(parts, piece{at, p.from}, p)
		at = p.to
	}
	return append(parts, piece{at, max(at, end)})
}

// atom is a time in which the same steps are at work.
type atom struct {
	piece
	steps []int // with repetitions
	on    []int // devices of those that have one, likewise
}

// atoms cuts the run at all beginnings and ends of pieces, and at other moments.
func (f *fit) atoms(at []float64) (out []atom) {
	type edge struct {
		at           float64
		step, device int
		begins       bool
	}
	var edges []edge
	for i := range f.nodes {
		n := &f.nodes[i]
		for _, k := range n.calls {
			d := f.deviceAt(k)
			for s, p := range f.calls[k].parts {
				if p.to > p.from {
					edges = append(edges, edge{p.from, n.steps[s].id, d, true}, edge{p.to, n.steps[s].id, d, false})
				}
			}
		}
	}
	for _, t := range at {
		edges = append(edges, edge{t, -1, -1, false})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var now, on []int
	remove := func(list []int, v int) []int {
		i := slices.Index(list, v)
		return slices.Delete(list, i, i+1)
	}
	for i, e := range edges {
		if i > 0 && e.at > edges[i-1].at {
			out = append(out, atom{piece{edges[i-1].at, e.at}, slices.Clone(now), slices.Clone(on)})
		}
		switch {
		case e.step < 0:
		case e.begins:
			now = append(now, e.step)
			if e.device >= 0 {
				on = append(on, e.device)
			}
		default:
			now = remove(now, e.step)
			if e.device >= 0 {
				on = remove(on, e.device)
			}
		}
	}
	return out
}

// deviceAt is the device of a call, −1 if it has none that the recording names.
func (f *fit) deviceAt(call int) int {
	d := f.t.Calls[call].Device
	if d < 0 || d >= len(f.t.Meta.Devices) || f.isTurn(d) {
		return -1
	}
	return d
}

// isTurn reports whether a device of the recording is what a fit before has made
// up: in the recording of a simulated run.
func (f *fit) isTurn(d int) bool {
	m := f.t.Meta.Devices[d]
	return m.Name == turnName && m.Space == alloc.Host
}

// fitCores finds the cores of all steps. Without samples they are 1.
func (f *fit) fitCores() {
	m := f.model()
	steps := f.stepList()
	if m.bins < 3 {
		f.notef("the recording has too few samples of processor time to tell how many cores stages use: one each")
		for _, s := range steps {
			s.cores = min(1, m.most)
		}
		return
	}
	c := m.fit(len(steps))
	for i, s := range steps {
		s.cores = c[i]
	}
	var off, cpu float64
	for i, left := range m.left(c, make([]float64, m.bins)) {
		off += abs(left)
		cpu += m.cpu[i]
	}
	if cpu > 0 {
		f.out.Residual = off / cpu
	}
}

func (f *fit) stepList() (out []*fitStep) {
	for i := range f.nodes {
		for s := range f.nodes[i].steps {
			out = append(out, &f.nodes[i].steps[s])
		}
	}
	return out
}
