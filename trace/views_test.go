package trace

import (
	"reflect"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
)

// handMade is a run of source → make → read → join ← make, told by hand: two
// items whose every moment is known.
func handMade() *Trace {
	host := alloc.Host
	t := &Trace{Version: Version, Wall: 100 * ms,
		Meta: Meta{Program: "hand", Cores: 2, Budget: alloc.HostBytes(5000)},
		Graph: pipeline.Topology{Name: "hand made", Nodes: []pipeline.Node{
			{Name: "source", Kind: pipeline.KindSource},
			{Name: "make", Kind: pipeline.KindStage, Preds: []int{0}, Workers: 2, Capacity: 1},
			{Name: "read", Kind: pipeline.KindStage, Preds: []int{1}, Workers: 1, Capacity: 2},
			{Name: "join", Kind: pipeline.KindJoin, Preds: []int{1, 2}},
			{Name: "end", Kind: pipeline.KindSink, Preds: []int{3}, Workers: 1, Capacity: 1},
		}},
		Items: []Item{
			{Key: pipeline.Key{Job: "j", Part: 0}, Admitted: 0, Left: 70 * ms},
			{Key: pipeline.Key{Job: "j", Part: 1}, Arrived: 5 * ms, Admitted: 5 * ms, Left: 90 * ms},
		},
	}
	t.Buffers = []Buffer{
		{Space: host, Stage: "keys", Purpose: "key", Bytes: 100, Item: None, Call: None},
		{Space: host, Stage: "keys", Purpose: "key", Kind: alloc.MappedFile, Bytes: 1 << 40, Item: None, Call: None},
		{Space: host, Stage: "make", Purpose: "scratch", Bytes: 50, Item: 0, Call: 0, Born: 2 * ms, Died: 8 * ms},
		{Space: host, Stage: "make", Purpose: "witness", Bytes: 1000, Item: 0, Call: 0, Born: 5 * ms, Died: 70 * ms},
		{Space: host, Stage: "make", Purpose: "witness", Bytes: 2000, Item: 1, Call: 1, Born: 10 * ms, Died: 90 * ms},
		{Space: alloc.Device(0), Stage: "read", Purpose: "scratch", Bytes: 7, Item: 0, Call: 2, Born: 15 * ms, Died: 20 * ms},
	}
	t.Calls = []Call{
		{Item: 0, Node: 1, Begin: 0, End: 10 * ms, Out: 12 * ms, Device: None, Makes: []int{3}},
		{Item: 1, Node: 1, Worker: 1, Queued: 5 * ms, Begin: 6 * ms, End: 20 * ms, Out: 20 * ms, Device: None, Makes: []int{4}},
		{Item: 0, Node: 2, Queued: 12 * ms, Begin: 12 * ms, End: 40 * ms, Out: 40 * ms, Device: None, Reads: []Ref{{3, 30 * ms}}},
		{Item: 0, Node: 4, Queued: 40 * ms, Begin: 50 * ms, End: 70 * ms, Out: 70 * ms, Device: None, Reads: []Ref{{3, 70 * ms}}},
		{Item: 1, Node: 2, Queued: 20 * ms, Begin: 40 * ms, End: 80 * ms, Out: 80 * ms, Device: None, Reads: []Ref{{4, 80 * ms}}, Attempt: 1},
		{Item: 1, Node: 4, Queued: 80 * ms, Begin: 80 * ms, End: 90 * ms, Out: 90 * ms, Device: None, Reads: []Ref{{4, 90 * ms}}, Err: "no"},
	}
	t.Visits = []Visit{
		{Item: 0, Node: 3, Slot: 0, From: 12 * ms, Until: 40 * ms, Buffers: []int{3}},
		{Item: 1, Node: 3, Slot: 0, From: 20 * ms, Until: 80 * ms, Buffers: []int{4}},
		{Item: 0, Node: 3, Slot: 1, From: 40 * ms, Until: 40 * ms},
		{Item: 1, Node: 3, Slot: 1, From: 80 * ms, Until: 80 * ms},
	}
	t.Notes = []Note{{At: 60 * ms, Kind: Workers, Item: None, Node: 2, N: 2}, {At: 60 * ms, Kind: Retried, Item: 1, Node: 2, N: 1, Text: "once more"}}
	t.Samples = []Sample{{At: 0, RSS: 1 << 20}, {At: 50 * ms, CPU: 80 * ms}}
	return t
}

func TestLevels(t *testing.T) {
	tr := handMade()
	check(t, tr)
	keys := Share{"keys", None, Other, 100, 0}
	share := func(stage string, node int, s State, bytes int64, items int) Share {
		return Share{stage, node, s, bytes, items}
	}
	want := []Point{
		{0, 100, []Share{keys}},
		{2 * ms, 150, []Share{share("make", 1, Held, 50, 1), keys}},
		{5 * ms, 1150, []Share{share("make", 1, Held, 1050, 1), keys}},
		{8 * ms, 1100, []Share{share("make", 1, Held, 1000, 1), keys}},
		{10 * ms, 3100, []Share{share("make", 1, Held, 3000, 2), keys}}, // the first waits for room until 12
		{12 * ms, 3100, []Share{share("make", 1, Held, 2000, 1), share("read", 2, Held, 1000, 1), keys}},
		{20 * ms, 3100, []Share{share("read", 2, Held, 1000, 1), share("read", 2, Queued, 2000, 1), keys}},
		{30 * ms, 3100, []Share{share("read", 2, Queued, 2000, 1), share("join", 3, Pending, 1000, 1), keys}},
		{40 * ms, 3100, []Share{share("read", 2, Held, 2000, 1), share("end", 4, Queued, 1000, 1), keys}},
		{50 * ms, 3100, []Share{share("read", 2, Held, 2000, 1), share("end", 4, Held, 1000, 1), keys}},
		{70 * ms, 2100, []Share{share("read", 2, Held, 2000, 1), keys}},
		{80 * ms, 2100, []Share{share("end", 4, Held, 2000, 1), keys}},
		{90 * ms, 100, []Share{keys}},
	}
	got := tr.Levels(alloc.Host)
	if len(got) != len(want) {
		t.Fatalf("%d points, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("point %d is %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

func TestPeak(t *testing.T) {
	tr := handMade()
	at, bytes, shares := tr.Peak(alloc.Host)
	if at != 10*ms || bytes != 3100 || len(shares) != 2 || shares[0] != (Share{"make", 1, Held, 3000, 2}) || shares[1].Stage != "keys" {
		t.Errorf("the peak is %d at %v: %+v", bytes, at, shares)
	}
	if at, bytes, shares := tr.Peak(alloc.Device(0)); at != 15*ms || bytes != 7 || shares[0].Stage != "read" {
		t.Errorf("on the device %d at %v: %+v", bytes, at, shares)
	}
	if _, bytes, shares := tr.Peak(alloc.Pinned); bytes != 0 || shares != nil {
		t.Errorf("of pinned memory there is %d: %v", bytes, shares)
	}
	if live, peak := tr.CountTracked(alloc.Host); live != 100 || peak != 3100 {
		t.Errorf("tracked: %d live, peak %d", live, peak)
	}
	if s := tr.Spaces(); !reflect.DeepEqual(s, []alloc.Space{alloc.Host, alloc.Device(0)}) {
		t.Errorf("spaces %v", s)
	}
}

func TestQueueLengths(t *testing.T) {
	tr := handMade()
	for node, want := range [][]Length{
		nil,
		{{5 * ms, 1}, {6 * ms, 0}},
		{{20 * ms, 1}, {40 * ms, 0}},
		{{12 * ms, 1}, {20 * ms, 2}, {40 * ms, 1}, {80 * ms, 0}},
		{{40 * ms, 1}, {50 * ms, 0}},
		nil,
	} {
		if got := tr.QueueLengths(node); !reflect.DeepEqual(got, want) {
			t.Errorf("node %d: %v, want %v", node, got, want)
		}
	}
}

func TestStages(t *testing.T) {
	tr := handMade()
	got := tr.Stages()
	// make: two workers for 100 ms, 24 busy, 2 with a value that found no room.
	want := StageSummary{Node: 1, Stage: "make", Kind: pipeline.KindStage, Workers: 2, Capacity: 1, Items: 2,
		Busy: 24 * ms, WaitIn: 174 * ms, WaitOut: 2 * ms, Queue: ms, Mean: 12 * ms, P50: 10 * ms, P95: 14 * ms, Max: 14 * ms,
		Utilisation: 0.12, Made: alloc.HostBytes(3050), Held: alloc.HostBytes(3000), Length: 1}
	if got[1] != want {
		t.Errorf("make is %+v\nwant %+v", got[1], want)
	}
	// read: one worker for 60 ms, two for 40.
	want = StageSummary{Node: 2, Stage: "read", Kind: pipeline.KindStage, Workers: 1, Capacity: 2, Items: 2, Retries: 1,
		Busy: 68 * ms, WaitIn: 72 * ms, Queue: 20 * ms, Mean: 34 * ms, P50: 28 * ms, P95: 40 * ms, Max: 40 * ms,
		Utilisation: 68.0 / 140, Made: alloc.BytesIn(alloc.Device(0), 7),
		Held: alloc.HostBytes(2000).Add(alloc.BytesIn(alloc.Device(0), 7)), Queued: alloc.HostBytes(2000), Length: 1}
	if got[2] != want {
		t.Errorf("read is %+v\nwant %+v", got[2], want)
	}
	if j := got[3]; j.Items != 2 || j.Pending != alloc.HostBytes(1000) || j.Length != 2 || j.Queue != 88*ms {
		t.Errorf("join is %+v", j)
	}
	if e := got[4]; e.Items != 1 || e.Failed != 1 || e.Queue != 10*ms {
		t.Errorf("end is %+v", e)
	}
	if s := got[0]; s.Items != 2 || s.Busy != 0 {
		t.Errorf("source is %+v", s)
	}
}

func TestQuantile(t *testing.T) {
	var list []time.Duration
	for i := range 100 {
		list = append(list, time.Duration(i+1))
	}
	if p, q := quantile(list, 50), quantile(list, 95); p != 50 || q != 95 {
		t.Errorf("quantiles %d, %d", p, q)
	}
	if p := quantile(list[:1], 50); p != 1 {
		t.Errorf("of one: %d", p)
	}
}
