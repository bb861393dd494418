package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/snarkline/snarkline/alloc"
)

// turnName is the device that stands for what calls do in turns.
const turnName = "turn"

const (
	alike      = 0.5   // of the time that either of two slots is there, both are: one section
	touch      = 50e-6 // seconds that what excludes each other may seem to overlap by
	handover   = 0.5e-3
	fewest     = 5   // handovers that are needed to believe in turns
	mostly     = 0.7 // of the waits that there seem to be have to end with a handover
	candidates = 18  // sections among which turns are looked for
)

// section is slots of a node that come and go together, a candidate for what is
// done in turns.
type section struct {
	node  *fitNode
	slots []*slot
	in    map[int]piece // by call
	held  float64       // seconds, over all calls
}

// turns finds the sections that exclude each other, over all nodes.
func (f *fit) turns() {
	var all []*section
	for i := range f.nodes {
		all = append(all, f.sections(&f.nodes[i])...)
	}
	all = slices.DeleteFunc(all, func(s *section) bool { return s.held < 1e-4*f.t.Wall.Seconds() })
	slices.SortStableFunc(all, func(a, b *section) int { return cmp.Compare(b.held, a.held) })
	if len(all) > candidates {
		all = all[:candidates]
	}
	chosen := f.proven(f.exclusive(all))
	chosen = append(chosen, f.kin(all, chosen)...)
	for _, s := range chosen {
		s.node.sections = append(s.node.sections, s.slots)
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		slices.SortStableFunc(n.sections, func(a, b []*slot) int { return cmp.Compare(f.usual(a), f.usual(b)) })
	}
	if len(chosen) == 0 {
		return
	}
	f.spare = true
	m := &f.out.Costs.Machine
	m.Devices = append(m.Devices, Device{Name: turnName, Space: alloc.Host})
}

// usual is when in its calls a section begins, as a mean in seconds.
func (f *fit) usual(slots []*slot) float64 {
	var at sum
	for k, p := range f.sectionSpans(slots) {
		at.add(p.from - f.t.Calls[k].Begin.Seconds())
	}
	return at.mean()
}

// sectionSpans is when a section was there, by call.
func (f *fit) sectionSpans(slots []*slot) map[int]piece {
	in := make(map[int]piece)
	for _, s := range slots {
		for k, b := range s.in {
			p := f.span(b)
			if old, ok := in[k]; ok {
				p = piece{min(p.from, old.from), max(p.to, old.to)}
			}
			c := &f.t.Calls[k]
			in[k] = piece{max(p.from, c.Begin.Seconds()), min(p.to, c.End.Seconds())}
		}
	}
	return in
}

// sections puts the slots of a node together that come and go together.
func (f *fit) sections(n *fitNode) (out []*section) {
	for _, s := range n.order {
		if s.space.DeviceIndex() >= 0 {
			continue // a card is shared by its own rules
		}
		at := slices.IndexFunc(out, func(o *section) bool {
			var both, either float64
			for k, b := range s.in {
				p := f.span(b)
				q, ok := o.in[k]
				if !ok {
					either += p.to - p.from
					continue
				}
				both += max(min(p.to, q.to)-max(p.from, q.from), 0)
				either += max(p.to, q.to) - min(p.from, q.from)
			}
			return both > alike*either
		})
		if at < 0 {
			at = len(out)
			out = append(out, &section{node: n})
		}
		out[at].slots = append(out[at].slots, s)
		out[at].in = f.sectionSpans(out[at].slots)
	}
	for _, s := range out {
		for _, p := range s.in {
			s.held += max(p.to-p.from, 0)
		}
	}
	return out
}

// hold is a section of one call.
type hold struct {
	piece
	section, call int
}

// holds are those of sections, in order of their beginning.
func holds(all []*section) (out []hold) {
	for i, s := range all {
		for k, p := range s.in {
			out = append(out, hold{p, i, k})
		}
	}
	slices.SortFunc(out, func(a, b hold) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.call, b.call)) })
	return out
}

// exclusive is the set of sections of which no two overlap, and among which there
// are the most handovers.
func (f *fit) exclusive(all []*section) (best []*section) {
	apart := make([]uint32, len(all)) // whom each overlaps
	alone := uint32(0)                // who overlaps itself, in another call
	in := holds(all)
	var open []hold
	for _, h := range in {
		open = slices.DeleteFunc(open, func(o hold) bool { return o.to <= h.from })
		for _, o := range open {
			if min(o.to, h.to)-h.from < touch {
				continue
			}
			if o.section == h.section {
				alone |= 1 << h.section
			}
			apart[o.section] |= 1 << h.section
			apart[h.section] |= 1 << o.section
		}
		open = append(open, h)
	}
	handed := f.handovers(in, len(all))
	var chosen uint32
	most := 0
	for set := uint32(1); set < 1<<len(all); set++ {
		if set&alone != 0 {
			continue
		}
		count, ok := 0, true
		for rest := set; rest != 0 && ok; rest &= rest - 1 {
			i := bits.TrailingZeros32(rest)
			ok = apart[i]&set == 0
			for to := set; to != 0; to &= to - 1 {
				count += handed[i][bits.TrailingZeros32(to)]
			}
		}
		if ok && count > most {
			chosen, most = set, count
		}
	}
	for i, s := range all {
		if chosen&(1<<i) != 0 {
			best = append(best, s)
		}
	}
	return best
}

// handovers counts how often one section began when another ended that began
// before, while its call was there.
func (f *fit) handovers(in []hold, n int) [][]int {
	out := make([][]int, n)
	for i := range out {
		out[i] = make([]int, n)
	}
	ends := slices.Clone(in)
	slices.SortFunc(ends, func(a, b hold) int { return cmp.Compare(a.to, b.to) })
	for _, h := range in {
		begin := f.t.Calls[h.call].Begin.Seconds()
		i, _ := slices.BinarySearchFunc(ends, h.from-handover, func(e hold, t float64) int { return cmp.Compare(e.to, t) })
		for ; i < len(ends) && ends[i].to <= h.from+touch; i++ {
			if e := ends[i]; e.call != h.call && e.to > begin+touch && e.from < h.from {
				out[e.section][h.section]++
			}
		}
	}
	return out
}

// proven are those sections of a set that others seem to have waited for, or that
// have waited for others: they begin at the moment when another ends.
func (f *fit) proven(set []*section) (out []*section) {
	all := holds(set)
	waits, handed, gave := make([]int, len(set)), make([]int, len(set)), make([]int, len(set))
	gaps := make([][]float64, len(set))
	total := 0
	for i, h := range all {
		if i == 0 || all[i-1].call == h.call {
			continue
		}
		last, since := all[i-1], f.before(h, set)
		if last.to <= since+touch {
			continue // nobody had it while the call was there
		}
		waits[h.section]++
		if h.from-last.to < handover {
			handed[h.section]++
			gave[last.section]++
			gaps[h.section] = append(gaps[h.section], h.from-since)
			total++
		}
	}
	if total < fewest {
		return nil
	}
	for i, s := range set {
		took := waits[i] >= 3 && float64(handed[i]) >= mostly*float64(waits[i]) && vary(gaps[i])
		if took || waits[i] < 3 && gave[i] >= 3 {
			out = append(out, s)
		}
	}
	if len(out) < len(set) && len(out) > 0 {
		return f.proven(out)
	}
	return out
}

// vary reports whether lengths differ. Waits do; what is as long in every call is
// work, though it may end when something else does: stages in step look like that.
func vary(lengths []float64) bool {
	var m sum
	for _, l := range lengths {
		m.add(l)
	}
	return slices.Max(lengths)-slices.Min(lengths) > 0.05*m.mean()
}

// kin are sections beside those that are proven which are of the same kind: of the
// same node and purpose, of about the same size, and never overlapping one of them.
func (f *fit) kin(all, proven []*section) (out []*section) {
	for _, s := range all {
		like := slices.ContainsFunc(proven, func(p *section) bool {
			return p.node == s.node && slices.ContainsFunc(p.slots, func(a *slot) bool {
				return slices.ContainsFunc(s.slots, func(b *slot) bool {
					x, y := f.bytesOf(a), f.bytesOf(b)
					return a.purpose == b.purpose && a.space == b.space && x <= 2*y && y <= 2*x
				})
			})
		})
		if like && !slices.Contains(proven, s) && !overlap(append([]*section{s}, proven...)) {
			out = append(out, s)
			proven = append(proven, s)
		}
	}
	return out
}

// overlap reports whether the first of sections overlaps any, in another call or
// its own.
func overlap(all []*section) bool {
	var open []hold
	for _, h := range holds(all) {
		open = slices.DeleteFunc(open, func(o hold) bool { return o.to <= h.from })
		for _, o := range open {
			if (o.section == 0 || h.section == 0) && min(o.to, h.to)-h.from >= touch {
				return true
			}
		}
		open = append(open, h)
	}
	return false
}

// bytesOf is the mean size of a slot.
func (f *fit) bytesOf(s *slot) float64 {
	var m sum
	for _, b := range s.in {
		m.add(float64(f.t.Buffers[b].Bytes))
	}
	return m.mean()
}

// before is since when a call could have begun a section: the end of its one
// before, or its own beginning.
func (f *fit) before(h hold, set []*section) float64 {
	at := f.t.Calls[h.call].Begin.Seconds()
	for _, s := range set {
		if p, ok := s.in[h.call]; ok && p.to <= h.from {
			at = max(at, p.to)
		}
	}
	return at
}
