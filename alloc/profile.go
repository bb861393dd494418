package alloc

import (
	"fmt"
	"io"
	"runtime"

	"github.com/google/pprof/profile"
)

// WriteProfile writes the memory outside Go's heap as a pprof profile
// (compressed protocol buffer) that "go tool pprof" opens. Its functions are
// the stages and their purposes ("ntt/evaluation"); in debug builds the
// functions that allocated what is live call them. Sample types: live and peak bytes, allocated bytes,
// and live objects; live bytes are the default.
func (t *Tracker) WriteProfile(w io.Writer) error {
	b := profileBuilder{
		functions: make(map[string]*profile.Function),
		locations: make(map[string]*profile.Location),
	}
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
	sited := b.addSites(t)
	for _, r := range snap.Rows {
		// What the sites have told already must not be told twice. A buffer
		// that came or went in between may make this a little wrong.
		had := sited[siteKey{r.Stage, r.Purpose, r.Space, r.Kind}]
		b.add(r.Stage, r.Purpose, r.Space, r.Kind, nil,
			max(r.Live-had.bytes, 0), r.Peak, r.Allocated, max(r.Allocs-r.Frees-had.count, 0))
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
	functions map[string]*profile.Function
	locations map[string]*profile.Location
}

type siteKey struct {
	stage, purpose string
	space          Space
	kind           Kind
}

type siteSum struct{ bytes, count int64 }

// addSites adds a sample for each live Ref of a debug build, with the stack
// that made it, and returns the sums.
func (b *profileBuilder) addSites(t *Tracker) map[siteKey]siteSum {
	if !Debug {
		return nil
	}
	sums := make(map[siteKey]siteSum)
	for _, r := range t.debug.liveSince(0) {
		k := siteKey{Stage(r.stage.Load()).String(), r.purpose.String(), r.space, r.kind}
		b.add(k.stage, k.purpose, k.space, k.kind, &r.made, r.bytes, 0, 0, 1)
		s := sums[k]
		s.bytes += r.bytes
		s.count++
		sums[k] = s
	}
	return sums
}

// add adds a sample: the purpose within its stage is the leaf, the stage calls
// it, and whoever allocated calls the stage.
func (b *profileBuilder) add(stage, purpose string, s Space, k Kind, made *stack, values ...int64) {
	locations := []*profile.Location{b.at(stage+"/"+purpose, "", 0), b.at(stage, "", 0)}
	if made != nil {
		made.frames(func(fr runtime.Frame) bool {
			locations = append(locations, b.at(fr.Function, fr.File, fr.Line))
			return true
		})
	}
	b.p.Sample = append(b.p.Sample, &profile.Sample{
		Location: locations,
		Value:    values,
		Label: map[string][]string{
			"space": {s.String()}, "purpose": {purpose}, "stage": {stage}, "kind": {k.String()},
		},
	})
}

// at is the location of a line of a function, made when first asked for.
func (b *profileBuilder) at(name, file string, line int) *profile.Location {
	key := fmt.Sprintf("%s\x00%s:%d", name, file, line)
	if l := b.locations[key]; l != nil {
		return l
	}
	f := b.functions[name]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.p.Function = append(b.p.Function, f)
		b.functions[name] = f
	}
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Line: []profile.Line{{Function: f, Line: int64(line)}}}
	b.p.Location = append(b.p.Location, l)
	b.locations[key] = l
	return l
}
