package plan

import (
	"cmp"
	"slices"
)

// taken is a section of a call that has had the turn.
type taken struct {
	piece
	asked float64 // not before: the end of the call's section before, or its beginning
	call  int
	step  int
}

// gapRounds is how often the work before sections is found from what was found
// the time before.
const gapRounds = 4

// gaps shortens what is before sections to what was work. Where another had the
// turn meanwhile, the section begins when that one ended: from then on it is this
// call's turn, though it may take a while until a core has noticed.
func (f *fit) gaps() {
	var had []taken
	for i := range f.nodes {
		n := &f.nodes[i]
		for _, k := range n.calls {
			for s := 1; s < len(n.steps); s += 2 {
				if p := f.calls[k].parts[s]; p.to > p.from {
					had = append(had, taken{p, f.calls[k].parts[s-1].from, k, s})
				}
			}
		}
	}
	slices.SortFunc(had, func(a, b taken) int { return cmp.Compare(a.to, b.to) })
	// When somebody asked follows from the work before, and that from who asked when.
	for range gapRounds {
		works := make(map[int]float64)
		for i := range f.nodes {
			n := &f.nodes[i]
			for s := 0; s+1 < len(n.steps); s += 2 {
				works[n.steps[s].id] = f.gapWork(n, s, had)
			}
		}
		for i := range had {
			h := &had[i]
			h.asked = min(f.calls[h.call].parts[h.step-1].from+works[f.nodes[f.t.Calls[h.call].Node].steps[h.step-1].id], h.from)
		}
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		for s := 0; s+1 < len(n.steps); s += 2 {
			work := f.gapWork(n, s, had)
			for _, k := range n.calls {
				gap, section := &f.calls[k].parts[s], &f.calls[k].parts[s+1]
				if at, waited := freeSince(had, *gap); waited && section.to > section.from {
					section.from = min(max(at, gap.from+work), section.from)
					gap.to = min(gap.from+work, section.from)
				}
			}
		}
	}
}

// freeSince is when the last of others ended that had the turn during a gap, if any
// had.
func freeSince(had []taken, gap piece) (float64, bool) {
	i := behind(had, gap)
	if i == 0 || had[i-1].to <= gap.from+touch {
		return 0, false
	}
	return min(had[i-1].to, gap.to), true
}

// behind is the place behind the last that ended before a gap did.
func behind(had []taken, gap piece) int {
	i, _ := slices.BinarySearchFunc(had, gap.to+touch, func(t taken, at float64) int { return cmp.Compare(t.to, at) })
	return i
}

// contended is in how many gaps of a call others had the turn.
func (f *fit) contended(n *fitNode, call int, had []taken) (count int) {
	for s := 0; s+1 < len(n.steps); s += 2 {
		if _, waited := freeSince(had, f.calls[call].parts[s]); waited {
			count++
		}
	}
	return count
}

// gapWork is how long the work before a section takes: as long as the gap where
// nobody else had the turn in it. Where somebody always had, it is at most the
// shortest gap, and those who came later and had the turn earlier say what it is at
// least: the turn goes round in order of asking.
func (f *fit) gapWork(n *fitNode, s int, had []taken) float64 {
	var free, least, most []float64
	for _, k := range n.calls {
		gap := f.calls[k].parts[s]
		section := f.calls[k].parts[s+1]
		if !f.calls[k].good || section.to <= section.from {
			continue
		}
		if _, waited := freeSince(had, gap); !waited {
			free = append(free, gap.to-gap.from)
			continue
		}
		if wait := f.t.Calls[k].Waited.Seconds(); wait > 0 && f.contended(n, k, had) == 1 {
			free = append(free, max(gap.to-gap.from-wait, 0)) // the recording says it
			continue
		}
		most = append(most, gap.to-gap.from)
		low := 0.0
		for i := behind(had, gap) - 1; i >= 0 && had[i].to > gap.from; i-- {
			if t := had[i]; t.call != k && t.from < gap.to {
				low = max(low, t.asked-gap.from)
			}
		}
		least = append(least, low)
	}
	switch {
	case len(free) > 0:
		return medianOf(free)
	case len(most) > 0:
		return min(quantile(least, 0.9), slices.Min(most))
	}
	return 0
}
