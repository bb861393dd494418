package alloc

import "sync"

// ChangeKind says what became of counted memory.
type ChangeKind uint8

const (
	// Present is memory that was counted already when the observer came: one
	// change for each stage, purpose, space and kind, with the bytes of all.
	Present ChangeKind = iota
	// Born is memory that is counted from now on.
	Born
	// Died is memory that is counted no more.
	Died
	// Handed is memory that is counted for Stage from now on; From had it.
	Handed
)

// String is the kind in lower case.
func (k ChangeKind) String() string {
	switch k {
	case Present:
		return "present"
	case Born:
		return "born"
	case Died:
		return "died"
	case Handed:
		return "handed"
	}
	return "unknown"
}

// Change is one change of what a tracker counts.
type Change struct {
	What    ChangeKind
	Kind    Kind
	Space   Space
	Purpose Purpose
	Stage   Stage // who has the memory; of Died, who had it
	From    Stage // Handed: who had it before
	Bytes   int64
	ID      uint64 // of the buffer; 0 if it was made while nobody observed
	Tag     uint64 // Born: that of the scope it was made in
}

// Observer hears of every change of what is counted: buffers, foreign memory and
// mapped files. Pooled memory is nobody's and is not heard of. Changes come one
// at a time, in the order in which the counters of the tracker changed, by the
// goroutine that makes them: what an observer adds up is at each moment what the
// tracker counts. OnMemory must be short, must not panic, and must not allocate,
// release or hand over memory of the tracker.
type Observer interface{ OnMemory(Change) }

// watch is who observes. Changes are counted and told under its lock; the lock
// is the tracker's, so that it outlives changes of the list.
type watch struct {
	mu        *sync.Mutex
	observers []Observer
}

// Observe makes o hear of every change from now on, until stop returns. It
// begins with what is there (Present). The two are exact if nothing is allocated
// or freed in the very moment of the call; an allocation that crosses it may be
// missing or told twice. While anybody observes, allocations and frees take turns
// for a moment; when nobody does, they pay for one atomic load.
func (t *Tracker) Observe(o Observer) (stop func()) {
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	w := &watch{mu: &t.watchMu}
	if old := t.watch.Load(); old != nil {
		w.observers = append(w.observers, old.observers...)
	}
	own := &observed{o}
	w.observers = append(w.observers, own)
	t.watch.Store(w)
	t.eachCell(func(c *cell) {
		if n := c.live.Load(); n != 0 {
			o.OnMemory(Change{What: Present, Kind: c.kind, Space: c.space, Purpose: c.purpose, Stage: c.stage, Bytes: n})
		}
	})
	return func() { t.unobserve(own) }
}

// observed makes each call of Observe one of its own, whatever the observer is.
type observed struct{ Observer }

func (t *Tracker) unobserve(own *observed) {
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	old := t.watch.Load()
	if old == nil {
		return
	}
	w := &watch{mu: &t.watchMu}
	for _, o := range old.observers {
		if o != own {
			w.observers = append(w.observers, o)
		}
	}
	if len(w.observers) == 0 {
		w = nil
	}
	t.watch.Store(w)
}

// Observed reports whether anybody observes.
func (t *Tracker) Observed() bool { return t.watch.Load() != nil }

// NextTag is a number for Scope.Tagged that was not given before; never 0.
func (t *Tracker) NextTag() uint64 { return t.tags.Add(1) }

func (t *Tracker) tell(c Change) {
	if w := t.watch.Load(); w != nil { // the list of now, not the one that the caller saw
		for _, o := range w.observers {
			o.OnMemory(c)
		}
	}
}

// changeOf is a change of c, counted in at.
func (c *core) changeOf(what ChangeKind, at *cell) Change {
	return Change{What: what, Kind: c.kind, Space: c.space, Purpose: at.purpose, Stage: at.stage, Bytes: c.bytes, ID: c.id}
}

// count counts c as live in its maker's cell.
func (c *core) count(tag uint64) {
	t := c.tracker
	if t.watch.Load() == nil {
		c.maker.add(c.bytes)
		return
	}
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	t.ids++
	c.id = t.ids
	c.maker.add(c.bytes)
	ch := c.changeOf(Born, c.maker)
	ch.Tag = tag
	t.tell(ch)
}

// uncount counts c as gone.
func (c *core) uncount(at *cell) {
	t := c.tracker
	if t.watch.Load() == nil {
		at.sub(c.bytes)
		return
	}
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	at.sub(c.bytes)
	t.tell(c.changeOf(Died, at))
}

// recount counts c for another stage.
func (c *core) recount(to *cell) {
	t := c.tracker
	heard := t.watch.Load() != nil
	if heard {
		t.watchMu.Lock()
		defer t.watchMu.Unlock()
	}
	old := c.handed.Swap(to)
	if old == nil {
		old = c.maker
	}
	old.moveTo(to, c.bytes)
	if heard {
		ch := c.changeOf(Handed, to)
		ch.From = old.stage
		t.tell(ch)
	}
}

// ID is the number of the memory in the changes that observers hear; 0 if nobody
// observed when it was made.
func (c *core) ID() uint64 { return c.id }

// IDOf is the ID of what is behind a reference; 0 if it has none.
func IDOf(r Ref) uint64 {
	if i, ok := r.(interface{ ID() uint64 }); ok {
		return i.ID()
	}
	return 0
}
