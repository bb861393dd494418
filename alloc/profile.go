package alloc

import (
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// WriteProfile writes the memory outside Go's heap as a pprof profile
// (compressed protocol buffer) that "go tool pprof" opens. Its functions are
// the stages, below each its purposes and, in debug builds, the allocation
// sites of what is live. Sample types: live and peak bytes, allocated bytes,
// and live objects; live bytes are the default.
func (t *Tracker) WriteProfile(w io.Writer) error {
	b := profileBuilder{locations: make(map[string]*profile.Location)}
	snap := t.Snapshot()
	b.p = &profile.Profile{
		TimeNanos: snap.Time.UnixNano(),
		SampleType: []*profile.ValueType{
			{Type: "live_space", Unit: "bytes"},
			{Type: "peak_space", Unit: "bytes"},
			{Type: "alloc_space", Unit: "bytes"},
			{Type: "live_objects", Unit: "count"},
		},
		DefaultSampleType: "live_space",
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            1,
	}
	for _, r := range snap.Rows {
		b.add(r.Stage, r.Purpose, r.Space, r.Kind, "", r.Live, r.Peak, r.Allocated, r.Allocs-r.Frees)
	}
	if err := b.p.CheckValid(); err != nil {
		return fmt.Errorf("write a profile of memory: %w", err)
	}
	if err := b.p.Write(w); err != nil {
		return fmt.Errorf("write a profile of memory: %w", err)
	}
	return nil
}

type profileBuilder struct {
	p         *profile.Profile
	locations map[string]*profile.Location
}

// add adds a sample whose stack is stage → purpose.
func (b *profileBuilder) add(stage, purpose string, s Space, k Kind, site string, values ...int64) {
	leaf := b.at(stage+"/"+purpose, site)
	b.p.Sample = append(b.p.Sample, &profile.Sample{
		Location: []*profile.Location{leaf, b.at(stage, "")}, // leaf first
		Value:    values,
		Label: map[string][]string{
			"space": {s.String()}, "purpose": {purpose}, "stage": {stage}, "kind": {k.String()},
		},
	})
}

// at is the location of a name, made when first asked for.
func (b *profileBuilder) at(name, file string) *profile.Location {
	if l := b.locations[name]; l != nil {
		return l
	}
	f := &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
	b.p.Function = append(b.p.Function, f)
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Line: []profile.Line{{Function: f}}}
	b.p.Location = append(b.p.Location, l)
	b.locations[name] = l
	return l
}
