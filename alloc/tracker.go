package alloc

import (
	"sync"
	"sync/atomic"
)

// cell counts the bytes of one kind, space, stage and purpose, or is a total of
// such. It fills two cache lines (processors fetch them in pairs), so that
// counting in one cell never slows another.
type cell struct {
	live, peak    atomic.Int64
	allocated     atomic.Int64 // cells only: a total is the sum of its cells
	handed        atomic.Int64 // of allocated: what another stage handed over
	pooled, slack atomic.Int64
	allocs, frees atomic.Int64 // cells only

	stageTotal *cell // nil for totals and mapped files
	spaceTotal *cell // nil for totals
	stage      Stage
	purpose    Purpose
	space      Space
	kind       Kind
	_          [128 - 10*8 - 8]byte
}

// raise makes the peak at least v.
func (c *cell) raise(v int64) {
	for p := c.peak.Load(); v > p; p = c.peak.Load() {
		if c.peak.CompareAndSwap(p, v) {
			return
		}
	}
}

// up counts n live bytes. The peak is exact: live really had that value at one
// moment.
func (c *cell) up(n int64) { c.raise(c.live.Add(n)) }

// add counts an allocation in the cell and its totals. Allocated rises before
// live, so that a reader who loads live first never sees more live than
// allocated; frees are counted after allocs for the same reason.
func (c *cell) add(n int64) {
	c.allocated.Add(n)
	c.allocs.Add(1)
	c.up(n)
	if c.stageTotal != nil {
		c.stageTotal.up(n)
	}
	c.spaceTotal.up(n)
}

// sub counts a free in the cell and its totals.
func (c *cell) sub(n int64) {
	c.live.Add(-n)
	c.frees.Add(1)
	if c.stageTotal != nil {
		c.stageTotal.live.Add(-n)
	}
	c.spaceTotal.live.Add(-n)
}

// moveTo moves n live bytes to another cell of the same space and kind. The
// space's total does not change.
func (c *cell) moveTo(to *cell, n int64) {
	if c == to {
		return
	}
	to.handed.Add(n)
	to.allocated.Add(n)
	to.allocs.Add(1)
	to.up(n)
	if c.stageTotal != to.stageTotal {
		to.stageTotal.up(n)
		c.stageTotal.live.Add(-n)
	}
	c.live.Add(-n)
	c.frees.Add(1)
}

// stageCells are the cells of one stage, made when first needed.
type stageCells struct {
	totals [MaxSpaces]cell
	cells  [nbKinds][MaxSpaces]atomic.Pointer[purposeCells]
}

type purposeCells [maxPurposes]atomic.Pointer[cell]

// Tracker counts all memory of a program. Counting and asking lock nothing.
type Tracker struct {
	spaces [MaxSpaces]cell // totals of memory and foreign memory
	mapped [MaxSpaces]cell // totals of mapped files
	stages [maxStages]atomic.Pointer[stageCells]

	pools     [MaxSpaces]pool
	slabs     slabs
	providers [MaxSpaces]atomic.Pointer[Provider]
	debug     *debugState

	watch   atomic.Pointer[watch] // nil when nobody observes
	watchMu sync.Mutex
	ids     uint64 // of what observers have heard; under watchMu
	tags    atomic.Uint64

	freeErrors atomic.Int64
	freeError  atomic.Pointer[error]

	detour atomic.Pointer[detour] // tests only: frees take one goroutine
	keeps  atomic.Bool            // tests only: paths that fail do not uncount what they took
	mu     sync.Mutex             // registration of providers
}

// std is the one piece of global state: memory belongs to the process.
var std = newTracker()

// Default is the tracker of the process, in which every buffer is counted.
func Default() *Tracker { return std }

func newTracker() *Tracker {
	t := new(Tracker)
	t.debug = newDebugState(t)
	for i := range t.pools {
		t.spaces[i].space = Space(i)
		t.mapped[i].space = Space(i)
		t.mapped[i].kind = MappedFile
		t.pools[i].total = &t.spaces[i]
		t.pools[i].tracker = t
	}
	t.pools[Host].limit.Store(DefaultPoolLimit)
	t.slabs.init(t)
	var host Provider = hostProvider{}
	t.providers[Host].Store(&host)
	return t
}

// cell finds the counters, and makes them when they are first needed.
func (t *Tracker) cell(k Kind, space Space, stage Stage, p Purpose) *cell {
	sc := t.stages[stage].Load()
	if sc == nil {
		t.stages[stage].CompareAndSwap(nil, new(stageCells))
		sc = t.stages[stage].Load()
	}
	pc := sc.cells[k][space].Load()
	if pc == nil {
		sc.cells[k][space].CompareAndSwap(nil, new(purposeCells))
		pc = sc.cells[k][space].Load()
	}
	at := &pc[p]
	if c := at.Load(); c != nil {
		return c
	}
	c := &cell{stage: stage, purpose: p, space: space, kind: k, spaceTotal: &t.mapped[space]}
	if k != MappedFile {
		c.stageTotal = &sc.totals[space]
		c.spaceTotal = &t.spaces[space]
	}
	at.CompareAndSwap(nil, c)
	return at.Load()
}

// Live is the bytes in use in a space now, mapped files apart.
func (t *Tracker) Live(s Space) int64 {
	if !s.Valid() {
		return 0
	}
	return t.spaces[s].live.Load()
}

// Peak is the most that was live in a space at any one moment since ResetPeaks.
func (t *Tracker) Peak(s Space) int64 {
	if !s.Valid() {
		return 0
	}
	return t.spaces[s].peak.Load()
}

// Pooled is the bytes kept for reuse in a space.
func (t *Tracker) Pooled(s Space) int64 {
	if !s.Valid() {
		return 0
	}
	return t.spaces[s].pooled.Load()
}

// Mapped is the bytes of files that are mapped now.
func (t *Tracker) Mapped() int64 { return t.mapped[Host].live.Load() }

// StageLive is the bytes in use by a stage now, by space.
func (t *Tracker) StageLive(stage Stage) (a Amount) {
	if sc := t.stages[stage%maxStages].Load(); sc != nil {
		for i := range a {
			a[i] = sc.totals[i].live.Load()
		}
	}
	return a
}

// StagePeak is the most that a stage held at one moment, by space. The spaces'
// peaks need not have been at the same moment.
func (t *Tracker) StagePeak(stage Stage) (a Amount) {
	if sc := t.stages[stage%maxStages].Load(); sc != nil {
		for i := range a {
			a[i] = sc.totals[i].peak.Load()
		}
	}
	return a
}

// ResetPeaks makes every peak what is live now.
func (t *Tracker) ResetPeaks() {
	t.each(func(c *cell) {
		// Zero first: whoever allocates after that raises it, and whoever did
		// before is in live.
		c.peak.Store(0)
		c.raise(c.live.Load())
	})
}

// each calls f for every cell and total that exists.
func (t *Tracker) each(f func(*cell)) {
	for i := range t.spaces {
		f(&t.spaces[i])
		f(&t.mapped[i])
	}
	t.eachStage(func(_ Stage, sc *stageCells) {
		for j := range sc.totals {
			f(&sc.totals[j])
		}
		sc.each(f)
	})
}

// eachCell calls f for every cell, and for no total.
func (t *Tracker) eachCell(f func(*cell)) {
	t.eachStage(func(_ Stage, sc *stageCells) { sc.each(f) })
}

// eachStage calls f for every stage that ever had memory.
func (t *Tracker) eachStage(f func(Stage, *stageCells)) {
	for i := range min(len(*stageNames.names.Load()), maxStages) {
		if sc := t.stages[i].Load(); sc != nil {
			f(Stage(i), sc)
		}
	}
}

// each calls f for the cells, not the totals.
func (sc *stageCells) each(f func(*cell)) {
	purposes := min(len(*purposeNames.names.Load()), maxPurposes)
	for k := range sc.cells {
		for s := range sc.cells[k] {
			pc := sc.cells[k][s].Load()
			if pc == nil {
				continue
			}
			for p := range purposes {
				if c := pc[p].Load(); c != nil {
					f(c)
				}
			}
		}
	}
}
