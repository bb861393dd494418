package alloc

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	poison       = 0xDB
	dirtyPattern = 0xD1

	stackDepth     = 16
	maxEvents      = 8        // of retains and releases that a record keeps
	maxQuarantine  = 16 << 20 // bytes
	maxQuarantined = 256      // blocks
)

type stack [stackDepth]uintptr

// here is the stack of whoever called into this package.
func here(skip int) (s stack) {
	runtime.Callers(skip+2, s[:])
	return s
}

// frames calls f for the frames of s outside this package's own plumbing.
func (s *stack) frames(f func(runtime.Frame) bool) {
	n := 0
	for n < len(s) && s[n] != 0 {
		n++
	}
	if n == 0 {
		return
	}
	frames := runtime.CallersFrames(s[:n])
	for {
		fr, more := frames.Next()
		if fr.PC != 0 && !ownFrame(fr) && !f(fr) {
			return
		}
		if !more {
			return
		}
	}
}

// ownFrame reports whether a frame is in this package, its tests apart.
func ownFrame(fr runtime.Frame) bool {
	return strings.HasPrefix(fr.Function, ownPackage) && !strings.HasSuffix(fr.File, "_test.go")
}

const ownPackage = "github.com/snarkline/snarkline/alloc."

// site is the first place outside this package: "file:line".
func (s *stack) site() (at string) {
	at = "unknown"
	s.frames(func(fr runtime.Frame) bool {
		at = fmt.Sprintf("%s:%d", fr.File, fr.Line)
		return false
	})
	return at
}

func (s *stack) String() string {
	var b strings.Builder
	s.frames(func(fr runtime.Frame) bool {
		fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", fr.Function, fr.File, fr.Line)
		return true
	})
	return b.String()
}

// record is what a debug build knows of one Ref. It does not refer to it, so
// that the collector can find a Ref that nobody has any more.
type record struct {
	state   *debugState
	id      uint64
	bytes   int64
	space   Space
	kind    Kind
	purpose Purpose
	stage   atomic.Uint32
	made    stack

	mu     sync.Mutex
	freed  stack
	isFree bool
	lost   bool
	events [maxEvents]event // the last ones, in a ring
	nb     int
}

type event struct {
	what string
	at   stack
}

func (r *record) hand(s Stage) { r.stage.Store(uint32(s)) }

// event notes a retain or release.
func (r *record) event(what string, skip int) {
	if r == nil {
		return
	}
	at := here(skip + 1)
	r.mu.Lock()
	r.events[r.nb%maxEvents] = event{what, at}
	r.nb++
	r.mu.Unlock()
}

func (r *record) free(*core) {
	if r == nil {
		return
	}
	at := here(2)
	r.mu.Lock()
	r.freed, r.isFree = at, true
	r.mu.Unlock()
	r.state.dead(r)
}

// stacks is the places of birth and death; empty outside debug builds.
func (r *record) stacks() (made, freed string) {
	if r == nil {
		return "", ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made.String(), r.freed.String()
}

func (r *record) describe() string {
	return fmt.Sprintf("%d bytes of %v memory, %v of stage %v", r.bytes, r.space, r.purpose, Stage(r.stage.Load()))
}

// leak is the record of something that is still live.
func (r *record) leak() Leak {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := Leak{Bytes: r.bytes, Space: r.space, Stage: Stage(r.stage.Load()), Purpose: r.purpose, Kind: r.kind,
		Site: r.made.site(), Stack: r.made.String(), Lost: r.lost}
	for i := max(r.nb-maxEvents, 0); i < r.nb; i++ {
		e := &r.events[i%maxEvents]
		l.Events = append(l.Events, e.what+" at "+e.at.site())
	}
	return l
}

// lost is called by the collector once a Ref cannot be reached. It only tells.
func lost(r *record) {
	r.mu.Lock()
	if r.isFree {
		r.mu.Unlock()
		return
	}
	r.lost = true
	r.mu.Unlock()
	if f := r.state.onLost.Load(); f != nil {
		(*f)(r.leak())
	}
}

// debugState is the book of a tracker in debug builds; nil in others.
type debugState struct {
	next   atomic.Uint64
	shards [16]liveShard
	onLost atomic.Pointer[func(Leak)]

	mu      sync.Mutex
	waiting []block // freed and poisoned, oldest first
	bytes   int64
	tracker *Tracker
}

type liveShard struct {
	mu   sync.Mutex
	live map[uint64]*record
}

func newDebugState(t *Tracker) *debugState {
	if !Debug {
		return nil
	}
	d := &debugState{tracker: t}
	for i := range d.shards {
		d.shards[i].live = make(map[uint64]*record)
	}
	report := func(l Leak) { _, _ = fmt.Fprintln(os.Stderr, l.String()) }
	d.onLost.Store(&report)
	return d
}

func (d *debugState) shard(id uint64) *liveShard { return &d.shards[id%uint64(len(d.shards))] }

// born opens the record of c.
func (d *debugState) born(c *core, s Stage, p Purpose) *record {
	r := &record{state: d, id: d.next.Add(1), bytes: c.bytes, space: c.space, kind: c.kind, purpose: p, made: here(2)}
	r.hand(s)
	sh := d.shard(r.id)
	sh.mu.Lock()
	sh.live[r.id] = r
	sh.mu.Unlock()
	return r
}

func (d *debugState) dead(r *record) {
	sh := d.shard(r.id)
	sh.mu.Lock()
	delete(sh.live, r.id)
	sh.mu.Unlock()
}

// liveSince lists what is live and was made after record id, oldest first.
func (d *debugState) liveSince(id uint64) (rs []*record) {
	for i := range d.shards {
		sh := &d.shards[i]
		sh.mu.Lock()
		for _, r := range sh.live {
			if r.id > id {
				rs = append(rs, r)
			}
		}
		sh.mu.Unlock()
	}
	sort.Slice(rs, func(i, j int) bool { return rs[i].id < rs[j].id })
	return rs
}

// since is liveSince for people.
func (d *debugState) since(id uint64) []Leak {
	rs := d.liveSince(id)
	out := make([]Leak, len(rs))
	for i, r := range rs {
		out[i] = r.leak()
	}
	return out
}
