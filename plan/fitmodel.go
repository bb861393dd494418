package plan

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// coreModel says, for the cores that steps use, how much processor time there
// should have been between samples, and how much work each call did.
type coreModel struct {
	most  float64 // cores
	atoms []atom
	bin   []int // of atoms; −1: between no two samples
	bins  int
	cpu   []float64 // of bins, in seconds
	calls [][]tookFrom
	noise float64 // of bins, in seconds
}

// tookFrom is a step of a call: which atoms it was at work in.
type tookFrom struct{ from, to int }

const (
	// binLength is how long the time between two samples is at least: the kernel
	// counts what runs on another core only from tick to tick.
	binLength = 5e-3
	binNoise  = 0.1 // of the length of a bin
	workNoise = 0.4 // by which calls of a step differ by themselves, and by what is not modelled
	coreNoise = 4   // by which the cores of a step may differ from one
)

// model prepares the fit of cores.
func (f *fit) model() *coreModel {
	at, cpu := f.samples()
	m := &coreModel{most: f.cores, atoms: f.atoms(at)}
	if m.most <= 0 {
		m.most = 1024
	}
	i := 0
	var lengths []float64
	for _, a := range m.atoms {
		for i+1 < len(at) && a.from >= at[i+1] {
			i++
		}
		if len(at) < 2 || a.from < at[0] || i+1 >= len(at) {
			m.bin = append(m.bin, -1)
			continue
		}
		for m.bins <= i {
			m.cpu = append(m.cpu, cpu[m.bins+1]-cpu[m.bins])
			lengths = append(lengths, at[m.bins+1]-at[m.bins])
			m.bins++
		}
		m.bin = append(m.bin, i)
	}
	if m.bins > 0 {
		m.noise = binNoise * medianOf(lengths)
	}
	place := func(t float64) int {
		k, _ := slices.BinarySearchFunc(m.atoms, t, func(a atom, t float64) int { return cmp.Compare(a.from, t) })
		return k
	}
	m.calls = make([][]tookFrom, len(f.stepList()))
	for i := range f.nodes {
		n := &f.nodes[i]
		for _, k := range n.calls {
			if !f.calls[k].good || f.deviceAt(k) >= 0 {
				continue
			}
			for s, p := range f.calls[k].parts {
				if p.to-p.from > touch {
					id := n.steps[s].id
					m.calls[id] = append(m.calls[id], tookFrom{place(p.from), place(p.to)})
				}
			}
		}
	}
	return m
}

// samples are when the processor time of the process is known.
func (f *fit) samples() (at, cpu []float64) {
	length := min(binLength, f.t.Wall.Seconds()/50)
	if len(f.t.Samples) > 0 {
		at, cpu = append(at, 0), append(cpu, 0) // it is counted from the beginning
	}
	for _, s := range f.t.Samples {
		t := s.At.Seconds()
		if n := len(at); n == 0 || t >= at[n-1]+length {
			at, cpu = append(at, t), append(cpu, s.CPU.Seconds())
		}
	}
	return at, cpu
}

// asked is how many cores the steps of an atom ask for.
func (a *atom) asked(c []float64) (sum float64) {
	for _, s := range a.steps {
		sum += c[s]
	}
	return sum
}

// left is the processor time of the bins that the steps do not account for.
func (m *coreModel) left(c, out []float64) []float64 {
	copy(out, m.cpu)
	for i := range m.atoms {
		if a := &m.atoms[i]; m.bin[i] >= 0 {
			out[m.bin[i]] -= (a.to - a.from) * min(a.asked(c), m.most)
		}
	}
	return out
}

// residuals is by how much everything is off, in standard deviations: processor
// time in bins, the work of a step from call to call, and cores from one.
func (m *coreModel) residuals(c []float64) []float64 {
	out := m.left(c, make([]float64, m.bins, m.bins+len(m.atoms)))
	for i := range out {
		out[i] /= m.noise
	}
	done := make([]float64, len(m.atoms)+1)
	for i := range m.atoms {
		a := &m.atoms[i]
		share := 1.0
		if ask := a.asked(c); ask > m.most {
			share = m.most / ask
		}
		done[i+1] = done[i] + share*(a.to-a.from)
	}
	for _, calls := range m.calls {
		mean := 0.0
		for _, p := range calls {
			mean += (done[p.to] - done[p.from]) / float64(len(calls))
		}
		for _, p := range calls {
			r := 0.0
			if mean > 0 {
				r = (done[p.to]-done[p.from])/mean - 1
			}
			out = append(out, max(min(r, 1), -1)/workNoise)
		}
	}
	for _, x := range c {
		out = append(out, (x-1)/coreNoise)
	}
	return out
}

// fit is where the squares of the residuals are least. There may be several places
// where they are less than around; the best is taken of those that are found from
// few, some and many cores for everybody.
func (m *coreModel) fit(steps int) (best []float64) {
	least := math.Inf(1)
	for _, start := range []float64{0.5, 1, 2} {
		c := make([]float64, steps)
		for i := range c {
			c[i] = min(start, m.most)
		}
		c = m.descend(c)
		if s := squares(m.residuals(c)); s < least {
			best, least = c, s
		}
	}
	return best
}

func squares(r []float64) (s float64) {
	for _, x := range r {
		s += x * x
	}
	return s
}

// descend goes down from a start by the method of Levenberg and Marquardt
// (Marquardt 1963), within 0 and the cores that there are.
func (m *coreModel) descend(c []float64) []float64 {
	r := m.residuals(c)
	damp := 1e-2
	for range 60 {
		jacobian := m.jacobian(c, r)
		var square mat.Dense
		square.Mul(jacobian.T(), jacobian)
		var slope mat.VecDense
		slope.MulVec(jacobian.T(), mat.NewVecDense(len(r), r))
		better := false
		for range 8 {
			next, ok := m.step(c, &square, &slope, damp)
			if ok {
				if s := m.residuals(next); squares(s) < squares(r)*(1-1e-9) {
					better = squares(s) < squares(r)*(1-1e-6)
					c, r = next, s
					damp = max(damp/5, 1e-9)
					break
				}
			}
			damp *= 5
		}
		if !better {
			break
		}
	}
	return c
}

// jacobian is how the residuals change with the cores.
func (m *coreModel) jacobian(c, r []float64) *mat.Dense {
	j := mat.NewDense(len(r), len(c), nil)
	for k := range c {
		const h = 1e-5
		d := h
		if c[k]+h > m.most {
			d = -h
		}
		moved := slices.Clone(c)
		moved[k] += d
		for i, x := range m.residuals(moved) {
			if x != r[i] {
				j.Set(i, k, (x-r[i])/d)
			}
		}
	}
	return j
}

// step is a damped step downwards, if there is one. What would leave the range
// stays at its border.
func (m *coreModel) step(c []float64, square *mat.Dense, slope *mat.VecDense, damp float64) ([]float64, bool) {
	n := len(c)
	held := make([]bool, n)
	for {
		a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			if held[i] {
				a.SetSym(i, i, 1)
				continue
			}
			for k := i; k < n; k++ {
				if !held[k] {
					a.SetSym(i, k, square.At(i, k))
				}
			}
			a.SetSym(i, i, square.At(i, i)*(1+damp)+1e-12)
			b.SetVec(i, -slope.AtVec(i))
		}
		var chol mat.Cholesky
		var d mat.VecDense
		if !chol.Factorize(a) || chol.SolveVecTo(&d, b) != nil {
			return nil, false
		}
		next, again := slices.Clone(c), false
		for i := range next {
			x := c[i] + d.AtVec(i)
			if math.IsNaN(x) {
				return nil, false
			}
			if x < 0 || x > m.most {
				// At its border and pushed out: it stays, and the others are found anew.
				if !held[i] && (c[i] == 0 || c[i] == m.most) {
					held[i], again = true, true
				}
				x = max(min(x, m.most), 0)
			}
			next[i] = x
		}
		if !again {
			return next, true
		}
	}
}
