package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// DeviceSummary is what a run came to on one device.
type DeviceSummary struct {
	Device int // in Meta.Devices
	Name   string
	Calls  int
	Items  int           // that had a call there
	Work   time.Duration // of all calls, without what they waited for their turn
	Busy   time.Duration // in which any of them was at work

	// Utilisation is Busy by the time of the run, 0 to 1.
	Utilisation float64

	Peak   int64 // bytes of its memory, of what belongs to items
	PeakAt time.Duration
	Kept   int64 // bytes that belong to no item, at most: keys, tables
	Budget int64 // for items; 0: none
	Stages []DeviceStage
}

// DeviceStage is what the calls of one node came to on a device.
type DeviceStage struct {
	Node  int
	Calls int
	Work  time.Duration
}

// Devices summarises the devices of the run, in the order of Meta.
func (t *Trace) Devices() []DeviceSummary {
	out := make([]DeviceSummary, len(t.Meta.Devices))
	at := make([][]stretch, len(out))
	items := make([]map[int]bool, len(out))
	for i, d := range t.Meta.Devices {
		out[i] = DeviceSummary{Device: i, Name: d.Name}
		items[i] = make(map[int]bool)
		if d.Space.Valid() && d.Space.DeviceIndex() >= 0 {
			out[i].Budget = t.Meta.Budget[d.Space]
			out[i].memory(t, d.Space)
		}
	}
	for k := range t.Calls {
		c := &t.Calls[k]
		if c.Device < 0 || c.Device >= len(out) || c.End <= c.Begin {
			continue
		}
		s, w := &out[c.Device], c.work()
		s.Calls++
		s.Work += w.to - w.from
		items[c.Device][c.Item] = true
		at[c.Device] = append(at[c.Device], w)
		i := slices.IndexFunc(s.Stages, func(d DeviceStage) bool { return d.Node == c.Node })
		if i < 0 {
			i = len(s.Stages)
			s.Stages = append(s.Stages, DeviceStage{Node: c.Node})
		}
		s.Stages[i].Calls++
		s.Stages[i].Work += w.to - w.from
	}
	for i := range out {
		s := &out[i]
		s.Items, s.Busy = len(items[i]), covered(at[i])
		if t.Wall > 0 {
			s.Utilisation = s.Busy.Seconds() / t.Wall.Seconds()
		}
		slices.SortFunc(s.Stages, func(a, b DeviceStage) int { return cmp.Compare(a.Node, b.Node) })
	}
	return out
}

// stretch is a time.
type stretch struct{ from, to time.Duration }

// work is when a call was at work: without what it waited for its turn, which is
// taken to have been at its beginning.
func (c *Call) work() stretch { return stretch{min(c.Begin+max(c.Waited, 0), c.End), c.End} }

// covered is the time in which any of the stretches is.
func covered(all []stretch) (sum time.Duration) {
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var until time.Duration
	for _, s := range all {
		if s.to > until {
			sum += s.to - max(s.from, until)
			until = s.to
		}
	}
	return sum
}

// memory finds the peak of what items had in a space, and of the rest.
func (s *DeviceSummary) memory(t *Trace, space alloc.Space) {
	type change struct {
		at    time.Duration
		bytes int64
		kept  bool
	}
	var changes []change
	for i := range t.Buffers {
		b := &t.Buffers[i]
		if b.Space != space || b.Kind == alloc.MappedFile {
			continue
		}
		changes = append(changes, change{b.Born, b.Bytes, b.Item < 0})
		if b.Died > 0 {
			changes = append(changes, change{b.Died, -b.Bytes, b.Item < 0})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.bytes, b.bytes)) })
	var now, kept int64
	for _, c := range changes {
		if c.kept {
			kept += c.bytes
			s.Kept = max(s.Kept, kept)
			continue
		}
		if now += c.bytes; now > s.Peak {
			s.Peak, s.PeakAt = now, c.at
		}
	}
}
