package alloc

import (
	"fmt"
	"runtime"
)

// Charge counts memory that somebody else allocated.
type Charge struct{ core }

// Foreign counts bytes of memory that somebody else allocated, such as Go's
// heap behind a library's solver, until its last Release. They are drawn from
// the scope's reservation like memory of our own.
func Foreign(s *Scope, p Purpose, bytes int64) (*Charge, error) {
	s = s.orUnowned()
	if bytes < 0 || bytes > maxBytes || !s.space.Valid() {
		return nil, fmt.Errorf("stage %v: count %d foreign bytes of %v memory for %v: out of range", s.stage, bytes, s.space, p)
	}
	if s.res != nil && bytes > 0 {
		if err := s.res.draw(s, p, bytes); err != nil {
			return nil, err
		}
	}
	if bytes >= shardBelow {
		s.tracker.pools[s.space].makeRoom(bytes)
	}
	c := new(Charge)
	c.start(s, ForeignMemory, p, bytes)
	if Debug {
		c.rec = s.tracker.debug.born(&c.core, s.stage, p)
		runtime.AddCleanup(c, lost, c.rec)
	}
	return c, nil
}
