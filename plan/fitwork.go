package plan

import (
	"math"
	"slices"
)

// cum is how much of a call's own time had gone by at moments of the run: less
// than the time itself where cores or a device were shared.
type cum struct{ at, done []float64 }

func (c *cum) add(p piece, rate float64) {
	n := len(c.at)
	if n == 0 {
		c.at, c.done = append(c.at, p.from), append(c.done, 0)
		n++
	}
	if p.from > c.at[n-1] { // nothing was at work
		c.at, c.done = append(c.at, p.from), append(c.done, c.done[n-1]+p.from-c.at[n-1])
		n++
	}
	c.at, c.done = append(c.at, p.to), append(c.done, c.done[n-1]+(p.to-p.from)*rate)
}

func (c *cum) read(t float64) float64 {
	i, ok := slices.BinarySearch(c.at, t)
	switch {
	case ok:
		return c.done[i]
	case i == 0:
		return 0
	case i == len(c.at):
		return c.done[i-1]
	}
	return c.done[i-1] + (c.done[i]-c.done[i-1])*(t-c.at[i-1])/(c.at[i]-c.at[i-1])
}

// idle is how many cores a step uses that uses none.
const idle = 0.02

// works finds what the steps of each call take by themselves.
func (f *fit) works() {
	steps := f.stepList()
	for _, s := range steps {
		if s.cores < idle {
			s.cores = 0
		}
	}
	devices := len(f.t.Meta.Devices)
	f.cums = make([]cum, devices+1)
	for _, a := range f.atoms(nil) {
		ask := 0.0
		for _, s := range a.steps {
			ask += steps[s].cores
		}
		share := 1.0
		if f.cores > 0 && ask > f.cores {
			share = f.cores / ask
		}
		users := make([]float64, devices)
		for _, d := range a.on {
			users[d]++
		}
		f.cums[0].add(a.piece, share)
		for d, n := range users {
			f.cums[d+1].add(a.piece, min(share, or1(f.width)/max(n, or1(f.width))))
		}
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		for _, k := range n.calls {
			c := &f.calls[k]
			c.work = make([]float64, len(c.parts))
			for s, p := range c.parts {
				c.work[s] = f.took(n, k, s, p)
			}
		}
	}
}

// took is how much work a step of a call did in a time.
func (f *fit) took(n *fitNode, call, step int, p piece) float64 {
	if p.to <= p.from {
		return 0
	}
	d := f.deviceAt(call) + 1
	if d == 0 && n.steps[step].cores == 0 {
		return p.to - p.from
	}
	c := &f.cums[d]
	return max(c.read(p.to)-c.read(p.from), 0)
}

// slight is the part of a node's work below which a step is left out.
const slight = 0.005

// measure finds how long the steps of a node take, in seconds of the first class.
func (f *fit) measure(n *fitNode) {
	n.lengths, n.spreads = make([]float64, len(n.steps)), make([]float64, len(n.steps))
	total := 0.0
	for s := range n.steps {
		var works []float64
		var mean sum
		for _, k := range n.calls {
			if f.calls[k].good {
				w := f.calls[k].work[s] / or1(f.sizeOf(k).Time)
				works = append(works, w)
				mean.add(w)
			}
		}
		n.lengths[s] = mean.mean()
		total += n.lengths[s]
		if len(works) < 3 || n.lengths[s] <= 0 {
			continue
		}
		variance := 0.0
		for _, w := range works {
			variance += (w - n.lengths[s]) * (w - n.lengths[s]) / float64(len(works)-1)
		}
		// σ of the lognormal that has this mean and this variance.
		n.spreads[s] = math.Sqrt(math.Log1p(variance / (n.lengths[s] * n.lengths[s])))
	}
	for s, l := range n.lengths {
		if !n.steps[s].section && l < slight*total {
			n.lengths[s] = 0
		}
	}
}

// steps are those of a node, for the costs.
func (f *fit) steps(n *fitNode) (out []Step) {
	device := ""
	if d := f.deviceOf(n); d >= 0 {
		device = f.t.Meta.Devices[d].Name
	}
	for s, l := range n.lengths {
		if l <= 0 {
			continue
		}
		st := Step{Seconds: l, Spread: n.spreads[s], Cores: n.steps[s].cores, Device: device}
		if st.Spread < 1e-6 {
			st.Spread = 0
		}
		if n.steps[s].section {
			st.Name, st.Device, st.Exclusive = "in turn", turnName, true
		}
		out = append(out, st)
	}
	return out
}

// place is which fraction of its node's work a call had done at a moment. What
// begins with a step that waits for its turn begins behind that wait.
func (f *fit) place(n *fitNode, call int, at float64, begins bool) float64 {
	total, before := 0.0, 0.0
	for _, l := range n.lengths {
		total += l
	}
	if total <= 0 {
		return 0
	}
	for s, p := range f.calls[call].parts {
		if at >= p.to && (s+1 < len(n.lengths) || at > p.to) && !(begins && n.steps[s].section && at == p.from) {
			before += n.lengths[s]
			continue
		}
		done := 0.0
		if at > p.from {
			if w := f.calls[call].work[s]; w > 0 {
				done = min(f.took(n, call, s, piece{p.from, at})/w, 1)
			}
		}
		frac := (before + n.lengths[s]*done) / total
		if begins && n.steps[s].section && frac < moment {
			frac = moment
		}
		return frac
	}
	return 1
}
