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
	// Live is read before allocated everywhere: allocated only grows, and grows
	// first, so that freed, their difference, is never negative.
	var live, allocated Amount
	var used [MaxSpaces]bool
	for i := range live {
		live[i] = t.spaces[i].live.Load()
	}
	t.eachStage(func(stage Stage, sc *stageCells) {
		var stageLive, stageAllocated Amount
		for i := range stageLive {
			stageLive[i] = sc.totals[i].live.Load()
		}
		var stageUsed [MaxSpaces]bool
		name := stage.String()
		sc.each(func(c *cell) {
			r := Row{Stage: name, Space: c.space, Purpose: c.purpose.String(), Kind: c.kind,
				Live: c.live.Load(), Peak: c.peak.Load(), Pooled: c.pooled.Load(), Frees: c.frees.Load()}
			handed := c.handed.Load()
			r.Allocated, r.Allocs = c.allocated.Load(), c.allocs.Load()
			r.Freed = r.Allocated - r.Live
			s.Rows = append(s.Rows, r)
			used[c.space] = true
			if c.kind != MappedFile {
				stageUsed[c.space] = true
				stageAllocated[c.space] += r.Allocated
				allocated[c.space] += r.Allocated - handed
			}
		})
		for i, u := range stageUsed {
			if u {
				s.Stages = append(s.Stages, StageStats{Stage: name, Space: Space(i), Live: stageLive[i],
					Peak: sc.totals[i].peak.Load(), Allocated: stageAllocated[i], Freed: stageAllocated[i] - stageLive[i]})
			}
		}
	})
	for i, u := range used {
		if !u {
			continue
		}
		c, m, p := &t.spaces[i], &t.mapped[i], &t.pools[i]
		s.Spaces = append(s.Spaces, SpaceStats{
			Space: Space(i), Live: live[i], Peak: c.peak.Load(), Allocated: allocated[i], Freed: allocated[i] - live[i],
			Pooled: c.pooled.Load(), PoolLimit: p.limit.Load(), PoolHits: p.hits.Load(), PoolMisses: p.misses.Load(),
			Slack: c.slack.Load(), Mapped: m.live.Load(), MappedPeak: m.peak.Load(),
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
