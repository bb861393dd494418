package report

import "slices"

// layout places the nodes of a graph in layers: a node stands one layer behind
// the last of its predecessors, and within a layer near what it is linked to.
// Links over several layers bend around what lies between: they have a place in
// every layer that they cross.
type layout struct {
	Layers [][]spot // nodes and crossings
	At     []place  // of each node
	Paths  []route  // of each link
}

// spot is a node, or the crossing of a link (Node is -1).
type spot struct {
	Node, Link int
	Pos        float64 // across the layers; 1 apart at least
}

type place struct {
	Layer int
	Pos   float64
}

// route is a link: from a node to another, with the places that it crosses.
type route struct {
	From, To, Slot int
	Via            []place
}

// layoutOf lays out nodes with their predecessors, which stand before them.
func layoutOf(preds [][]int) *layout {
	l := &layout{At: make([]place, len(preds))}
	depth := make([]int, len(preds))
	for n, ps := range preds {
		for _, p := range ps {
			if p >= 0 && p < n {
				depth[n] = max(depth[n], depth[p]+1)
			}
		}
	}
	for n := range preds {
		for len(l.Layers) <= depth[n] {
			l.Layers = append(l.Layers, nil)
		}
		l.Layers[depth[n]] = append(l.Layers[depth[n]], spot{Node: n, Link: -1})
		l.At[n].Layer = depth[n]
	}
	for n, ps := range preds {
		for slot, p := range ps {
			if p < 0 || p >= n {
				continue
			}
			for d := depth[p] + 1; d < depth[n]; d++ {
				l.Layers[d] = append(l.Layers[d], spot{Node: -1, Link: len(l.Paths)})
			}
			l.Paths = append(l.Paths, route{From: p, To: n, Slot: slot})
		}
	}
	l.arrange()
	return l
}

// links are the places of the neighbours of a spot in the layer beside its own,
// before (-1) or behind (+1).
func (l *layout) links(layer int, s spot, side int) (at []float64) {
	if layer+side < 0 || layer+side >= len(l.Layers) {
		return nil
	}
	for _, o := range l.Layers[layer+side] {
		var near bool
		switch {
		case s.Node >= 0 && o.Node >= 0:
			a, b := s.Node, o.Node
			if side > 0 {
				a, b = b, a
			}
			near = l.linked(b, a)
		case s.Node >= 0:
			p := l.Paths[o.Link]
			near = p.To == s.Node && side < 0 || p.From == s.Node && side > 0
		case o.Node >= 0:
			p := l.Paths[s.Link]
			near = p.From == o.Node && side < 0 || p.To == o.Node && side > 0
		default:
			near = o.Link == s.Link
		}
		if near {
			at = append(at, o.Pos)
		}
	}
	return at
}

func (l *layout) linked(from, to int) bool {
	return slices.ContainsFunc(l.Paths, func(p route) bool { return p.From == from && p.To == to })
}

// arrange orders the layers by where their neighbours are, forth and back, and
// then moves spots towards them without letting them come too near each other.
func (l *layout) arrange() {
	for _, layer := range l.Layers {
		for i := range layer {
			layer[i].Pos = float64(i)
		}
	}
	for sweep := range 8 {
		side := -1 + 2*(sweep%2)
		for k := range l.Layers {
			if side > 0 {
				k = len(l.Layers) - 1 - k
			}
			layer := l.Layers[k]
			want := make([]float64, len(layer))
			for i, s := range layer {
				if want[i] = s.Pos; len(l.links(k, s, side)) > 0 {
					want[i] = average(l.links(k, s, side))
				}
			}
			order := make([]int, len(layer))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int {
				switch {
				case want[a] < want[b]:
					return -1
				case want[a] > want[b]:
					return 1
				}
				return 0
			})
			next := make([]spot, len(layer))
			for i, o := range order {
				next[i] = layer[o]
				next[i].Pos = float64(i)
			}
			copy(layer, next)
		}
	}
	widest := 0
	for _, layer := range l.Layers {
		widest = max(widest, len(layer))
	}
	for _, layer := range l.Layers { // begin in the middle
		for i := range layer {
			layer[i].Pos += float64(widest-len(layer)) / 2
		}
	}
	for sweep := range 6 {
		for k := range l.Layers {
			if sweep%2 == 1 {
				k = len(l.Layers) - 1 - k
			}
			layer := l.Layers[k]
			for i := range layer {
				if at := append(l.links(k, layer[i], -1), l.links(k, layer[i], 1)...); len(at) > 0 {
					layer[i].Pos = average(at)
				}
			}
			spread(layer)
		}
	}
	low := 0.0
	for _, layer := range l.Layers {
		for _, s := range layer {
			low = min(low, s.Pos)
		}
	}
	for k, layer := range l.Layers {
		for i := range layer {
			layer[i].Pos -= low
			if s := layer[i]; s.Node >= 0 {
				l.At[s.Node].Pos = s.Pos
			} else {
				l.Paths[s.Link].Via = append(l.Paths[s.Link].Via, place{k, s.Pos})
			}
		}
	}
}

// spread moves spots apart that are nearer than 1, about their middle.
func spread(layer []spot) {
	for i := 1; i < len(layer); i++ {
		if gap := layer[i].Pos - layer[i-1].Pos; gap < 1 {
			// Push what stands together to both sides by the same.
			from := i - 1
			for from > 0 && layer[from].Pos-layer[from-1].Pos < 1+1e-9 {
				from--
			}
			layer[i].Pos = layer[i-1].Pos + 1
			for j := from; j <= i; j++ {
				layer[j].Pos -= (1 - gap) / float64(i-from+1)
			}
		}
	}
	for i := 1; i < len(layer); i++ { // whatever that has brought together again
		layer[i].Pos = max(layer[i].Pos, layer[i-1].Pos+1)
	}
}

func average(v []float64) (m float64) {
	for _, x := range v {
		m += x
	}
	return m / float64(len(v))
}

// width is how many places the widest layer takes.
func (l *layout) width() float64 {
	w := 0.0
	for _, layer := range l.Layers {
		for _, s := range layer {
			w = max(w, s.Pos)
		}
	}
	return w + 1
}
