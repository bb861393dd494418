package cuda

import (
	"slices"
	"sync"

	"github.com/snarkline/snarkline/gpu"
)

// busy is the time in which operations were under way on the card, each from
// the first thing queued to the last one done; where several were, once. It is
// told by the card's own clock: events of all streams against one at the
// beginning.
type busy struct {
	mu     sync.Mutex
	gen    uint64
	epoch  gpu.Event
	spans  []span  // apart from each other, in order
	folded float64 // ms of spans that were before these
	since  float64 // nothing before it is counted any more
}

// span is from one time to another, in ms since the epoch.
type span struct{ from, to float64 }

// busySpans is how many spans are kept, for operations that end out of order.
const busySpans = 1024

// begin makes the epoch of a generation, if there is none yet, as a mark in st.
func (b *busy) begin(dev gpu.Device, st gpu.Stream, gen uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch != nil && b.gen == gen {
		return
	}
	b.end()
	ev, err := dev.NewEvent(true)
	if err != nil {
		return // the time is not told
	}
	if st.Record(ev) != nil {
		_ = ev.Close()
		return
	}
	b.epoch, b.gen = ev, gen
}

// end gives the epoch up. Callers hold the lock, or nobody else knows b any more.
func (b *busy) end() {
	b.fold(len(b.spans))
	b.since = 0
	if b.epoch != nil {
		_ = b.epoch.Close() // what cannot be closed ends with the context
		b.epoch = nil
	}
}

// add counts an operation between two marks that were passed. What cannot be
// told is not counted.
func (b *busy) add(from, to gpu.Event, gen uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch == nil || b.gen != gen {
		return
	}
	f, err := from.Since(b.epoch)
	if err != nil {
		return
	}
	t, err := to.Since(b.epoch)
	if err != nil {
		return
	}
	b.count(span{max(f, b.since), t})
}

// count adds a span to those that there are.
func (b *busy) count(s span) {
	if s.to <= s.from {
		return
	}
	i, _ := slices.BinarySearchFunc(b.spans, s.from, func(x span, from float64) int {
		if x.to < from {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(b.spans) && b.spans[j].from <= s.to; j++ {
		s.from, s.to = min(s.from, b.spans[j].from), max(s.to, b.spans[j].to)
	}
	b.spans = slices.Replace(b.spans, i, j, s)
	if len(b.spans) > busySpans {
		b.fold(busySpans / 2)
	}
}

// fold adds up the first n spans.
func (b *busy) fold(n int) {
	for _, s := range b.spans[:n] {
		b.folded += s.to - s.from
		b.since = max(b.since, s.to)
	}
	b.spans = slices.Delete(b.spans, 0, n)
}

// ms is the time so far.
func (b *busy) ms() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.folded
	for _, s := range b.spans {
		sum += s.to - s.from
	}
	return sum
}
