package plan

import (
	"fmt"
	"slices"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/internal/rules"
)

// pooled is what a program knows of the pools of its machine. An item has one
// number, its place, which says which device of each pool is its own.
type pooled struct {
	pool   map[string][2]int // the first group of each and how many there are
	places int               // of the largest pool; 1 without any
	spaces [][alloc.MaxSpaces]alloc.Space
	most   []int     // items by place; 0: as many as come
	speed  []float64 // of the slowest device of a place
	laned  []int     // lanes of nodes on each device as set; 0: none
}

// pools gives the devices of each pool groups of their own.
func (p *program) pools() {
	p.pool, p.places = make(map[string][2]int), 1
	var order []string
	for _, d := range p.machine.Devices {
		if d.Pool != "" && !slices.Contains(order, d.Pool) {
			order = append(order, d.Pool)
		}
	}
	for _, name := range order {
		first := len(p.groups)
		for i, d := range p.machine.Devices {
			if d.Pool == name {
				p.groups = append(p.groups, []int{i})
			}
		}
		n := len(p.groups) - first
		p.pool[name] = [2]int{first, n}
		p.places = max(p.places, n)
	}
	p.most, p.speed = make([]int, p.places), make([]float64, p.places)
	for k := range p.places {
		var to [alloc.MaxSpaces]alloc.Space
		for s := range to {
			to[s] = alloc.Space(s)
		}
		for _, name := range order {
			g := p.pool[name]
			base, d := p.machine.Devices[p.groups[g[0]][0]], p.machine.Devices[p.groups[g[0]+k%g[1]][0]]
			if base.Space.Valid() && d.Space.Valid() {
				to[base.Space] = d.Space
			}
			if d.Places > 0 && (p.most[k] == 0 || d.Places < p.most[k]) {
				p.most[k] = d.Places
			}
			if s := or1(d.Speed); p.speed[k] == 0 || s < p.speed[k] {
				p.speed[k] = s
			}
		}
		p.speed[k] = or1(p.speed[k])
		p.spaces = append(p.spaces, to)
	}
}

// poolOf is the first group of a pool and how many it has; none if there is no pool
// of that name.
func (p *program) poolOf(name string) (first, n int) {
	g, ok := p.pool[name]
	if !ok {
		return -1, 0
	}
	return g[0], g[1]
}

// linksOf are the links of the devices of a pool; nil where there is no pool.
func (p *program) linksOf(first, n int) (out []int, err error) {
	for k := range n {
		d := p.machine.Devices[p.groups[first+k][0]]
		l := p.link(d.Link)
		if l < 0 {
			return nil, fmt.Errorf("device %s is on no link", d.Name)
		}
		out = append(out, l)
	}
	return out, nil
}

// groupOf is the group of devices that a step of a call runs on.
func (e *engine) groupOf(pr *proc, st *stepProg) int {
	if st.pool > 1 {
		return st.group + int(e.its[pr.item].place)%st.pool
	}
	return st.group
}

// linkOf is the link that a step of a call sends over.
func (e *engine) linkOf(pr *proc, st *stepProg) int {
	if n := len(st.links); n > 0 {
		return st.links[int(e.its[pr.item].place)%n]
	}
	return st.link
}

// spaceOf is the space in which an item has what the costs put into at.
func (e *engine) spaceOf(item int32, at alloc.Space) alloc.Space {
	return e.p.spaces[e.its[item].place][at]
}

// need is what an item may still need at one moment.
func (e *engine) need(it *itemState) alloc.Amount {
	n := e.p.shapes[it.part][it.class].After(it.done)
	if it.place == 0 {
		return n
	}
	to := &e.p.spaces[it.place]
	out := n
	for s := range n {
		if int(to[s]) != s {
			out[s] = 0
		}
	}
	for s, b := range n {
		if int(to[s]) != s {
			out[to[s]] += b
		}
	}
	return out
}

// place finds the place of an item that wants to enter, or reports that there is none
// at the moment. An item that fits nowhere is an error.
func (e *engine) place(it *itemState) (found bool, err error) {
	var best int32 = -1
	never := true
	for k := range e.p.places {
		it.place = int32(k)
		if e.memory.on {
			need := e.need(it)
			if !need.Fits(e.memory.limit) {
				continue
			}
			never = false
			if !need.FitsBeside(e.memory.charged, e.memory.limit) {
				continue
			}
		}
		if most := e.p.most[k]; most > 0 && e.inPlace[k] >= most {
			continue
		}
		due := func(k int32) float64 { return float64(e.inPlace[k]+1) / e.p.speed[k] }
		if best < 0 || due(int32(k)) < due(best) {
			best = int32(k)
		}
	}
	it.place = max(best, 0)
	if e.memory.on && never {
		return false, fmt.Errorf("item %d needs %v, which can never fit in the budget of %v", it.seq, e.need(it), e.memory.limit)
	}
	return best >= 0, nil
}

// defaultPlaces is how many items a device of a pool has at once, as the stages have
// it where nothing else is said.
const defaultPlaces = 6

// share gives the lanes of the nodes of pools: those of the costs, or a device's share
// of the workers that are set. Nobody waits for a worker then.
func (p *program) share(set *Settings) {
	p.laned = room(p.laned, len(p.nodes))
	for i := range p.nodes {
		n := &p.t.Nodes[i]
		p.laned[i] = p.nodes[i].lanes
		if w := set.Stages[n.Name].Workers; w > 0 && p.laned[i] > 0 {
			p.laned[i] = (w + p.places - 1) / p.places
		}
		if p.laned[i] == 0 || p.places == 1 && p.laned[i] >= n.Workers {
			p.laned[i] = 0
			continue
		}
		if p.places == 1 {
			n.Workers = p.laned[i]
			continue
		}
		n.Workers = max(n.Workers, p.places*max(p.laned[i], defaultPlaces))
	}
}

// lanes are the calls of a node that a device has at once, by node and place.
type lanes struct {
	used []int
	wait []rules.Queue[int32]
}

func (l *lanes) reset(n int) {
	l.used, l.wait = room(l.used, n), room(l.wait, n)
	clear(l.used)
	for i := range l.wait {
		l.wait[i].Reset(rules.Unbounded)
	}
}

func (e *engine) laneOf(pr *proc) int {
	return int(pr.node)*e.p.places + int(e.its[pr.item].place)
}

// enter begins a call once its device has a lane for it.
func (e *engine) enter(i int32) {
	pr := &e.procs[i]
	if n := e.p.laned[pr.node]; n > 0 {
		k := e.laneOf(pr)
		if e.lanes.used[k] >= n {
			pr.state = laneless
			e.lanes.wait[k].Put(&i)
			return
		}
		e.lanes.used[k]++
	}
	e.start(i)
}

// start begins a call that has all that it needs.
func (e *engine) start(i int32) {
	pr := &e.procs[i]
	pr.state, pr.begin = resting, e.now
	pr.seat = e.log.seat(&e.nodes[pr.node])
	e.call(i)
}

// leaveLane gives the lane of a call that ends to the next.
func (e *engine) leaveLane(i int32) {
	pr := &e.procs[i]
	if e.p.laned[pr.node] == 0 {
		return
	}
	k := e.laneOf(pr)
	if q := &e.lanes.wait[k]; q.Len() > 0 {
		var w int32
		q.Take(&w)
		e.ready.Put(&w)
		return
	}
	e.lanes.used[k]--
}
