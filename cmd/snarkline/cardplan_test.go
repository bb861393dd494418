package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/cuda/emulator"
	"github.com/snarkline/snarkline/trace"
)

// recordedOnCards is the recording of a run on cards whose launches take so long that
// the host's processors hardly matter.
func recordedOnCards(t *testing.T, n int) (string, *trace.Trace) {
	t.Helper()
	var cards []emulator.Card
	var names []string
	for i := range n {
		cards = append(cards, emulator.Card{Total: alloc.GiB, Launch: 3000})
		names = append(names, []string{"cuda:0", "cuda:1"}[i])
	}
	emulate(t, emulator.Config{Cards: cards})
	path := filepath.Join(t.TempDir(), "run.trace")
	sl(t, codeOK, "demo", "-q", "--device", strings.Join(names, ","), "--b2", "device", "--curve", "bn254", "--log-constraints", "11", "--partitions", "8", "--trace", path)
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, tr
}

// TestCardRecording: a recording has the cards, what connects them, what went there,
// on which of them each call of a card's stage was, and the buffers there.
func TestCardRecording(t *testing.T) {
	_, tr := recordedOnCards(t, 2)
	d := tr.Meta.Devices
	if len(d) != 2 || d[0].Memory != alloc.GiB || d[0].Up <= 0 || d[0].Down <= 0 || d[1].Up <= 0 || d[0].Space != alloc.Device(0) || d[1].Space != alloc.Device(1) {
		t.Fatalf("%+v", d)
	}
	if l := tr.Meta.Links; len(l) != 2 || d[0].Link != l[0].Name || d[1].Link != l[1].Name || l[0].BytesPerSecond <= 0 {
		t.Errorf("%+v, %+v", l, d)
	}
	of := make(map[int]int) // cards of items
	waited := false
	for _, c := range tr.Calls {
		switch tr.Graph.Nodes[c.Node].Name {
		case "prestage", "ntt", "h-msm", "batch-add", "tail-msm", "b_g2_msm":
			if c.Device < 0 {
				t.Errorf("a call of %s is on no card", tr.Graph.Nodes[c.Node].Name)
			}
			if on, ok := of[c.Item]; ok && on != c.Device {
				t.Errorf("item %d is on cards %d and %d", c.Item, on, c.Device)
			}
			of[c.Item] = c.Device
			waited = waited || c.Waited > 0
		default:
			if c.Device >= 0 {
				t.Errorf("a call of %s is on card %d", tr.Graph.Nodes[c.Node].Name, c.Device)
			}
		}
	}
	if !waited {
		t.Error("no call waited for its lane")
	}
	var bytes alloc.Amount
	for _, b := range tr.Buffers {
		bytes[b.Space] += b.Bytes
		if i := b.Space.DeviceIndex(); i >= 0 && b.Call >= 0 && tr.Calls[b.Call].Device != i {
			t.Errorf("a buffer of a call on card %d is in %v", tr.Calls[b.Call].Device, b.Space)
		}
	}
	for _, s := range []alloc.Space{alloc.Pinned, alloc.Device(0), alloc.Device(1)} {
		if bytes[s] == 0 {
			t.Errorf("no buffer in %v", s)
		}
	}
	for _, s := range tr.Devices() {
		if s.Items == 0 || s.Utilisation <= 0 || s.Peak <= 0 || s.Kept <= 0 || s.Budget <= 0 || s.Peak > s.Budget || len(s.Stages) != 6 {
			t.Errorf("%+v", s)
		}
	}
}

// TestCardPlan: of a recording of one card, two cards are told to be faster, though the
// host's cores, which an emulated card uses too, keep them from twice as much; over a
// link that carries too little they are not.
func TestCardPlan(t *testing.T) {
	path, _ := recordedOnCards(t, 1)
	r := sl(t, codeOK, "plan", path, "--items", "40", "--json", "--try", "devices=2", "--try", "link=20KiB", "--try", "devices=2 links=1 link=20KiB", "--try", "device-memory=600MiB")
	res := decode[planResult](t, r.stdout)
	if len(res.Rows) != 7 {
		t.Fatalf("%d rows", len(res.Rows))
	}
	rate := func(i int) float64 { return res.Rows[i].Outcome.Throughput }
	if gain := rate(3) / rate(2); gain < 1.05 || gain > 2.3 {
		t.Errorf("two cards give %.2f times as much", gain)
	}
	if gain := rate(5) / rate(4); gain > 1.1 || rate(4) > rate(2)/2 {
		t.Errorf("over a slow link: one card %.3f a second, two %.3f, over the other %.3f", rate(4), rate(5), rate(2))
	}
	if res.Rows[3].Outcome.Peak[alloc.Device(1)] == 0 || res.Rows[6].Outcome.Failure != nil {
		t.Errorf("%+v", res.Rows[3].Outcome)
	}
	if u := res.Rows[0].Outcome.Use; len(u) != 1 || u[0].Busy < 0.5 {
		t.Errorf("the recorded run used %+v", u)
	}
	sl(t, codeUsage, "plan", path, "--try", "devices=none")
}
