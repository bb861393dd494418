package trace

import (
	"bytes"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// TestDevices: calls that overlap keep a card busy once, and a wait for a lane does
// not; memory of items and what is kept besides are told apart, card by card.
func TestDevices(t *testing.T) {
	s := func(n int) time.Duration { return time.Duration(n) * time.Second }
	d0, d1 := alloc.Device(0), alloc.Device(1)
	tr := &Trace{Wall: s(10), Meta: Meta{Devices: []Device{{Name: "a", Space: d0}, {Name: "b", Space: d1}}, Budget: alloc.BytesIn(d0, 50)},
		Calls: []Call{
			{Item: 0, Node: 1, Begin: s(0), End: s(4)},
			{Item: 1, Node: 2, Begin: s(1), End: s(6), Waited: s(2)}, // at work from 3 to 6
			{Item: 1, Node: 1, Begin: s(8), End: s(9)},
			{Item: 2, Node: 1, Device: 1, Begin: s(2), End: s(3)},
			{Item: 2, Node: 3, Device: None, Begin: s(3), End: s(9)},
		},
		Buffers: []Buffer{
			{Space: d0, Bytes: 7, Item: None, Call: None},
			{Space: d0, Bytes: 20, Born: s(1), Died: s(3)},
			{Space: d0, Bytes: 15, Born: s(2), Died: s(5)},
			{Space: d0, Bytes: 30, Born: s(5), Died: s(6)},
			{Space: d1, Bytes: 5, Item: 2, Call: 3, Born: s(2)},
		}}
	want := []DeviceSummary{
		{Device: 0, Name: "a", Calls: 3, Items: 2, Work: s(8), Busy: s(7), Utilisation: 0.7, Peak: 35, PeakAt: s(2), Kept: 7, Budget: 50,
			Stages: []DeviceStage{{1, 2, s(5)}, {2, 1, s(3)}}},
		{Device: 1, Name: "b", Calls: 1, Items: 1, Work: s(1), Busy: s(1), Utilisation: 0.1, Peak: 5, PeakAt: s(2), Stages: []DeviceStage{{1, 1, s(1)}}},
	}
	if got := tr.Devices(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want\n%+v", got, want)
	}
}

// TestOnDevice: a call that says on which device it is has it in the recording, though
// it allocates nothing there, and what was measured of devices and links in the end.
func TestOnDevice(t *testing.T) {
	var b bytes.Buffer
	meta := Meta{Devices: []Device{{Name: "a", Space: alloc.Device(0)}, {Name: "b", Space: alloc.Device(1)}}, Links: []Link{{Name: "l"}}}
	rec := NewRecorder(&b, WithMeta(meta))
	g := pipeline.New("devices", rec.Option())
	src := pipeline.FromSlice(g, []int{0, 1, 2}, nil)
	on := pipeline.Via(src, pipeline.NewStage("on", func(ctx context.Context, n int) (int, error) {
		if n < 2 {
			pipeline.OnDevice(ctx, alloc.Device(n))
		}
		return n, nil
	}), pipeline.Workers(3))
	pipeline.ToFunc(on, func(context.Context, pipeline.Key, int) error { return nil })
	r, err := g.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Measured([]Device{{Name: "a", Space: alloc.Device(0), Up: 5, Down: 6}, meta.Devices[1]}, []Link{{"l", 1e9}})
	if err := rec.Close(r); err != nil {
		t.Fatal(err)
	}
	check := func(tr *Trace) {
		t.Helper()
		for _, c := range tr.Calls {
			want := None
			if n := tr.Items[c.Item].Key.Part; c.Node == tr.Graph.Index("on") && n < 2 {
				want = n
			}
			if c.Device != want {
				t.Errorf("item %v in node %d is on %d, want %d", tr.Items[c.Item].Key, c.Node, c.Device, want)
			}
		}
		if d := tr.Meta.Devices; len(d) != 2 || d[0].Up != 5 || d[0].Down != 6 || len(tr.Meta.Links) != 1 || tr.Meta.Links[0].BytesPerSecond != 1e9 {
			t.Errorf("%+v", tr.Meta)
		}
	}
	tr, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	check(tr)
	var again bytes.Buffer
	if err := Write(&again, tr); err != nil {
		t.Fatal(err)
	}
	if tr, err = Read(&again); err != nil {
		t.Fatal(err)
	}
	check(tr)
}
