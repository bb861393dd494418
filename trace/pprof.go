package trace

import (
	"fmt"
	"io"
	"time"

	"github.com/google/pprof/profile"

	"github.com/snarkline/snarkline/alloc"
)

// WritePprof writes what was live at the peak of each space as a pprof profile,
// which "go tool pprof" opens. Its functions are the stages; what they hold, what
// waits in their queue and so on are functions that they call ("ntt queued").
// The space, the purpose, who allocated it and the item's key are labels, so that
// -tagfocus=space=host shows one space. Sample types: bytes and buffers.
func (t *Trace) WritePprof(w io.Writer) error {
	b := &profileOf{p: &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "peak_space", Unit: "bytes"}, {Type: "peak_objects", Unit: "count"}},
		DefaultSampleType: "peak_space",
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            1,
		DurationNanos:     int64(t.Wall),
		Comments:          []string{fmt.Sprintf("%s, graph %s", t.Meta.Program, t.Graph.Name)},
	}, at: make(map[string]*profile.Location)}
	if started, err := time.Parse(time.RFC3339Nano, t.Meta.Started); err == nil {
		b.p.TimeNanos = started.UnixNano()
	}
	claims := t.claims()
	for _, space := range t.Spaces() {
		at, bytes, _ := t.Peak(space)
		b.p.Comments = append(b.p.Comments, fmt.Sprintf("%v: peak at %v", alloc.BytesIn(space, bytes), at))
		for i := range t.Buffers {
			buf := &t.Buffers[i]
			if buf.Space != space || buf.Kind == alloc.MappedFile || buf.Bytes == 0 {
				continue
			}
			for _, s := range t.spans(i, claims[i], t.Wall) {
				if s.from <= at && at < s.until {
					b.add(t, buf, s, at)
				}
			}
		}
	}
	if err := b.p.CheckValid(); err != nil {
		return fmt.Errorf("write a profile of the peak: %w", err)
	}
	if err := b.p.Write(w); err != nil {
		return fmt.Errorf("write a profile of the peak: %w", err)
	}
	return nil
}

type profileOf struct {
	p  *profile.Profile
	at map[string]*profile.Location
}

func (b *profileOf) add(t *Trace, buf *Buffer, s span, at time.Duration) {
	stage := buf.owner(at)
	if s.node >= 0 && s.node < len(t.Graph.Nodes) {
		stage = t.Graph.Nodes[s.node].Name
	}
	labels := map[string][]string{"space": {buf.Space.String()}, "purpose": {buf.Purpose}, "maker": {buf.Stage}, "state": {s.state.String()}, "kind": {buf.Kind.String()}}
	if s.item >= 0 && s.item < len(t.Items) {
		labels["item"] = []string{t.Items[s.item].Key.String()}
	}
	b.p.Sample = append(b.p.Sample, &profile.Sample{
		Location: []*profile.Location{b.function(stage + " " + s.state.String()), b.function(stage)},
		Value:    []int64{buf.Bytes, 1},
		Label:    labels,
	})
}

func (b *profileOf) function(name string) *profile.Location {
	if l := b.at[name]; l != nil {
		return l
	}
	f := &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name}
	l := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
	b.p.Function, b.p.Location = append(b.p.Function, f), append(b.p.Location, l)
	b.at[name] = l
	return l
}
