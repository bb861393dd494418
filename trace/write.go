package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// Write writes a trace that is there as a whole, such as that of a simulated run,
// in the format of a Recorder.
func Write(w io.Writer, t *Trace) error {
	f, err := newFrameWriter(w)
	if err != nil {
		return err
	}
	go f.run()
	o := &writer{t: t, f: f}
	o.write()
	if err := f.close(); err != nil {
		return fmt.Errorf("write a recording: %w", err)
	}
	return nil
}

// writer makes the records of a trace.
type writer struct {
	t     *Trace
	f     *frameWriter
	enc   encoder
	lines []record
	names map[string]uint64

	retold map[place]bool // calls whose repetitions have notes
}

// record is one to write at a time. Of those at one time the lower rank comes
// first: what ends something before what begins something, and a call before
// what it allocates.
type record struct {
	at   time.Duration
	rank int
	put  func()
}

const (
	rankArrive = iota
	rankDied
	rankBegun // of a call that ends when it begins, what follows comes by order
	rankBorn
	rankEnd
	rankQueued
	rankOut
	rankLeft
)

func (o *writer) write() {
	t := o.t
	text, err := json.Marshal(header{t.Meta, t.Graph})
	if err != nil {
		o.f.fail(fmt.Errorf("describe the graph: %w", err))
		return
	}
	o.enc.begin(o.f.fresh(), t.Graph)
	o.enc.text(recStart, 0, text)
	o.names = make(map[string]uint64)
	o.items()
	o.retries()
	o.calls()
	o.visits()
	o.buffers()
	o.rest()
	slices.SortStableFunc(o.lines, func(a, b record) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) })
	for _, l := range o.lines {
		l.put()
		if len(o.enc.buf) >= frameSize {
			o.f.put(o.enc.next(o.f.fresh()))
		}
	}
	if !t.Cut {
		if text, err = json.Marshal(footer{Wall: t.Wall, Err: t.Err}); err != nil {
			o.f.fail(err)
			return
		}
		o.enc.text(recEnd, t.Wall, text)
	}
	o.f.put(o.enc.next(nil))
}

func (o *writer) at(at time.Duration, rank int, put func()) {
	o.lines = append(o.lines, record{at, rank, put})
}

// told is an event of an item at a node. Indices are written as numbers from 1.
func (o *writer) told(rank int, at time.Duration, k pipeline.EventKind, node, item, call int, refs []int, more func(*pipeline.Event)) {
	e := pipeline.Event{Kind: k, At: at, Item: uint64(item + 1), Call: uint64(call + 1)}
	if node >= 0 && node < len(o.t.Graph.Nodes) {
		e.Stage = o.t.Graph.Nodes[node].Name
	}
	if item >= 0 && item < len(o.t.Items) {
		e.Key = o.t.Items[item].Key
	}
	if more != nil {
		more(&e)
	}
	ids := make([]uint64, len(refs))
	for i, b := range refs {
		ids[i] = uint64(b + 1)
	}
	var needs []NodeNeed
	if k == pipeline.Admitted {
		needs = o.t.Items[item].Needs
	}
	o.at(at, rank, func() { o.enc.eventOf(&e, ids, needs) })
}

// textError is a text as an error.
type textError string

func (e textError) Error() string { return string(e) }

func withErr(text string) func(*pipeline.Event) {
	if text == "" {
		return nil
	}
	return func(e *pipeline.Event) { e.Err = textError(text) }
}

func (o *writer) items() {
	for i := range o.t.Items {
		it := &o.t.Items[i]
		o.told(rankArrive, it.Arrived, pipeline.Arrived, it.Source, i, None, nil, func(e *pipeline.Event) { e.Attempt = it.Attempt })
		if it.Admitted != Never {
			o.told(rankArrive, it.Admitted, pipeline.Admitted, None, i, None, nil, nil)
		}
		if it.Left != Never {
			o.told(rankLeft, it.Left, pipeline.Left, None, i, None, nil, withErr(it.Err))
		}
	}
}

func (o *writer) calls() {
	for i := range o.t.Calls {
		c := &o.t.Calls[i]
		var refs []int
		for _, r := range c.Reads {
			refs = append(refs, r.Buffer)
		}
		kind := o.kind(c.Node)
		o.told(rankQueued, c.Queued, pipeline.Queued, c.Node, c.Item, None, refs, nil)
		if kind == pipeline.KindCollect || kind == pipeline.KindStream {
			o.told(rankBegun, c.Begin, pipeline.Taken, c.Node, c.Item, i, refs, nil)
			continue
		}
		o.told(rankBegun, c.Begin, pipeline.Begin, c.Node, c.Item, i, refs, func(e *pipeline.Event) {
			if c.Device >= 0 {
				e.Slot = c.Device + 1
			}
		})
		if c.Attempt > 0 && !o.retold[place{c.Item, c.Node}] {
			o.told(rankBorn, c.Begin, pipeline.Retried, c.Node, c.Item, i, nil, func(e *pipeline.Event) { e.Attempt = c.Attempt })
		}
		for _, r := range c.Reads {
			if r.Until < c.End {
				o.told(rankBorn, r.Until, pipeline.Dropped, c.Node, c.Item, i, []int{r.Buffer}, nil)
			}
		}
		if c.Err == Unended {
			continue
		}
		if c.Waited > 0 {
			o.told(rankEnd, c.End, pipeline.WaitedIn, c.Node, c.Item, i, nil, func(e *pipeline.Event) { e.Wait = c.Waited })
		}
		o.told(rankEnd, c.End, pipeline.End, c.Node, c.Item, i, c.Makes, withErr(c.Err))
		if c.Out > c.End {
			o.told(rankOut, c.Out, pipeline.Sent, c.Node, c.Item, i, nil, nil)
		}
	}
}

// retries writes the repetitions of calls that there are notes of.
func (o *writer) retries() {
	calls := make(map[place]int, len(o.t.Calls))
	for i := range o.t.Calls {
		calls[place{o.t.Calls[i].Item, o.t.Calls[i].Node}] = i
	}
	o.retold = make(map[place]bool)
	for _, n := range o.t.Notes {
		at := place{n.Item, n.Node}
		if call, ok := calls[at]; ok && n.Kind == Retried {
			o.retold[at] = true
			o.told(rankBorn, n.At, pipeline.Retried, n.Node, n.Item, call, nil, func(e *pipeline.Event) {
				e.Err, e.Attempt = textError(n.Text), n.N
			})
		}
	}
}

func (o *writer) kind(node int) string {
	if node < 0 || node >= len(o.t.Graph.Nodes) {
		return ""
	}
	return o.t.Graph.Nodes[node].Kind
}

func (o *writer) visits() {
	met := make(map[place]time.Duration)
	thrown := o.t.discarded()
	ending := func(at place, k pipeline.EventKind) pipeline.EventKind {
		if thrown[at] {
			return pipeline.Discarded
		}
		return k
	}
	for i := range o.t.Visits {
		v := &o.t.Visits[i]
		at := place{v.Item, v.Node}
		switch {
		case o.kind(v.Node) == pipeline.KindJoin:
			o.told(rankQueued, v.From, pipeline.Queued, v.Node, v.Item, None, v.Buffers, func(e *pipeline.Event) { e.Slot = v.Slot })
			met[at] = max(met[at], v.Until)
		case o.t.ordered(v.Node): // it begins with the end of the call
			o.told(rankOut, v.Until, ending(at, pipeline.InTurn), v.Node, v.Item, None, nil, nil)
		default:
			o.told(rankQueued, v.From, pipeline.Queued, v.Node, v.Item, None, v.Buffers, nil)
			o.told(rankOut, v.Until, pipeline.Discarded, v.Node, v.Item, None, nil, nil)
		}
	}
	for at, until := range met {
		o.told(rankOut, until, ending(at, pipeline.Met), at.node, at.item, None, nil, nil)
	}
}

func (o *writer) buffers() {
	for i := range o.t.Buffers {
		b := &o.t.Buffers[i]
		id := uint64(i + 1)
		if b.Born > 0 || b.Call != None {
			o.counted(rankBorn, b.Born, alloc.Born, b, id, b.Stage, "")
		} else {
			o.counted(rankArrive, 0, alloc.Present, b, id, b.Stage, "")
		}
		stage := b.Stage
		for _, h := range b.Hands {
			o.counted(rankEnd, h.At, alloc.Handed, b, id, h.Stage, stage)
			stage = h.Stage
		}
		if b.Died > 0 {
			rank := rankDied
			if b.Died <= b.Born {
				rank = rankOut // it has to be born first
			}
			o.counted(rank, b.Died, alloc.Died, b, id, stage, "")
		}
	}
}

func (o *writer) counted(rank int, at time.Duration, what alloc.ChangeKind, b *Buffer, id uint64, stage, from string) {
	o.at(at, rank, func() {
		names := [...]uint64{o.name(at, stage), o.name(at, b.Purpose), 0}
		if what == alloc.Handed {
			names[2] = o.name(at, from)
		}
		o.enc.change(at, &alloc.Change{What: what, Kind: b.Kind, Space: b.Space, Bytes: b.Bytes, ID: id, Tag: uint64(b.Call + 1)}, names)
	})
}

func (o *writer) name(at time.Duration, s string) uint64 {
	id, ok := o.names[s]
	if !ok {
		id = o.enc.name(at, s)
		o.names[s] = id
	}
	return id
}

func (o *writer) rest() {
	for _, s := range o.t.Samples {
		o.at(s.At, rankLeft, func() { o.enc.sample(s.At, s.CPU, s.RSS) })
	}
	for _, n := range o.t.Notes {
		switch n.Kind {
		case Workers, Capacity:
			o.told(rankArrive, n.At, pipeline.Resized, n.Node, None, None, nil, func(e *pipeline.Event) { o.size(e, n) })
		case Failed:
			o.told(rankOut, n.At, pipeline.Failed, n.Node, n.Item, None, nil, withErr(n.Text))
		case Restarted:
			o.told(rankOut, n.At, pipeline.Restarted, n.Node, n.Item, None, nil, func(e *pipeline.Event) {
				e.Err, e.Attempt = textError(n.Text), n.N
			})
		}
	}
}

// size fills in both numbers of a node at the time of a note.
func (o *writer) size(e *pipeline.Event, note Note) {
	if note.Node < 0 || note.Node >= len(o.t.Graph.Nodes) {
		return
	}
	n := o.t.Graph.Nodes[note.Node]
	e.Workers, e.Capacity = n.Workers, n.Capacity
	for _, other := range o.t.Notes {
		if other.Node != note.Node || other.At > note.At {
			continue
		}
		switch other.Kind {
		case Workers:
			e.Workers = other.N
		case Capacity:
			e.Capacity = other.N
		}
	}
}
