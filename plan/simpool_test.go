package plan_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/plan"
)

// cards are costs of two stages, one of the host and one of a pool of n cards, which
// sends over a link of each card, or over one that all share.
func cards(n int, hostSeconds, cardSeconds float64, sent int64, shared bool) *plan.Costs {
	c := &plan.Costs{Machine: plan.Machine{Cores: 8}}
	for k := range n {
		link := "pcie"
		if !shared {
			link = "pcie " + string(rune('a'+k))
		}
		if k == 0 || !shared {
			c.Machine.Links = append(c.Machine.Links, plan.Link{Name: link, BytesPerSecond: 100})
		}
		c.Machine.Devices = append(c.Machine.Devices, plan.Device{Name: "cuda:" + string(rune('0'+k)), Pool: "cards", Space: alloc.Device(k), Link: link, Places: 4})
	}
	b := plan.Node{Lanes: 1, Steps: []plan.Step{{Seconds: cardSeconds, Device: "cards", LinkBytes: sent}}}
	b.Makes = []plan.Buffer{{Name: "x", Space: alloc.Device(0), Bytes: 10}}
	b.Scratch = []plan.Buffer{{Name: "s", Space: alloc.Device(0), Bytes: 5}}
	c.Nodes = map[string]plan.Node{"a": takes(hostSeconds), "b": b, "c": takes(0.01)}
	return c
}

func pair() *pipeline.Graph { return line([]string{"a", "b", "c"}) }

// TestPool: two cards do twice as much as one where the card limits, and not where
// the host or a link that they share does.
func TestPool(t *testing.T) {
	for _, x := range []struct {
		name       string
		host, card float64
		sent       int64
		shared     bool
		gain       float64
	}{
		{"the card", 0.1, 1, 0, false, 2},
		{"the host", 1, 0.1, 0, false, 1},
		{"a link of its own", 0.1, 0.1, 100, false, 2},
		{"a shared link", 0.1, 0.1, 100, true, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			run := func(n int) *plan.Prediction {
				return simulate(t, pair(), cards(n, x.host, x.card, x.sent, x.shared), plan.Settings{Items: 40})
			}
			one, two := run(1), run(2)
			if gain := two.Throughput / one.Throughput; math.Abs(gain-x.gain) > 0.1*x.gain {
				t.Errorf("two cards give %.2f times one, want %v\n%+v\n%+v", gain, x.gain, one.Use, two.Use)
			}
			for s := range 2 {
				if two.Peak[alloc.Device(s)] == 0 {
					t.Errorf("nothing was on card %d: %v", s, two.Peak)
				}
			}
		})
	}
}

// TestPoolKeeps: an item keeps to its card, where its buffers are, and as many items
// come to it as it has places; the budgets are those of each card.
func TestPoolKeeps(t *testing.T) {
	c := cards(2, 0.01, 1, 0, false)
	c.Machine.Devices[1].Speed = 0.5
	set := plan.Settings{Items: 30}
	if err := set.Set("budget.device0=40"); err != nil {
		t.Fatal(err)
	}
	if err := set.Set("budget.device1=15"); err != nil {
		t.Fatal(err)
	}
	if err := set.Set("a.capacity=unbounded"); err != nil {
		t.Fatal(err)
	}
	p := simulate(t, pair(), c, set, plan.Record())
	if p.Items != 30 || p.Err != "" {
		t.Fatalf("%+v", p)
	}
	if p.Reserved[alloc.Device(1)] != 15 || p.Reserved[alloc.Device(0)] > 40 || p.Reserved[alloc.Device(0)] < 30 || !p.Overdrawn.IsZero() {
		t.Errorf("reserved %v, overdrawn %v", p.Reserved, p.Overdrawn)
	}
	on := make(map[int]int) // devices of items
	count := [2]int{}
	for _, call := range p.Trace.Calls {
		if call.Device >= 0 {
			on[call.Item] = call.Device
			count[call.Device]++
		}
	}
	for _, b := range p.Trace.Buffers {
		if d := on[b.Item]; b.Space != alloc.Device(d) {
			t.Errorf("a buffer of an item of card %d is in %v", d, b.Space)
		}
	}
	if count[0] < 18 || count[0] > 22 {
		t.Errorf("calls by card: %v, want about two of three on the fast one", count)
	}
	// The slow card alone has no room for an item.
	if err := set.Set("budget.device1=10"); err != nil {
		t.Fatal(err)
	}
	if p = simulate(t, pair(), c, set); p.Items != 30 || p.Peak[alloc.Device(1)] != 0 {
		t.Errorf("%+v", p)
	}
	if err := set.Set("budget.device0=10"); err != nil {
		t.Fatal(err)
	}
	if p = simulate(t, pair(), c, set); !strings.Contains(p.Err, "can never fit in the budget") {
		t.Errorf("%+v", p)
	}
}

// TestLanes: a setting of workers is shared out among the cards.
func TestLanes(t *testing.T) {
	c := cards(2, 0.001, 1, 0, false)
	set := plan.Settings{Items: 8}
	most := func() (n int) {
		p := simulate(t, pair(), c, set, plan.Record())
		for _, x := range p.Trace.Calls {
			at := 0
			for _, y := range p.Trace.Calls {
				if x.Device >= 0 && x.Device == y.Device && y.Begin <= x.Begin && y.End > x.Begin {
					at++
				}
			}
			n = max(n, at)
		}
		return n
	}
	if n := most(); n != 1 {
		t.Errorf("a card has %d calls at once", n)
	}
	if err := set.Set("b.workers=4"); err != nil {
		t.Fatal(err)
	}
	if n := most(); n != 2 {
		t.Errorf("with 4 workers a card has %d calls at once", n)
	}
}

// TestPoolFile: pools, places and lanes are in a model file.
func TestPoolFile(t *testing.T) {
	c := cards(2, 1, 2, 3, true)
	var b bytes.Buffer
	if err := plan.WriteModel(&b, c); err != nil {
		t.Fatal(err)
	}
	got, err := plan.ReadModel(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Machine, c.Machine) || got.Nodes["b"].Lanes != 1 {
		t.Errorf("%+v", got)
	}
}
