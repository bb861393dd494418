package plan

import (
	"math"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// cardsName is the pool of the cards of a recording.
const cardsName = "cards"

// cards makes the cards of a recording a pool. From now on the recording is looked at
// as if all of them had the memory of the first and the same name, since which of them
// an item was on says nothing of what it costs; calls begin when they had their lane.
func (f *fit) cards() {
	m := &f.out.Costs.Machine
	var list []int
	for _, d := range f.t.Meta.Devices {
		f.spaces = append(f.spaces, d.Space)
	}
	for i, d := range f.t.Meta.Devices {
		if d.Space.DeviceIndex() >= 0 && !f.isTurn(i) {
			list = append(list, i)
		}
	}
	f.knownLinks()
	t := *f.t
	t.Calls = slices.Clone(t.Calls)
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Device >= 0 && c.Device < len(t.Meta.Devices) && !f.isTurn(c.Device) {
			c.Begin = min(c.Begin+max(c.Waited, 0), c.End)
		}
	}
	f.t = &t
	if len(list) == 0 {
		return
	}
	f.pool = list
	base := t.Meta.Devices[list[0]].Space
	var to [alloc.MaxSpaces]alloc.Space
	for s := range to {
		to[s] = alloc.Space(s)
	}
	t.Meta.Devices = slices.Clone(t.Meta.Devices)
	for _, i := range list {
		d := &t.Meta.Devices[i]
		to[d.Space] = base
		for k := range m.Devices {
			if m.Devices[k].Name == d.Name && m.Devices[k].Space == d.Space {
				m.Devices[k].Pool = cardsName
				if len(list) > 1 {
					m.Devices[k].Places = defaultPlaces
				}
			}
		}
		d.Name, d.Space = cardsName, base
	}
	t.Buffers = slices.Clone(t.Buffers)
	for i := range t.Buffers {
		if b := &t.Buffers[i]; b.Space.Valid() {
			b.Space = to[b.Space]
		}
	}
	t.Items = slices.Clone(t.Items)
	for i := range t.Items {
		t.Items[i].Needs = needsIn(t.Items[i].Needs, &to)
	}
}

// knownLinks leaves links out of which nothing is known.
func (f *fit) knownLinks() {
	m := &f.out.Costs.Machine
	for _, l := range m.Links {
		if l.BytesPerSecond > 0 {
			continue
		}
		f.notef("the recording does not say how much %s carries: it limits nothing", l.Name)
		for i := range m.Devices {
			if m.Devices[i].Link == l.Name {
				m.Devices[i].Link = ""
			}
		}
	}
	m.Links = slices.DeleteFunc(m.Links, func(l Link) bool { return l.BytesPerSecond <= 0 })
}

// needsIn are needs with other spaces.
func needsIn(needs []trace.NodeNeed, to *[alloc.MaxSpaces]alloc.Space) (out []trace.NodeNeed) {
	move := func(a alloc.Amount) (b alloc.Amount) {
		for s, n := range a {
			b[to[s]] += n
		}
		return b
	}
	for _, n := range needs {
		x := trace.NodeNeed{Stage: n.Stage, Need: pipeline.Need{Scratch: move(n.Need.Scratch), Ends: n.Need.Ends}}
		for _, p := range n.Need.Makes {
			x.Need.Makes = append(x.Need.Makes, pipeline.Part{Name: p.Name, Bytes: move(p.Bytes)})
		}
		out = append(out, x)
	}
	return out
}

// widths are how many calls at once a card may do as fast as one.
var widths = []float64{1, 1.5, 2, 3, 4, 8}

// clearly is by how much a width has to explain more than another to be believed.
const clearly = 0.9

// cardWorks finds how many calls of its stages a card does at once as fast as one: so
// many that what a call takes by itself differs least from call to call. Cards differ
// by how long the same stages take on them.
func (f *fit) cardWorks() {
	if len(f.pool) == 0 {
		f.works()
		return
	}
	best, least := 1.0, math.Inf(1)
	for _, w := range widths {
		f.width = w
		f.works()
		if s := f.scatter(); s < least*clearly {
			best, least = w, s
		}
	}
	f.width = best
	f.works()
	m := &f.out.Costs.Machine
	speeds := f.cardSpeeds()
	for _, i := range f.pool {
		k := slices.IndexFunc(m.Devices, func(d Device) bool { return d.Pool != "" && d.Space == f.spaces[i] })
		if k < 0 {
			continue
		}
		m.Devices[k].Speed, m.Devices[k].Width = speeds[i], best
		if best == 1 {
			m.Devices[k].Width = 0
		}
		if speeds[i] == 1 {
			m.Devices[k].Speed = 0
		}
	}
	for k := range f.calls {
		if d := f.deviceAt(k); d >= 0 {
			for s := range f.calls[k].work {
				f.calls[k].work[s] *= or1(speeds[d])
			}
		}
	}
}

// onCards are the works of a node's good calls, in seconds, by card.
func (f *fit) onCards(n *fitNode) map[int][]float64 {
	out := make(map[int][]float64)
	for _, k := range n.calls {
		if d := f.deviceAt(k); d >= 0 && f.calls[k].good {
			w := 0.0
			for _, x := range f.calls[k].work {
				w += x
			}
			out[d] = append(out[d], w)
		}
	}
	return out
}

// scatter is how much the works of calls on cards differ, against their means.
func (f *fit) scatter() float64 {
	var off, all float64
	for i := range f.nodes {
		for _, works := range f.onCards(&f.nodes[i]) {
			mean := 0.0
			for _, w := range works {
				mean += w / float64(len(works))
			}
			dev := 0.0
			for _, w := range works {
				dev += abs(w - mean)
			}
			if mean > 0 && len(works) > 2 {
				took := f.usualTime(&f.nodes[i])
				off, all = off+dev/mean*took, all+float64(len(works))*took
			}
		}
	}
	if all == 0 {
		return 1
	}
	return off/all + 1e-6
}

// usualTime is how long the calls of a node took on average, with others or not.
func (f *fit) usualTime(n *fitNode) float64 {
	var s sum
	for _, k := range n.calls {
		if f.calls[k].good {
			s.add((f.t.Calls[k].End - f.t.Calls[k].Begin).Seconds())
		}
	}
	return s.mean()
}

// sameSpeed is what two cards may differ by and be alike.
const sameSpeed = 0.1

// cardSpeeds are the speeds of the cards against the first that was at work.
func (f *fit) cardSpeeds() map[int]float64 {
	out := make(map[int]float64)
	first := -1
	for _, d := range f.pool {
		out[d] = 1
		var here, there float64
		for i := range f.nodes {
			by := f.onCards(&f.nodes[i])
			if first >= 0 && len(by[d]) > 0 && len(by[first]) > 0 {
				here, there = here+medianOf(by[d]), there+medianOf(by[first])
			} else if first < 0 && len(by[d]) > 0 {
				first = d
				break
			}
		}
		if here > 0 && there > 0 && abs(there/here-1) > sameSpeed {
			out[d] = there / here
		}
	}
	return out
}

// cardNodes adds what there is to say of the nodes that ran on cards: their lanes, and
// what they send.
func (f *fit) cardNodes() {
	if len(f.pool) == 0 {
		return
	}
	for i := range f.nodes {
		n := f.out.Costs.Nodes[f.nodes[i].name]
		if !slices.ContainsFunc(n.Steps, func(s Step) bool { return s.Device == cardsName }) {
			continue
		}
		if n.Lanes = f.t.Graph.Nodes[i].Workers; len(f.pool) > 1 {
			n.Lanes = max(f.atOnce(&f.nodes[i]), 1)
		}
		f.out.Costs.Nodes[f.nodes[i].name] = n
	}
	f.sends()
}

// mostSlack is what two calls in one lane may seem to overlap by.
const mostSlack = 10 * time.Millisecond

// atOnce is how many calls of a node one card had at once, at most.
func (f *fit) atOnce(n *fitNode) (most int) {
	type edge struct {
		at time.Duration
		by int
	}
	for _, d := range f.pool {
		var edges []edge
		for _, k := range n.calls {
			if c := &f.t.Calls[k]; c.Device == d && c.End > c.Begin {
				// A lane is given up a little before the call is over.
				slack := min((c.End-c.Begin)/10, mostSlack)
				edges = append(edges, edge{c.Begin, 1}, edge{c.End - slack, -1})
			}
		}
		slices.SortFunc(edges, func(a, b edge) int { // who gives a lane up comes first
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.by - b.by
		})
		now := 0
		for _, e := range edges {
			now += e.by
			most = max(most, now)
		}
	}
	return most
}

// sends shares what went to the cards out among the stages: what they read of host
// memory, each buffer once, and the rest by how long they were on a card. A stage that
// is over before that could have come hands it on to the one behind it, which waits
// for it.
func (f *fit) sends() {
	var up int64
	for _, i := range f.pool {
		up += f.t.Meta.Devices[i].Up
	}
	m := &f.out.Costs.Machine
	items := 0
	for _, it := range f.t.Items {
		if it.Admitted >= 0 {
			items++
		}
	}
	if up == 0 || items == 0 || len(m.Links) == 0 {
		return
	}
	first := slices.IndexFunc(m.Devices, func(d Device) bool { return d.Pool != "" })
	link := slices.IndexFunc(m.Links, func(l Link) bool { return l.Name == m.Devices[first].Link })
	if link < 0 {
		return
	}
	each := float64(up) / float64(items)
	bytes, times := make([]float64, len(f.nodes)), make([]float64, len(f.nodes))
	var read, time float64
	seen := make(map[int]bool)
	for k := range f.t.Calls { // in order of their ends; batch-add and b_g2_msm share w
		c := &f.t.Calls[k]
		if f.deviceAt(k) < 0 {
			continue
		}
		for _, r := range c.Reads {
			if b := &f.t.Buffers[r.Buffer]; !seen[r.Buffer] && b.Space <= alloc.Pinned && b.Kind != alloc.MappedFile {
				seen[r.Buffer] = true
				bytes[c.Node] += float64(b.Bytes) / float64(items)
				read += float64(b.Bytes) / float64(items)
			}
		}
		times[c.Node] += (c.End - c.Begin).Seconds()
		time += (c.End - c.Begin).Seconds()
	}
	for i := range bytes {
		switch {
		case read > each:
			bytes[i] *= each / read
		case time > 0:
			bytes[i] += (each - read) * times[i] / time
		}
	}
	speed := m.Links[link].BytesPerSecond
	for i := range f.nodes {
		n := f.out.Costs.Nodes[f.nodes[i].name]
		k := slices.IndexFunc(n.Steps, func(s Step) bool { return s.Device == cardsName })
		if bytes[i] == 0 || k < 0 {
			continue
		}
		if n.Steps[k].Seconds < bytes[i]/speed {
			if next := f.behindOnCard(i); next >= 0 {
				bytes[next] += bytes[i]
				continue
			}
		}
		n.Steps[k].LinkBytes = int64(bytes[i] + 0.5)
	}
}

// behindOnCard is the first stage that takes the values of a node and runs on a card.
func (f *fit) behindOnCard(node int) int {
	for i, n := range f.t.Graph.Nodes {
		if slices.Contains(n.Preds, node) &&
			slices.ContainsFunc(f.out.Costs.Nodes[n.Name].Steps, func(s Step) bool { return s.Device == cardsName }) {
			return i
		}
	}
	return -1
}
