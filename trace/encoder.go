package trace

import (
	"encoding/binary"
	"encoding/json"
	"time"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// encoder makes records. It knows what the file says already.
type encoder struct {
	buf     []byte
	last    time.Duration // of the record before, in this frame
	counted time.Duration // of the change of memory before: no two are at one time

	nodes    map[string]int
	stages   map[alloc.Stage]uint64 // their numbers among the strings
	purposes map[alloc.Purpose]uint64
	strings  uint64
	needs    map[string]uint64
	nbNeeds  uint64
	ids      []uint64 // of an event's buffers, used anew each time
	known    struct { // the needs of the last item: mostly those of the next too
		at *NodeNeed
		id uint64
	}
}

func (e *encoder) begin(buf []byte, g pipeline.Topology) {
	e.buf = buf
	e.nodes = make(map[string]int, len(g.Nodes))
	for i, n := range g.Nodes {
		e.nodes[n.Name] = i
	}
	e.stages = make(map[alloc.Stage]uint64)
	e.purposes = make(map[alloc.Purpose]uint64)
	e.needs = make(map[string]uint64)
}

// next is the frame so far; the records that follow go into another buffer.
func (e *encoder) next(fresh []byte) (frame []byte) {
	frame, e.buf, e.last = e.buf, fresh, 0
	return frame
}

func (e *encoder) head(rec byte, at time.Duration) {
	e.buf = append(e.buf, rec)
	e.buf = binary.AppendVarint(e.buf, int64(at-e.last))
	e.last = at
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }

func (e *encoder) str(s string) {
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) text(rec byte, at time.Duration, s []byte) {
	e.head(rec, at)
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// maxNeeds is how many different needs are remembered.
const maxNeeds = 1024

// maxText is what is kept of an error's text or a key's job.
const maxText = 4096

func cut(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}

func (e *encoder) event(v *pipeline.Event, needs []NodeNeed) {
	e.ids = e.ids[:0]
	for i := range v.NbRefs() {
		e.ids = append(e.ids, alloc.IDOf(v.Ref(i)))
	}
	e.eventOf(v, e.ids, needs)
}

// eventOf is event with the numbers of the buffers.
func (e *encoder) eventOf(v *pipeline.Event, refs []uint64, needs []NodeNeed) {
	var has byte
	var needsID uint64
	if len(needs) > 0 {
		if id, ok := e.needsOf(v.At, needs); ok {
			has |= hasNeeds
			needsID = id
		}
	}
	if v.Call != 0 {
		has |= hasCall
	}
	if v.Kind == pipeline.Arrived || v.Kind == pipeline.Failed || v.Item == 0 && v.Key != (pipeline.Key{}) {
		has |= hasKey
	}
	if v.Err != nil {
		has |= hasErr
	}
	if v.Attempt != 0 {
		has |= hasAttempt
	}
	if v.Slot != 0 {
		has |= hasSlot
	}
	if len(refs) > 0 {
		has |= hasRefs
	}
	if v.Kind == pipeline.Resized || v.Kind == pipeline.WaitedIn {
		has |= hasNumbers
	}
	e.head(recEvent, v.At)
	e.buf = append(e.buf, byte(v.Kind), has)
	node := 0
	if v.Stage != "" {
		if i, ok := e.nodes[v.Stage]; ok {
			node = i + 1
		}
	}
	e.uint(uint64(node))
	e.uint(v.Item)
	if has&hasCall != 0 {
		e.uint(v.Call)
	}
	if has&hasKey != 0 {
		e.str(cut(v.Key.Job))
		e.buf = binary.AppendVarint(e.buf, int64(v.Key.Part))
	}
	if has&hasErr != 0 {
		e.str(cut(v.Err.Error()))
	}
	if has&hasAttempt != 0 {
		e.uint(uint64(v.Attempt))
	}
	if has&hasSlot != 0 {
		e.uint(uint64(v.Slot))
	}
	if has&hasRefs != 0 {
		e.uint(uint64(len(refs)))
		for _, id := range refs {
			e.uint(id)
		}
	}
	if has&hasNeeds != 0 {
		e.uint(needsID)
	}
	if has&hasNumbers != 0 {
		n, d := uint64(v.Workers), int64(v.Capacity)
		if v.Kind == pipeline.WaitedIn {
			n, d = 0, int64(v.Wait)
		}
		e.uint(n)
		e.buf = binary.AppendVarint(e.buf, d)
	}
}

// needsOf is the number of some needs; those that are new are written first.
func (e *encoder) needsOf(at time.Duration, needs []NodeNeed) (id uint64, ok bool) {
	if first := unsafe.SliceData(needs); e.known.at == first {
		return e.known.id, true
	}
	text, err := json.Marshal(needs)
	if err != nil {
		return 0, false // a float that is none, say: nothing that a need has
	}
	id, ok = e.needs[string(text)]
	if !ok {
		if len(e.needs) >= maxNeeds {
			clear(e.needs) // they hardly repeat; what comes is written again
		}
		id = e.nbNeeds
		e.nbNeeds++
		e.needs[string(text)] = id
		e.text(recNeeds, at, text)
	}
	e.known.at, e.known.id = unsafe.SliceData(needs), id
	return id, true
}

func (e *encoder) name(at time.Duration, s string) uint64 {
	e.text(recString, at, []byte(cut(s)))
	e.strings++
	return e.strings - 1
}

func (e *encoder) stage(at time.Duration, s alloc.Stage) uint64 {
	id, ok := e.stages[s]
	if !ok {
		id = e.name(at, s.String())
		e.stages[s] = id
	}
	return id
}

func (e *encoder) purpose(at time.Duration, p alloc.Purpose) uint64 {
	id, ok := e.purposes[p]
	if !ok {
		id = e.name(at, p.String())
		e.purposes[p] = id
	}
	return id
}

func (e *encoder) memory(at time.Duration, c *alloc.Change) {
	// Changes come in the order of the counters; their times show it.
	if c.What != alloc.Present {
		at = max(at, e.counted+1)
		e.counted = at
	} else {
		at = 0
	}
	names := [3]uint64{e.stage(at, c.Stage), e.purpose(at, c.Purpose), 0}
	if c.What == alloc.Handed {
		names[2] = e.stage(at, c.From)
	}
	e.change(at, c, names)
}

// change writes a change with the numbers of its stage, its purpose, and the stage
// that had it before.
func (e *encoder) change(at time.Duration, c *alloc.Change, names [3]uint64) {
	e.head(recMemory, at)
	e.buf = append(e.buf, byte(c.What), byte(c.Space), byte(c.Kind))
	e.uint(c.ID)
	e.uint(names[0])
	e.uint(names[1])
	e.uint(uint64(c.Bytes))
	switch c.What {
	case alloc.Born:
		e.uint(c.Tag)
	case alloc.Handed:
		e.uint(names[2])
	}
}

func (e *encoder) sample(at, cpu time.Duration, rss int64) {
	e.head(recSample, at)
	e.uint(uint64(max(cpu, 0)))
	e.uint(uint64(max(rss, 0)))
}
