package trace

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
)

// trace ends what is open and puts everything in order.
func (b *builder) trace() *Trace {
	t := b.t
	if !b.ended {
		t.Cut = true
		t.Wall = b.until
	}
	for k := range t.Calls {
		c := &t.Calls[k]
		if c.End == open {
			c.End, c.Out, c.Err = t.Wall, t.Wall, Unended
		}
		c.Out = max(c.Out, c.End)
		c.Waited = min(c.Waited, c.End-c.Begin)
		for i := range c.Reads {
			if r := &c.Reads[i]; r.Until == open {
				r.Until = t.Wall
			}
		}
	}
	for at, w := range b.queue {
		b.visit(w, at, t.Wall)
	}
	for at, w := range b.turns {
		b.visit(w, at, t.Wall)
	}
	for i := range t.Visits {
		if v := &t.Visits[i]; v.Until == open {
			v.Until = max(t.Wall, v.From)
		}
	}
	b.rest()
	t.arrange()
	t.assignWorkers()
	t.assignDevices()
	return t
}

// arrange sorts the parts, and sets what refers to them right.
func (t *Trace) arrange() {
	late := func(d time.Duration) time.Duration { // Never comes last
		if d == Never {
			return maxTime + 1
		}
		return d
	}
	items := sorted(t.Items, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(late(a.Admitted), late(b.Admitted)), cmp.Compare(a.Arrived, b.Arrived))
	})
	calls := sorted(t.Calls, func(a, b *Call) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Begin, b.Begin)) })
	buffers := sorted(t.Buffers, func(a, b *Buffer) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(late(a.Died-1), late(b.Died-1)),
			cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Kind, b.Kind))
	})
	move := func(i *int, to []int) {
		if *i >= 0 {
			*i = to[*i]
		}
	}
	for k := range t.Calls {
		c := &t.Calls[k]
		move(&c.Item, items)
		for i := range c.Reads {
			move(&c.Reads[i].Buffer, buffers)
		}
		c.Makes = moved(c.Makes, buffers)
	}
	for k := range t.Visits {
		v := &t.Visits[k]
		move(&v.Item, items)
		v.Buffers = moved(v.Buffers, buffers)
	}
	for k := range t.Buffers {
		move(&t.Buffers[k].Item, items)
		move(&t.Buffers[k].Call, calls)
	}
	for k := range t.Notes {
		move(&t.Notes[k].Item, items)
	}
	slices.SortStableFunc(t.Visits, func(a, b Visit) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Until, b.Until), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Item, b.Item))
	})
	slices.SortStableFunc(t.Notes, func(a, b Note) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(t.Samples, func(a, b Sample) int { return cmp.Compare(a.At, b.At) })
}

// moved is a list of indices after a sort. Lists may share memory, so it is new.
func moved(list, to []int) []int {
	if list == nil {
		return nil
	}
	out := make([]int, len(list))
	for i, k := range list {
		out[i] = to[k]
	}
	return out
}

// sorted sorts a list, stably, and tells where each element has gone.
func sorted[T any](list []T, less func(a, b *T) int) (to []int) {
	from := make([]int, len(list))
	for i := range from {
		from[i] = i
	}
	slices.SortStableFunc(from, func(a, b int) int { return less(&list[a], &list[b]) })
	out := make([]T, len(list))
	to = make([]int, len(list))
	for i, k := range from {
		out[i], to[k] = list[k], i
	}
	copy(list, out)
	return to
}

// assignWorkers gives each call the lowest worker that was free.
func (t *Trace) assignWorkers() {
	byNode := make(map[int][]int)
	for k := range t.Calls {
		byNode[t.Calls[k].Node] = append(byNode[t.Calls[k].Node], k)
	}
	for _, calls := range byNode {
		slices.SortStableFunc(calls, func(a, b int) int { return cmp.Compare(t.Calls[a].Begin, t.Calls[b].Begin) })
		var free lowest
		var busy working
		next := 0
		for _, k := range calls {
			c := &t.Calls[k]
			for len(busy) > 0 && busy[0].until <= c.Begin {
				heap.Push(&free, heap.Pop(&busy).(job).worker)
			}
			if len(free) > 0 {
				c.Worker = heap.Pop(&free).(int)
			} else {
				c.Worker = next
				next++
			}
			heap.Push(&busy, job{c.Out, c.Worker})
		}
	}
}

// lowest is a heap of workers that are free.
type lowest []int

func (h lowest) Len() int           { return len(h) }
func (h lowest) Less(i, j int) bool { return h[i] < h[j] }
func (h lowest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lowest) Push(x any)        { *h = append(*h, x.(int)) }
func (h *lowest) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// working is a heap of workers that are not, by when they will be.
type working []job

type job struct {
	until  time.Duration
	worker int
}

func (h working) Len() int           { return len(h) }
func (h working) Less(i, j int) bool { return h[i].until < h[j].until }
func (h working) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *working) Push(x any)        { *h = append(*h, x.(job)) }
func (h *working) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// assignDevices says on which device a call ran that has not said it: where it has
// allocated.
func (t *Trace) assignDevices() {
	at := make(map[alloc.Space]int)
	for i := len(t.Meta.Devices) - 1; i >= 0; i-- {
		at[t.Meta.Devices[i].Space] = i
	}
	for i := range t.Buffers {
		b := &t.Buffers[i]
		if d, ok := at[b.Space]; ok && b.Call >= 0 && b.Space.DeviceIndex() >= 0 && t.Calls[b.Call].Device == None {
			t.Calls[b.Call].Device = d
		}
	}
}
