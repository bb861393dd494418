package live

import (
	"cmp"
	"slices"

	"github.com/snarkline/snarkline/pipeline"
)

// learn takes the nodes and links of the graph and places them for a drawing.
func (s *State) learn(t pipeline.Topology) {
	succs := t.Succs()
	for i, n := range t.Nodes {
		nd := &s.nodes[s.nodeOf(n.Name)]
		nd.kind, nd.next, nd.prev = n.Kind, slices.Compact(succs[i]), n.Preds
		nd.feeds = len(succs[i]) > 0
	}
	place(s.nodes)
}

// spot is a node, or the place where a link passes through a layer.
type spot struct {
	layer int
	lane  float64
	prev  []*spot
}

// place gives nodes, which come after those that they read, their layer (the
// longest way from a source) and their lane in it: near those that they read,
// every layer centred. Links that skip layers get lanes there, so that they do
// not pass through nodes.
func place(nodes []node) {
	for i := range nodes {
		for _, p := range nodes[i].prev {
			nodes[i].layer = max(nodes[i].layer, nodes[p].layer+1)
		}
	}
	spots := make([]*spot, len(nodes))
	var layers [][]*spot
	put := func(s *spot) {
		for len(layers) <= s.layer {
			layers = append(layers, nil)
		}
		layers[s.layer] = append(layers[s.layer], s)
	}
	for i := range nodes {
		spots[i] = &spot{layer: nodes[i].layer}
		put(spots[i])
	}
	ways := make([][][]*spot, len(nodes))
	for i := range nodes {
		for _, to := range nodes[i].next {
			var way []*spot
			at := spots[i]
			for layer := at.layer + 1; layer < nodes[to].layer; layer++ {
				at = &spot{layer: layer, prev: []*spot{at}}
				put(at)
				way = append(way, at)
			}
			spots[to].prev = append(spots[to].prev, at)
			ways[i] = append(ways[i], way)
		}
	}
	widest := 0
	for _, in := range layers {
		widest = max(widest, len(in))
	}
	for _, in := range layers {
		want := func(s *spot) (mean float64) {
			for _, p := range s.prev {
				mean += p.lane / float64(len(s.prev))
			}
			return mean
		}
		slices.SortStableFunc(in, func(a, b *spot) int { return cmp.Compare(want(a), want(b)) })
		for i, s := range in {
			s.lane = float64(i) + float64(widest-len(in))/2
		}
	}
	for i := range nodes {
		nodes[i].lane, nodes[i].links = spots[i].lane, make([]Link, len(ways[i]))
		for j, way := range ways[i] {
			l := &nodes[i].links[j]
			l.To, l.Lanes = nodes[i].next[j], []float64{}
			for _, s := range way {
				l.Lanes = append(l.Lanes, s.lane)
			}
		}
	}
}
