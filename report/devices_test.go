package report

import (
	"strings"
	"testing"
	"time"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/trace"
)

// TestCards: each card has its row and its part of the chart, against its own budget,
// without what its calls waited for a lane; cards that share a link are named there.
func TestCards(t *testing.T) {
	s := func(n int) time.Duration { return time.Duration(n) * time.Second }
	d0, d1 := alloc.Device(0), alloc.Device(1)
	budget := alloc.BytesIn(d0, 100*alloc.MiB)
	budget[d1] = 50 * alloc.MiB
	tr := &trace.Trace{Version: trace.Version, Wall: s(10),
		Graph: pipeline.Topology{Name: "g", Nodes: []pipeline.Node{{Name: "in", Kind: pipeline.KindSource},
			{Name: "ntt", Kind: pipeline.KindStage, Workers: 8, Capacity: 1, Preds: []int{0}}, {Name: "out", Kind: pipeline.KindSink, Workers: 1, Capacity: 1, Preds: []int{1}}}},
		Meta: trace.Meta{Budget: budget, Links: []trace.Link{{Name: "port 1", BytesPerSecond: 2 * float64(alloc.GiB)}, {Name: "port 2"}},
			Devices: []trace.Device{{Name: "cuda:0", Space: d0, Memory: alloc.GiB, Link: "port 1", Up: 3 * alloc.MiB}, {Name: "cuda:1", Space: d1, Link: "port 1"}}},
		Items: []trace.Item{{Key: pipeline.Key{Job: "a"}, Left: s(4)}, {Key: pipeline.Key{Job: "b"}, Left: s(9)}},
		Calls: []trace.Call{{Item: 0, Node: 1, Begin: 0, End: s(4), Out: s(4)}, {Item: 1, Node: 1, Worker: 1, Begin: 0, End: s(9), Out: s(9), Waited: s(3), Device: 1}},
		Buffers: []trace.Buffer{{Space: d0, Bytes: 7 * alloc.MiB, Item: trace.None, Call: trace.None},
			{Space: d0, Bytes: 25 * alloc.MiB, Item: 0, Call: 0, Born: s(1), Died: s(2), Stage: "ntt"}, {Space: d1, Bytes: 40 * alloc.MiB, Item: 1, Call: 1, Born: s(4), Died: s(5), Stage: "ntt"}}}
	p, err := pageOf(tr)
	if err != nil {
		t.Fatal(err)
	}
	want := []deviceRow{
		{Name: "cuda:0", Memory: "1.0 GiB", Kept: "7.0 MiB", Peak: "25 MiB (25%)", Budget: "100 MiB", Link: "port 1", Sent: "3.0 MiB", Calls: 1, Items: "1: a/0", Busy: "40%", Work: "ntt 4 s"},
		{Name: "cuda:1", Memory: noValue, Kept: noValue, Peak: "40 MiB (80%)", Budget: "50 MiB", Link: "port 1", Sent: noValue, Calls: 1, Items: "1: b/0", Busy: "60%", Work: "ntt 6 s"},
	}
	for i, w := range want {
		if i >= len(p.Devices) || p.Devices[i] != w {
			t.Errorf("row %d: %+v, want\n%+v", i, p.Devices, w)
		}
	}
	if len(p.Links) != 2 || p.Links[0].Value != "2.0 GiB a second, shared by cuda:0 and cuda:1" || p.Links[1].Value != "speed not known" {
		t.Errorf("%+v", p.Links)
	}
	html := pageText(t, tr)
	for _, text := range []string{"Calls at work, by device", "25 MiB (25%)", "shared by cuda:0 and cuda:1"} {
		if !strings.Contains(html, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	if _, ok := p.data.Charts["cards"]; !ok || p.Cards == nil {
		t.Error("there is no chart of the cards")
	}
	tr.Meta.Devices, tr.Meta.Links = nil, nil
	if p, err = pageOf(tr); err != nil || p.Cards != nil || len(p.Devices) != 0 {
		t.Errorf("without cards: %v, %+v", err, p)
	}
}
