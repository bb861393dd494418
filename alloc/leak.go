package alloc

import "fmt"

// Leak is a reference that was never ended.
type Leak struct {
	Bytes   int64
	Space   Space
	Stage   Stage
	Purpose Purpose
	Kind    Kind
	Site    string   // "file:line" of whoever allocated
	Stack   string   // its callers
	Events  []string // the last retains and releases: "retained at file:line"
	Lost    bool     // nobody refers to it any more: it can never be freed
}

// String is "LEAK of N bytes purpose stage FROM file:line".
func (l Leak) String() string {
	s := fmt.Sprintf("LEAK of %d bytes %v %v FROM %s", l.Bytes, l.Purpose, l.Stage, l.Site)
	for _, e := range l.Events {
		s += "\n\t" + e
	}
	return s
}

// Leaks lists everything that is live, oldest first. It is empty outside debug
// builds, which do not know the places.
func (t *Tracker) Leaks() []Leak {
	if !Debug {
		return nil
	}
	return t.debug.since(0)
}

// Leaks is Default().Leaks().
func Leaks() []Leak { return std.Leaks() }

// OnLost sets what debug builds call once the collector finds that nobody
// refers to memory that was not freed. The default writes it to standard error.
// nil does nothing. The memory stays lost.
func (t *Tracker) OnLost(f func(Leak)) {
	if !Debug {
		return
	}
	if f == nil {
		t.debug.onLost.Store(nil)
		return
	}
	t.debug.onLost.Store(&f)
}

// TB is the part of testing.TB that CheckLeaks needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// CheckLeaks fails a test if anything is live: call it at the end, as in
//
//	defer alloc.CheckLeaks(t)
//
// Debug builds list each leak with its place and look for writes to freed
// memory; others name bytes, stage and purpose. A test in which memory that it
// did not make is live begins with [Marked] instead.
func CheckLeaks(t TB) {
	t.Helper()
	Mark{tracker: std}.CheckLeaks(t)
}

// Mark is what was live at one moment.
type Mark struct {
	tracker *Tracker
	live    map[*cell]int64
	counts  map[*cell]int64
	id      uint64
}

// Marked remembers what is live now:
//
//	defer alloc.Marked().CheckLeaks(t)
func Marked() Mark { return std.mark() }

func (t *Tracker) mark() Mark {
	m := Mark{tracker: t, live: make(map[*cell]int64), counts: make(map[*cell]int64)}
	t.eachCell(func(c *cell) {
		m.live[c] = c.live.Load()
		m.counts[c] = c.allocs.Load() - c.frees.Load()
	})
	if Debug {
		m.id = t.debug.next.Load()
	}
	return m
}

// CheckLeaks fails a test if more is live than when m was made.
func (m Mark) CheckLeaks(t TB) {
	t.Helper()
	if Debug {
		for _, err := range m.tracker.debug.check() {
			t.Errorf("%v", err)
		}
		for _, r := range m.tracker.debug.since(m.id) {
			t.Errorf("%v\n%s", r, r.Stack)
		}
		return
	}
	m.tracker.eachCell(func(c *cell) {
		bytes := c.live.Load() - m.live[c]
		count := c.allocs.Load() - c.frees.Load() - m.counts[c]
		if bytes > 0 || count > 0 {
			t.Errorf("LEAK of %d bytes %v %v: %d of %v %v (build with -tags snarkdebug to see from where)",
				bytes, c.purpose, c.stage, count, c.space, c.kind)
		}
	})
}
