package plan

import (
	"cmp"
	"math"
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

// bin is a time between two samples.
type bin struct {
	cpu   float64
	atoms []atom
}

// fitCores finds the cores of all steps. Without samples they are 1.
func (f *fit) fitCores() {
	bins := f.bins()
	steps := f.stepList()
	most := f.cores
	if most <= 0 {
		most = 1024
	}
	if len(bins) < 3 {
		f.notef("the recording has too few samples of processor time to tell how many cores stages use: one each")
		for _, s := range steps {
			s.cores = min(1, most)
		}
		return
	}
	in := make([][]int, len(steps)) // the bins of each
	var lengths []float64
	for i, b := range bins {
		lengths = append(lengths, b.atoms[len(b.atoms)-1].to-b.atoms[0].from)
		for _, a := range b.atoms {
			for _, s := range a.steps {
				if l := in[s]; len(l) == 0 || l[len(l)-1] != i {
					in[s] = append(in[s], i)
				}
			}
		}
	}
	miss := func(b *bin) float64 {
		left := b.cpu
		for _, a := range b.atoms {
			ask := 0.0
			for _, s := range a.steps {
				ask += steps[s].cores
			}
			left -= (a.to - a.from) * min(ask, most)
		}
		return left
	}
	// What the samples say nothing of stays near one core.
	noise := 0.05 * medianOf(lengths)
	cost := func(k int, c float64) (sum float64) {
		old := steps[k].cores
		steps[k].cores = c
		for _, i := range in[k] {
			m := miss(&bins[i])
			sum += m * m
		}
		steps[k].cores = old
		return sum + noise*noise*(c-1)*(c-1)
	}
	for range 12 {
		moved := 0.0
		for k, s := range steps {
			if len(in[k]) == 0 {
				continue
			}
			c := lowest(func(c float64) float64 { return cost(k, c) }, 0, min(most, 4*math.Max(most, 1)))
			moved = max(moved, abs(c-s.cores))
			s.cores = c
		}
		if moved < 1e-3 {
			break
		}
	}
	var off, cpu float64
	for i := range bins {
		off += abs(miss(&bins[i]))
		cpu += bins[i].cpu
	}
	if cpu > 0 {
		f.out.Residual = off / cpu
	}
}

// lowest is where a function is lowest between two points: the best of a grid, and
// then of ever finer ones around it.
func lowest(f func(float64) float64, from, to float64) (best float64) {
	const points = 16
	low, high := from, to
	for range 5 {
		least := math.Inf(1)
		step := (high - low) / points
		for i := range points + 1 {
			x := low + float64(i)*step
			if y := f(x); y < least {
				best, least = x, y
			}
		}
		low, high = max(best-step, from), min(best+step, to)
	}
	return best
}

func (f *fit) stepList() (out []*fitStep) {
	for i := range f.nodes {
		for s := range f.nodes[i].steps {
			out = append(out, &f.nodes[i].steps[s])
		}
	}
	return out
}

// binLength is how long the time between two samples is at least: the kernel
// counts what runs on another core only from tick to tick.
const binLength = 5e-3

// bins are the times between samples, with what was at work.
func (f *fit) bins() (out []bin) {
	wall := f.t.Wall.Seconds()
	length := min(binLength, wall/50)
	var at, cpu []float64
	for _, s := range f.t.Samples {
		t := s.At.Seconds()
		if n := len(at); n == 0 || t >= at[n-1]+length {
			at, cpu = append(at, t), append(cpu, s.CPU.Seconds())
		}
	}
	if len(at) < 2 {
		return nil
	}
	i := 0
	for _, a := range f.atoms(at) {
		for i+1 < len(at) && a.from >= at[i+1] {
			i++
		}
		if a.from < at[0] || i+1 >= len(at) {
			continue
		}
		if len(out) == 0 || out[len(out)-1].atoms[0].from < at[i] {
			out = append(out, bin{cpu: cpu[i+1] - cpu[i]})
		}
		b := &out[len(out)-1]
		b.atoms = append(b.atoms, a)
	}
	return out
}
