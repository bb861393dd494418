package alloc

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is what a tracker counted, read without a lock: each number was true
// at some moment during the call. All are bytes unless they say otherwise.
type Snapshot struct {
	Time   time.Time    `json:"time"`
	Spaces []SpaceStats `json:"spaces"` // those that were ever used
	Stages []StageStats `json:"stages"` // by name, then space
	Rows   []Row        `json:"rows"`   // by stage, space, purpose, kind

	FreeErrors int64 `json:"free_errors"` // times that a provider could not free or wipe
}

// SpaceStats is the total of a space. Peak is the largest sum there was at one
// moment, not the sum of the stages' peaks.
type SpaceStats struct {
	Space     Space `json:"space"`
	Live      int64 `json:"live"`
	Peak      int64 `json:"peak"`
	Allocated int64 `json:"allocated"`
	Freed     int64 `json:"freed"`

	Pooled     int64 `json:"pooled"`      // freed and kept for reuse
	PoolLimit  int64 `json:"pool_limit"`  // most that is kept
	PoolHits   int64 `json:"pool_hits"`   // times
	PoolMisses int64 `json:"pool_misses"` // times
	Slack      int64 `json:"slack"`       // rounding of live blocks, not in Live

	Mapped     int64 `json:"mapped"` // views of files, not in Live
	MappedPeak int64 `json:"mapped_peak"`
}

// StageStats is the total of a stage in a space, mapped files apart. What was
// handed over counts as allocated by one and freed by the other.
type StageStats struct {
	Stage     string `json:"stage"`
	Space     Space  `json:"space"`
	Live      int64  `json:"live"`
	Peak      int64  `json:"peak"`
	Allocated int64  `json:"allocated"`
	Freed     int64  `json:"freed"`
}

// Row is one set of counters.
type Row struct {
	Stage     string `json:"stage"`
	Space     Space  `json:"space"`
	Purpose   string `json:"purpose"`
	Kind      Kind   `json:"kind"`
	Live      int64  `json:"live"`
	Peak      int64  `json:"peak"`
	Allocated int64  `json:"allocated"`
	Freed     int64  `json:"freed"`
	Pooled    int64  `json:"pooled"` // kept for reuse, last used here
	Allocs    int64  `json:"allocs"` // times
	Frees     int64  `json:"frees"`  // times
}

// Snapshot reads all counters.
func (t *Tracker) Snapshot() Snapshot {
	s := Snapshot{Time: time.Now(), FreeErrors: t.freeErrors.Load()}
	for i := range t.spaces {
		c, m, p := &t.spaces[i], &t.mapped[i], &t.pools[i]
		live, allocated := c.flow()
		mapped := m.live.Load()
		if allocated == 0 && m.allocated.Load() == 0 {
			continue
		}
		s.Spaces = append(s.Spaces, SpaceStats{
			Space: Space(i), Live: live, Peak: c.peak.Load(), Allocated: allocated, Freed: allocated - live,
			Pooled: c.pooled.Load(), PoolLimit: p.limit.Load(), PoolHits: p.hits.Load(), PoolMisses: p.misses.Load(),
			Slack: c.slack.Load(), Mapped: mapped, MappedPeak: m.peak.Load(),
		})
	}
	for i := range min(len(*stageNames.names.Load()), maxStages) {
		sc := t.stages[i].Load()
		if sc == nil {
			continue
		}
		name := Stage(i).String()
		for j := range sc.totals {
			if live, allocated := sc.totals[j].flow(); allocated > 0 {
				s.Stages = append(s.Stages, StageStats{Stage: name, Space: Space(j), Live: live,
					Peak: sc.totals[j].peak.Load(), Allocated: allocated, Freed: allocated - live})
			}
		}
		sc.each(func(c *cell) {
			live, allocated := c.flow()
			s.Rows = append(s.Rows, Row{Stage: name, Space: c.space, Purpose: c.purpose.String(), Kind: c.kind,
				Live: live, Peak: c.peak.Load(), Allocated: allocated, Freed: allocated - live,
				Pooled: c.pooled.Load(), Allocs: c.allocs.Load(), Frees: c.frees.Load()})
		})
	}
	slices.SortFunc(s.Stages, func(a, b StageStats) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Space, b.Space))
	})
	slices.SortFunc(s.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Space, b.Space),
			cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}

// flow reads live before allocated, which only grows and grows first, so that
// their difference is never negative.
func (c *cell) flow() (live, allocated int64) {
	live = c.live.Load()
	return live, c.allocated.Load()
}

// Space is the total of one space; all zero if it was never used.
func (s Snapshot) Space(sp Space) SpaceStats {
	for _, t := range s.Spaces {
		if t.Space == sp {
			return t
		}
	}
	return SpaceStats{Space: sp}
}

// Stage is the total of one stage in one space; all zero if it never allocated there.
func (s Snapshot) Stage(name string, sp Space) StageStats {
	for _, t := range s.Stages {
		if t.Stage == name && t.Space == sp {
			return t
		}
	}
	return StageStats{Stage: name, Space: sp}
}
