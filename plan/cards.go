package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// The choices of a simulation that are about cards, in the order in which they are
// made.
var cardChoices = []string{"devices", "links", "link", "device-memory"}

var errNoCards = errors.New("the costs are of a run without devices")

// chooseCards changes a machine and its settings by the choices that are about cards.
func (s *Simulated) chooseCards(c *Costs, set *Settings, choices map[string]string) error {
	for _, axis := range cardChoices {
		v, ok := choices[axis]
		if !ok || s.when[axis] != nil {
			continue
		}
		p, err := poolIn(c, &s.graph)
		if err != nil {
			return fmt.Errorf("%s: %w", axis, err)
		}
		switch axis {
		case "devices", "links":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return fmt.Errorf("%s: %q: want a number of 1 at least", axis, v)
			}
			if axis == "devices" {
				err = p.devices(n, s.graph.Budget, set)
			} else {
				err = p.links(n)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", axis, err)
			}
		default:
			n, err := alloc.ParseBytes(v)
			if err == nil && n < 1 {
				err = fmt.Errorf("%q: want more than 0", v)
			}
			if err == nil && axis == "link" {
				err = p.link(n)
			} else if err == nil {
				err = p.memory(n, set)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", axis, err)
			}
		}
	}
	return nil
}

// cardPool is the pool of a machine that is being changed.
type cardPool struct {
	c      *Costs
	at     []int // of Machine.Devices
	others []Device
}

// poolIn is the first pool of the machine. Where it has none the devices of the first
// name become one. c has its own lists afterwards.
func poolIn(c *Costs, g *pipeline.Topology) (*cardPool, error) {
	m := &c.Machine
	m.Devices, m.Links, c.Nodes = slices.Clone(m.Devices), slices.Clone(m.Links), maps.Clone(c.Nodes)
	isCard := func(d Device) bool { return d.Space.DeviceIndex() >= 0 }
	i := slices.IndexFunc(m.Devices, func(d Device) bool { return d.Pool != "" })
	if i < 0 {
		if i = slices.IndexFunc(m.Devices, isCard); i < 0 {
			return nil, errNoCards
		}
		name := m.Devices[i].Name
		for k := range m.Devices {
			if m.Devices[k].Name == name && isCard(m.Devices[k]) {
				m.Devices[k].Pool = name
			}
		}
	}
	p := &cardPool{c: c}
	name := m.Devices[i].Pool
	for k, d := range m.Devices {
		if d.Pool == name {
			p.at = append(p.at, k)
		} else {
			p.others = append(p.others, d)
		}
	}
	for node, n := range c.Nodes {
		if n.Lanes == 0 && slices.ContainsFunc(n.Steps, func(s Step) bool { return s.Device == name }) {
			if k := g.Index(node); k >= 0 {
				n.Lanes = (g.Nodes[k].Workers + len(p.at) - 1) / len(p.at)
				c.Nodes[node] = n
			}
		}
	}
	return p, nil
}

// devices makes the pool have n devices: the first of those that it has, and then
// others like the first, each with a link of its own.
func (p *cardPool) devices(n int, budget alloc.Amount, set *Settings) error {
	m := &p.c.Machine
	base := m.Devices[p.at[0]]
	var cards []Device
	for _, k := range p.at[:min(n, len(p.at))] {
		cards = append(cards, m.Devices[k])
	}
	room := int64(set.Budget[base.Space.String()])
	if room == 0 && base.Space.Valid() {
		room = budget[base.Space]
	}
	add := pipeline.Settings{Budget: make(map[string]pipeline.Size)}
	for len(cards) < n {
		d := base
		d.Name = fmt.Sprintf("%s, %d", base.Name, len(cards)+1)
		space, ok := freeSpace(append(slices.Clone(p.others), cards...))
		if !ok {
			return fmt.Errorf("%d: there are spaces for %d at most", n, len(cards))
		}
		d.Space = space
		m.Memory[space], m.Base[space] = m.Memory[base.Space], m.Base[base.Space]
		if room > 0 {
			add.Budget[space.String()] = pipeline.Size(room)
		}
		if i := slices.IndexFunc(m.Links, func(l Link) bool { return l.Name == base.Link }); i >= 0 {
			l := Link{fmt.Sprintf("%s, %d", base.Link, len(cards)+1), m.Links[i].BytesPerSecond}
			m.Links, d.Link = append(m.Links, l), l.Name
		}
		cards = append(cards, d)
	}
	for i := range cards {
		if cards[i].Places == 0 && n > 1 {
			cards[i].Places = defaultPlaces
		}
	}
	m.Devices = append(slices.Clone(p.others), cards...)
	set.Settings = set.Merge(add)
	return nil
}

func freeSpace(taken []Device) (alloc.Space, bool) {
	for k := 0; alloc.Device(k).Valid(); k++ {
		if s := alloc.Device(k); !slices.ContainsFunc(taken, func(d Device) bool { return d.Space == s }) {
			return s, true
		}
	}
	return 0, false
}

var errNoLink = errors.New("the costs say nothing of what carries bytes to the devices")

// links has the devices share n links: the first with each other, and so on.
func (p *cardPool) links(n int) error {
	m := &p.c.Machine
	var names []string
	for _, k := range p.at {
		if l := m.Devices[k].Link; l != "" && !slices.Contains(names, l) {
			names = append(names, l)
		}
	}
	if len(names) == 0 {
		return errNoLink
	}
	for len(names) < min(n, len(p.at)) {
		i := slices.IndexFunc(m.Links, func(l Link) bool { return l.Name == names[0] })
		l := Link{fmt.Sprintf("%s, %d", names[0], len(names)+1), m.Links[i].BytesPerSecond}
		m.Links, names = append(m.Links, l), append(names, l.Name)
	}
	for i, k := range p.at {
		m.Devices[k].Link = names[i%min(n, len(names))]
	}
	m.Links = slices.DeleteFunc(m.Links, func(l Link) bool { // that nobody is on any more
		return slices.Contains(names, l.Name) && !slices.ContainsFunc(m.Devices, func(d Device) bool { return d.Link == l.Name }) && !p.c.names(l.Name)
	})
	return nil
}

// names reports whether a step names a link.
func (c *Costs) names(link string) bool {
	for _, n := range c.Nodes {
		if slices.ContainsFunc(n.Steps, func(s Step) bool { return s.Link == link }) {
			return true
		}
	}
	return false
}

// link has the devices' links carry n bytes a second.
func (p *cardPool) link(n int64) error {
	m := &p.c.Machine
	found := false
	for _, k := range p.at {
		for i := range m.Links {
			if m.Links[i].Name == m.Devices[k].Link {
				m.Links[i].BytesPerSecond, found = float64(n), true
			}
		}
	}
	if !found {
		return errNoLink
	}
	return nil
}

// memory has each device offer n bytes, which keys share with items.
func (p *cardPool) memory(n int64, set *Settings) error {
	m := &p.c.Machine
	add := pipeline.Settings{Budget: make(map[string]pipeline.Size)}
	for _, k := range p.at {
		d := m.Devices[k]
		if !d.Space.Valid() {
			continue
		}
		room := n - m.Base[d.Space]
		if room <= 0 {
			return fmt.Errorf("%s holds %s of keys alone", d.Name, bytesText(m.Base[d.Space]))
		}
		m.Memory[d.Space] = n
		add.Budget[d.Space.String()] = pipeline.Size(room)
	}
	set.Settings = set.Merge(add)
	return nil
}
